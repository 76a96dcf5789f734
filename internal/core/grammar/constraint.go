package grammar

import (
	"slices"
	"strings"
)

// Constraint is what a job asks of the features of its nodes: All of every node, one of Either of every node (all nodes
// the same one), and each of Counts of some of them.
type Constraint struct {
	All    *Features   // nil: nothing
	Either []*Features // matching or, "[a|b]": tried in turn
	Counts []FeatureCount
}

// FeatureCount asks for at least Count nodes with Of.
type FeatureCount struct {
	Of    *Features
	Count int32
}

// Features is what one node must have: a feature, or all or any of others.
type Features struct {
	Name string // of a single one
	Any  bool   // one of Of is enough
	Of   []*Features
}

// Has reports whether a node with these features fits.
func (f *Features) Has(have []string) bool {
	if f.Name != "" {
		return slices.Contains(have, f.Name)
	}
	for _, g := range f.Of {
		if g.Has(have) == f.Any {
			return f.Any
		}
	}
	return !f.Any
}

// Meets reports whether a node with these features may be among those of a job, whatever the others are.
func (c *Constraint) Meets(have []string) bool {
	if c.All != nil && !c.All.Has(have) {
		return false
	}
	for _, f := range c.Either {
		if f.Has(have) {
			return true
		}
	}
	return len(c.Either) == 0
}

// Names gives every feature that occurs, each once, in order of appearance.
func (c *Constraint) Names() (names []string) {
	var add func(*Features)
	add = func(f *Features) {
		if f == nil {
			return
		}
		if f.Name != "" && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
		for _, g := range f.Of {
			add(g)
		}
	}
	add(c.All)
	for _, f := range c.Either {
		add(f)
	}
	for i := range c.Counts {
		add(c.Counts[i].Of)
	}
	return names
}

// Bounds: how deep parentheses may go, how many terms there may be, and how many of them may have a count.
const (
	maxFeatureDepth  = 32
	maxFeatures      = 256
	maxFeatureCounts = 64
)

// constraintText is a constraint on its way through the parser.
type constraintText struct {
	text
	out      Constraint
	brackets bool
	depth    int
	terms    int
}

// ParseConstraint reads --constraint and --prefer: features joined by & or , (and) and | (or), from left to right
// without precedence; parentheses; feat*2 (so many nodes have it); one pair of brackets with alternatives, [a|b], of
// which all nodes have the same one, or with counts, [a*2&b*4].
func ParseConstraint(s string) (*Constraint, error) {
	t := &constraintText{text: text{
		what: "constraint", want: "features such as fast&ib, a|b, (a|b)&c, a*2, [a|b] or [a*2&b*4]", in: s,
	}}
	if err := t.whole(); err != nil {
		return nil, err
	}
	return &t.out, nil
}

// whole reads the terms outside all parentheses, where counts and brackets may be.
func (t *constraintText) whole() error {
	var all *Features
	for op := byte(0); ; {
		at := t.pos
		t.blanks()
		special := t.peek() == '['
		var f *Features
		var err error
		if special {
			err = t.bracket()
		} else {
			if f, err = t.term(); err == nil && t.peek() == '*' {
				special = true
				err = t.single(f)
			}
		}
		if err != nil {
			return err
		}
		switch {
		case op == '|' && (special || len(t.out.Counts)+len(t.out.Either) > 0):
			return t.fail(at, "a count or brackets cannot be one of several alternatives")
		case !special:
			all = join(all, op, f)
		}
		t.blanks()
		if t.end() {
			t.out.All = all
			return nil
		}
		if op, err = t.operator(); err != nil {
			return err
		}
	}
}

// single reads the count of a term outside brackets; there can be one.
func (t *constraintText) single(f *Features) error {
	at := t.pos
	n, err := t.times()
	if err != nil {
		return err
	}
	if len(t.out.Counts) > 0 {
		return t.fail(at, "counts of several features must be in brackets")
	}
	t.out.Counts = append(t.out.Counts, FeatureCount{f, n})
	return nil
}

