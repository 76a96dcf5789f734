package clock

import (
	"testing"
	"time"
)

func TestTimersFireInOrder(t *testing.T) {
	t.Parallel()
	tm, err := NewTimers()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); tm.Run() }()
	fired := make(chan int, 8)
	now := Now()
	tm.At(now+30*time.Millisecond, func() { fired <- 3 })
	never := tm.At(now+10*time.Millisecond, func() { fired <- 0 })
	tm.At(now+time.Millisecond, func() { fired <- 1 })
	tm.At(now-time.Hour, func() { fired <- 2 }) // already past
	tm.Cancel(never)
	tm.Cancel(nil)
	first := map[int]bool{<-fired: true, <-fired: true}
	if !first[1] || !first[2] {
		t.Errorf("first fired %v", first)
	}
	if got := <-fired; got != 3 {
		t.Errorf("then %d", got)
	}
	tm.Cancel(never)
	tm.Close()
	<-done
}
