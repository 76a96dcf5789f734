package standin

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/docker"
)

// A pull with credentials is recorded before it begins and crossed out when the image's file is there. Whoever uses
// an image looks first for pulls whose stand-in was killed in between: what such a pull brought is private, and nobody
// has shown yet that they may have it.

// pullPrefix begins the names of these files; a file of an image begins with the name of a hash.
const pullPrefix = "pull-"

// pullKept is how long a pull whose stand-in is gone is remembered: the engine may continue with it for a while.
const pullKept = 10 * time.Minute

// pullNote is a pull with credentials under way, or one that was cut.
type pullNote struct {
	Ref string   `json:"ref"`
	Had []string `json:"had"` // ids of the images that the engine had before
}

// beginPull records that the launch's image is fetched with credentials. The file is locked while this process
// lives.
func (s *standIn) beginPull() error {
	b, err := json.Marshal(pullNote{Ref: s.c.Image, Had: slices.Sorted(maps.Keys(s.had))})
	if err != nil {
		return err
	}
	lock, err := lockAccess(s.accessDir())
	if err != nil {
		return err
	}
	defer lock.Close()
	f, err := os.CreateTemp(s.accessDir(), pullPrefix)
	if err != nil {
		return err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err == nil {
		if _, err = f.Write(b); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	s.fetching = f
	return nil
}

// endPull crosses out the pull of this launch: the image's file is there, or the engine has said that it fetched
// nothing.
func (s *standIn) endPull() error {
	f := s.fetching
	if f == nil {
		return nil
	}
	s.fetching = nil
	return errors.Join(removeFile(f.Name()), f.Close())
}

// settlePulls makes the images private that were fetched with credentials and have no file yet.
func (s *standIn) settlePulls(ctx context.Context) error {
	names, err := filepath.Glob(filepath.Join(s.accessDir(), pullPrefix+"*"))
	if err != nil || len(names) == 0 {
		return err
	}
	list, err := s.engine.Images(ctx)
	if err != nil {
		return err
	}
	lock, err := lockAccess(s.accessDir())
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, name := range names {
		if err := s.settlePull(name, list); err != nil {
			return err
		}
	}
	return nil
}

// settlePull deals with one pull. The directory is locked.
func (s *standIn) settlePull(name string, list []docker.Image) error {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var n pullNote
	if err := json.NewDecoder(f).Decode(&n); err != nil {
		return removeFile(name) // its stand-in was killed before it asked for the image
	}
	for i := range list {
		if slices.Contains(n.Had, list[i].ID) || !namedIn(&list[i], repository(n.Ref)) {
			continue
		}
		a, err := s.accessOf(list[i].ID)
		if err != nil {
			return err
		}
		if a == nil {
			a = &access{path: s.accessFile(list[i].ID), Ref: n.Ref, Proofs: map[string]time.Time{}}
			if err := a.write(); err != nil {
				return err
			}
		}
	}
	if time.Since(st.ModTime()) > pullKept && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return removeFile(name)
	}
	return nil
}

// namedIn is true for an image that has a name in a repository, or none at all.
func namedIn(i *docker.Image, repo string) bool {
	all := slices.Concat(i.RepoTags, i.RepoDigests)
	return len(all) == 0 || slices.ContainsFunc(all, func(ref string) bool { return repository(ref) == repo })
}
