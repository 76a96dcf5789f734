package limit

import (
	"fmt"
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	var b Budget
	now := time.Unix(1_800_000_000, 0)
	spend := func(name string, n int64, want bool) {
		t.Helper()
		if got := b.Spend(name, n, 2400, now); got != want {
			t.Errorf("%s spends %d: %v, want %v", name, n, got, want)
		}
	}
	spend("ann", 2000, true)
	spend("ann", 401, false) // and nothing is taken
	spend("ann", 400, true)
	spend("bob", 2400, true) // each has a bucket of their own
	spend("ann", 1, false)
	now = now.Add(time.Hour) // a 24th is back
	spend("ann", 101, false)
	spend("ann", 100, true)
	spend("ann", -100, true) // what was not stored after all
	spend("ann", 100, true)
	spend("cat", 2401, false)
	now = now.Add(-time.Minute) // a clock that goes back gives nothing
	spend("ann", 1, false)
	now = now.Add(48 * time.Hour)
	spend("ann", 2400, true)
	if !b.Spend("ann", 1<<60, 0, now) {
		t.Error("0 is no limit")
	}
	now = now.Add(48 * time.Hour)
	for i := range 5 * firstSweep {
		b.Spend(fmt.Sprint(i), 1, 2400, now)
		now = now.Add(day / 100)
	}
	if n := len(b.spent); n > 2*firstSweep {
		t.Errorf("%d buckets are kept, most of them empty", n)
	}
}
