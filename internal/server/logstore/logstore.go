package logstore

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// Key names a log.
type Key struct {
	Job     core.JobID
	Attempt int32
}

// maxOpen is how many logs stay open between two chunks.
const maxOpen = 256

// Store is a folder of logs. It is safe for all goroutines.
type Store struct {
	dir string

	mu   sync.Mutex
	logs map[Key]*entry
	idle *list.List // open entries nobody uses at the moment, oldest first
	// Logs that ended lately, so that who follows one after its end does not wait for it.
	ended map[Key]struct{}
	ring  []Key
}

// maxEnded is how many ended logs are remembered.
const maxEnded = 1 << 16

// entry is a log in use. Its lock is held for one write or one look, never while waiting.
type entry struct {
	key  Key
	refs int           // users; under Store.mu
	elem *list.Element // in Store.idle when refs is 0

	mu      sync.Mutex
	loaded  bool
	file    *os.File
	base    int64 // offset of the file's first byte
	end     int64 // offset after its last
	ended   bool
	changed chan struct{} // closed at the next change; nil when nobody waits
}

// New uses dir, which need not exist yet.
func New(dir string) *Store {
	return &Store{dir: dir, logs: map[Key]*entry{}, idle: list.New(), ended: map[Key]struct{}{}}
}

// Path is where the log of k is, or will be.
func (s *Store) Path(k Key) string {
	return filepath.Join(s.dir, strconv.FormatInt(int64(k.Job)/1000, 10),
		strconv.FormatInt(int64(k.Job), 10)+"."+strconv.FormatInt(int64(k.Attempt), 10)+".log")
}

func (s *Store) take(k Key) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.logs[k]
	if e == nil {
		e = &entry{key: k}
		_, e.ended = s.ended[k]
		s.logs[k] = e
	}
	e.refs++
	if e.elem != nil {
		s.idle.Remove(e.elem)
		e.elem = nil
	}
	return e
}

func (s *Store) put(e *entry) {
	var drop []*entry
	s.mu.Lock()
	e.refs--
	if e.refs == 0 {
		if e.ended {
			delete(s.logs, e.key)
			drop = append(drop, e)
		} else {
			e.elem = s.idle.PushBack(e)
		}
	}
	for s.idle.Len() > maxOpen {
		old := s.idle.Remove(s.idle.Front()).(*entry)
		delete(s.logs, old.key)
		drop = append(drop, old)
	}
	s.mu.Unlock()
	for _, d := range drop {
		if d.file != nil {
			_ = d.file.Close() // everything was written; a close of a regular file has nothing left to say
		}
	}
}

// load finds out what is on disk. e.mu is held.
func (s *Store) load(e *entry) error {
	if e.loaded {
		return nil
	}
	f, err := os.OpenFile(s.Path(e.key), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		e.loaded = true
		return nil
	}
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	text, err := os.ReadFile(s.basePath(e.key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, f.Close())
	}
	if len(text) > 0 {
		if e.base, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return errors.Join(fmt.Errorf("base of log %v: %w", e.key, err), f.Close())
		}
	}
	e.file, e.end, e.loaded = f, e.base+st.Size(), true
	return nil
}

func (s *Store) basePath(k Key) string { return strings.TrimSuffix(s.Path(k), ".log") + ".base" }

// create makes the file with its first byte at base. e.mu is held.
func (s *Store) create(e *entry, base int64) error {
	path := s.Path(e.key)
	open := func() (err error) {
		e.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		return err
	}
	err := open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = open()
		}
	}
	if err != nil {
		return err
	}
	if base > 0 {
		if err := os.WriteFile(s.basePath(e.key), strconv.AppendInt(nil, base, 10), 0o600); err != nil {
			return err
		}
	}
	e.base, e.end = base, base
	return nil
}

// Append adds data at offset and gives the offset up to which the store has the log. What it has already is dropped;
// data beyond its end is refused without error (have < offset tells the sender where to go on), except that an empty log
// may begin anywhere when it is a tail.
func (s *Store) Append(k Key, offset int64, data []byte, tail bool) (have int64, err error) {
	e := s.take(k)
	defer s.put(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := s.load(e); err != nil {
		return 0, fmt.Errorf("log of job %d: %w", k.Job, err)
	}
	if e.file == nil {
		if offset != 0 && !tail {
			return 0, nil
		}
		if err := s.create(e, offset); err != nil {
			return 0, fmt.Errorf("log of job %d: %w", k.Job, err)
		}
	}
	if offset > e.end {
		return e.end, nil
	}
	skip := e.end - offset
	if skip >= int64(len(data)) {
		return e.end, nil
	}
	n, err := e.file.WriteAt(data[skip:], e.end-e.base)
	e.end += int64(n)
	e.wake()
	if err != nil {
		return e.end, fmt.Errorf("log of job %d: %w", k.Job, err)
	}
	return e.end, nil
}

// End tells followers that nothing follows.
func (s *Store) End(k Key) {
	s.mu.Lock()
	if _, twice := s.ended[k]; !twice {
		if len(s.ring) >= maxEnded {
			delete(s.ended, s.ring[0])
			s.ring = s.ring[1:]
		}
		s.ended[k] = struct{}{}
		s.ring = append(s.ring, k)
	}
	e := s.logs[k]
	if e != nil {
		e.refs++
		if e.elem != nil {
			s.idle.Remove(e.elem)
			e.elem = nil
		}
	}
	s.mu.Unlock()
	if e == nil {
		return // nobody has it open
	}
	defer s.put(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.wake()
}

func (e *entry) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// Range gives the offsets the store has: [base, end). Both are zero for a log it does not have.
func (s *Store) Range(k Key) (base, end int64, err error) {
	e := s.take(k)
	defer s.put(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := s.load(e); err != nil {
		return 0, 0, fmt.Errorf("log of job %d: %w", k.Job, err)
	}
	return e.base, e.end, nil
}

// Copy writes the log from offset to w. With done it follows: at the end it waits for more until the log has ended, ctx
// is over, or done is closed, and then writes what is left. flush is called before each wait.
func (s *Store) Copy(ctx context.Context, w io.Writer, k Key, offset int64, done <-chan struct{}, flush func()) error {
	e := s.take(k)
	defer s.put(e)
	buf := make([]byte, 256<<10)
	follow := done != nil
	for {
		n, wait, err := s.next(e, &offset, buf, follow)
		if err != nil {
			return fmt.Errorf("log of job %d: %w", k.Job, err)
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			continue
		}
		if wait == nil {
			return nil
		}
		flush()
		select {
		case <-wait:
		case <-done:
			follow = false // one more look, then no more waiting
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next reads what is at offset into buf; with nothing there it gives a channel to wait on, or nil at the very end.
func (s *Store) next(e *entry, offset *int64, buf []byte, follow bool) (n int, wait <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := s.load(e); err != nil {
		return 0, nil, err
	}
	*offset = max(*offset, e.base)
	if *offset < e.end {
		n, err := e.file.ReadAt(buf[:min(int64(len(buf)), e.end-*offset)], *offset-e.base)
		if n == 0 && err != nil {
			return 0, nil, err
		}
		*offset += int64(n)
		return n, nil, nil
	}
	if e.ended || !follow {
		return 0, nil, nil
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return 0, e.changed, nil
}

// Close closes what is open. Nobody may use the store afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, e := range s.logs {
		if e.file != nil {
			errs = append(errs, e.file.Close())
		}
	}
	s.logs = map[Key]*entry{}
	return errors.Join(errs...)
}
