package clock

import (
	"container/heap"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Now is the clock of all limits: monotonic, and it continues while the machine sleeps, unlike Go's own.
func Now() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // cannot fail on Linux ≥ 2.6.39
	return time.Duration(ts.Nano())
}

// Timer is one deadline.
type Timer struct {
	at    time.Duration // on boottime
	fire  func()
	index int // in the heap, -1: not in it
}

// Due is when the deadline is, on the clock.
func (t *Timer) Due() time.Duration { return t.at }

// Timers holds all deadlines behind one timerfd.
type Timers struct {
	mu   sync.Mutex
	heap timerHeap
	file *os.File
	fd   int
	set  time.Duration // what the timerfd is set to; zero: nothing
	work sync.WaitGroup
}

func NewTimers() (*Timers, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &Timers{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// At calls fire, in a goroutine of its own, when boottime reaches at.
func (t *Timers) At(at time.Duration, fire func()) *Timer {
	tm := &Timer{at: at, fire: fire}
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Push(&t.heap, tm)
	t.arm()
	return tm
}

// Cancel forgets a deadline; nil and those that have fired are fine.
func (t *Timers) Cancel(tm *Timer) {
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
func (t *Timers) arm() {
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

// Run fires deadlines until close.
func (t *Timers) Run() {
	var buf [8]byte
	for {
		if _, err := t.file.Read(buf[:]); err != nil {
			t.work.Wait()
			return
		}
		t.mu.Lock()
		t.set = 0
		for now := Now(); len(t.heap) > 0 && t.heap[0].at <= now; {
			tm := heap.Pop(&t.heap).(*Timer)
			t.work.Go(tm.fire)
		}
		t.arm()
		t.mu.Unlock()
	}
}

func (t *Timers) Close() { _ = t.file.Close() }

type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	tm := x.(*Timer)
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
