package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/agent/launcher"
	"bireme.dev/bireme/internal/wire"
)

// prefetch has an image that the cluster wants put where all users find it. It reports whether that is a maker's work
// here.
func (m *makers) prefetch(ref string) (bool, error) {
	c := &wire.Container{Images: filepath.Join(m.images, launcher.Shared)}
	c.Image = ref
	if c.Maker, c.Program = m.choose(c); c.Maker == "" {
		return false, nil
	}
	if err := errors.Join(ours(m.images), os.MkdirAll(c.Images, 0o755)); err != nil {
		return true, err
	}
	run, err := os.MkdirTemp("", "bireme-image-")
	if err != nil {
		return true, err
	}
	defer os.RemoveAll(run)
	c.Run = run
	return true, launcher.Prefetch(c)
}

// trim removes users' images not used for longest until the rest is within the limit, and those that the cluster wants
// no more.
func (m *makers) trim(limit int64, wanted []string) error {
	type image struct {
		path string
		fs.FileInfo
	}
	var all []image
	for _, pattern := range []string{"*/*.sif", "*/*.sqsh"} {
		names, err := filepath.Glob(filepath.Join(m.images, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			// others may be quicker, and the directory is the user's
			if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() {
				all = append(all, image{name, st})
			}
		}
	}
	slices.SortFunc(all, func(a, b image) int {
		if c := b.ModTime().Compare(a.ModTime()); c != 0 { // the latest first
			return c
		}
		return strings.Compare(a.path, b.path)
	})
	var keep []string
	for _, ref := range wanted {
		for _, kind := range []string{wire.MakerApptainer, wire.MakerEnroot} {
			keep = append(keep, launcher.ImageFile(kind, launcher.Ref(ref)))
		}
	}
	var sum int64
	var faults []error
	for _, i := range all {
		if filepath.Base(filepath.Dir(i.path)) == launcher.Shared {
			if !slices.Contains(keep, filepath.Base(i.path)) {
				faults = append(faults, os.Remove(i.path))
			}
			continue
		}
		if sum += i.Size(); limit > 0 && sum > limit {
			faults = append(faults, os.Remove(i.path))
		}
	}
	return errors.Join(faults...)
}
