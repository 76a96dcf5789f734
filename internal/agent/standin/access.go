package standin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/docker"
)

// An engine has one store of images for everybody. An image that a registry gave for somebody's credentials is private:
// it is run only for users to whom the same repository gives it too. Which images are private, where they came from and
// who has shown that they may have them is in a directory of the agent's, a file for each image by the engine's id. An
// image without a file is everybody's: one that a registry gives to anybody, that an administrator imported or that was
// there before.
//
// Another repository's word is no proof: an engine that has an image takes it for whatever manifest names its id, and
// fetches nothing. Whoever knows the id could serve such a manifest.

// proofLasts is how long a registry's word on a user holds before it is asked again. A registry that is away is not
// asked: who has shown it once may continue.
const proofLasts = time.Hour

// access is the file of a private image.
type access struct {
	path   string
	Ref    string               `json:"ref,omitempty"` // what it was first fetched as, with credentials
	Proofs map[string]time.Time `json:"proofs"`        // when its registry last gave it, by user and credentials
}

// accessDir is the directory of these files.
func (s *standIn) accessDir() string { return filepath.Join(filepath.Dir(s.c.Dir), "image-access") }

// accessFile is where the file of an image is, if it is private.
func (s *standIn) accessFile(id string) string {
	return filepath.Join(s.accessDir(), filepath.Base(strings.ReplaceAll(id, ":", "-")))
}

// accessOf reads what is known of an image; nil: it is everybody's.
func (s *standIn) accessOf(id string) (*access, error) {
	a := &access{path: s.accessFile(id), Proofs: map[string]time.Time{}}
	b, err := os.ReadFile(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, a)
	}
	return a, err
}

// settledAccess is accessOf after pulls that were cut have been dealt with.
func (s *standIn) settledAccess(ctx context.Context, id string) (*access, error) {
	if err := s.settlePulls(ctx); err != nil {
		return nil, err
	}
	return s.accessOf(id)
}

// proof names this launch's user and credentials, without telling them.
func (s *standIn) proof() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d\x00%s\x00", s.l.Identity.UID, s.l.Identity.Name)
	if s.auth != nil {
		fmt.Fprintf(sum, "%s\x00%s", s.auth.Username, s.auth.Password)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// pull fetches the launch's image and remembers which ones the engine had before.
func (s *standIn) pull(ctx context.Context, progress func(docker.Progress)) error {
	list, err := s.engine.Images(ctx)
	if err != nil {
		return err
	}
	s.had = make(map[string][]string, len(list))
	for i := range list {
		s.had[list[i].ID] = slices.Concat(list[i].RepoTags, list[i].RepoDigests)
	}
	if s.auth == nil {
		return s.engine.Pull(ctx, s.c.Image, nil, progress)
	}
	if err := s.beginPull(); err != nil {
		return err
	}
	err = s.engine.Pull(ctx, s.c.Image, s.auth, progress)
	if err != nil && ctx.Err() == nil { // else the engine may be about to complete it
		return errors.Join(err, s.endPull())
	}
	return err
}

// lockAccess keeps other stand-ins from the files of private images until the lock is closed.
func lockAccess(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		_ = lock.Close()
		return nil, os.NewSyscallError("flock", err)
	}
	return lock, nil
}

// noteAccess records that a registry gave an image to this launch's user: what it gives without credentials is
// everybody's. It fails where an image is private to another repository.
func (s *standIn) noteAccess(ctx context.Context, id string) error {
	a, err := s.settledAccess(ctx, id)
	if err != nil {
		return fmt.Errorf("who may run image %s is not known: %w", s.c.Image, err)
	}
	switch {
	case a == nil:
	case a.Ref == "" && s.ownsUnnamed(a, id): // of a version before this one, which did not write it down
	case a.Ref == "":
		_ = s.engine.RemoveImage(context.WithoutCancel(ctx), s.c.Image) // the name only
		return fmt.Errorf("image %s is private, and this node does not know which repository it came from: it is "+
			"fetched anew when an administrator has removed it from the node's container engine", s.c.Image)
	case repository(a.Ref) != repository(s.c.Image): // before the lock: the registry may be slow
		public, err := s.isPublic(ctx, a.Ref, id)
		if err != nil {
			_ = s.engine.RemoveImage(context.WithoutCancel(ctx), s.c.Image) // the name only; the image has another one
			return fmt.Errorf("image %s is private: this node has it from %s for somebody's registry_auth, and that "+
				"%s has it too "+
				"is no proof of a right to it. Name it as %s with registry_auth: %w",
				s.c.Image, repository(a.Ref), repository(s.c.Image), repository(a.Ref), err)
		}
		if public {
			return s.forgetAccess(a)
		}
	}
	lock, err := lockAccess(s.accessDir())
	if err != nil {
		return err
	}
	defer lock.Close()
	if a, err = s.accessOf(id); err != nil {
		return err
	}
	if s.auth == nil {
		if a == nil {
			return nil
		}
		return removeFile(a.path)
	}
	if a == nil {
		if _, had := s.had[id]; had { // everybody's before: credentials for another name of it make it nobody's own
			return nil
		}
		a = &access{path: s.accessFile(id), Ref: s.c.Image, Proofs: map[string]time.Time{}}
	}
	if a.Ref == "" {
		a.Ref = s.c.Image
	}
	return a.add(s.proof(), time.Now())
}

