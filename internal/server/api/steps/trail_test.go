package steps

import (
	"testing"
	"time"
)

// Output may follow for a while after a job's end or its last output. A log whose last write lies in the future says
// nothing about that: its followers would never end.
func TestTrail(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for name, tc := range map[string]struct {
		end, written time.Time
		want         time.Duration
	}{
		"just ended":          {now, now.Add(-time.Hour), logTrail},
		"ended long ago":      {now.Add(-time.Minute), now.Add(-time.Hour), logTrail - time.Minute},
		"written since":       {now.Add(-time.Minute), now.Add(-time.Second), logTrail - time.Second},
		"written just now":    {now.Add(-time.Minute), now, logTrail},
		"the clock went back": {now.Add(-time.Minute), now.Add(time.Hour), logTrail - time.Minute},
	} {
		if got := trailOf(tc.end, tc.written, now); got != tc.want {
			t.Errorf("%s: %v, not %v", name, got, tc.want)
		}
	}
}
