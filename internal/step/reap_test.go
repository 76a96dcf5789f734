package step

import (
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReaperEndsWaitForStop: who waits for a child to stop at its exec continues when the child dies before it got
// there.
func TestReaperEndsWaitForStop(t *testing.T) {
	var mu sync.Mutex
	var r reaper
	r.init(&mu)
	ended := make(chan unix.WaitStatus, 1)
	c := &child{stopped: make(chan struct{}, 1), exited: func(s unix.WaitStatus, _ *unix.Rusage) { ended <- s }}
	err := r.fork(c, func() (int, error) {
		return syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
	})
	if err != nil {
		t.Fatal(err)
	}
	for { // as run does, for this child alone: other tests have theirs
		if err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err == nil {
			break
		} else if err != unix.EINTR {
			t.Fatal(err)
		}
	}
	r.collect(c.pid)
	<-c.stopped
	if s := <-ended; !s.Exited() || !c.gone.Load() {
		t.Errorf("status %v, gone %v", s, c.gone.Load())
	}
}