// ownsUnnamed is true for a launch that may say where an image came from whose file does not tell: its user has shown
// that before, or all names of the image that it had before this pull are in the launch's repository.
func (s *standIn) ownsUnnamed(a *access, id string) bool {
	if _, known := a.Proofs[s.proof()]; known {
		return true
	}
	names := s.had[id]
	return len(names) > 0 && !slices.ContainsFunc(names, func(ref string) bool {
		return repository(ref) != repository(s.c.Image)
	})
}

// isPublic asks the registry that an image came from for it without credentials. The error says why it is not given.
func (s *standIn) isPublic(ctx context.Context, ref, id string) (bool, error) {
	s.doing("asking the registry whether everybody may have image " + ref)
	if err := s.engine.Pull(ctx, ref, nil, func(docker.Progress) {}); err != nil {
		return false, err
	}
	i, err := s.engine.Image(ctx, ref)
	if err != nil {
		return false, err
	}
	if i.ID != id { // its name leads to another image by now
		return false, fmt.Errorf("%s is another image now", ref)
	}
	return true, nil
}

// forgetAccess makes an image everybody's.
func (s *standIn) forgetAccess(a *access) error {
	lock, err := lockAccess(s.accessDir())
	if err != nil {
		return err
	}
	defer lock.Close()
	return removeFile(a.path)
}

func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// add writes the file with one more proof. Proofs of a month ago count no more.
func (a *access) add(proof string, now time.Time) error {
	for who, at := range a.Proofs {
		if now.Sub(at) > 30*24*time.Hour {
			delete(a.Proofs, who)
		}
	}
	a.Proofs[proof] = now
	return a.write()
}

func (a *access) write() error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	tmp := a.path + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, a.path)
}

// repository is a reference without tag and digest, under one name for one place.
func repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		ref = ref[:i]
	}
	host, path, ok := strings.Cut(ref, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, path = "docker.io", ref
	}
	if host = strings.ToLower(host); host == "index.docker.io" || host == "registry-1.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return host + "/" + path
}

// allowed makes sure that this launch's user may run an image that the engine had: again tells that it was fetched
// again, so that the container is to be made of what came.
func (s *standIn) allowed(ctx context.Context, id string) (again bool, err error) {
	a, err := s.settledAccess(ctx, id)
	if err != nil {
		return false, fmt.Errorf("who may run image %s is not known: %w", s.c.Image, err)
	}
	if a == nil {
		return false, nil
	}
	shown, known := a.Proofs[s.proof()]
	if known && time.Since(shown) < proofLasts {
		return false, nil
	}
	s.doing("asking the registry whether " + s.l.Identity.Name + " may have image " + s.c.Image)
	err = s.pull(ctx, func(docker.Progress) {})
	switch {
	case err == nil:
		return true, nil
	case known && unreachable(err):
		return false, nil
	case s.auth == nil:
		return false, fmt.Errorf("image %s is private: this node has it by somebody's registry_auth, and its "+
			"registry does not give it without: %w", s.c.Image, err)
	}
	return false, fmt.Errorf("image %s is private, and its registry does not give it for this registry_auth: %w",
		s.c.Image, err)
}

// unreachable tells an error of a registry that is away from one that says no.
func unreachable(err error) bool {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{
		"connection refused", "connection reset", "no such host", "timeout", "timed out",
		"no route to host", "network is unreachable", "eof", "503", "502",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
