package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// limits are in pages of the log.
type limits struct {
	copy  int32 // so many that were not copied are worth a copy
	renew int32 // so long a log must begin again
	last  int32 // so many may be copied while the writer waits
}

var usualLimits = limits{copy: 32 << 20 / pageSize, renew: 128 << 20 / pageSize, last: 4 << 20 / pageSize}

// checkpointer copies the log into the database beside the writer. Copying alone does not shorten the log: it begins
// again only when a transaction starts while all of it has been copied. A pause of the writer gives that moment. Under
// a steady stream of commits it would never come, so when the log is long its last pages are copied with the writer
// held.
type checkpointer struct {
	limits
	conn   *conn
	pages  atomic.Int32                                                  // in the log after the last commit
	copied atomic.Int32                                                  // of them
	hook   func(tls *libc.TLS, arg, db, name uintptr, pages int32) int32 // called by the library after each commit
	grower grower
	wake   chan struct{}
	quit   chan struct{}
	done   sync.WaitGroup
}

func (k *checkpointer) start(e *engine) (err error) {
	if k.conn, err = openWith(e.path); err != nil {
		return err
	}
	k.wake, k.quit = make(chan struct{}, 1), make(chan struct{})
	k.grower.file, k.grower.wake = e.path+"-wal", make(chan struct{}, 1)
	k.hook = func(_ *libc.TLS, _, _, _ uintptr, pages int32) int32 {
		if k.pages.Swap(pages) > pages {
			k.copied.Store(0) // it began again
		}
		k.grower.reached(pages)
		if pages-k.copied.Load() > k.limits.copy {
			select {
			case k.wake <- struct{}{}:
			default:
			}
		}
		return lib.SQLITE_OK
	}
	// A C function pointer is, in the translated library, the address of a Go function value. k keeps it alive. It
	// takes the place of SQLite's own hook, which would checkpoint in the writer.
	lib.Xsqlite3_wal_hook(e.writer.tls, e.writer.db, *(*uintptr)(unsafe.Pointer(&k.hook)), 0)
	k.done.Go(func() { k.run(e) })
	k.done.Go(func() { k.grower.run(k.quit, k.pages.Load) })
	return nil
}

func (k *checkpointer) stop() {
	close(k.quit)
	k.done.Wait()
	_ = k.conn.close() // nothing is lost: the log stays
}

func (k *checkpointer) run(e *engine) {
	for {
		select {
		case <-k.quit:
			return
		case <-k.wake:
		}
		// An error (a full disk) shows at the next commit or the next try; the log keeps everything.
		k.advance()
		if k.pages.Load() < k.renew {
			continue
		}
		for tries := 0; tries < 4 && k.pages.Load()-k.copied.Load() > k.last; tries++ {
			k.advance()
		}
		e.mu.Lock()
		k.advance()
		e.mu.Unlock()
	}
}

func (k *checkpointer) advance() {
	if copied, ok := k.conn.checkpoint(); ok {
		k.copied.Store(copied)
	}
}

// checkpoint copies what no reader stands in the way of, and returns how many pages of the log have been copied in all.
func (c *conn) checkpoint() (copied int32, ok bool) {
	rc := lib.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, lib.SQLITE_CHECKPOINT_PASSIVE,
		uintptr(unsafe.Pointer(&c.counts[0])), uintptr(unsafe.Pointer(&c.counts[1])))
	return c.counts[1], rc == lib.SQLITE_OK
}

// Settle writes the whole log into the database and cuts its file to nothing, so that what was overwritten there is
// gone. Most of it is copied beside the writer. A reader that is at an older state stands in the way: the writer does
// not wait for it, it is tried again.
func (e *engine) Settle(ctx context.Context) error {
	const tries, pause = 200, 50 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range tries {
		e.wakeCheckpointer()
		if done, err := e.cutLog(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return errors.New("sqlite: the log cannot be cut: somebody reads all the time")
}

func (e *engine) wakeCheckpointer() {
	select {
	case e.checkpointer.wake <- struct{}{}:
	default:
	}
}

func (e *engine) cutLog() (done bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writer == nil {
		return false, errClosed
	}
	if _, err := e.writer.run("PRAGMA busy_timeout = 0"); err != nil {
		return false, err
	}
	rc := lib.Xsqlite3_wal_checkpoint_v2(e.writer.tls, e.writer.db, 0, lib.SQLITE_CHECKPOINT_TRUNCATE, 0, 0)
	if _, err := e.writer.run(busyTimeout); err != nil {
		return false, err
	}
	switch rc & 0xff {
	case lib.SQLITE_OK:
		e.checkpointer.pages.Store(0)
		e.checkpointer.copied.Store(0)
		return true, nil
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return false, nil
	}
	return false, fmt.Errorf("sqlite: the log cannot be cut: code %d", rc)
}

// Compact writes the database again, so that pages hold nothing of what was there before.
func (e *engine) Compact(ctx context.Context) error {
	e.mu.Lock()
	if e.writer == nil {
		e.mu.Unlock()
		return errClosed
	}
	_, err := e.writer.run("VACUUM")
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return e.Settle(ctx)
}
