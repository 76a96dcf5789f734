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
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/disk"
)

// Key names a log.
type Key struct {
	Job     core.JobID
	Attempt int32
}

// maxOpen is how many logs stay open between two chunks.
const maxOpen = 256

// Store is a directory of logs. It is safe for all goroutines.
type Store struct {
	dir    string
	bounds atomic.Pointer[Bounds]
	disk   disk.Watch
	usage  usage
	times  bool // when output came is kept; see KeepTimes

	mu   sync.Mutex
	logs map[Key]*entry
	idle *list.List // open entries nobody uses at the moment, oldest first
	// Logs that ended lately, so that who follows one after its end does not wait for it.
	ended map[Key]struct{}
	ring  []Key
}

// maxEnded is how many ended logs are remembered.
const maxEnded = 1 << 16

// entry is a log in use.
type entry struct {
	key  Key
	refs int           // users; under Store.mu
	elem *list.Element // in Store.idle when refs is 0

	write  sync.Mutex // held by who loads or writes the file, also during its I/O
	marked time.Time  // when the last mark of time was written; under write
	mu     sync.Mutex // guards what follows; never held across I/O

	loaded bool
	file   *os.File
	base   int64 // offset of the file's first byte
	size   int64 // of the file
	// bytes that were dropped, less those that the store wrote itself: a writer's offset is so much further
	shift    int64
	dropping string // the limit because of which output is dropped; empty: it is kept
	ended    bool
	changed  chan struct{} // closed at the next change; nil when nobody waits
}

// end is the offset after the last byte, for readers.
func (e *entry) end() int64 { return e.base + e.size }

// have is the offset up to which a writer's output is dealt with.
func (e *entry) have() int64 {
	if e.dropping == LimitJob {
		return Full
	}
	return e.base + e.size + e.shift
}