// bracket reads [a|b] or [a*2&b*4].
func (t *constraintText) bracket() error {
	open := t.pos
	if t.brackets {
		return t.fail(open, "only one pair of brackets is allowed")
	}
	t.brackets = true
	t.pos++
	var terms []FeatureCount
	var starts []int
	var joint byte
	for {
		t.blanks()
		starts = append(starts, t.pos)
		f, err := t.term()
		if err != nil {
			return err
		}
		c := FeatureCount{Of: f}
		if t.peek() == '*' {
			if c.Count, err = t.times(); err != nil {
				return err
			}
		}
		terms = append(terms, c)
		t.blanks()
		if t.take(']') {
			break
		}
		at := t.pos
		op, err := t.operator()
		if err != nil {
			return err
		}
		if joint != 0 && op != joint {
			return t.fail(at, "brackets must contain either alternatives joined by | or counts joined by &")
		}
		joint = op
	}
	if t.peek() == '*' {
		return t.fail(t.pos, "a count must follow a feature or parentheses, not brackets")
	}
	counts := terms[0].Count > 0
	for i, c := range terms {
		switch {
		case joint == '|' && c.Count > 0:
			return t.fail(starts[i], "an alternative in brackets cannot have a count")
		case joint == '&' && c.Count == 0:
			return t.fail(starts[i], "each term joined by & in brackets needs a count")
		}
	}
	switch {
	case counts && len(t.out.Counts) > 0:
		return t.fail(open, "counts of several features must be in brackets")
	case counts && len(terms) > maxFeatureCounts:
		return t.fail(open, "more than %d counts", maxFeatureCounts)
	case counts:
		t.out.Counts = terms
		return nil
	}
	for _, c := range terms {
		t.out.Either = append(t.out.Either, c.Of)
	}
	return nil
}

// term reads a feature or an expression in parentheses.
func (t *constraintText) term() (*Features, error) {
	if t.peek() == '(' {
		return t.parens()
	}
	start := t.pos
	for !t.end() && !strings.ContainsRune("&|,()[]*! \t\n\r\"'", rune(t.in[t.pos])) {
		t.pos++
	}
	if t.pos == start {
		if t.peek() == '!' {
			return nil, t.fail(t.pos, "requiring the absence of a feature is not supported")
		}
		return nil, t.unexpected()
	}
	if t.terms++; t.terms > maxFeatures {
		return nil, t.fail(start, "more than %d features", maxFeatures)
	}
	return &Features{Name: t.in[start:t.pos]}, nil
}

func (t *constraintText) parens() (*Features, error) {
	if t.depth == maxFeatureDepth {
		return nil, t.fail(t.pos, "parentheses nested more than %d deep", maxFeatureDepth)
	}
	t.depth++
	defer func() { t.depth-- }()
	t.pos++
	var all *Features
	for op := byte(0); ; {
		t.blanks()
		if t.peek() == '[' {
			return nil, t.fail(t.pos, "brackets are not allowed inside parentheses")
		}
		f, err := t.term()
		if err != nil {
			return nil, err
		}
		if t.peek() == '*' {
			return nil, t.fail(t.pos, "a count is not allowed inside parentheses")
		}
		all = join(all, op, f)
		t.blanks()
		if t.take(')') {
			return all, nil
		}
		if op, err = t.operator(); err != nil {
			return nil, err
		}
	}
}

// operator reads & or , (which mean the same) or |.
func (t *constraintText) operator() (byte, error) {
	switch {
	case t.take('&'), t.take(','):
		return '&', nil
	case t.take('|'):
		return '|', nil
	}
	return 0, t.unexpected()
}

func (t *constraintText) times() (int32, error) {
	t.pos++
	at := t.pos
	n, err := t.number(1 << 20)
	if err == nil && n == 0 {
		err = t.fail(at, "a count must be 1 or more")
	}
	return int32(n), err
}

// join puts a term behind what was read so far.
func join(all *Features, op byte, f *Features) *Features {
	if all == nil {
		return f
	}
	any := op == '|'
	if all.Name == "" && all.Any == any { // a chain of the same operator
		return &Features{Any: any, Of: append(slices.Clip(all.Of), f)}
	}
	return &Features{Any: any, Of: []*Features{all, f}}
}
