package step

import (
	"testing"
	"time"
)

func TestTimersFireInOrder(t *testing.T) {
	t.Parallel()
	tm, err := newTimers()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); tm.run() }()
	fired := make(chan int, 8)
	now := boottime()
	tm.at(now+30*time.Millisecond, func() { fired <- 3 })
	never := tm.at(now+10*time.Millisecond, func() { fired <- 0 })
	tm.at(now+time.Millisecond, func() { fired <- 1 })
	tm.at(now-time.Hour, func() { fired <- 2 }) // already past
	tm.cancel(never)
	tm.cancel(nil)
	first := map[int]bool{<-fired: true, <-fired: true}
	if !first[1] || !first[2] {
		t.Errorf("first fired %v", first)
	}
	if got := <-fired; got != 3 {
		t.Errorf("then %d", got)
	}
	tm.cancel(never)
	tm.close()
	<-done
}
