package grammar

import (
	"fmt"
	"strings"
)

// Limits that are no number of minutes or seconds.
const (
	Unlimited int64 = -1
	NotSet    int64 = -2
)

// maxPart bounds each part of a limit; a million days is beyond any cluster's life.
const maxPart = 1_000_000_000

const wantLimit = "minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s or UNLIMITED"

// ParseTimeLimit reads a limit as --time does and returns whole minutes, seconds rounded up, or
// Unlimited, which is also what 0 means.
func ParseTimeLimit(s string) (minutes int64, err error) {
	sec, err := ParseTimeSpan(s)
	switch {
	case err != nil:
		return 0, err
	case sec == Unlimited || sec == 0:
		return Unlimited, nil
	}
	return (sec + 59) / 60, nil
}

// ParseTimeSpan is ParseTimeLimit in seconds, with 0 as itself.
func ParseTimeSpan(s string) (seconds int64, err error) {
	if s == "-1" || strings.EqualFold(s, "INFINITE") || strings.EqualFold(s, "UNLIMITED") {
		return Unlimited, nil
	}
	t := &text{what: "time limit", want: wantLimit, in: s}
	first, err := t.number(maxPart)
	if err != nil {
		return 0, err
	}
	days := t.take('-')
	parts := []int64{first}
	if days {
		parts = parts[:0]
	}
	for len(parts) == 0 || t.take(':') {
		if len(parts) == 3 {
			return 0, t.fail(t.pos-1, "too many parts")
		}
		v, err := t.number(maxPart)
		if err != nil {
			return 0, err
		}
		parts = append(parts, v)
	}
	if !t.end() {
		return 0, t.unexpected()
	}
	if days {
		return first*86400 + at(parts, 0)*3600 + at(parts, 1)*60 + at(parts, 2), nil
	}
	switch len(parts) {
	case 1:
		return first * 60, nil
	case 2: // never hours:minutes
		return first*60 + parts[1], nil
	default:
		return first*3600 + parts[1]*60 + parts[2], nil
	}
}

func at(parts []int64, i int) int64 {
	if i < len(parts) {
		return parts[i]
	}
	return 0
}

// FormatElapsed writes seconds as squeue does, leading units dropped: 0:05, 30:00, 1:00:00,
// 1-02:03:04; INVALID below zero.
func FormatElapsed(seconds int64) string {
	d, h, m, s := split(seconds)
	switch {
	case seconds < 0:
		return "INVALID"
	case d > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, h, m, s)
	case h > 0:
		return fmt.Sprintf("%d:%02d:%02d", h, m, s)
	default:
		return fmt.Sprintf("%d:%02d", m, s)
	}
}

// FormatLimit writes a limit in minutes as squeue does: 30:00, UNLIMITED, NOT_SET, INVALID.
func FormatLimit(minutes int64) string {
	switch minutes {
	case Unlimited:
		return "UNLIMITED"
	case NotSet:
		return "NOT_SET"
	}
	return FormatElapsed(minutes * 60)
}

// FormatClock writes seconds as scontrol and sacct do, hours always there: 00:30:00, 1-00:00:00.
func FormatClock(seconds int64) string {
	d, h, m, s := split(seconds)
	switch {
	case seconds < 0:
		return "INVALID"
	case d > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, h, m, s)
	default:
		return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
	}
}

// FormatClockLimit writes a limit in minutes as scontrol and sacct do.
func FormatClockLimit(minutes int64) string {
	switch minutes {
	case Unlimited:
		return "UNLIMITED"
	case NotSet:
		return "Partition_Limit"
	}
	return FormatClock(minutes * 60)
}

func split(seconds int64) (d, h, m, s int64) {
	return seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60
}
