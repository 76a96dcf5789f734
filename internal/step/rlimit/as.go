package rlimit

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keepID leaves one of a process's three ids as it is.
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
// own user do it, and takes the caller's real ids for that. A child takes them that makes this one call: whoever has a
// user's real id can be sent signals by that user, and one that reaches a thread of this process ends all of it. The
// child's other ids stay root's, so that the user cannot look into its memory. The calling goroutine must be locked to
// its thread.
func setAs(uid, gid uint32, pid, resource int, limit *unix.Rlimit) error {
	// The child has a copy of every descriptor until it ends, as between a fork and its exec.
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	var all, had unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &had); err != nil { // handlers must not run in the child
		return err
	}
	child, e := forkAs(uid, gid, pid, resource, limit)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &had, nil); err != nil {
		return err
	}
	if e != 0 {
		return fmt.Errorf("fork: %w", e)
	}
	return await(child)
}

// forkAs makes the child, which does nothing but system calls: it has one thread of this process and none of its
// runtime. Its end sends no signal, and those who wait for children do not see it.
//
//go:noinline
//go:norace
//go:nosplit
func forkAs(uid, gid uint32, pid, resource int, limit *unix.Rlimit) (child int, e syscall.Errno) {
	id, _, e := syscall.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if e != 0 || id != 0 {
		return int(id), e
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), keepID, keepID); e == 0 {
		_, _, e = syscall.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), keepID, keepID)
	}
	if e == 0 {
		_, _, e = syscall.RawSyscall6(unix.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
			uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(e), 0, 0)
	}
}

// await returns the error that the child ended with. One that its user stops is killed.
func await(child int) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(child, &status, unix.WUNTRACED|unix.WCLONE, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for process %d: %w", child, err)
		case status.Stopped():
			_ = unix.Kill(child, unix.SIGKILL) // it is waited for, so it is there
		case status.Signaled():
			return fmt.Errorf("process %d was ended by signal %d", child, status.Signal())
		case status.ExitStatus() != 0:
			return syscall.Errno(status.ExitStatus())
		default:
			return nil
		}
	}
}
