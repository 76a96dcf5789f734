package engine

import (
	"errors"
	"os"
	"path/filepath"
)

// Write writes files below a directory.
func Write(dir string, files []File) error {
	faults := []error{os.MkdirAll(dir, 0o755)}
	for _, f := range files {
		path := filepath.Join(dir, f.Path)
		switch {
		case f.Link != "":
			faults = append(faults, os.Symlink(f.Link, path))
			continue
		case f.Data == nil:
			faults = append(faults, os.MkdirAll(path, 0o755))
		default:
			faults = append(faults, os.WriteFile(path, f.Data, 0o600))
		}
		mode := os.FileMode(f.Mode & 0o777)
		if f.Mode&0o1000 != 0 {
			mode |= os.ModeSticky
		}
		faults = append(faults, os.Chmod(path, mode))
	}
	return errors.Join(faults...)
}
