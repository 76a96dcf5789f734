package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/sqlstore"
)

// engine is a sqlstore.Engine over a pool of connections.
type engine struct {
	pool *pgxpool.Pool

	mu sync.Mutex // one writer a process, so that they do not wait for the leader row inside the database
}

// writeTimeout bounds a write to a database that does not answer any more. The caller may have less patience.
const writeTimeout = 30 * time.Second

var _ sqlstore.Engine = (*engine)(nil)

// Open connects to the database that url names, in the form libpq takes, and brings its schema up to date.
func Open(ctx context.Context, url string) (store.Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "bireme"
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	// What was acknowledged is on disk, whatever the database's own default says.
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db, err := sqlstore.Open(ctx, &engine{pool: pool})
	if err != nil {
		return nil, err
	}
	return db, nil
}

func (e *engine) Close() error { e.pool.Close(); return nil }

// Dialect names PostgreSQL's own words. The lock's number is arbitrary and ours.
func (e *engine) Dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Name:  "postgres",
		Clock: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
		Lock:  "SELECT pg_advisory_xact_lock(6212020911)",
		Table: "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = $1",
	}
}

// Settle does nothing: dead rows are vacuum's, and the log is archived as the site has it.
func (e *engine) Settle(context.Context) error { return nil }

// Compact writes the tables that hold secrets again.
func (e *engine) Compact(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, table := range []string{"packs", "sealed", "fleets"} {
		if _, err := e.pool.Exec(ctx, "VACUUM FULL "+table); err != nil {
			return known(err)
		}
	}
	return nil
}

type tx struct {
	ctx context.Context
	pgx pgx.Tx
}

func (t tx) Exec(text string, args ...any) (int64, error) {
	tag, err := t.pgx.Exec(t.ctx, text, args...)
	return tag.RowsAffected(), err
}

func (t tx) Query(text string, args, dest []any, each func() error) error {
	rows, err := t.pgx.Query(t.ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	to := make([]any, len(dest))
	for i, d := range dest {
		to[i] = d
		if b, ok := d.(*[]byte); ok {
			to[i] = (*pgtype.DriverBytes)(b) // valid until the next row: no copy
		}
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (e *engine) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	return e.transaction(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
}

func (e *engine) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return e.transaction(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}

func (e *engine) Beside(ctx context.Context, f func(sqlstore.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return e.transaction(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
}

func (e *engine) transaction(ctx context.Context, opts pgx.TxOptions, f func(sqlstore.Tx) error) error {
	return known(pgx.BeginTxFunc(ctx, e.pool, opts, func(t pgx.Tx) error { return f(tx{ctx, t}) }))
}

// rowsAtOnce are the numbers of rows that statements are prepared for.
var rowsAtOnce = [...]int{64, 8, 1}

// fence fails when it matches no row: dividing by the number of rows is the shortest way to make a statement fail by
// its own result, without which the statements behind it would have to wait for an answer.
var fence = `WITH moved AS (` + sqlstore.Fence{}.Text() + ` RETURNING epoch) SELECT 1 / COUNT(*) FROM moved`

const divisionByZero = "22012"

func (e *engine) Apply(ctx context.Context, b *sqlstore.Batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var batch pgx.Batch
	args := make([]any, 0, 6)
	for _, n := range b.Fence.Args() {
		args = append(args, n)
	}
	batch.Queue(fence, args...)
	for i := range b.Ops {
		queue(&batch, &b.Ops[i])
	}
	// Without BEGIN: the statements of a batch are one transaction.
	err := e.pool.SendBatch(ctx, &batch).Close()
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == divisionByZero {
		return sqlstore.ErrFenced
	}
	return known(err)
}

func queue(batch *pgx.Batch, op *sqlstore.Op) {
	done := 0
	for _, size := range rowsAtOnce {
		if size > 1 && op.Insert.One != "" {
			continue
		}
		for ; op.Rows-done >= size; done += size {
			batch.Queue(op.Insert.SQL(size), arguments(op.Values(done, done+size))...)
		}
	}
}

func arguments(vals []sqlstore.Value) []any {
	args := make([]any, len(vals))
	for i := range vals {
		switch v := &vals[i]; v.Kind {
		case sqlstore.Int:
			args[i] = v.Int
		case sqlstore.Bool:
			args[i] = v.Int != 0
		case sqlstore.Text:
			args[i] = unsafe.String(unsafe.SliceData(v.Bytes), len(v.Bytes)) // they stay as they are until the batch is done
		case sqlstore.Bytes:
			args[i] = v.Bytes // never nil: that would be NULL
		case sqlstore.Null: // nil
		}
	}
	return args
}

// known marks the errors that the store's callers look for.
func known(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == 5 && pg.Code[:2] == "53" { // insufficient resources: disk_full and its kin
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}
