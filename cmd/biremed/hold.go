package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/agent/process"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

func pidPath(dir string) string { return filepath.Join(dir, "server.pid") }

// holdDir makes this process the only server that works in a directory. It comes before anything else a server does:
// one that is refused has changed nothing.
func holdDir(dir string) (*process.Lock, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	lock, err := process.TakeLock(pidPath(dir))
	if errors.Is(err, process.ErrRunning) {
		return nil, core.Errorf(core.Conflict,
			"a server is already running in %s (%s); `biremed stop --dir %s` stops it", dir,
			told(err), dir)
	}
	return lock, foreign(dir, err)
}

// makeDir makes the directory that a daemon works in, or refuses one that another user made or may write to: that
// user's settings would be ours, and their links would have us write to any file. In /tmp anybody may be first.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return foreign(dir, err)
	}
	if err := client.CheckFolder(dir); err != nil {
		return core.Errorf(core.Denied, "--dir %s is not safe for %s to work in: %v; give a folder of your own, or "+
			"start as its owner",
			dir, userName(uint32(os.Geteuid())), err)
	}
	return nil
}

// holdStore makes this process the only server that uses an embedded database, which may lie outside the server's
// directory. Servers that share a PostgreSQL have a lease there.
func holdStore(cfg *config.Config) (*process.Lock, error) {
	file, ok := strings.CutPrefix(cfg.Store(), "sqlite:")
	if !ok {
		return nil, nil
	}
	file = strings.TrimPrefix(file, "//")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // by whatever name the other server knows it
	}
	lock, err := process.TakeLock(file + ".lock")
	if errors.Is(err, process.ErrRunning) {
		return nil, core.Errorf(core.Conflict, "server.store: another server uses %s (%s)", file, told(err))
	}
	return lock, err
}

// told is an error's own message, without what it wraps.
func told(err error) string {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// foreign explains an error that comes from a directory being somebody else's.
func foreign(dir string, err error) error {
	if err == nil || !errors.Is(err, os.ErrPermission) {
		return err
	}
	owner := "another user"
	if st, statErr := os.Stat(dir); statErr == nil {
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			owner = userName(sys.Uid)
		}
	}
	return core.Errorf(core.Denied, "%s belongs to %s, and you are %s: %v; give another --dir, or have its owner "+
		"remove it",
		dir, owner, userName(uint32(os.Geteuid())), err)
}

// userName is a user's name, or the number of one that has none.
func userName(uid uint32) string {
	if u, err := account.ByUID(uid); err == nil {
		return u.Name
	}
	return "user " + strconv.FormatUint(uint64(uid), 10)
}

// release unlocks; nil ones are fine.
func release(locks ...*process.Lock) error {
	var errs []error
	for _, l := range locks {
		if l != nil {
			errs = append(errs, l.Release())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("give locks back: %w", err)
	}
	return nil
}
