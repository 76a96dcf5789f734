package config

import (
	"math"
	"strconv"
	"strings"
)

// boolean reads true and false, 0 and 1, and the words that Python's models take for them.
func (r *reader) boolean(n *node, p *path) (bool, bool) {
	switch n.form {
	case isBool:
		return n.truth, true
	case isInt:
		if !n.huge && (n.int == 0 || n.int == 1) {
			return n.int == 1, true
		}
	case isFloat:
		if n.float == 0 || n.float == 1 {
			return n.float == 1, true
		}
	case isText:
		switch strings.ToLower(n.text) {
		case "1", "true", "t", "yes", "y", "on":
			return true, true
		case "0", "false", "f", "no", "n", "off":
			return false, true
		}
	}
	r.fail(n, p, typeBool, "must be true or false, not %s", n.describe())
	return false, false
}

// flag reads a boolean that must not be null; absent is def.
func (f *fields) flag(key string, def bool) bool {
	n, p := f.get(key)
	if n == nil {
		return def
	}
	v, _ := f.r.boolean(n, p)
	return v
}

// optFlag reads a boolean that may be null.
func (f *fields) optFlag(key string) *bool { return opt(f, key, f.r.boolean) }

// whole gives the whole number a value is: one itself, a float without fraction, a boolean, a text of digits.
func (n *node) whole() (int64, bool) {
	switch n.form {
	case isBool:
		if n.truth {
			return 1, true
		}
		return 0, true
	case isInt:
		return n.int, !n.huge
	case isFloat:
		if n.float == math.Trunc(n.float) && math.Abs(n.float) < 1<<62 {
			return int64(n.float), true
		}
	case isText:
		return wholeText(n.text)
	}
	return 0, false
}

// wholeText reads digits with a sign, blanks around them, underscores between them and a fraction of zeros.
func wholeText(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	body, fraction, point := strings.Cut(s, ".")
	if point && (fraction == "" || strings.Trim(fraction, "0") != "") {
		return 0, false
	}
	digits := strings.TrimLeft(body, "+-")
	if len(body)-len(digits) > 1 {
		return 0, false
	}
	for i := range len(digits) {
		c := digits[i]
		between := c == '_' && i > 0 && i+1 < len(digits) && digits[i-1] != '_'
		if !isDigit(c) && !between {
			return 0, false
		}
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(body, "_", ""), 10, 64)
	return v, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// integer reads a whole number.
func (r *reader) integer(n *node, p *path) (int64, bool) {
	v, ok := n.whole()
	if !ok {
		r.fail(n, p, typeInt, "must be a whole number, not %s", n.describe())
	}
	return v, ok
}

// bounded reads a whole number from low to high; either may be open (math.MinInt64, math.MaxInt64).
func (r *reader) bounded(low, high int64) func(*node, *path) (int, bool) {
	return func(n *node, p *path) (int, bool) {
		v, ok := r.integer(n, p)
		if !ok {
			return 0, false
		}
		if v < low {
			r.fail(n, p, typeMin, "must be at least %d, not %d", low, v).ctx = map[string]any{"ge": low}
			return 0, false
		}
		if v > high {
			r.fail(n, p, typeMax, "must be at most %d, not %d", high, v).ctx = map[string]any{"le": high}
			return 0, false
		}
		return int(v), true
	}
}

// anyInt is the widest bounds that a port or the like has in dstack's own parser.
const anyInt = math.MaxInt32

// number reads a number; a text of one counts.
func (r *reader) number(n *node, p *path) (float64, bool) {
	switch n.form {
	case isBool, isInt:
		if v, ok := n.whole(); ok {
			return float64(v), true
		}
		v, err := strconv.ParseFloat(n.text, 64)
		return v, err == nil
	case isFloat:
		return n.float, true
	case isText:
		s := strings.TrimSpace(n.text)
		if v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64); err == nil && plainNumber(s) {
			return v, true
		}
	}
	r.fail(n, p, typeFloat, "must be a number, not %s", n.describe())
	return 0, false
}

// plainNumber keeps hexadecimal and stray underscores out of what Go reads as numbers.
func plainNumber(s string) bool {
	return !strings.ContainsAny(s, "xXpP") && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") &&
		!strings.Contains(s, "__")
}

// above reads a number that is more than low.
func (r *reader) above(low float64) func(*node, *path) (Float, bool) {
	return func(n *node, p *path) (Float, bool) {
		v, ok := r.number(n, p)
		if !ok {
			return 0, false
		}
		if !(v > low) {
			r.fail(n, p, typeAbove, "must be more than %g, not %s", low, n.describe()).ctx = map[string]any{"gt": low}
			return 0, false
		}
		return Float(v), true
	}
}

// between reads a number from low to high.
func (r *reader) between(low, high float64) func(*node, *path) (Float, bool) {
	return func(n *node, p *path) (Float, bool) {
		v, ok := r.number(n, p)
		if !ok {
			return 0, false
		}
		if !(v >= low && v <= high) {
			kind := typeMax
			if v < low {
				kind = typeMin
			}
			r.fail(n, p, kind, "must be from %g to %g, not %s", low, high, n.describe())
			return 0, false
		}
		return Float(v), true
	}
}
