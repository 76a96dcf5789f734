package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	lib "modernc.org/sqlite/lib"

	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/sqlstore"
)

// readers is how many queries run at once; the rest wait.
const readers = 4

// pageSize: 16 KiB make big batches of submissions a fifth cheaper and all small commits dearer (BenchmarkStore).
const pageSize = 4096

// engine is a sqlstore.Engine over one file.
type engine struct {
	path string

	mu     sync.Mutex // held while the writer is used
	writer *conn

	idle chan *conn // readers; nil stands for one that has not been opened

	checkpointer

	once     sync.Once
	closed   chan struct{}
	closeErr error
}

var _ sqlstore.Engine = (*engine)(nil)

// Open opens or makes the database in the file path. The file is readable by its owner alone: it holds the scripts and
// environments of all users.
func Open(ctx context.Context, path string) (store.Store, error) {
	e, err := openEngine(path, usualLimits)
	if err != nil {
		return nil, err
	}
	db, err := sqlstore.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return db, nil
}

func openEngine(path string, lim limits) (_ *engine, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		err = nil // never opened here: closing it would drop the locks another connection of this process holds on it
	}
	if err != nil {
		return nil, err
	}
	e := &engine{
		path: path, idle: make(chan *conn, readers), closed: make(chan struct{}),
		checkpointer: checkpointer{limits: lim},
	}
	e.writer, err = openWith(path, fmt.Sprintf("PRAGMA page_size = %d", pageSize), "PRAGMA journal_mode = WAL",
		"PRAGMA cache_size = -16384")
	if err != nil {
		return nil, err
	}
	for range readers {
		e.idle <- nil
	}
	if err := e.checkpointer.start(e); err != nil {
		return nil, errors.Join(err, e.writer.close())
	}
	return e, nil
}

// busyTimeout is how long a connection waits for another's lock.
const busyTimeout = "PRAGMA busy_timeout = 5000"

// openWith opens a connection: waiting for locks comes first, so that nothing after it fails for a busy moment.
func openWith(path string, pragmas ...string) (*conn, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	all := []string{
		busyTimeout, "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON", "PRAGMA temp_store = MEMORY",
		"PRAGMA cache_size = -4096", // KiB; the kernel has the file's pages too
	}
	all = append(all, pragmas...)
	for _, p := range all {
		if _, err := c.run(p); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %s: %w", path, p, err), c.close())
		}
	}
	return c, nil
}

// Close ends the checkpointer, writes the log into the database and closes all connections. Reads still under way
// are waited for; those that come later get an error.
func (e *engine) Close() error {
	e.once.Do(func() {
		e.checkpointer.stop()
		close(e.closed)
		var errs []error
		for range readers {
			if c := <-e.idle; c != nil {
				errs = append(errs, c.close())
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.closeErr = errors.Join(append(errs, e.writer.close())...)
		e.writer = nil
	})
	return e.closeErr
}

var errClosed = errors.New("sqlite: the store is closed")

// Dialect names SQLite's own words. No lock is needed to migrate: a write transaction excludes all others.
func (e *engine) Dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Name:  "sqlite",
		Clock: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
		Table: "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = $1",
		Wipe:  "PRAGMA secure_delete = ON",
		Keep:  "PRAGMA secure_delete = OFF",
	}
}

type tx struct {
	ctx context.Context
	*conn
}

func (t tx) Exec(text string, args ...any) (int64, error) { return t.run(text, args...) }

func (t tx) Query(text string, args, dest []any, each func() error) error {
	return t.query(t.ctx, text, args, dest, each)
}

func (e *engine) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	var c *conn
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c = <-e.idle:
	case <-e.closed:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	if c == nil {
		var err error
		if c, err = openWith(e.path); err != nil {
			e.idle <- nil
			return err
		}
	}
	defer func() { e.idle <- c }()
	return c.transaction("BEGIN", func() error { return f(tx{ctx, c}) })
}

// Beside is Write: SQLite has one writer.
func (e *engine) Beside(ctx context.Context, f func(sqlstore.Tx) error) error { return e.Write(ctx, f) }

func (e *engine) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ready(ctx); err != nil {
		return err
	}
	return e.writer.transaction("BEGIN IMMEDIATE", func() error { return f(tx{ctx, e.writer}) })
}

func (e *engine) ready(ctx context.Context) error {
	if e.writer == nil {
		return errClosed
	}
	return ctx.Err()
}

// transaction runs f between begin and COMMIT, or ROLLBACK if something failed.
func (c *conn) transaction(begin string, f func() error) error {
	if _, err := c.run(begin); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = c.run("COMMIT")
	}
	if err != nil && lib.Xsqlite3_get_autocommit(c.tls, c.db) == 0 {
		// A failed COMMIT, or one that SQLite did not roll back by itself.
		if _, rerr := c.run("ROLLBACK"); rerr != nil {
			err = fmt.Errorf("%w (and rolling back: %w)", err, rerr)
		}
	}
	return err
}

func (e *engine) Apply(ctx context.Context, b *sqlstore.Batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ready(ctx); err != nil {
		return err
	}
	err := e.writer.transaction("BEGIN IMMEDIATE", func() error {
		if err := e.writer.fence(b.Fence); err != nil {
			return err
		}
		for i := range b.Ops {
			if err := e.writer.insert(&b.Ops[i]); err != nil {
				return err
			}
		}
		return nil
	})
	runtime.KeepAlive(b)
	return err
}

func (c *conn) fence(f sqlstore.Fence) error {
	s, err := c.prepare(f.Text())
	if err != nil {
		return err
	}
	defer c.release(s)
	for i, n := range f.Args() {
		if rc := lib.Xsqlite3_bind_int64(c.tls, s.p, int32(i+1), n); rc != lib.SQLITE_OK {
			return c.error(rc)
		}
	}
	if rc := lib.Xsqlite3_step(c.tls, s.p); rc != lib.SQLITE_DONE {
		return c.error(rc)
	}
	if lib.Xsqlite3_changes(c.tls, c.db) == 0 {
		return sqlstore.ErrFenced
	}
	return nil
}

// insert writes rows one by one. A statement of many rows would save little, binding is cheap here, and cost more:
// SQLite keeps copies of all pages such a statement changes, in case it must be undone half-way.
func (c *conn) insert(op *sqlstore.Op) error {
	s, err := c.prepare(op.Insert.SQL(1))
	if err != nil {
		return err
	}
	defer c.release(s)
	for r := range op.Rows {
		vals := op.Values(r, r+1)
		for i := range vals {
			if rc := c.bindValue(s, i+1, &vals[i]); rc != lib.SQLITE_OK {
				return c.error(rc)
			}
		}
		if rc := lib.Xsqlite3_step(c.tls, s.p); rc != lib.SQLITE_DONE {
			return fmt.Errorf("%s: %w", op.Insert.Table, c.error(rc))
		}
		if rc := lib.Xsqlite3_reset(c.tls, s.p); rc != lib.SQLITE_OK {
			return c.error(rc)
		}
	}
	return nil
}
