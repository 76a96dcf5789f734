package sqlstore

import (
	"context"
	"errors"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

// Keys are random like hashes, and stand on the same shelves for the same reason. That a key is used once is the
// engine's business: it holds all of them in memory.
var insertKey = keepFirst("submit_keys", "shelf, key", "shelf", "key", "job", "at", "usr")

func addKey(b *Batch, k *core.SubmitKey) {
	b.row(insertKey)
	b.int(shelfOf(k.Job))
	b.text(k.Key)
	b.int(int64(k.Job))
	b.int(int64(k.At))
	b.text(string(k.User))
}

// SubmitKey finds the job that a key made.
func (db *DB) SubmitKey(ctx context.Context, key string) (core.JobID, error) {
	var job int64
	err := db.engine.Read(ctx, func(tx Tx) error {
		var first, last int64
		if err := queryRow(tx, `SELECT COALESCE(MIN(shelf), 0) FROM submit_keys`, nil, &first); err != nil {
			return err
		}
		if err := queryRow(tx, `SELECT COALESCE(MAX(shelf), 0) FROM submit_keys`, nil, &last); err != nil {
			return err
		}
		const step = 32
		for at := last; at >= first; at -= step {
			var w where
			var shelves []int64
			for s := at; s >= max(first, at-step+1); s-- {
				shelves = append(shelves, s)
			}
			w.arg(textArg(key))
			err := queryRow(tx, `SELECT job FROM submit_keys WHERE key = $1 AND `+in(&w, "shelf", shelves, intArg), w.args, &job)
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return store.ErrNotFound
	})
	return core.JobID(job), err
}

func readKeys(tx Tx) ([]core.SubmitKey, error) {
	var all []core.SubmitKey
	var key, usr []byte
	var job, at int64
	var dec doc.Decoder
	err := tx.Query(`SELECT key, job, at, usr FROM submit_keys`, nil, []any{&key, &job, &at, &usr}, func() error {
		all = append(all, core.SubmitKey{
			Key: string(key), Job: core.JobID(job), At: core.Time(at),
			User: core.UserName(dec.Intern(usr)),
		})
		return nil
	})
	return all, err
}
