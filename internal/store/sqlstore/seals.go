package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"bireme.dev/bireme/internal/store"
)

// A batch of resealing holds the writer, so it takes little at a time.
const (
	resealPacks = 64
	resealBytes = 1 << 20
	sealRoom    = 64 // at least what sealing adds to a pack
)

// packName is what a pack is sealed under: one cannot stand in the place of another.
func packName(id int64) string { return "pack/" + strconv.FormatInt(id, 10) }

// SealWith has packs sealed from now on.
func (db *DB) SealWith(s store.Sealer) { db.seal.Store(&s) }

func (db *DB) sealer() store.Sealer {
	if s := db.seal.Load(); s != nil {
		return *s
	}
	return nil
}

func (db *DB) openPack(id int64, data []byte) ([]byte, error) {
	s := db.sealer()
	if s == nil {
		return nil, fmt.Errorf("store: pack %d is sealed, and there is no key", id)
	}
	return s.Unseal(packName(id), data)
}

// Seals tells the present key.
func (db *DB) Seals(ctx context.Context) (s store.SealState, err error) {
	err = db.engine.Read(ctx, func(tx Tx) (err error) {
		s, err = readSeals(tx)
		return err
	})
	return s, err
}

func readSeals(tx Tx) (s store.SealState, err error) {
	err = queryRow(tx, `SELECT seal, after, done, (SELECT COALESCE(MAX(id), 0) FROM packs) FROM seals`, nil, &s.Key,
		&s.After, &s.Done, &s.Last)
	return s, err
}

const noPack = math.MinInt64

// BeginReseal makes a key the present one.
func (db *DB) BeginReseal(ctx context.Context, epoch, key int64) error {
	return db.engine.Write(ctx, func(tx Tx) error {
		if err := fence(tx, epoch); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO seals (one, seal, after, done) VALUES (1, $1, $2, $3)
 ON CONFLICT (one) DO UPDATE SET seal = excluded.seal, after = excluded.after, done = excluded.done`,
			key, int64(noPack), false)
		return err
	})
}

// Compact removes what is left of what was overwritten.
func (db *DB) Compact(ctx context.Context) error { return db.engine.Compact(ctx) }

// stalePack is one to be sealed again.
type stalePack struct {
	id, seal, next int64 // its number, the key it is under, and the one it comes under
	data           []byte
}

// Reseal seals a batch again. What it reads and computes it does beside the writer; a pack that was purged meanwhile
// stays gone.
func (db *DB) Reseal(ctx context.Context, epoch int64) (s store.SealState, err error) {
	seal := db.sealer()
	if seal == nil {
		return s, errors.New("store: there is no key to seal with")
	}
	var packs []stalePack
	after := int64(0)
	err = db.engine.Read(ctx, func(tx Tx) (err error) {
		if s, err = readSeals(tx); err != nil || s.Done {
			return err
		}
		packs, after, err = stalePacks(tx, &s)
		return err
	})
	if err != nil || s.Done {
		return s, err
	}
	for i := range packs {
		if err := db.reseal(seal, &packs[i]); err != nil {
			return s, err
		}
	}
	names, err := db.staleNames(ctx, seal)
	if err != nil {
		return s, err
	}
	done := after == s.After && len(names) == 0 // the last batch found nothing
	if done {
		left, err := db.under(ctx, s.Key)
		if err != nil {
			return s, err
		}
		if left > 0 { // a commit was on its way with the old key
			done, after = false, noPack
		}
	}
	if done { // what was overwritten is gone before anybody is told that all is done
		if err := db.engine.Settle(ctx); err != nil {
			return s, err
		}
	}
	if err := db.writeResealed(ctx, epoch, packs, names, s.Key, after, done); err != nil {
		return s, err
	}
	s.After, s.Done = after, done
	return s, nil
}

// stalePacks reads the next packs and tells how far that is.
func stalePacks(tx Tx, s *store.SealState) (packs []stalePack, after int64, err error) {
	var p stalePack
	after = s.After
	errEnough := errors.New("enough")
	size := 0
	err = tx.Query(`SELECT id, seal, data FROM packs WHERE id > $1 ORDER BY id LIMIT $2`,
		[]any{s.After, int64(resealPacks)},
		[]any{&p.id, &p.seal, &p.data}, func() error {
			if size > resealBytes {
				return errEnough
			}
			size += len(p.data)
			after = p.id
			if p.seal != s.Key {
				packs = append(packs, stalePack{id: p.id, seal: p.seal, data: append([]byte{}, p.data...)})
			}
			return nil
		})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return packs, after, err
}

func (db *DB) reseal(seal store.Sealer, p *stalePack) error {
	plain := p.data
	if p.seal != 0 {
		var err error
		if plain, err = seal.Unseal(packName(p.id), p.data); err != nil {
			return err
		}
	}
	var err error
	p.data, p.next, err = seal.Append(nil, packName(p.id), plain)
	return err
}

// staleName is a secret of its own that is to be sealed again.
type staleName struct {
	name     string
	old, new []byte
}

func (db *DB) staleNames(ctx context.Context, seal store.Sealer) (all []staleName, err error) {
	err = db.engine.Read(ctx, func(tx Tx) error {
		all = nil
		var name string
		var data []byte
		return tx.Query(`SELECT name, data FROM sealed ORDER BY name`, nil, []any{&name, &data}, func() error {
			if !seal.Fresh(data) {
				all = append(all, staleName{name: name, old: append([]byte{}, data...)})
			}
			return nil
		})
	})
	for i := 0; i < len(all) && err == nil; i++ {
		s := &all[i]
		var plain []byte
		if plain, err = seal.Unseal(s.name, s.old); err == nil {
			s.new, _, err = seal.Append(nil, s.name, plain)
		}
	}
	return all, err
}

// under counts what is not under a key.
func (db *DB) under(ctx context.Context, key int64) (n int64, err error) {
	err = db.engine.Read(ctx, func(tx Tx) error {
		return queryRow(tx, `SELECT COUNT(*) FROM packs WHERE seal <> $1`, []any{key}, &n)
	})
	return n, err
}

func (db *DB) writeResealed(ctx context.Context, epoch int64, packs []stalePack, names []staleName, key, after int64,
	done bool,
) error {
	d := db.engine.Dialect()
	return db.engine.Write(ctx, func(tx Tx) (err error) {
		if d.Wipe != "" {
			if _, err := tx.Exec(d.Wipe); err != nil {
				return err
			}
			defer func() {
				_, kerr := tx.Exec(d.Keep)
				err = errors.Join(err, kerr)
			}()
		}
		if err := fence(tx, epoch); err != nil {
			return err
		}
		for i := range packs {
			p := &packs[i]
			if _, err := tx.Exec(`UPDATE packs SET data = $1, seal = $2 WHERE id = $3 AND seal = $4`, p.data, p.next, p.id,
				p.seal); err != nil {
				return err
			}
		}
		for i := range names {
			s := &names[i]
			if _, err := tx.Exec(`UPDATE sealed SET data = $1 WHERE name = $2 AND data = $3`, s.new, s.name, s.old); err != nil {
				return err
			}
		}
		// Only of the same key: another one may have become the present one meanwhile.
		_, err = tx.Exec(`UPDATE seals SET after = $1, done = $2 WHERE seal = $3`, after, done, key)
		return err
	})
}
