package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

// Blobs stand on shelves of shelfJobs neighboring job ids: a blob is put on the shelf of each spec that refers to
// it.
//
//   - Hashes are random. An index over all of them would dirty a page of its own for every blob; the index over (shelf,
//     hash) grows at its end only, a few pages a commit.
//   - Equal blobs of neighbors are kept once, which is what a loop of submissions makes.
//   - A blob may go when no spec of its own shelf refers to it, which a short range of ids tells.
//
// Their bytes are written in packs, each of one shelf: a row of a few KiB of its own would waste a third of the pages
// it fills. A pack goes when no blob of its shelf stands in it any more.
//
// Shelf loose holds what no spec refers to: the configurations of runs.
const (
	shelfJobs = 512
	loose     = -1
	packSize  = 16 << 10 // more would make the reading of one blob slow
)

func shelfOf(id core.JobID) int64 { return int64(id) / shelfJobs }

var (
	insertBlob = keepFirst("blobs", "shelf, hash", "shelf", "hash", "pack", "off", "len")
	insertPack = &Insert{Table: "packs", Cols: []string{"id", "data", "seal"}}
)

type blobKey struct {
	shelf int64
	hash  core.Hash
}

// recent remembers blobs that were committed lately, so that they are not packed again. Forgetting is harmless: the
// table keeps the first. It must forget whenever something else than a commit of its epoch may have changed the table.
type recent struct {
	mu    sync.Mutex
	epoch int64
	keys  map[blobKey]struct{}
}

const recentMax = 1 << 14

func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch, r.keys = 0, nil
}

func (r *recent) has(epoch int64, k blobKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch || len(r.keys) > recentMax {
		r.epoch, r.keys = epoch, map[blobKey]struct{}{}
	}
	_, ok := r.keys[k]
	return ok
}

func (r *recent) add(epoch int64, keys []blobKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch == epoch {
		for _, k := range keys {
			r.keys[k] = struct{}{}
		}
	}
}

// addBlobs packs the blobs of c that are not there already.
func addBlobs(b *Batch, c *core.Changes, known *recent, seal store.Sealer) error {
	if len(c.Blobs) == 0 {
		return nil
	}
	if len(c.Events) == 0 {
		return errors.New("store: blobs come with the event of what they belong to")
	}
	p := packer{
		b: b, c: c, known: known, seal: seal, index: make(map[core.Hash]int, len(c.Blobs)),
		at: make([]int64, len(c.Blobs)),
	}
	total := 0
	for i := range c.Blobs {
		p.index[c.Blobs[i].Hash] = i
		p.at[i] = nowhere
		total += len(c.Blobs[i].Data)
	}
	b.packed = slices.Grow(b.packed, total)
	for _, s := range c.Specs {
		p.put(shelfOf(s.ID), s.Spec.Script)
		p.put(shelfOf(s.ID), s.Spec.Env)
		p.put(shelfOf(s.ID), s.Spec.More().Files)
	}
	for _, r := range c.Runs {
		p.put(loose, r.Config)
		for h := range ofService(r) {
			p.put(loose, h)
		}
	}
	for i := range c.Blobs {
		if h := c.Blobs[i].Hash; p.at[p.index[h]] == nowhere {
			p.put(loose, h)
		}
	}
	return p.flush()
}

const nowhere = math.MinInt64

// packer puts blobs into packs: rows for the blobs first, then rows for the packs.
type packer struct {
	b     *Batch
	c     *core.Changes
	known *recent
	seal  store.Sealer      // nil: packs lie as they are
	index map[core.Hash]int // into c.Blobs
	at    []int64           // the shelf each was put on last
	shelf int64             // of the pack being filled, which begins
	from  int               // here in b.packed
	packs [][]byte
}

