// Package disk tells when a disk has too little room, without asking the kernel for each piece that is written.
package disk

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Watch watches the disk of one directory. The zero value is ready; it is safe for all goroutines.
type Watch struct {
	mu     sync.Mutex
	asked  time.Time
	since  int64 // bytes written since then
	isLow  bool
	asking bool
}

const (
	askEvery = 200 * time.Millisecond
	askAfter = 8 << 20
)

// Low reports whether fewer than least bytes are free for the n that somebody is about to write below dir. A disk that
// was low is well again when an eighth more is free, so that writers do not stop and continue all the time.
func (w *Watch) Low(dir string, least, n int64) bool {
	if least <= 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since += n
	if w.asking || w.since < askAfter && time.Since(w.asked) < askEvery {
		return w.isLow
	}
	w.asking = true
	was := w.isLow
	w.mu.Unlock()
	free, ok := Free(dir)
	w.mu.Lock()
	w.asking, w.asked, w.since = false, time.Now(), 0
	if was {
		least += least / 8
	}
	w.isLow = ok && free < least
	return w.isLow
}

// IsLow returns what Low last returned.
func (w *Watch) IsLow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isLow
}

// Free is how many bytes a user without privileges could still write below dir; false if the kernel does not say.
func Free(dir string) (int64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
