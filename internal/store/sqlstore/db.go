package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/doc"
)

// DB is a store.Store over an Engine.
type DB struct {
	engine Engine
	batch  sync.Pool // *Batch, for its memory
	recent recent
	seal   atomic.Pointer[store.Sealer] // nil: none
}

var _ store.Store = (*DB)(nil)

// Open migrates the database behind e and returns the store over it. The DB owns e from then on, also when Open fails.
func Open(ctx context.Context, e Engine) (*DB, error) {
	if err := Migrate(ctx, e); err != nil {
		return nil, joinClose(err, e)
	}
	return &DB{engine: e, batch: sync.Pool{New: func() any { return new(Batch) }}}, nil
}

func joinClose(err error, e Engine) error {
	if cerr := e.Close(); cerr != nil {
		return fmt.Errorf("%w (and closing it: %w)", err, cerr)
	}
	return err
}

// Close closes the database.
func (db *DB) Close() error { return db.engine.Close() }

// Commit writes c.
func (db *DB) Commit(ctx context.Context, epoch int64, c *core.Changes) error {
	b := db.batch.Get().(*Batch)
	defer db.batch.Put(b)
	b.reset()
	b.Fence = Fence{
		Epoch: epoch, Before: -1, Events: int64(len(c.Events)),
		NextJob: int64(c.NextJob), NextNode: c.NextNode, Now: int64(c.Now),
	}
	if len(c.Events) > 0 {
		b.Fence.Before = c.Events[0].Seq - 1
	}
	if err := addChanges(b, c, &db.recent, db.sealer()); err != nil {
		return err
	}
	b.done()
	err := db.engine.Apply(ctx, b)
	if err == nil {
		db.recent.add(epoch, b.put)
		return nil
	}
	db.recent.forget()
	if errors.Is(err, ErrFenced) {
		return db.whyFenced(ctx, epoch, c)
	}
	return err
}

func addChanges(b *Batch, c *core.Changes, known *recent, seal store.Sealer) error {
	if err := addBlobs(b, c, known, seal); err != nil {
		return err
	}
	for i := range c.Specs {
		addSpec(b, &c.Specs[i])
	}
	for _, j := range c.Jobs {
		addJob(b, j)
	}
	for i := range c.Keys {
		addKey(b, &c.Keys[i])
	}
	for _, s := range c.Steps {
		addStep(b, s)
	}
	for _, n := range c.GoneNodes {
		goneNode(b, n)
	}
	for _, n := range c.Nodes {
		addNode(b, n)
	}
	for _, name := range c.GoneUsers {
		gone(b, deleteUser, string(name))
	}
	for _, u := range c.Users {
		addUser(b, u)
	}
	addPolicy(b, c)
	addFleets(b, c)
	addCredentials(b, c)
	addVolumes(b, c)
	for _, p := range c.Projects {
		addProject(b, p)
	}
	for _, x := range c.Spent {
		addSpent(b, x)
	}
	for _, id := range c.GoneTokens {
		goneToken(b, id)
	}
	for _, t := range c.Tokens {
		addToken(b, t)
	}
	for _, r := range c.Runs {
		addRun(b, r)
	}
	return addEvents(b, c.Events)
}

// reset empties the batch, keeps its memory within reason and lets go of what it pointed to.
func (b *Batch) reset() {
	clear(b.vals)
	b.Ops, b.vals, b.buf, b.packed, b.sealed, b.put = b.Ops[:0], b.vals[:0], b.buf[:0], b.packed[:0], b.sealed[:0],
		b.put[:0]
	if cap(b.buf) > 4<<20 {
		b.buf = nil
	}
	if cap(b.packed) > 8<<20 {
		b.packed = nil
	}
	if cap(b.sealed) > 8<<20 {
		b.sealed = nil
	}
}

// whyFenced returns why the fence held: somebody else leads, or the caller's events do not follow the last one.
func (db *DB) whyFenced(ctx context.Context, epoch int64, c *core.Changes) error {
	var have, seq int64
	err := db.engine.Read(ctx, func(tx Tx) error {
		return queryRow(tx, `SELECT epoch, seq FROM leader`, nil, &have, &seq)
	})
	switch {
	case err != nil:
		return err
	case have != epoch:
		return store.ErrStale
	default:
		return fmt.Errorf("store: events from %d do not follow %d", c.Events[0].Seq, seq)
	}
}

