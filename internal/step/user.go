package step

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/wire"
)

// supplementary returns the groups of a user: those of the launch, else those this node knows. It may wait for a
// directory, so no lock is held meanwhile.
func (k *Keeper) supplementary(id wire.Identity) ([]uint32, error) {
	if len(id.Groups) > 0 {
		return id.Groups, nil
	}
	if !k.root || id.UID == 0 {
		return nil, nil
	}
	u, err := k.accounts.ByUID(id.UID)
	if errors.Is(err, account.ErrUnknown) {
		return []uint32{id.GID}, nil // its own group and no more
	}
	if err != nil {
		return nil, err
	}
	list, err := k.accounts.Groups(u)
	if err != nil {
		return nil, err
	}
	groups := []uint32{id.GID}
	for _, g := range list {
		if g != id.GID {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// homeOf returns a user's home as this node knows it, or the root for one it does not know.
func (k *Keeper) homeOf(uid uint32) string {
	u, err := k.accounts.ByUID(uid)
	if err != nil || u.Home == "" {
		return "/"
	}
	return u.Home
}

// shellOf returns a user's login shell as this node knows it, or "".
func (k *Keeper) shellOf(uid uint32) string {
	u, err := k.accounts.ByUID(uid)
	if err != nil {
		return ""
	}
	return u.Shell
}

// getent runs that program as a child of the keeper's own kind: the reaper takes every child's status, also of those
// that os/exec started.
func (k *Keeper) getent(argv []string, patience time.Duration) ([]byte, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, account.ErrUnknown
	}
	out, err := k.runHelper(helper{
		argv: append([]string{path}, argv[1:]...), env: []string{"PATH=/usr/bin:/bin"},
		attr: &syscall.SysProcAttr{Setsid: true}, dir: "/", timeout: patience, max: 1 << 20,
	})
	var code exitCode
	if errors.As(err, &code) && (code == account.NotFound || argv[1] == "initgroups" && code == 1) {
		return nil, account.ErrUnknown
	}
	return out, err
}

// exitCode is how a helper ended that did not end well.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
