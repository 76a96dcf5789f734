package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Duration is a length of time written as 200ms, 5m, 36h or 14d.
type Duration time.Duration

// D is the Go value.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String writes it in the largest unit that divides it.
func (d Duration) String() string {
	for _, u := range []struct {
		name string
		size time.Duration
	}{
		{"d", 24 * time.Hour},
		{"h", time.Hour},
		{"m", time.Minute},
		{"s", time.Second},
		{"ms", time.Millisecond},
		{"us", time.Microsecond},
	} {
		if d != 0 && time.Duration(d)%u.size == 0 {
			return strconv.FormatInt(int64(time.Duration(d)/u.size), 10) + u.name
		}
	}
	return time.Duration(d).String()
}

// MarshalText writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := parseDuration(string(b))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

func parseDuration(s string) (time.Duration, error) {
	if s == "0" || s == "" {
		return 0, nil
	}
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		days, rest = "", s
	}
	var sum time.Duration
	if days != "" {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration; expected a value such as 200ms, 5m, 36h or 14d", s)
		}
		sum = time.Duration(n) * 24 * time.Hour
	}
	if rest != "" {
		v, err := time.ParseDuration(rest)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration; expected a value such as 200ms, 5m, 36h or 14d", s)
		}
		sum += v
	}
	if sum < 0 {
		return 0, fmt.Errorf("%q is negative", s)
	}
	return sum, nil
}

// TimeLimit is a job's limit: a Duration, or "unlimited". Zero means "not set".
type TimeLimit core.Seconds

// String writes it.
func (t TimeLimit) String() string {
	if core.Seconds(t) >= core.Forever {
		return "unlimited"
	}
	return Duration(core.Seconds(t).Duration()).String()
}

// MarshalText writes it.
func (t TimeLimit) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads it.
func (t *TimeLimit) UnmarshalText(b []byte) error {
	if s := strings.ToLower(string(b)); s == "unlimited" || s == "infinite" {
		*t = TimeLimit(core.Forever)
		return nil
	}
	d, err := parseDuration(string(b))
	if err != nil {
		return err
	}
	*t = TimeLimit((d + time.Second - 1) / time.Second)
	return nil
}

// Size is an amount of bytes written as 512, 4K, 16M, 2G or 1T (powers of 1024). A negative one means "all" where a
// setting says so.
type Size core.Bytes

// String writes it in the largest unit that divides it.
func (s Size) String() string {
	v, neg := int64(s), ""
	if v < 0 {
		v, neg = -v, "-"
	}
	for _, u := range []struct {
		name  string
		shift uint
	}{{"T", 40}, {"G", 30}, {"M", 20}, {"K", 10}} {
		if v != 0 && v&(1<<u.shift-1) == 0 {
			return neg + strconv.FormatInt(v>>u.shift, 10) + u.name
		}
	}
	return neg + strconv.FormatInt(v, 10)
}

// MarshalText writes it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *Size) UnmarshalText(b []byte) error {
	text := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(string(b)), "B"), "I")
	shift := uint(0)
	if text != "" {
		if i := strings.IndexByte("KMGT", text[len(text)-1]); i >= 0 {
			shift, text = uint(i+1)*10, text[:len(text)-1]
		}
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v > 1<<62>>shift || v < -(1<<62>>shift) {
		return fmt.Errorf("%q is not a size; expected a value such as 512, 4K, 16M, 2G or 1T", b)
	}
	*s = Size(v << shift)
	return nil
}