// New uses dir, which need not exist yet.
func New(dir string) *Store {
	s := &Store{dir: dir, logs: map[Key]*entry{}, idle: list.New(), ended: map[Key]struct{}{}}
	s.bounds.Store(&Bounds{})
	s.usage.bytes = map[core.UserName]int64{}
	s.usage.low = map[core.UserName]bool{}
	return s
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
	e.mu.Lock()
	ended := e.ended
	e.mu.Unlock()
	s.mu.Lock()
	e.refs--
	if e.refs == 0 {
		if ended {
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

// load finds out what is on disk. e.write is held.
func (s *Store) load(e *entry) error {
	if e.loaded {
		return nil
	}
	f, err := os.OpenFile(s.Path(e.key), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		e.mu.Lock()
		e.loaded = true
		e.mu.Unlock()
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
	base, shift, dropping, err := parseBase(string(text))
	if err != nil {
		return errors.Join(fmt.Errorf("base of log %v: %w", e.key, err), f.Close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.file, e.base, e.size, e.shift, e.dropping, e.loaded = f, base, st.Size(), shift, dropping, true
	return nil
}

func (s *Store) basePath(k Key) string { return strings.TrimSuffix(s.Path(k), ".log") + ".base" }

// parseBase reads what is next to a log: its base, and for one of which output was dropped how much further its writer
// is and which limit it was.
func parseBase(text string) (base, shift int64, dropping string, err error) {
	words := strings.Fields(text)
	if len(words) > 0 {
		base, err = strconv.ParseInt(words[0], 10, 64)
	}
	if len(words) > 1 && err == nil {
		shift, err = strconv.ParseInt(words[1], 10, 64)
	}
	if len(words) > 2 {
		dropping = words[2]
	}
	return base, shift, dropping, err
}

// saveBase writes what parseBase reads. e.write is held.
func (s *Store) saveBase(e *entry) error {
	text := strconv.FormatInt(e.base, 10)
	if e.shift != 0 || e.dropping != "" {
		text = fmt.Sprintf("%d %d %s", e.base, e.shift, e.dropping)
	}
	return os.WriteFile(s.basePath(e.key), []byte(text), 0o600)
}

// create makes the file with its first byte at base. e.write is held.
func (s *Store) create(e *entry, owner core.UserName, base int64) error {
	path := s.Path(e.key)
	var file *os.File
	open := func() (err error) {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
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
	e.mu.Lock()
	e.file, e.base, e.size = file, base, 0
	e.mu.Unlock()
	if base > 0 {
		if err := s.saveBase(e); err != nil {
			return err
		}
	}
	return s.usage.note(path, e.key, owner)
}

// Append adds data at offset to the log of a user's job and gives the offset up to which the store has dealt with it.
// What it has already is dropped; data beyond its end is refused without error (have < offset tells the sender where to
// continue), except that an empty log may begin anywhere when it is a tail. What is over a limit is dropped and counts
// as dealt with: Full says that nothing more will be kept.
func (s *Store) Append(k Key, owner core.UserName, offset int64, data []byte, tail bool) (have int64, err error) {
	e := s.take(k)
	defer s.put(e)
	e.write.Lock()
	defer e.write.Unlock()
	if have, err = s.append(e, owner, offset, data, tail); err != nil {
		err = fmt.Errorf("log of job %d: %w", k.Job, err)
	}
	return have, err
}

func (s *Store) append(e *entry, owner core.UserName, offset int64, data []byte, tail bool) (int64, error) {
	if err := s.load(e); err != nil {
		return 0, err
	}
	if e.file == nil {
		if offset != 0 && !tail {
			return 0, nil
		}
		if err := s.create(e, owner, offset); err != nil {
			return 0, err
		}
	}
	have := e.have()
	if gap := offset - have; gap > 0 {
		if e.dropping == "" {
			return have, nil
		}
		e.mu.Lock()
		e.shift += gap // it was dropped, and the server stopped before that was recorded
		e.mu.Unlock()
		have = offset
	}
	skip := have - offset
	if skip >= int64(len(data)) {
		return have, nil
	}
	data = data[skip:]
	if s.times && !tail {
		s.markTime(e)
	}
	n, why := s.room(e, owner, int64(len(data)))
	err := s.keep(e, data[:n], why, int64(len(data))-n)
	return e.have(), err
}

// keep writes what is kept and tells in the log, once, what is not. e.write is held.
func (s *Store) keep(e *entry, data []byte, why string, dropped int64) error {
	if len(data) > 0 {
		was := e.dropping
		if was != "" {
			if err := s.say(e, goesOn(was), ""); err != nil {
				return err
			}
		}
		if err := s.writeEnd(e, data, 0); err != nil {
			return err
		}
	}
	if why == "" {
		return nil
	}
	e.mu.Lock()
	e.shift += dropped
	told := e.dropping == why
	e.mu.Unlock()
	if told {
		return nil
	}
	return s.say(e, s.bounds.Load().stops(why), why)
}

// say writes a line of the store's own into a log and notes why output is dropped from here on. e.write is held.
func (s *Store) say(e *entry, line, dropping string) error {
	if e.size > 0 {
		var last [1]byte
		if _, err := e.file.ReadAt(last[:], e.size-1); err == nil && last[0] != '\n' {
			line = "\n" + line
		}
	}
	err := s.writeEnd(e, []byte(line), int64(len(line)))
	e.mu.Lock()
	e.dropping = dropping
	e.mu.Unlock()
	return errors.Join(err, s.saveBase(e))
}

// writeEnd adds bytes to a file; own of them are the store's, not its writer's. e.write is held.
func (s *Store) writeEnd(e *entry, data []byte, own int64) error {
	n, err := e.file.WriteAt(data, e.size)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.size += int64(n)
	e.shift -= min(own, int64(n))
	e.wake()
	return err
}

// End tells followers that nothing follows. It does not wait for a disk.
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

// Range returns the offsets the store has: [base, end). Both are zero for a log it does not have.
func (s *Store) Range(k Key) (base, end int64, err error) {
	e, err := s.loadedEntry(k)
	if err != nil {
		return 0, 0, err
	}
	defer s.put(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.base, e.end(), nil
}

// Have returns the offset up to which the store has dealt with a writer's output, kept or dropped; Full: it takes no
// more.
func (s *Store) Have(k Key) (int64, error) {
	e, err := s.loadedEntry(k)
	if err != nil {
		return 0, err
	}
	defer s.put(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.have(), nil
}

// loadedEntry takes an entry, for the caller to put back, that knows what is on disk.
func (s *Store) loadedEntry(k Key) (*entry, error) {
	e := s.take(k)
	e.mu.Lock()
	loaded := e.loaded
	e.mu.Unlock()
	if loaded {
		return e, nil
	}
	e.write.Lock()
	err := s.load(e)
	e.write.Unlock()
	if err != nil {
		s.put(e)
		return nil, fmt.Errorf("log of job %d: %w", k.Job, err)
	}
	return e, nil
}

// Copy writes the log from offset to w. With done it follows: at the end it waits for more until the log has ended, ctx
// is over, or done is closed, and then writes what is left. flush is called before each wait.
func (s *Store) Copy(ctx context.Context, w io.Writer, k Key, offset int64, done <-chan struct{}, flush func()) error {
	e, err := s.loadedEntry(k)
	if err != nil {
		return err
	}
	defer s.put(e)
	buf := make([]byte, 256<<10)
	follow := done != nil
	for {
		n, wait, err := e.next(&offset, buf, follow)
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

// next reads what is at offset into buf; with nothing there it gives a channel to wait on, or nil at the very end. A
// file only grows, so it is read without a lock.
func (e *entry) next(offset *int64, buf []byte, follow bool) (n int, wait <-chan struct{}, err error) {
	e.mu.Lock()
	*offset = max(*offset, e.base)
	file, at, end := e.file, *offset-e.base, e.end()
	if *offset >= end {
		defer e.mu.Unlock()
		if e.ended || !follow {
			return 0, nil, nil
		}
		if e.changed == nil {
			e.changed = make(chan struct{})
		}
		return 0, e.changed, nil
	}
	e.mu.Unlock()
	n, err = file.ReadAt(buf[:min(int64(len(buf)), end-*offset)], at)
	if n == 0 && err != nil {
		return 0, nil, err
	}
	*offset += int64(n)
	return n, nil, nil
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
