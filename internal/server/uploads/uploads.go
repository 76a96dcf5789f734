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
	dir    string
	mu     sync.Mutex
	counts map[string]*count // by the name of the user's folder: as many as users have uploaded since the start
	gone   []core.UserName   // whose uploads Run removes
	wake   chan struct{}     // capacity 1: somebody is gone
}

// New makes a store in a folder, which need not be there.
func New(dir string) *Store {
	return &Store{dir: dir, counts: map[string]*count{}, wake: make(chan struct{}, 1)}
}

// folderName is the name of a user's folder. A user's name may hold what a file's must not.
func folderName(user core.UserName) string {
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:16])
}

// folder is where a user's uploads are.
func (s *Store) folder(user core.UserName) string { return filepath.Join(s.dir, folderName(user)) }

// count finds or makes the count of a folder.
func (s *Store) count(folder string) *count {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[folder]
	if c == nil {
		c = &count{dir: filepath.Join(s.dir, folder)}
		s.counts[folder] = c
	}
	return c
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
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
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
		if err := os.Chtimes(filepath.Join(s.folder(user), hash), now, now); err != nil {
			return fmt.Errorf("uploads: %w", err)
		}
		return nil
	}
	p, err := s.count(folderName(user)).begin(b.PerUser)
	if err != nil {
		return err
	}
	if err = check(r, p, hash, b.Size); err == nil {
		err = p.finish(hash)
	}
	if err != nil {
		p.drop()
	}
	return err
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
	old := func(i fs.FileInfo) bool { return i.ModTime().Before(before) }
	err = s.each(func(folder string) error {
		list, err := os.ReadDir(filepath.Join(s.dir, folder))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, e := range list {
			if info, err := e.Info(); err == nil && old(info) && s.count(folder).remove(e.Name(), old) {
				n++
			}
		}
		return err
	})
	return n, err
}

// each calls f with the name of each user's folder.
func (s *Store) each(f func(folder string) error) error {
	list, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if e.IsDir() {
			err = errors.Join(err, f(e.Name()))
		}
	}
	return err
}

// Remove removes all that a user has uploaded.
func (s *Store) Remove(user core.UserName) error {
	if err := s.count(folderName(user)).clear(); err != nil {
		return fmt.Errorf("uploads of %s: %w", user, err)
	}
	return nil
}

// Forget has Run remove all that a user has uploaded. It does not block.
func (s *Store) Forget(user core.UserName) {
	s.mu.Lock()
	s.gone = append(s.gone, user)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// removeGone removes the uploads of those that were forgotten since the last call.
func (s *Store) removeGone() (err error) {
	s.mu.Lock()
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()
	for _, u := range gone {
		err = errors.Join(err, s.Remove(u))
	}
	return err
}

// Sweep removes what users have uploaded who are not there any more: they may have been removed while this server was
// not running. users is called after the folders have been listed, so that nobody is missing in it who has one.
func (s *Store) Sweep(users func() []core.UserName) (n int, err error) {
	var folders []string
	if err := s.each(func(folder string) error { folders = append(folders, folder); return nil }); err != nil {
		return 0, err
	}
	if len(folders) == 0 {
		return 0, nil
	}
	known := map[string]bool{}
	for _, u := range users() {
		known[folderName(u)] = true
	}
	for _, folder := range folders {
		if !known[folder] {
			n++
			err = errors.Join(err, s.count(folder).clear())
		}
	}
	return n, err
}

// Run removes uploads that were not used for keep (0: they stay) and those of users who are gone, until the context
// ends.
func (s *Store) Run(ctx context.Context, keep time.Duration, users func() []core.UserName, failed func(error)) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	report := func(err error) {
		if err != nil {
			failed(err)
		}
	}
	for {
		_, err := s.Sweep(users)
		report(err)
		if keep > 0 {
			_, err = s.Purge(time.Now().Add(-keep))
			report(err)
		}
		for again := true; again; {
			select {
			case <-ctx.Done():
				return nil
			case <-s.wake:
				report(s.removeGone())
			case <-tick.C:
				again = false
			}
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
