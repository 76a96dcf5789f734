package config

import (
	"math"

	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

// seconds reads a duration in seconds: a number, or a whole number with s, m, h, d or w.
func (r *reader) seconds(n *tree.Node, p *path) (int64, bool) {
	switch n.Form {
	case tree.Int:
		if !n.Huge {
			return n.Int, true
		}
	case tree.Real:
		if !math.IsNaN(n.Float) && math.Abs(n.Float) < 1<<53 {
			return int64(n.Float), true
		}
	case tree.Text:
		if v, err := grammar.ParseDuration(n.Text); err == nil {
			return v, true
		}
	default: // refused below
	}
	r.fail(n, p, typeValue, "must be a duration such as 90m, 2h or 1d, not %s", n.Describe())
	return 0, false
}

// duration reads a plain duration. Booleans are numbers here, by an accident of dstack's.
func (r *reader) duration(n *tree.Node, p *path) (int64, bool) {
	if n.Form == tree.Bool {
		return n.Whole()
	}
	return r.seconds(n, p)
}

// offable reads a duration that may be off; true is the default.
func (r *reader) offable(n *tree.Node, p *path) (Limit, bool) {
	if n.Form == tree.Bool {
		return Limit{Off: true}, !n.Truth
	}
	if n.Form == tree.Text && n.Text == "off" {
		return Limit{Off: true}, true
	}
	v, ok := r.seconds(n, p)
	if ok && v < 0 {
		r.fail(n, p, typeValue, "must not be negative; use off for no limit")
		return Limit{}, false
	}
	return Limit{Seconds: v}, ok
}

// idle reads a duration where off is -1; true is the default.
func (r *reader) idle(n *tree.Node, p *path) (int64, bool) {
	if n.Form == tree.Bool {
		return -1, !n.Truth
	}
	if n.Form == tree.Text && n.Text == "off" {
		return -1, true
	}
	return r.seconds(n, p)
}
