package step

import (
	"container/heap"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// boottime is the clock of all limits: monotonic, and it goes on while the machine sleeps, unlike Go's own.
func boottime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // cannot fail on Linux ≥ 2.6.39
	return time.Duration(ts.Nano())
}

// timer is one deadline.
type timer struct {
	at    time.Duration // on boottime
	fire  func()
	index int // in the heap, -1: not in it
}

// timers holds all deadlines behind one timerfd.
type timers struct {
	mu   sync.Mutex
	heap timerHeap
	file *os.File
	fd   int
	set  time.Duration // what the timerfd is set to; zero: nothing
	work sync.WaitGroup
}

func newTimers() (*timers, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &timers{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// at calls fire, in a goroutine of its own, when boottime reaches at.
func (t *timers) at(at time.Duration, fire func()) *timer {
	tm := &timer{at: at, fire: fire}
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Push(&t.heap, tm)
	t.arm()
	return tm
}

// cancel forgets a deadline; nil and those that have fired are fine.
func (t *timers) cancel(tm *timer) {
	if tm == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if tm.index >= 0 {
		heap.Remove(&t.heap, tm.index)
		// The timerfd may now go off for nobody, which is cheaper than setting it for every job that ends in time.
	}
}

// arm sets the timerfd to the earliest deadline if that is earlier than what it is set to.
func (t *timers) arm() {
	if len(t.heap) == 0 {
		return
	}
	first := t.heap[0].at
	if t.set != 0 && t.set <= first {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(first), 1))}
	if err := unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err == nil {
		t.set = first
	}
}

// run fires deadlines until close.
func (t *timers) run() {
	var buf [8]byte
	for {
		if _, err := t.file.Read(buf[:]); err != nil {
			t.work.Wait()
			return
		}
		t.mu.Lock()
		t.set = 0
		for now := boottime(); len(t.heap) > 0 && t.heap[0].at <= now; {
			tm := heap.Pop(&t.heap).(*timer)
			t.work.Go(tm.fire)
		}
		t.arm()
		t.mu.Unlock()
	}
}

func (t *timers) close() { _ = t.file.Close() }

type timerHeap []*timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	tm := x.(*timer)
	tm.index = len(*h)
	*h = append(*h, tm)
}
func (h *timerHeap) Pop() any {
	old := *h
	tm := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	tm.index = -1
	return tm
}
