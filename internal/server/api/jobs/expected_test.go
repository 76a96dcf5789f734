package jobs

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// A job that still waits is expected now at the earliest, and that is an estimate. An estimate of the past says
// nothing.
func TestNotPast(t *testing.T) {
	t.Parallel()
	const now = core.Time(1000)
	for _, tc := range []struct {
		expected core.Time
		estimate bool
		want     core.Time
		guess    bool
	}{
		{999, false, now, true},
		{now, false, now, false},
		{1001, false, 1001, false},
		{1001, true, 1001, true},
		{now, true, 0, false},
		{999, true, 0, false},
	} {
		if at, guess := notPast(tc.expected, tc.estimate, now); at != tc.want || guess != tc.guess {
			t.Errorf("%+v: %d %v", tc, at, guess)
		}
	}
}
