package grammar

import (
	"fmt"
	"strings"
)

// ParseSpan reads a length of time as Slurm writes it (90 are minutes, 1:30:00, 2-00:00:00) or as people do (36h, 2d),
// and returns seconds.
func ParseSpan(s string) (seconds int64, err error) {
	if s != "" && strings.ContainsAny(s[len(s)-1:], "smhdw") {
		if sec, err := ParseDuration(s); err == nil && sec >= 0 {
			return sec, nil
		}
	}
	sec, err := ParseTimeSpan(s)
	if err != nil || sec < 0 {
		return 0, fmt.Errorf("%q is not a duration; expected a value such as 90 (minutes), 2-00:00:00, 36h or 2d", s)
	}
	return sec, nil
}
