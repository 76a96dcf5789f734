package logstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Purge removes logs last written before the moment, at most limit of them, and tells how many it removed.
func (s *Store) Purge(before time.Time, limit int) (removed int, err error) {
	dirs, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, d := range dirs {
		if _, err := strconv.ParseInt(d.Name(), 10, 64); err != nil || !d.IsDir() {
			continue
		}
		dir := filepath.Join(s.dir, d.Name())
		n, err := s.purgeDir(dir, before, limit-removed)
		removed += n
		if err != nil || removed >= limit {
			return removed, err
		}
		_ = os.Remove(dir) // succeeds when it is empty, which is when it should go
	}
	return removed, nil
}

func (s *Store) purgeDir(dir string, before time.Time, limit int) (removed int, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var owners map[string]core.UserName // read when the first log goes
	left := 0
	defer func() {
		if left == 0 {
			_ = os.Remove(filepath.Join(dir, ownersName)) // the directory goes next; one that is used again gets another
		}
	}()
	for _, f := range files {
		if removed >= limit {
			left++
			return removed, nil
		}
		if !strings.HasSuffix(f.Name(), ".log") {
			continue
		}
		st, err := f.Info()
		if err != nil || !st.ModTime().Before(before) {
			left++
			continue
		}
		if owners == nil {
			owners = ownersOf(dir)
		}
		path := filepath.Join(dir, f.Name())
		if err := os.Remove(path); err != nil {
			left++
			return removed, err
		}
		if owner := owners[f.Name()]; owner != "" {
			s.usage.add(owner, -st.Size())
		}
		for _, beside := range []string{".base", ".times"} {
			if err := os.Remove(strings.TrimSuffix(path, ".log") + beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return removed, err
			}
		}
		removed++
	}
	return removed, nil
}
