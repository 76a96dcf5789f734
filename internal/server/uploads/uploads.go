package uploads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/disk"
)

// Bounds of what is taken.
type Bounds struct {
	Size    int64 // of one upload
	PerUser int64 // of all that a user has
	MinFree int64 // on the disk, below which nothing is taken
}

// Store holds uploads. It is safe for concurrent use.
type Store struct {
	dir string
	mu  sync.Mutex // one upload at a time is counted and given its name
}

// New makes a store in a folder, which need not be there.
func New(dir string) *Store { return &Store{dir: dir} }

// folder is where a user's uploads are. A user's name may hold what a file's must not.
func (s *Store) folder(user core.UserName) string {
	sum := sha256.Sum256([]byte(user))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16]))
}

// IsHash reports whether a text is a SHA-256 in hexadecimal.
func IsHash(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size && text == hex.EncodeToString(b)
}

// Put reads an upload that should have a hash, and keeps it. What breaks off or has another hash leaves nothing.
func (s *Store) Put(user core.UserName, hash string, r io.Reader, b Bounds) (err error) {
	if !IsHash(hash) {
		return core.Errorf(core.Invalid, "the name of an upload is the SHA-256 of its content, not %.80q", hash)
	}
	dir := s.folder(user)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("uploads: %w", err)
	}
	if free, ok := disk.Free(s.dir); ok && b.MinFree > 0 && free < b.MinFree {
		return core.Errorf(core.Unavailable, "the server's disk is nearly full: it takes no files now")
	}
	if s.Has(user, hash) { // nothing is written, and the upload is still what its name says, or is refused
		if err := check(r, io.Discard, hash, b.Size); err != nil {
			return err
		}
		now := time.Now() // it is as new as one that was written: Purge leaves it to the run that names it
		if err := os.Chtimes(filepath.Join(dir, hash), now, now); err != nil {
			return fmt.Errorf("uploads: %w", err)
		}
		return nil
	}
	f, err := os.CreateTemp(dir, "tmp-*") // for nobody else to read
	if err != nil {
		return fmt.Errorf("uploads: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = cerr
		}
		if err != nil {
			_ = os.Remove(f.Name()) // the error that stopped us is the one to tell
		}
	}()
	if err := check(r, &counted{s: s, f: f, dir: dir, most: b.PerUser}, hash, b.Size); err != nil {
		return err
	}
	return s.enter(f.Name(), filepath.Join(dir, hash), b.PerUser)
}

// check reads an upload to its end, passes it on and holds it against its name and its greatest size.
func check(r io.Reader, to io.Writer, hash string, most int64) error {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(r, most+1))
	switch {
	case core.ReasonOf(err) == limitReason:
		return err
	case err != nil:
		return &core.Error{Code: core.Invalid, Message: "the upload broke off", Err: err}
	case n > most:
		return core.Errorf(core.TooLarge, "the upload has more than %s (dstack.upload in the server's settings)",
			words(most)).Because("upload_too_large")
	case hex.EncodeToString(sum.Sum(nil)) != hash:
		return core.Errorf(core.Invalid, "the upload is not what its name says: its SHA-256 is another")
	}
	return nil
}

// limitReason is the reason of a refusal for what a user has already.
const limitReason = "limit_uploads"

// counted is the file of an upload that is on its way. What all of its user's uploads have is counted while they are
// written, so that many at once take no more than the user may have.
type counted struct {
	s     *Store
	f     *os.File
	dir   string
	most  int64
	since int64 // bytes written since the last count
}

// countEach is how many bytes are written between two counts.
const countEach = 256 << 10

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.f.Write(p)
	if c.since += int64(n); err != nil || c.since < countEach {
		return n, err
	}
	c.since = 0
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return n, checkTotal(c.dir, c.most)
}

// checkTotal refuses more than a user may have.
func checkTotal(dir string, most int64) error {
	total, err := sizeOf(dir)
	if err != nil {
		return fmt.Errorf("uploads: %w", err)
	}
	if total > most {
		return core.Errorf(core.Exhausted, "your uploads would have %s, the most there may be is %s "+
			"(dstack.upload_per_user in the server's settings)", words(total), words(most)).Because(limitReason)
	}
	return nil
}

// enter gives an upload its name if its user may have it.
func (s *Store) enter(from, to string, most int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
		if err := checkTotal(filepath.Dir(to), most); err != nil {
			return err
		}
	}
	return os.Rename(from, to)
}

// sizeOf adds up the uploads in a folder, those on their way too.
func sizeOf(dir string) (total int64, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range list {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// Has reports whether a user has an upload of a hash.
func (s *Store) Has(user core.UserName, hash string) bool {
	if !IsHash(hash) {
		return false
	}
	_, err := os.Stat(filepath.Join(s.folder(user), hash))
	return err == nil
}

// Hashes lists a user's uploads.
func (s *Store) Hashes(user core.UserName) ([]string, error) {
	list, err := os.ReadDir(s.folder(user))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range list {
		if IsHash(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, err
}

// Read gives an upload and counts it as used now.
func (s *Store) Read(user core.UserName, hash string) ([]byte, error) {
	if !IsHash(hash) {
		return nil, errNone(hash)
	}
	name := filepath.Join(s.folder(user), hash)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNone(hash)
	}
	if err != nil {
		return nil, fmt.Errorf("uploads: %w", err)
	}
	now := time.Now()
	return data, os.Chtimes(name, now, now)
}

func errNone(hash string) error {
	return core.Errorf(core.NotFound, "there is no upload %.80s of yours", hash).Because("invalid_upload")
}

// Purge removes uploads, and what broke off, that were last used before a moment.
func (s *Store) Purge(before time.Time) (n int, err error) {
	err = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) && os.Remove(path) == nil {
			n++
		}
		return nil
	})
	return n, err
}

// Run purges uploads that were not used for so long, until the context ends.
func (s *Store) Run(ctx context.Context, keep time.Duration, failed func(error)) error {
	if keep <= 0 {
		return nil
	}
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if _, err := s.Purge(time.Now().Add(-keep)); err != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// words writes a number of bytes.
func words(n int64) string {
	const mib = 1 << 20
	if n%mib == 0 {
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%d bytes", n)
}
