package grammar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Range is a closed range of counts or sizes with open ends as nil, as dstack configurations have it.
type Range[T int | float64] struct {
	Min, Max *T
}

// Exactly is the range of one value.
func Exactly[T int | float64](v T) Range[T] { return Range[T]{Min: &v, Max: &v} }

// AtLeast is the range from v on.
func AtLeast[T int | float64](v T) Range[T] { return Range[T]{Min: &v} }

// format writes n, a..b, a.. or ..b with each end written by one.
func (r Range[T]) format(one func(T) string) string {
	switch {
	case r.Min != nil && r.Max != nil && *r.Min == *r.Max:
		return one(*r.Min)
	case r.Min != nil && r.Max != nil:
		return one(*r.Min) + ".." + one(*r.Max)
	case r.Min != nil:
		return one(*r.Min) + ".."
	case r.Max != nil:
		return ".." + one(*r.Max)
	}
	return ".."
}

func (r Range[T]) String() string { return r.format(func(v T) string { return fmt.Sprint(v) }) }

// FormatSizes writes a range of sizes in GB: 8GB.., 512MB..1GB.
func FormatSizes(r Range[float64]) string { return r.format(FormatSize) }

// parseRange reads n, a..b, a.. and ..b, blanks around the dots allowed.
func parseRange[T int | float64](t *text, one func(side string, pos int) (T, error)) (Range[T], error) {
	lo, hi, ranged := strings.Cut(t.in, "..")
	if !ranged {
		v, err := one(t.in, 0)
		if err != nil {
			return Range[T]{}, err
		}
		return Exactly(v), nil
	}
	var r Range[T]
	if strings.TrimSpace(lo) != "" {
		v, err := one(lo, 0)
		if err != nil {
			return Range[T]{}, err
		}
		r.Min = &v
	}
	if strings.TrimSpace(hi) != "" {
		v, err := one(hi, len(lo)+2)
		if err != nil {
			return Range[T]{}, err
		}
		r.Max = &v
	}
	switch {
	case r.Min == nil && r.Max == nil:
		return Range[T]{}, t.fail(0, "empty range")
	case r.Min != nil && r.Max != nil && *r.Max < *r.Min:
		return Range[T]{}, t.fail(len(lo)+2, "the range runs backwards")
	}
	return r, nil
}

// FormatSize writes GB with the unit that needs no fraction where there is one.
func FormatSize(gb float64) string {
	for _, u := range [...]struct {
		name string
		gb   float64
	}{{"TB", 1024}, {"GB", 1}, {"MB", 1.0 / 1024}} {
		if v := gb / u.gb; v >= 1 && v == math.Trunc(v) && v < 1<<53 {
			return strconv.FormatFloat(v, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(gb, 'f', -1, 64) + "GB"
}

func (t *text) size(s string, pos int) (float64, error) {
	body := strings.TrimSpace(s)
	factor := 1.0
	if n := len(body); n > 2 {
		unit := true
		switch strings.ToUpper(body[n-2:]) {
		case "MB":
			factor = 1.0 / 1024
		case "GB":
		case "TB":
			factor = 1024
		default:
			unit = false
		}
		if unit {
			body = strings.TrimSpace(body[:n-2])
		}
	}
	v, err := t.decimal(body, pos)
	return v * factor, err
}

// decimal reads an unsigned decimal number; underscores may part its digits, as Python has it.
func (t *text) decimal(s string, pos int) (float64, error) {
	digits, point := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			digits++
		case c == '.' && !point:
			point = true
		case c == '_' && i > 0 && i+1 < len(s) && isDigit(s[i-1]) && isDigit(s[i+1]):
		default:
			return 0, t.fail(pos, "%q is not a size", strings.TrimSpace(s))
		}
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if digits == 0 || err != nil || v > 1<<40 {
		return 0, t.fail(pos, "%q is not a size", strings.TrimSpace(s))
	}
	return v, nil
}

// integer reads a whole number the way dstack's parser does: blanks around it, underscores inside and
// a fraction of zeros are no fault.
func (t *text) integer(s string, pos int) (int, error) {
	body := strings.TrimSpace(s)
	whole, fraction, _ := strings.Cut(body, ".")
	sign := 1
	if strings.HasPrefix(whole, "-") {
		whole, sign = whole[1:], -1
	}
	for i := range len(whole) {
		c := whole[i]
		if !isDigit(c) && (c != '_' || i == 0 || i+1 == len(whole) || whole[i-1] == '_') {
			return 0, t.fail(pos, "%q is not a whole number", body)
		}
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(whole, "_", ""), 10, 32)
	if err != nil || strings.Trim(fraction, "0") != "" || strings.HasSuffix(body, ".") {
		return 0, t.fail(pos, "%q is not a whole number", body)
	}
	return sign * int(v), nil
}
