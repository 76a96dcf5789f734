package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
)

// Lock is a held pid file. The kernel drops the lock with the process, however that ends, so a pid in a file that is
// not locked means nothing.
type Lock struct{ f *os.File }

// ErrRunning is wrapped by TakeLock's error when another process holds the file.
var ErrRunning = errors.New("already running")

// TakeLock writes this process's pid into a file and locks it. Other users cannot open the file: a lock needs no more
// than that, and somebody else's would keep its owner from starting.
func TakeLock(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			defer f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, &core.Error{Code: core.Conflict, Message: fmt.Sprintf("process %d holds %s", readPid(path),
					path), Err: ErrRunning}
			}
			return nil, err
		}
		if current, err := isCurrent(f, path); err != nil || !current {
			f.Close()
			if err != nil {
				return nil, err
			}
			continue // its last holder removed it while it was being locked
		}
		pid := strconv.Itoa(os.Getpid()) + "\n"
		if err := errors.Join(f.Chmod(0o600), f.Truncate(0), second(f.WriteAt([]byte(pid), 0))); err != nil {
			f.Close()
			return nil, err
		}
		return &Lock{f}, nil
	}
}

// isCurrent reports whether an open file is the one that its path names now.
func isCurrent(f *os.File, path string) (bool, error) {
	have, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(have, now), err
}

func second[T any](_ T, err error) error { return err }

// Release releases the lock and removes the file.
func (l *Lock) Release() error { return errors.Join(os.Remove(l.f.Name()), l.f.Close()) }

func readPid(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b))) // 0 when it is being written
	return pid
}

// Process is a process that cannot be mistaken for another one that got its number later.
type Process struct {
	Pid int
	fd  int
}

// Holder finds the process that holds a pid file; nil when nobody does.
func Holder(path string) (*Process, error) {
	for range 100 {
		held, err := isLocked(path)
		if err != nil || !held {
			return nil, err
		}
		pid := readPid(path)
		if pid == 0 {
			continue // it has the lock and is about to write
		}
		p, err := Open(pid)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue // it has just ended
		}
		if err := sameOwner(path, pid); err != nil {
			p.Close()
			return nil, err
		}
		// If the file is still locked under that pid, the process we hold is the one.
		if held, err = isLocked(path); err == nil && held && readPid(path) == pid {
			return p, nil
		}
		p.Close()
	}
	return nil, fmt.Errorf("%s changes hands all the time", path)
}

// sameOwner refuses a pid file that names somebody else's process: whoever can write it would have us end any process.
func sameOwner(path string, pid int) error {
	var file, proc unix.Stat_t
	if err := unix.Lstat(path, &file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &proc); err != nil {
		return nil //nolint:nilerr // it has just ended
	}
	if file.Uid != proc.Uid {
		return fmt.Errorf("%s belongs to user %d and names process %d of user %d: it is left alone", path, file.Uid,
			pid, proc.Uid)
	}
	return nil
}

// Locked reports whether a process holds a lock on a file.
func Locked(path string) (bool, error) { return isLocked(path) }

func isLocked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a link would lead to anybody's process
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// Open returns a handle on a process; nil when there is none.
func Open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &Process{pid, fd}, nil
}

// Close lets go of the handle.
func (p *Process) Close() { _ = unix.Close(p.fd) }

// Signal sends a signal; a process that has ended is fine.
func (p *Process) Signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.Pid, err)
	}
	return nil
}

// Wait waits for the process to end.
func (p *Process) Wait(ctx context.Context) error {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("process %d does not end: %w", p.Pid, ctx.Err())
		}
	}
}

// End asks a process to end, and makes it after grace.
func (p *Process) End(ctx context.Context, grace time.Duration) error {
	if err := p.Signal(unix.SIGTERM); err != nil {
		return err
	}
	soft, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.Wait(soft) == nil {
		return nil
	}
	if err := p.Signal(unix.SIGKILL); err != nil {
		return err
	}
	return p.Wait(ctx)
}
