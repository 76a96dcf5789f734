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

// slice is how long, in nanoseconds, a raised thread runs before another one's turn: the shortest that the kernel
// grants. A thread that wakes comes sooner before those with longer slices. Linux before 6.12 ignores it.
const slice = 100_000

// values are what the kernel schedules a thread by.
type values struct {
	nice  int32
	slice uint64 // nanoseconds; 0: the kernel's default
}

// change is what Raise did.
type change struct{ from, to values }

// raised is nil before Raise.
var raised atomic.Pointer[change]

// Raise gives this process a nice value below 0 (-20 to -1) and a short slice. Where the kernel groups processes by
// session (autogroup), a nice value counts within a session only: there the session gets it too, if this process leads
// it. The nice value needs root or CAP_SYS_NICE; a process that has neither gets the slice, and the error is
// os.ErrPermission.
func Raise(value int) error {
	if value >= 0 {
		return nil
	}
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("sched_getattr: %w", err)
	}
	done := &change{from: values{nice: now.Nice}, to: values{min(now.Nice, int32(value)), slice}}
	defer raised.Store(done)
	err = setAll(func(now values) values { return values{min(now.nice, int32(value)), slice} })
	if errors.Is(err, os.ErrPermission) {
		done.to.nice = now.Nice
		return errors.Join(err, setAll(func(now values) values { return values{now.nice, slice} }))
	}
	if err != nil {
		return err
	}
	if sid, err := unix.Getsid(0); err != nil || sid != os.Getpid() {
		return nil // others are in the session
	}
	err = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(value)), 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) {
		return nil // this kernel has no autogroups
	}
	return err
}

// Lower gives a process that inherited a nice value below 0 the value 0, and one that inherited a short slice the
// kernel's default. Whatever it starts then has that too.
func Lower() error {
	return setAll(func(now values) values { return values{nice: max(now.nice, 0)} })
}

// setAll sets the values of all threads; new ones have those of the thread that made them.
func setAll(want func(now values) values) error {
	done := map[int]bool{}
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
			if done[tid] {
				continue
			}
			if err := set(tid, want); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("scheduling of thread %d: %w", tid, err)
			}
			done[tid], again = true, true // it may have made a thread before it had the values
		}
	}
	return nil
}

// set gives a thread other values. One with a real-time policy is left as it is.
func set(tid int, want func(now values) values) error {
	now, err := unix.SchedGetAttr(tid, 0)
	if err != nil || now.Policy != unix.SCHED_NORMAL && now.Policy != unix.SCHED_BATCH {
		return err
	}
	v := want(values{nice: now.Nice, slice: now.Runtime})
	err = unix.SchedSetAttr(tid, &unix.SchedAttr{Policy: now.Policy, Nice: v.nice, Runtime: v.slice}, 0)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return os.ErrPermission
	}
	return err
}

// Run runs a command with the values that it would have without Raise.
func Run(c *exec.Cmd) error {
	if err := Start(c); err != nil {
		return err
	}
	return c.Wait()
}

// Start starts a command with the values that it would have without Raise.
func Start(c *exec.Cmd) error {
	did := raised.Load()
	if did == nil {
		return c.Start()
	}
	// A child has the values of the thread that forks. The runtime makes no threads from a locked one, so none inherits
	// the lower ones.
	runtime.LockOSThread()
	tid := unix.Gettid()
	if set(tid, func(values) values { return did.from }) != nil {
		runtime.UnlockOSThread()
		return c.Start()
	}
	err := c.Start()
	if set(tid, func(values) values { return did.to }) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	return err
}
