package step

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A thread that cannot come back ends, and another takes its place.
func TestSpoiltThreadEnds(t *testing.T) {
	t.Parallel()
	pool := newThreads()
	defer pool.close()
	fault := errors.New("stays")
	for range 2 * manyThreads { // more than there may ever be
		tid := 0
		if err := pool.do(func(th *thread) { tid = unix.Gettid(); th.spoil(fault) }); !errors.Is(err, fault) {
			t.Fatal(err)
		}
		if tid == os.Getpid() {
			t.Fatal("jobs run on the process's first thread, which cannot end")
		}
		(&agent{t: t}).until("the thread ends", func() bool {
			_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
			return errors.Is(err, os.ErrNotExist)
		})
	}
	if err := pool.do(func(*thread) {}); err != nil {
		t.Fatal(err)
	}
}
