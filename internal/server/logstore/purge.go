package logstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
		n, err := purgeDir(dir, before, limit-removed)
		removed += n
		if err != nil || removed >= limit {
			return removed, err
		}
		_ = os.Remove(dir) // succeeds when it is empty, which is when it should go
	}
	return removed, nil
}

func purgeDir(dir string, before time.Time, limit int) (removed int, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if removed >= limit {
			return removed, nil
		}
		if !strings.HasSuffix(f.Name(), ".log") {
			continue
		}
		st, err := f.Info()
		if err != nil || !st.ModTime().Before(before) {
			continue
		}
		path := filepath.Join(dir, f.Name())
		if err := os.Remove(path); err != nil {
			return removed, err
		}
		if err := os.Remove(strings.TrimSuffix(path, ".log") + ".base"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
