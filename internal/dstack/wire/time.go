package wire

import (
	"time"

	"bireme.dev/bireme/internal/core"
)

// Time is a moment as clients read it: RFC 3339 in UTC with microseconds and Z.
func Time(t core.Time) string { return t.Go().UTC().Format("2006-01-02T15:04:05.000000Z") }

// TimePtr is Time for keys that may be null: nil where there is no moment.
func TimePtr(t core.Time) *string {
	if t == 0 {
		return nil
	}
	s := Time(t)
	return &s
}

// ParseTime reads a moment that a client sends, with or without a zone; without one it is UTC.
func ParseTime(text string) (core.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return core.At(t), true
		}
	}
	return 0, false
}
