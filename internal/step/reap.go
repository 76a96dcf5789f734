package step

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is a process the keeper forked and waits for. Both functions are called with the keeper's lock held.
type child struct {
	pid     int
	exited  func(status unix.WaitStatus, usage *unix.Rusage)
	stopped chan struct{} // gets a value when the child stops at its exec, under ptrace, or is over
	gone    atomic.Bool   // it is over
}

// reaper waits for all children of the process, the adopted ones included. A number of a process is only used while the
// reaper's lock is held and the child is in the list, so a signal can never hit a later process with the same number.
type reaper struct {
	mu       *sync.Mutex
	born     sync.Cond // the list got longer, or the end has come
	children map[int]*child
	// While somebody forks, exits of unknown children are kept: the child may end before its parent knows its number.
	forking int
	early   map[int]exit
	closing bool
}

type exit struct {
	status unix.WaitStatus
	usage  unix.Rusage
}

// end tells all who wait for a child that it is over: one that was killed on its way to its exec never stops there.
func (c *child) end(e *exit) {
	c.gone.Store(true)
	if c.stopped != nil {
		select {
		case c.stopped <- struct{}{}:
		default: // it had stopped
		}
	}
	c.exited(e.status, &e.usage)
}

func (r *reaper) init(mu *sync.Mutex) {
	r.mu, r.born.L = mu, mu
	r.children, r.early = map[int]*child{}, map[int]exit{}
}

// fork calls start, which forks, and puts the child in the list. The lock must not be held.
func (r *reaper) fork(c *child, start func() (int, error)) error {
	r.mu.Lock()
	r.forking++
	r.mu.Unlock()
	pid, err := start()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forking--
	if err == nil {
		c.pid = pid
		e, early := r.early[pid]
		delete(r.early, pid)
		if early && !e.status.Stopped() {
			c.end(&e)
		} else {
			r.children[pid] = c
			if early && c.stopped != nil {
				c.stopped <- struct{}{}
			}
			r.born.Signal()
		}
	}
	if r.forking == 0 && len(r.early) > 0 {
		clear(r.early)
	}
	return err
}

// siginfo is the part of siginfo_t that waitid fills in for children.
type siginfo struct {
	Signo, Errno, Code int32
	_                  int32
	Pid                int32
	_                  [108]byte
}

// run reaps until close; children must be gone by then.
func (r *reaper) run() {
	for {
		var info siginfo
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)),
			unix.WEXITED|unix.WNOWAIT, 0, 0)
		switch errno {
		case 0:
			r.collect(int(info.Pid))
		case unix.EINTR:
		default: // ECHILD: nobody to wait for
			r.mu.Lock()
			for len(r.children) == 0 && !r.closing {
				r.born.Wait()
			}
			done := r.closing && len(r.children) == 0
			r.mu.Unlock()
			if done {
				return
			}
		}
	}
}

// collect takes the status of a child that has one. From here its number may be used again.
func (r *reaper) collect(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e exit
	got, err := unix.Wait4(pid, &e.status, unix.WNOHANG, &e.usage)
	if err != nil || got != pid {
		return // the fork itself took it: exec failed
	}
	c := r.children[pid]
	if e.status.Stopped() {
		if c != nil && c.stopped != nil {
			c.stopped <- struct{}{}
			return
		}
		if c == nil && r.forking > 0 { // it stopped before its parent knew its number
			r.early[pid] = e
		}
		return
	}
	switch {
	case c != nil:
		delete(r.children, pid)
		c.end(&e)
	case r.forking > 0:
		r.early[pid] = e
	}
}

// signal sends a signal to a child that has not been collected.
func (r *reaper) signal(c *child, sig unix.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[c.pid] != c {
		return unix.ESRCH
	}
	return unix.Kill(c.pid, sig)
}

func (r *reaper) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
	r.born.Broadcast()
}
