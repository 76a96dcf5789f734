package sqlstore

import (
	"context"

	"bireme.dev/bireme/internal/store"
)

// Sealed reads a secret.
func (db *DB) Sealed(ctx context.Context, name string) (out []byte, err error) {
	var data []byte
	found := false
	err = db.engine.Read(ctx, func(tx Tx) error {
		return tx.Query(`SELECT data FROM sealed WHERE name = $1`, []any{textArg(name)}, []any{&data}, func() error {
			out, found = append([]byte{}, data...), true
			return nil
		})
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return out, err
}

// PutSealed keeps a secret, the first one under each name.
func (db *DB) PutSealed(ctx context.Context, name string, data []byte) error {
	return db.engine.Write(ctx, func(tx Tx) error {
		_, err := tx.Exec(`INSERT INTO sealed (name, data) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, textArg(name),
			data)
		return err
	})
}