func (p *packer) put(shelf int64, h core.Hash) {
	i, ok := p.index[h]
	if !ok || p.at[i] == shelf {
		return
	}
	p.at[i] = shelf
	k := blobKey{shelf, h}
	if p.known.has(p.b.Fence.Epoch, k) {
		return
	}
	b, blob := p.b, &p.c.Blobs[i]
	used := len(b.packed) - p.from
	if used > 0 && (shelf != p.shelf || used+len(blob.Data) > packSize) {
		p.close()
		used = 0
	}
	p.shelf = shelf
	b.put = append(b.put, k)
	b.packed = append(b.packed, blob.Data...)
	b.row(insertBlob)
	b.int(shelf)
	b.bytes(blob.Hash[:])
	b.int(p.pack())
	b.int(int64(used))
	b.int(int64(len(blob.Data)))
}

// pack is the number of the pack being filled. That of the commit's first event is its own forever.
func (p *packer) pack() int64 { return p.c.Events[0].Seq<<20 + int64(len(p.packs)) }

func (p *packer) close() {
	p.packs = append(p.packs, p.b.packed[p.from:len(p.b.packed):len(p.b.packed)])
	p.from = len(p.b.packed)
}

func (p *packer) flush() error {
	if len(p.b.put) == 0 {
		return nil
	}
	p.close()
	b, first := p.b, p.c.Events[0].Seq<<20
	b.sealed = slices.Grow(b.sealed, len(b.packed)+len(p.packs)*sealRoom)
	for i, data := range p.packs {
		id, key := first+int64(i), int64(0)
		if p.seal != nil {
			at := len(b.sealed)
			sealed, k, err := p.seal.Append(b.sealed, packName(id), data)
			if err != nil {
				return err
			}
			b.sealed, data, key = sealed, sealed[at:], k
		} else if data == nil {
			data = []byte{}
		}
		b.row(insertPack)
		b.int(id)
		b.bytes(data)
		b.int(key)
	}
	return nil
}

// Blob finds a blob wherever it stands, looking at the newest shelves first.
func (db *DB) Blob(ctx context.Context, h core.Hash) ([]byte, error) {
	var at place
	err := db.engine.Read(ctx, func(tx Tx) (err error) {
		at, err = findBlob(tx, h)
		return err
	})
	if err != nil {
		return nil, err
	}
	return db.unpack(&at)
}

// Blobs finds blobs that the spec stored under id refers to: all on its shelf, most in one pack.
func (db *DB) Blobs(ctx context.Context, id core.JobID, hashes ...core.Hash) ([][]byte, error) {
	out, places := make([][]byte, len(hashes)), make([]place, len(hashes))
	var w where
	w.arg(shelfOf(id))
	cond := in(&w, "b.hash", hashes, func(h core.Hash) any { return h[:] })
	if len(hashes) == 0 {
		return out, nil
	}
	err := db.engine.Read(ctx, func(tx Tx) (err error) {
		var hash []byte
		var at place
		err = tx.Query(`SELECT b.hash, `+placeColumns+` WHERE b.shelf = $1 AND `+cond, w.args,
			append([]any{&hash}, at.dest()...), func() error {
				for i := range hashes {
					if string(hash) == string(hashes[i][:]) {
						places[i] = at.clone()
					}
				}
				return nil
			})
		for i := 0; i < len(hashes) && err == nil; i++ {
			if !places[i].found && !hashes[i].IsZero() {
				places[i], err = findBlob(tx, hashes[i])
			}
		}
		return err
	})
	for i := 0; i < len(hashes) && err == nil; i++ {
		if places[i].found {
			out[i], err = db.unpack(&places[i])
		}
	}
	return out, err
}

// place is where a blob stands, with its bytes, or the whole pack where that is sealed.
type place struct {
	pack, seal, off, len int64
	data                 []byte
	found                bool
}

const placeColumns = `b.pack, b.off, b.len, p.seal,
 CASE WHEN p.seal = 0 THEN substr(p.data, CAST(b.off AS INTEGER) + 1, CAST(b.len AS INTEGER)) ELSE p.data END
 FROM blobs b JOIN packs p ON p.id = b.pack`

func (p *place) dest() []any { return []any{&p.pack, &p.off, &p.len, &p.seal, &p.data} }

