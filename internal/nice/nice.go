// Package nice gives a daemon more of the processors than what it serves gets, and takes care that programs that it
// starts do not inherit that.
package nice

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// raised is the nice value of Raise, 0 before.
var raised atomic.Int32

// Raise gives this process a nice value below 0 (-20 to -1). Where the kernel groups processes by session (autogroup),
// a nice value counts within a session only: there the session gets it too, if this process leads it. It needs root or
// CAP_SYS_NICE; the error of a process that has neither is os.ErrPermission.
func Raise(value int) error {
	if value >= 0 {
		return nil
	}
	if err := setAll(func(now int) int { return min(now, value) }); err != nil {
		return err
	}
	raised.Store(int32(value))
	if sid, err := unix.Getsid(0); err != nil || sid != os.Getpid() {
		return nil //nolint:nilerr // others are in the session
	}
	err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(value)), 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) {
		return nil // this kernel has no autogroups
	}
	return err
}

// Lower gives a process that inherited a nice value below 0 the value 0. Whatever it starts then has that too.
func Lower() error {
	return setAll(func(now int) int { return max(now, 0) })
}

// setAll sets the nice value of all threads; new ones have that of the thread that made them.
func setAll(value func(now int) int) error {
	for again := true; again; {
		again = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			changed, err := set(tid, value)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("nice value of thread %d: %w", tid, err)
			}
			again = again || changed // it may have made a thread before it had the value
		}
	}
	return nil
}

// set gives a thread a nice value and reports whether that is another one than it had.
func set(tid int, value func(now int) int) (changed bool, err error) {
	prio, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		return false, err
	}
	now := 20 - prio // the kernel's answer is 20 - nice
	want := value(now)
	if want == now {
		return false, nil
	}
	err = unix.Setpriority(unix.PRIO_PROCESS, tid, want)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		err = os.ErrPermission
	}
	return err == nil, err
}

// Run runs a command with the nice value that it would have without Raise.
func Run(c *exec.Cmd) error {
	if err := start(c); err != nil {
		return err
	}
	return c.Wait()
}

func start(c *exec.Cmd) error {
	value := int(raised.Load())
	if value == 0 {
		return c.Start()
	}
	// A child has the nice value of the thread that forks. The runtime makes no threads from a locked one, so none
	// inherits the 0.
	runtime.LockOSThread()
	tid := unix.Gettid()
	if err := unix.Setpriority(unix.PRIO_PROCESS, tid, 0); err != nil {
		runtime.UnlockOSThread()
		return c.Start()
	}
	err := c.Start()
	if unix.Setpriority(unix.PRIO_PROCESS, tid, value) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	return err
}