// Lead takes or extends leadership. By the database's clock an epoch is a moment: where a standby that had not heard of
// the last epochs became the database, none of them is given twice.
func (db *DB) Lead(ctx context.Context, holder string, ttl time.Duration, renew int64, now core.Time) (
	epoch int64, err error,
) {
	present := db.engine.Dialect().Clock
	clock := `CASE WHEN CAST($1 AS BIGINT) = 0 THEN ` + present + ` ELSE CAST($1 AS BIGINT) END`
	err = db.engine.Beside(ctx, func(tx Tx) error {
		args := []any{int64(now), ttl.Microseconds(), holder}
		if renew != 0 {
			return queryRow(tx, `UPDATE leader SET expires = `+clock+` + $2 WHERE holder = $3 AND epoch = $4 RETURNING epoch`,
				append(args, renew), &epoch)
		}
		return queryRow(tx, `UPDATE leader SET epoch = CASE WHEN CAST($1 AS BIGINT) = 0 AND epoch < `+present+` THEN `+
			present+` ELSE epoch + 1 END, expires = `+clock+` + $2, holder = $3
 WHERE holder = $3 OR holder = '' OR expires <= `+clock+` RETURNING epoch`, args, &epoch)
	})
	if errors.Is(err, store.ErrNotFound) {
		if renew != 0 {
			return 0, store.ErrStale
		}
		return 0, db.heldBy(ctx)
	}
	return epoch, err
}

// heldBy is ErrHeld with the name of the one who leads.
func (db *DB) heldBy(ctx context.Context) error {
	var name string
	err := db.engine.Read(ctx, func(tx Tx) error { return queryRow(tx, `SELECT holder FROM leader`, nil, &name) })
	if err != nil || name == "" {
		return store.ErrHeld
	}
	return fmt.Errorf("%w: %s", store.ErrHeld, name)
}

// Probe writes and removes something big enough to need room.
func (db *DB) Probe(ctx context.Context, epoch int64) error {
	room := make([]byte, 1<<20)
	err := db.engine.Write(ctx, func(tx Tx) error {
		if err := fence(tx, epoch); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO probe (one, data) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET data = `+
			`excluded.data`, room)
		return err
	})
	if err != nil {
		return err
	}
	return db.engine.Write(ctx, func(tx Tx) error {
		_, err := tx.Exec(`DELETE FROM probe`)
		return err
	})
}

// fence makes a transaction fail when epoch leads no more, and excludes other leaders until it ends.
func fence(tx Tx, epoch int64) error {
	n, err := tx.Exec(`UPDATE leader SET epoch = epoch WHERE epoch = $1`, epoch)
	if err == nil && n == 0 {
		err = store.ErrStale
	}
	return err
}

// queryRow reads one row, or gives ErrNotFound.
func queryRow(tx Tx, text string, args []any, dest ...any) error {
	found := false
	err := tx.Query(text, args, dest, func() error { found = true; return nil })
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return err
}

// readDocs reads rows of an id, or whatever the key is, and a document into values of T.
func readDocs[T any](tx Tx, d docs[T], dec *doc.Decoder, text string, args []any, key []any, set func(*T)) (
	[]*T, error,
) {
	var all []*T
	var body []byte
	err := tx.Query(text, args, append(key, &body), func() error {
		v := new(T)
		if err := d.read(dec, body, v); err != nil {
			return err
		}
		set(v)
		all = append(all, v)
		return nil
	})
	return all, err
}

// where builds a condition with its arguments.
type where struct {
	text strings.Builder
	args []any
}

// arg adds an argument and gives its placeholder.
func (w *where) arg(v any) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args))
}

func (w *where) and(cond string) {
	if w.text.Len() > 0 {
		w.text.WriteString(" AND ")
	}
	w.text.WriteString(cond)
}

// in is "column IN (…)" for values made from list.
func in[T any](w *where, column string, list []T, value func(T) any) string {
	marks := make([]string, len(list))
	for i, v := range list {
		marks[i] = w.arg(value(v))
	}
	return column + " IN (" + strings.Join(marks, ", ") + ")"
}

func textArg[T ~string](s T) any { return clean(string(s)) }
func intArg[T ~int64](n T) any   { return int64(n) }
