package sqlstore

import (
	"context"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// Leader tells who leads and how far the state is.
func (db *DB) Leader(ctx context.Context) (l store.Leader, err error) {
	var until, now int64
	err = db.engine.Read(ctx, func(tx Tx) error {
		return queryRow(tx, `SELECT holder, epoch, seq, expires, `+db.engine.Dialect().Clock+` FROM leader`, nil, &l.Holder,
			&l.Epoch, &l.Seq, &until, &now)
	})
	l.Left, l.Now = time.Duration(until-now)*time.Microsecond, core.Time(now)
	return l, err
}

// PutServer notes that a server is there.
func (db *DB) PutServer(ctx context.Context, id string, doc []byte) error {
	return db.engine.Beside(ctx, func(tx Tx) error {
		if doc == nil {
			_, err := tx.Exec(`DELETE FROM servers WHERE id = $1`, id)
			return err
		}
		_, err := tx.Exec(`INSERT INTO servers (id, seen_at, doc) VALUES ($1, `+db.engine.Dialect().Clock+
			`, $2) ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, doc = excluded.doc`, id, string(doc))
		return err
	})
}

// Servers are those that were noted.
func (db *DB) Servers(ctx context.Context) (out []store.ServerRow, err error) {
	var id string
	var age int64
	var doc []byte
	err = db.engine.Read(ctx, func(tx Tx) error {
		return tx.Query(`SELECT id, `+db.engine.Dialect().Clock+` - seen_at, doc FROM servers ORDER BY id`, nil,
			[]any{&id, &age, &doc}, func() error {
				out = append(out, store.ServerRow{
					ID: id, Age: time.Duration(age) * time.Microsecond, Doc: append([]byte(nil), doc...),
				})
				return nil
			})
	})
	return out, err
}
