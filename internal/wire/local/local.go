// Package local listens on sockets in the file system, whose callers the kernel knows.
package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"bireme.dev/bireme/internal/core"
)

// MaxPath is how long the path of a socket may be: the kernel takes no more.
const MaxPath = 107

// Listen takes over a socket path; one that somebody listens on is refused. It is there with its mode or not at all: a
// caller who found it without would take it for somebody else's.
func Listen(path string, mode os.FileMode) (net.Listener, error) {
	if len(path) > MaxPath {
		return nil, core.Errorf(core.Invalid,
			"%s: %d characters are too many for a socket, the kernel takes %d: choose a shorter folder",
			path, len(path), MaxPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		return nil, errors.Join(core.Errorf(core.Conflict, "somebody listens on %s already", path), c.Close())
	}
	aside := path[:len(path)-1] + "~" // no longer than the path, which may be as long as one can be
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", aside)
	if err != nil {
		return nil, err
	}
	u := l.(*net.UnixListener)
	u.SetUnlinkOnClose(false) // it has another name then
	if err := errors.Join(os.Chmod(aside, mode), os.Rename(aside, path)); err != nil {
		return nil, errors.Join(err, os.Remove(aside), u.Close())
	}
	return &listener{u, path}, nil
}

type listener struct {
	*net.UnixListener
	path string
}

// Close also takes the path away, so that a caller sees at once that nobody is there.
func (l *listener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.UnixListener.Close())
}
