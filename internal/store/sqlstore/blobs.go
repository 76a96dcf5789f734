package sqlstore

import (
	"bytes"
	"context"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// Blobs stand on shelves of shelfJobs neighbouring job ids: a blob is put on the shelf of each spec that refers to it.
//
//   - Hashes are random. An index over all of them would dirty a page of its own for every blob; the index over (shelf,
//     hash) grows at its end only, a few pages a commit.
//   - Equal blobs of neighbours are kept once, which is what a loop of submissions makes.
//   - A blob may go when no spec of its own shelf refers to it, which a short range of ids tells.
//
// Shelf loose holds what no spec refers to: the configurations of runs.
const (
	shelfJobs = 512
	loose     = -1
)

func shelfOf(id core.JobID) int64 { return int64(id) / shelfJobs }

var insertBlob = keepFirst("blobs", "shelf, hash", "shelf", "hash", "data")

func addBlobs(b *Batch, c *core.Changes) {
	if len(c.Blobs) == 0 {
		return
	}
	wanted := make(map[core.Hash]int64, 2*len(c.Specs)) // where it goes; more places if specs on two shelves share it
	var more []core.SpecRow
	for _, s := range c.Specs {
		at := shelfOf(s.ID)
		for _, h := range [...]core.Hash{s.Spec.Script, s.Spec.Env} {
			if was, ok := wanted[h]; ok && was != at {
				more = append(more, s)
			} else {
				wanted[h] = at
			}
		}
	}
	for i := range c.Blobs {
		blob := &c.Blobs[i]
		at, ok := wanted[blob.Hash]
		if !ok {
			at = loose
		}
		addBlob(b, at, blob)
		for _, s := range more {
			if other := shelfOf(s.ID); other != at && (s.Spec.Script == blob.Hash || s.Spec.Env == blob.Hash) {
				addBlob(b, other, blob)
			}
		}
		if ok && slices.ContainsFunc(c.Runs, func(r *core.Run) bool { return r.Config == blob.Hash }) {
			addBlob(b, loose, blob)
		}
	}
}

func addBlob(b *Batch, shelf int64, blob *core.Blob) {
	b.row(insertBlob)
	b.int(shelf)
	b.bytes(blob.Hash[:])
	if blob.Data == nil {
		b.bytes([]byte{})
	} else {
		b.bytes(blob.Data)
	}
}

// Blob finds a blob wherever it stands, looking at the newest shelves first.
func (db *DB) Blob(ctx context.Context, h core.Hash) (data []byte, err error) {
	err = db.engine.Read(ctx, func(tx Tx) error {
		data, err = findBlob(tx, h)
		return err
	})
	return data, err
}

// Blobs finds blobs that the spec stored under id refers to.
func (db *DB) Blobs(ctx context.Context, id core.JobID, hashes ...core.Hash) ([][]byte, error) {
	out := make([][]byte, len(hashes))
	err := db.engine.Read(ctx, func(tx Tx) (err error) {
		for i, h := range hashes {
			if h.IsZero() {
				continue
			}
			out[i], err = blobOn(tx, h, shelfOf(id))
			if err == store.ErrNotFound {
				out[i], err = findBlob(tx, h)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

func findBlob(tx Tx, h core.Hash) ([]byte, error) {
	var first, last int64
	if err := queryRow(tx, `SELECT COALESCE(MIN(shelf), 0) FROM blobs WHERE shelf >= 0`, nil, &first); err != nil {
		return nil, err
	}
	if err := queryRow(tx, `SELECT COALESCE(MAX(shelf), 0) FROM blobs`, nil, &last); err != nil {
		return nil, err
	}
	const step = 32 // shelves a statement looks at
	for at := last; at >= first; at -= step {
		var shelves []int64
		for s := at; s >= max(first, at-step+1); s-- {
			shelves = append(shelves, s)
		}
		data, err := blobOn(tx, h, shelves...)
		if err != store.ErrNotFound {
			return data, err
		}
	}
	return blobOn(tx, h, loose)
}

func blobOn(tx Tx, h core.Hash, shelves ...int64) ([]byte, error) {
	var w where
	var data, out []byte
	w.arg(h[:])
	cond := in(&w, "shelf", shelves, intArg)
	found := false
	err := tx.Query(`SELECT data FROM blobs WHERE hash = $1 AND `+cond+` LIMIT 1`, w.args, []any{&data}, func() error {
		out, found = append([]byte{}, data...), true
		return nil
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return out, err
}

// sweep removes those of gone that no spec on the shelf refers to any more.
func sweep(tx Tx, shelf int64, gone [][]byte) error {
	from, to := shelf*shelfJobs, (shelf+1)*shelfJobs
	var script, env []byte
	kept := map[string]bool{}
	err := tx.Query(`SELECT script, env FROM specs WHERE id >= $1 AND id < $2`, []any{from, to}, []any{&script, &env}, func() error {
		kept[string(script)], kept[string(env)] = true, true
		return nil
	})
	if err != nil {
		return err
	}
	if len(kept) == 0 {
		_, err := tx.Exec(`DELETE FROM blobs WHERE shelf = $1`, shelf)
		return err
	}
	slices.SortFunc(gone, bytes.Compare)
	gone = slices.CompactFunc(gone, bytes.Equal)
	gone = slices.DeleteFunc(gone, func(h []byte) bool { return kept[string(h)] })
	for chunk := range slices.Chunk(gone, 500) {
		var w where
		w.arg(shelf)
		cond := in(&w, "hash", chunk, func(h []byte) any { return h })
		if _, err := tx.Exec(`DELETE FROM blobs WHERE shelf = $1 AND `+cond, w.args...); err != nil {
			return err
		}
	}
	return nil
}
