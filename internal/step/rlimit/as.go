package rlimit

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// keepID leaves one of a thread's three ids as it is.
const keepID = ^uintptr(0)

// Apply sets a limit of a process of a user. One that cannot be raised stays as it is: the job gets what there is.
func Apply(pid, resource int, limit *unix.Rlimit, root bool, uid, gid uint32) error {
	err := unix.Prlimit(pid, resource, limit, nil)
	if errors.Is(err, unix.EPERM) && root { // root without CAP_SYS_RESOURCE, as in containers
		err = setAs(uid, gid, pid, resource, limit)
	}
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("set limit %d: %w", resource, err)
	}
	return nil
}

// setAs sets a limit of a process of another user, for a root that may not set anybody's: the kernel lets the process's
// own user do it, and takes the thread's real ids for that. The calling goroutine must be locked to its thread; only
// that thread's real ids change, for the moment of the call.
func setAs(uid, gid uint32, pid, resource int, limit *unix.Rlimit) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), keepID, keepID); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), keepID, keepID); e != 0 {
		_, _, back := unix.RawSyscall(unix.SYS_SETRESGID, 0, keepID, keepID)
		return errors.Join(e, asError(back))
	}
	err := unix.Prlimit(pid, resource, limit, nil)
	_, _, backUID := unix.RawSyscall(unix.SYS_SETRESUID, 0, keepID, keepID)
	_, _, backGID := unix.RawSyscall(unix.SYS_SETRESGID, 0, keepID, keepID)
	return errors.Join(err, asError(backUID), asError(backGID))
}

func asError(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
