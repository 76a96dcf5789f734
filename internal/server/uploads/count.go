package uploads

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// maxFiles is how many uploads one user may have: small ones are bounded too.
const maxFiles = 10_000

// limitReason is the reason of a refusal for what a user has already.
const limitReason = "limit_uploads"

// partPrefix begins the names of uploads that are on their way.
const partPrefix = "tmp-"

// count is what one user's uploads take, those on their way too. The folder is listed once, when the user's first
// upload since the server's start comes; from then on the count follows what is written and removed. While mu is held
// files of the folder get their names and are removed, and nothing is read from clients.
type count struct {
	dir string

	mu     sync.Mutex
	listed bool
	bytes  int64
	files  int
	parts  map[string]bool // names of uploads on their way
}

// list reads the folder, once. What broke off under an earlier server is removed. c.mu is held.
func (c *count) list() error {
	if c.listed {
		return nil
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("uploads: %w", err)
	}
	c.bytes, c.files = 0, 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partPrefix) && os.Remove(filepath.Join(c.dir, e.Name())) == nil {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("uploads: %w", err)
		}
		c.bytes += info.Size()
		c.files++
	}
	c.listed = true
	return nil
}

// begin makes the file of an upload that is on its way.
func (c *count) begin(most int64) (*part, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("uploads: %w", err)
	}
	if err := c.list(); err != nil {
		return nil, err
	}
	if c.files >= maxFiles {
		return nil, core.Errorf(core.Exhausted, "you have %d uploads, the most there may be; the oldest go after "+
			"dstack.upload_keep", c.files).Because(limitReason)
	}
	f, err := os.CreateTemp(c.dir, partPrefix+"*") // for nobody else to read
	if err != nil {
		return nil, fmt.Errorf("uploads: %w", err)
	}
	if c.parts == nil {
		c.parts = map[string]bool{}
	}
	c.parts[filepath.Base(f.Name())] = true
	c.files++
	return &part{c: c, f: f, most: most}, nil
}

// part is the file of an upload that is on its way.
type part struct {
	c    *count
	f    *os.File
	most int64 // of all that the user has
	size int64 // bytes of it that are counted
}

// Write counts before it writes: many uploads at once take no more than their user may have.
func (p *part) Write(b []byte) (int, error) {
	if err := p.grow(int64(len(b))); err != nil {
		return 0, err
	}
	return p.f.Write(b)
}

func (p *part) grow(n int64) error {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if total := p.c.bytes + n; total > p.most {
		return core.Errorf(core.Exhausted, "your uploads would have %s, the most there may be is %s "+
			"(dstack.upload_per_user in the server's settings)", words(total), words(p.most)).Because(limitReason)
	}
	p.c.bytes += n
	p.size += n
	return nil
}

// finish gives the upload its name.
func (p *part) finish(hash string) error {
	if err := p.f.Close(); err != nil {
		return fmt.Errorf("uploads: %w", err)
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	to := filepath.Join(p.c.dir, hash)
	_, err := os.Stat(to)
	again := err == nil // another upload of the same content was quicker: its file is replaced
	if err := os.Rename(p.f.Name(), to); err != nil {
		return fmt.Errorf("uploads: %w", err)
	}
	delete(p.c.parts, filepath.Base(p.f.Name()))
	if again {
		p.c.release(p.size)
	}
	return nil
}

// drop removes an upload that was not finished.
func (p *part) drop() {
	_ = p.f.Close() // it may be closed already
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	_ = os.Remove(p.f.Name()) // the error that stopped us is the one to tell
	delete(p.c.parts, filepath.Base(p.f.Name()))
	p.c.release(p.size)
}

// release counts a file of the given size out. A folder that was removed meanwhile holds nothing. c.mu is held.
func (c *count) release(size int64) {
	if c.listed {
		c.bytes = max(0, c.bytes-size)
		c.files = max(0, c.files-1)
	}
}

// remove removes the file of an upload that has its name, or of one that broke off, if may is true of it.
func (c *count) remove(name string, may func(fs.FileInfo) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := filepath.Join(c.dir, name)
	if c.parts[name] {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !may(info) || os.Remove(path) != nil {
		return false
	}
	c.release(info.Size())
	return true
}

// clear removes all uploads of the user.
func (c *count) clear() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed, c.bytes, c.files = false, 0, 0 // an upload on its way ends without a file to give a name to
	return os.RemoveAll(c.dir)
}