func (p *place) clone() place {
	c := *p
	c.data, c.found = append([]byte{}, p.data...), true
	return c
}

func (db *DB) unpack(p *place) ([]byte, error) {
	if p.seal == 0 {
		return p.data, nil
	}
	plain, err := db.openPack(p.pack, p.data)
	if err != nil {
		return nil, err
	}
	if p.off < 0 || p.len < 0 || p.off+p.len > int64(len(plain)) {
		return nil, fmt.Errorf("store: pack %d is shorter than what stands in it", p.pack)
	}
	return plain[p.off : p.off+p.len : p.off+p.len], nil
}

func findBlob(tx Tx, h core.Hash) (place, error) {
	var first, last int64
	if err := queryRow(tx, `SELECT COALESCE(MIN(shelf), 0) FROM blobs WHERE shelf >= 0`, nil, &first); err != nil {
		return place{}, err
	}
	if err := queryRow(tx, `SELECT COALESCE(MAX(shelf), 0) FROM blobs`, nil, &last); err != nil {
		return place{}, err
	}
	const step = 32 // shelves a statement looks at
	for at := last; at >= first; at -= step {
		var shelves []int64
		for s := at; s >= max(first, at-step+1); s-- {
			shelves = append(shelves, s)
		}
		found, err := blobOn(tx, h, shelves...)
		if !errors.Is(err, store.ErrNotFound) {
			return found, err
		}
	}
	return blobOn(tx, h, loose)
}

func blobOn(tx Tx, h core.Hash, shelves ...int64) (out place, err error) {
	var w where
	var at place
	w.arg(h[:])
	cond := in(&w, "b.shelf", shelves, intArg)
	text := `SELECT ` + placeColumns + ` WHERE b.hash = $1 AND ` + cond + ` LIMIT 1`
	err = tx.Query(text, w.args, at.dest(), func() error {
		out = at.clone()
		return nil
	})
	if err == nil && !out.found {
		err = store.ErrNotFound
	}
	return out, err
}

// sweep removes the blobs of a shelf that no spec on it refers to any more, and the packs that are empty then.
func sweep(tx Tx, shelf int64) error {
	var row specRow
	dec, wanted := &doc.Decoder{}, map[string]bool{}
	err := tx.Query(`SELECT `+specColumns+` FROM specs s WHERE s.id >= $1 AND s.id < $2`,
		[]any{shelf * shelfJobs, (shelf + 1) * shelfJobs},
		row.dest(), func() error {
			s, err := row.spec(dec) // files are rare and have no column of their own
			if err != nil {
				return err
			}
			files := s.More().Files
			wanted[string(row.script)], wanted[string(row.env)], wanted[string(files[:])] = true, true, true
			return nil
		})
	if err != nil {
		return err
	}
	return removeBlobs(tx, shelf, func(h []byte) bool { return wanted[string(h)] })
}

// removeBlobs removes the blobs of a shelf that are not wanted, and the packs in which none is left.
func removeBlobs(tx Tx, shelf int64, wanted func(hash []byte) bool) error {
	var hash []byte
	var pack int64
	var gone [][]byte
	full, touched := map[int64]bool{}, map[int64]bool{}
	err := tx.Query(`SELECT hash, pack FROM blobs WHERE shelf = $1`, []any{shelf}, []any{&hash, &pack}, func() error {
		if wanted(hash) {
			full[pack] = true
		} else {
			touched[pack] = true
			gone = append(gone, slices.Clone(hash))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(gone, 500) {
		var w where
		w.arg(shelf)
		cond := in(&w, "hash", chunk, func(h []byte) any { return h })
		if _, err := tx.Exec(`DELETE FROM blobs WHERE shelf = $1 AND `+cond, w.args...); err != nil {
			return err
		}
	}
	for pack := range touched {
		if full[pack] {
			continue
		}
		if _, err := tx.Exec(`DELETE FROM packs WHERE id = $1`, pack); err != nil {
			return err
		}
	}
	return nil
}
