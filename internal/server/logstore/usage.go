package logstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// usage counts the bytes that the logs of each user have. Whose a log is stands in a file of its directory, a line
// each, so that a server that starts can count what is there.
type usage struct {
	mu    sync.Mutex
	bytes map[core.UserName]int64
	low   map[core.UserName]bool // users over their limit

	files sync.Mutex // held while a line is added
}

// ownersName is the file of a directory that says whose its logs are.
const ownersName = "owners"

// take counts n more bytes for a user, or as many as the limit lets, and gives how many. A user who was over it has
// output kept again when a sixteenth of it is free.
func (u *usage) take(owner core.UserName, n, most int64) int64 {
	if owner == "" {
		return n
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if most > 0 {
		room := most - u.bytes[owner]
		if u.low[owner] && room < most/16 {
			return 0
		}
		delete(u.low, owner)
		if room < n {
			u.low[owner] = true
			n = max(0, room)
		}
	}
	u.bytes[owner] += n
	return n
}

func (u *usage) add(owner core.UserName, n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes[owner] += n; u.bytes[owner] <= 0 {
		delete(u.bytes, owner)
	}
}

// Used returns how many bytes the logs of a user have.
func (s *Store) Used(owner core.UserName) int64 {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	return s.usage.bytes[owner]
}

// note records whose a new log is.
func (u *usage) note(path string, k Key, owner core.UserName) error {
	if owner == "" {
		return nil
	}
	u.files.Lock()
	defer u.files.Unlock()
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), ownersName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d.%d %s\n", k.Job, k.Attempt, owner)
	return errors.Join(err, f.Close())
}

// ownersOf reads whose the logs of a directory are, by the names of their files.
func ownersOf(dir string) map[string]core.UserName {
	f, err := os.Open(filepath.Join(dir, ownersName))
	if err != nil {
		return nil // a directory from before, or an empty one
	}
	defer f.Close()
	owners := map[string]core.UserName{}
	for in := bufio.NewScanner(f); in.Scan(); {
		if log, user, ok := strings.Cut(in.Text(), " "); ok {
			owners[log+".log"] = core.UserName(user)
		}
	}
	return owners
}

// Count finds out how much the logs of each user have. It may run beside writers: what is written meanwhile may count
// twice until the next start.
func (s *Store) Count(ctx context.Context) error {
	dirs, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range dirs {
		if ctx.Err() != nil {
			return nil
		}
		if _, bad := strconv.ParseInt(d.Name(), 10, 64); bad != nil {
			continue
		}
		dir := filepath.Join(s.dir, d.Name())
		for name, owner := range ownersOf(dir) {
			if st, err := os.Stat(filepath.Join(dir, name)); err == nil {
				s.usage.add(owner, st.Size())
			}
		}
	}
	return err
}
