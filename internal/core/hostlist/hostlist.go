package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

// DefaultMax is the most names an expression may stand for when the caller sets no limit of its
// own: enough for any cluster, small enough that a typing error cannot eat the memory.
const DefaultMax = 1 << 18

// MaxRequest is the most names that all node lists of one request may stand for together.
const MaxRequest = 1 << 16

// MaxName is the longest name an expression may stand for. With the number of names it bounds the memory of an
// expansion: a long text before a bracket group would be copied for each of its numbers.
const MaxName = 255

// maxDigits bounds a folded number so that it always fits an int64; a longer run of digits is
// part of the plain name. (Slurm 22.05 silently changes such names.)
const maxDigits = 18

// Error is a fault in an expression: what is wrong at which byte.
type Error struct {
	Expr string
	Pos  int // byte offset into Expr
	Msg  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("invalid hostlist %q at position %d: %s", shown(e.Expr), e.Pos, e.Msg)
}

// shown is an expression as a message quotes it.
func shown(expr string) string {
	const most = 1000
	if len(expr) > most {
		return strings.ToValidUTF8(expr[:most], "") + "..."
	}
	return expr
}

// Expand returns the names expr stands for, in its order, duplicates included. An expression of
// more than max names (DefaultMax when max <= 0) is an error. The empty expression has no names.
func Expand(expr string, max int) ([]string, error) {
	items, n, err := parse(expr, max)
	if err != nil || n == 0 {
		return nil, err
	}
	names := make([]string, 0, n)
	buf := make([]byte, 0, 64)
	for _, it := range items {
		names = it.appendNames(names, buf, 0)
	}
	return names, nil
}

// Count returns how many names expr stands for without making them. The limit is that of Expand.
func Count(expr string, max int) (int, error) {
	_, n, err := parse(expr, max)
	return n, err
}

// span is lo..hi printed at least width digits wide.
type span struct {
	lo, hi int64
	width  int
}

// item is one comma-separated word: lits[0] groups[0] lits[1] groups[1] … lits[n].
type item struct {
	lits   []string
	groups [][]span
}

// appendNames walks the groups from the left; the recursion makes the rightmost run fastest.
func (it *item) appendNames(names []string, buf []byte, g int) []string {
	buf = append(buf, it.lits[g]...)
	if g == len(it.groups) {
		return append(names, string(buf))
	}
	for _, s := range it.groups[g] {
		for v := s.lo; v <= s.hi; v++ {
			names = it.appendNames(names, appendNumber(buf, v, s.width), g+1)
		}
	}
	return names
}

func appendNumber(buf []byte, v int64, width int) []byte {
	var tmp [20]byte
	digits := strconv.AppendInt(tmp[:0], v, 10)
	for i := len(digits); i < width; i++ {
		buf = append(buf, '0')
	}
	return append(buf, digits...)
}

func isSeparator(c byte) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// parse reads the whole expression and counts its names, refusing as soon as there are too many.
func parse(expr string, max int) ([]item, int, error) {
	if max <= 0 {
		max = DefaultMax
	}
	p := parser{expr: expr, max: max}
	var items []item
	total := 0
	for {
		for p.pos < len(expr) && isSeparator(expr[p.pos]) {
			p.pos++
		}
		if p.pos == len(expr) {
			return items, total, nil
		}
		start := p.pos
		it, n, err := p.item()
		if err != nil {
			return nil, 0, err
		}
		if total += n; total > max {
			return nil, 0, p.tooMany(start)
		}
		items = append(items, it)
	}
}

type parser struct {
	expr string
	pos  int
	max  int
}

func (p *parser) fail(pos int, format string, args ...any) error {
	return &Error{Expr: p.expr, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) tooMany(pos int) error {
	return p.fail(pos, "more than %d names", p.max)
}

func (p *parser) item() (item, int, error) {
	var it item
	n, start, length := 1, p.pos, 0
	for lit := p.pos; ; p.pos++ {
		end := p.pos == len(p.expr) || isSeparator(p.expr[p.pos])
		if !end && p.expr[p.pos] == ']' {
			return it, 0, p.fail(p.pos, "']' without '['")
		}
		if !end && p.expr[p.pos] != '[' {
			continue
		}
		it.lits = append(it.lits, p.expr[lit:p.pos])
		if length += p.pos - lit; length > MaxName {
			return it, 0, p.fail(start, "a name of more than %d bytes", MaxName)
		}
		if end {
			return it, n, nil
		}
		group, size, err := p.group()
		if err != nil {
			return it, 0, err
		}
		// size and n are at most max each, so the product cannot overflow before it is refused.
		if n *= size; n > p.max {
			return it, 0, p.tooMany(start)
		}
		it.groups = append(it.groups, group)
		length += widest(group)
		lit = p.pos + 1 // group left pos on ']'
	}
}

// widest is how many digits a group adds to a name at most.
func widest(group []span) int {
	n := 0
	for _, s := range group {
		n = max(n, s.width, digits(s.hi))
	}
	return n
}

// group reads from '[' and leaves pos on the matching ']'.
func (p *parser) group() ([]span, int, error) {
	open := p.pos
	var spans []span
	size := 0
	for {
		p.pos++
		s, err := p.span(open)
		if err != nil {
			return nil, 0, err
		}
		if s.hi-s.lo >= int64(p.max-size) {
			return nil, 0, p.tooMany(open)
		}
		size += int(s.hi-s.lo) + 1
		spans = append(spans, s)
		switch {
		case p.pos == len(p.expr):
			return nil, 0, p.fail(open, "'[' is never closed")
		case p.expr[p.pos] == ']':
			return spans, size, nil
		case p.expr[p.pos] != ',':
			return nil, 0, p.fail(p.pos, "expected ',' or ']' after a number, found %q", p.expr[p.pos])
		}
	}
}

func (p *parser) span(open int) (span, error) {
	start := p.pos
	lo, width, err := p.number(open)
	if err != nil {
		return span{}, err
	}
	hi := lo
	if p.pos < len(p.expr) && p.expr[p.pos] == '-' {
		p.pos++
		if hi, _, err = p.number(open); err != nil {
			return span{}, err
		}
	}
	if hi < lo {
		return span{}, p.fail(start, "range %s runs backwards", p.expr[start:p.pos])
	}
	return span{lo: lo, hi: hi, width: width}, nil
}

func (p *parser) number(open int) (v int64, width int, err error) {
	start := p.pos
	for p.pos < len(p.expr) && isDigit(p.expr[p.pos]) {
		p.pos++
	}
	width = p.pos - start
	switch {
	case width == 0 && p.pos == len(p.expr):
		return 0, 0, p.fail(open, "'[' is never closed")
	case width == 0:
		return 0, 0, p.fail(start, "expected a number, found %q", p.expr[start])
	case width > maxDigits:
		return 0, 0, p.fail(start, "number of more than %d digits", maxDigits)
	}
	v, err = strconv.ParseInt(p.expr[start:p.pos], 10, 64)
	if err != nil {
		return 0, 0, p.fail(start, "bad number")
	}
	return v, width, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Valid reports whether name is one name: not empty, no separator, no bracket.
func Valid(name string) bool {
	return name != "" && len(name) <= MaxName && !strings.ContainsAny(name, ", \t\n\r[]")
}
