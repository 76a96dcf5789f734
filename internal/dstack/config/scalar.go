package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// boolean reads true and false, 0 and 1, and the words that Python's models take for them.
func (r *reader) boolean(n *tree.Node, p *path) (bool, bool) {
	switch n.Form {
	case tree.Bool:
		return n.Truth, true
	case tree.Int:
		if !n.Huge && (n.Int == 0 || n.Int == 1) {
			return n.Int == 1, true
		}
	case tree.Real:
		if n.Float == 0 || n.Float == 1 {
			return n.Float == 1, true
		}
	case tree.Text:
		switch strings.ToLower(n.Text) {
		case "1", "true", "t", "yes", "y", "on":
			return true, true
		case "0", "false", "f", "no", "n", "off":
			return false, true
		}
	default: // refused below
	}
	r.fail(n, p, typeBool, "must be true or false, not %s", n.Describe())
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

// integer reads a whole number.
func (r *reader) integer(n *tree.Node, p *path) (int64, bool) {
	v, ok := n.Whole()
	if !ok {
		r.fail(n, p, typeInt, "must be a whole number, not %s", n.Describe())
	}
	return v, ok
}

// bounded reads a whole number from low to high; either may be open (math.MinInt64, math.MaxInt64).
func (r *reader) bounded(low, high int64) func(*tree.Node, *path) (int, bool) {
	return func(n *tree.Node, p *path) (int, bool) {
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
func (r *reader) number(n *tree.Node, p *path) (float64, bool) {
	switch n.Form {
	case tree.Bool, tree.Int:
		if v, ok := n.Whole(); ok {
			return float64(v), true
		}
		v, err := strconv.ParseFloat(n.Text, 64)
		return v, err == nil
	case tree.Real:
		return n.Float, true
	case tree.Text:
		s := strings.TrimSpace(n.Text)
		if v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64); err == nil && plainNumber(s) {
			return v, true
		}
	default: // refused below
	}
	r.fail(n, p, typeFloat, "must be a number, not %s", n.Describe())
	return 0, false
}

// plainNumber keeps hexadecimal and stray underscores out of what Go reads as numbers.
func plainNumber(s string) bool {
	return !strings.ContainsAny(s, "xXpP") && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") &&
		!strings.Contains(s, "__")
}

// above reads a number that is more than low.
func (r *reader) above(low float64) func(*tree.Node, *path) (Float, bool) {
	return func(n *tree.Node, p *path) (Float, bool) {
		v, ok := r.number(n, p)
		if !ok {
			return 0, false
		}
		if !(v > low) {
			r.fail(n, p, typeAbove, "must be more than %g, not %s", low, n.Describe()).ctx = map[string]any{"gt": low}
			return 0, false
		}
		return Float(v), true
	}
}

// between reads a number from low to high.
func (r *reader) between(low, high float64) func(*tree.Node, *path) (Float, bool) {
	return func(n *tree.Node, p *path) (Float, bool) {
		v, ok := r.number(n, p)
		if !ok {
			return 0, false
		}
		if !(v >= low && v <= high) {
			kind := typeMax
			if v < low {
				kind = typeMin
			}
			r.fail(n, p, kind, "must be from %g to %g, not %s", low, high, n.Describe())
			return 0, false
		}
		return Float(v), true
	}
}

// lazy compiles an expression when it is first needed.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
