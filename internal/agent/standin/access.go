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
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/docker"
)

// An engine has one store of images for everybody. An image that a registry gave for somebody's credentials is private: it is
// run only for users to whom the registry gives it too. Which images are private, and who has shown that, lies in a folder of the
// agent's, a file for each image by the engine's id. An image without a file is everybody's: one that a registry gives to anybody,
// that an administrator imported or that was there before.

// proofLasts is how long a registry's word on a user holds before it is asked again. A registry that is away is not asked: who
// has shown it once may go on.
const proofLasts = time.Hour

// access is the file of a private image.
type access struct {
	path   string
	Proofs map[string]time.Time `json:"proofs"` // when the registry last gave it, by user and credentials
}

// accessOf reads what is known of an image; nil: it is everybody's.
func (s *standIn) accessOf(id string) (*access, error) {
	a := &access{path: filepath.Join(filepath.Dir(s.c.Dir), "image-access", filepath.Base(strings.ReplaceAll(id, ":", "-"))), Proofs: map[string]time.Time{}}
	b, err := os.ReadFile(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, a)
	}
	return a, err
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

// noteAccess writes down that the registry gave an image to this launch's user: what it gives without credentials is everybody's.
func (s *standIn) noteAccess(id string) error {
	dir := filepath.Join(filepath.Dir(s.c.Dir), "image-access")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return os.NewSyscallError("flock", err)
	}
	a, err := s.accessOf(id)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.Base(strings.ReplaceAll(id, ":", "-")))
	if s.auth == nil {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if a == nil {
		a = &access{Proofs: map[string]time.Time{}}
	}
	now := time.Now()
	for who, at := range a.Proofs { // of a month ago is nobody's any more
		if now.Sub(at) > 30*24*time.Hour {
			delete(a.Proofs, who)
		}
	}
	a.Proofs[s.proof()] = now
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	tmp := path + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// allowed makes sure that this launch's user may run an image that the engine had: again tells that it was fetched anew, so that
// the container is to be made of what came.
func (s *standIn) allowed(ctx context.Context, id string) (again bool, err error) {
	a, err := s.accessOf(id)
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
	err = s.engine.Pull(ctx, s.c.Image, s.auth, func(docker.Progress) {})
	switch {
	case err == nil:
		return true, nil
	case known && unreachable(err):
		return false, nil
	case s.auth == nil:
		return false, fmt.Errorf("image %s is private: this node has it by somebody's registry_auth, and its registry does not give it without: %w", s.c.Image, err)
	}
	return false, fmt.Errorf("image %s is private, and its registry does not give it for this registry_auth: %w", s.c.Image, err)
}

// unreachable tells an error of a registry that is away from one that says no.
func unreachable(err error) bool {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{"connection refused", "connection reset", "no such host", "timeout", "timed out", "no route to host", "network is unreachable", "eof", "503", "502"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
