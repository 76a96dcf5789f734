package hub

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// TestTurns: nodes are asked once an interval, all at once or in turns throughout it.
func TestTurns(t *testing.T) {
	t.Parallel()
	const interval = 64 * time.Minute
	began := time.Unix(1_700_000_000, 0)
	for _, cycle := range []bool{false, true} {
		h := &Health{Interval: interval, Cycle: cycle}
		due := map[int]int{} // by minute, how many of the nodes came to their turn
		for id := range int64(2 * turns) {
			last, asked := h.slot(id, began, began), 0
			for minute := 1; minute <= int(interval/time.Minute); minute++ {
				if now := h.slot(id, began, began.Add(time.Duration(minute)*time.Minute)); now > last {
					last = now
					asked++
					due[minute]++
				}
			}
			if asked != 1 {
				t.Errorf("cycle %v: node %d was asked %d times in an interval", cycle, id, asked)
			}
		}
		switch {
		case !cycle && due[64] != 2*turns:
			t.Errorf("not all at once: %v", due)
		case cycle && len(due) != turns:
			t.Errorf("in turns, in %d of %d minutes: %v", len(due), turns, due)
		}
	}
}

// TestChecks: a health program is for nodes in the states the settings name.
func TestChecks(t *testing.T) {
	t.Parallel()
	free, mixed, full := (*state.NodeUse)(nil), &state.NodeUse{CPUs: 2}, &state.NodeUse{CPUs: 4}
	for _, tc := range []struct {
		states []string
		flags  core.NodeFlag
		use    *state.NodeUse
		want   bool
	}{
		{nil, core.NodeDrain, full, true},
		{[]string{"any"}, core.NodeDown, full, true},
		{[]string{"idle"}, 0, free, true},
		{[]string{"idle"}, core.NodeDrain, free, true},
		{[]string{"idle"}, 0, mixed, false},
		{[]string{"nondrained_idle"}, 0, free, true},
		{[]string{"nondrained_idle"}, core.NodeDrain, free, false},
		{[]string{"mixed"}, 0, mixed, true},
		{[]string{"mixed"}, 0, full, false},
		{[]string{"alloc"}, 0, full, true},
		{[]string{"idle", "alloc"}, 0, mixed, false},
		{[]string{"idle", "alloc"}, 0, full, true},
	} {
		h := &Health{States: tc.states}
		if got := h.checks(&core.Node{Flags: tc.flags, Hardware: core.Hardware{CPUs: 4}}, tc.use); got != tc.want {
			t.Errorf("%v on a node that is %s with %+v: %v", tc.states, tc.flags, tc.use, got)
		}
	}
}
