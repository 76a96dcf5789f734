package report

import (
	"testing"
	"time"
)

// TestTimeFormat has what SLURM_TIME_FORMAT makes of a moment.
func TestTimeFormat(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 6, 5, 4, 3, 0, time.UTC)
	for format, want := range map[string]string{
		"%s":                 "1793941443",
		"%Y-%m-%dT%H:%M:%S":  "2026-11-06T05:04:03",
		"%F %T":              "2026-11-06 05:04:03",
		"%a %b %e %R %y %%d": "Fri Nov  6 05:04 26 %d",
		"%j day %u, %Q %":    "310 day 5, %Q %",
	} {
		if got := strftime(format, at); got != want {
			t.Errorf("%q: %q, want %q", format, got, want)
		}
	}
	for days, want := range map[int]string{
		0: "05:04:03", -1: "Ystday 05:04", 1: "Tomorr 05:04", 3: "Mon 05:04", -20: "17 Oct 05:04", -400: "2 Oct 2025",
	} {
		if got := relative(at.AddDate(0, 0, days), at); got != want {
			t.Errorf("relative, %d days: %q, want %q", days, got, want)
		}
	}
}
