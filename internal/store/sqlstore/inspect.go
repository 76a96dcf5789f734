package sqlstore

import (
	"bytes"
	"context"
	"fmt"
)

// Facts are what a database says of itself without being opened as a store: nothing is migrated.
type Facts struct {
	Schema  int64  // of the database; 0: it is empty
	Known   int64  // the newest schema of this program
	Oldest  int64  // the oldest schema whose programs may write; at most Known: this one may
	Seq     int64  // of the last event
	NextJob int64  // the id that the next job gets
	Holder  string // who led last
	Epoch   int64  // how often the lead was taken
	Left    int64  // microseconds until the lease ends; negative: since it ended
	Now     int64  // the database's clock, in microseconds since 1970
	CA      []byte // the sealed certificate authority; nil: there is none yet
}

// Inspect reads facts. The engine is not closed.
func Inspect(ctx context.Context, e Engine) (f Facts, err error) {
	d := e.Dialect()
	all, err := migrationsOf(d.Name)
	if err != nil {
		return f, err
	}
	f.Known = int64(len(all))
	if err := e.Read(ctx, func(tx Tx) error { return f.read(tx, d) }); err != nil {
		return f, fmt.Errorf("look at the database: %w", err)
	}
	return f, nil
}

func (f *Facts) read(tx Tx, d Dialect) error {
	var n int64
	if err := queryRow(tx, d.Table, []any{"migrations"}, &n); err != nil || n == 0 {
		return err
	}
	if err := queryRow(tx, `SELECT COALESCE(MAX(number), 0) FROM migrations`, nil, &f.Schema); err != nil {
		return err
	}
	f.Oldest = f.Schema
	if f.Known < f.Schema {
		var err error
		if f.Oldest, err = oldestWriter(tx, f.Known); err != nil {
			return err
		}
	}
	err := queryRow(tx, `SELECT seq, next_job, holder, epoch, expires - `+d.Clock+`, `+d.Clock+` FROM leader`, nil,
		&f.Seq, &f.NextJob, &f.Holder, &f.Epoch, &f.Left, &f.Now)
	if err != nil {
		return err
	}
	var sealed []byte
	return tx.Query(`SELECT data FROM sealed WHERE name = $1`, []any{"ca"}, []any{&sealed}, func() error {
		f.CA = bytes.Clone(sealed)
		return nil
	})
}
