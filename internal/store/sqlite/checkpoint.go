package sqlite

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// walLimit is how many pages the log may have before it is copied into the database: 32 MB.
const walLimit = 32 << 20 / pageSize

// lastPages is the part of the log that may be copied while the writer waits: 4 MB.
const lastPages = 4 << 20 / pageSize

// checkpointer copies the log into the database beside the writer. Copying alone does not shorten the log: it begins anew
// only when a transaction starts while all of it has been copied. Under a steady stream of commits that moment would
// never come, so the last few pages are copied with the writer held.
type checkpointer struct {
	conn  *conn
	pages atomic.Int32                                                  // in the log after the last commit
	hook  func(tls *libc.TLS, arg, db, name uintptr, pages int32) int32 // called by the library after each commit
	wake  chan struct{}
	quit  chan struct{}
	done  sync.WaitGroup
	once  sync.Once
}

func (k *checkpointer) start(e *engine) (err error) {
	if k.conn, err = openWith(e.path); err != nil {
		return err
	}
	k.wake, k.quit = make(chan struct{}, 1), make(chan struct{})
	k.hook = func(_ *libc.TLS, _, _, _ uintptr, pages int32) int32 {
		k.pages.Store(pages)
		if pages >= walLimit {
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
		for range 4 {
			// An error here (a full disk) shows at the next commit or the next try; the log keeps everything.
			if copied, ok := k.conn.checkpoint(); !ok || k.pages.Load()-copied < lastPages {
				break
			}
		}
		e.mu.Lock()
		k.conn.checkpoint()
		e.mu.Unlock()
	}
}

// checkpoint copies what no reader stands in the way of, and tells how many pages of the log have been copied in all.
func (c *conn) checkpoint() (copied int32, ok bool) {
	rc := lib.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, lib.SQLITE_CHECKPOINT_PASSIVE,
		uintptr(unsafe.Pointer(&c.counts[0])), uintptr(unsafe.Pointer(&c.counts[1])))
	return c.counts[1], rc == lib.SQLITE_OK
}
