package grammar

import (
	"fmt"
	"strings"
)

// Error is a text that does not fit its grammar.
type Error struct {
	What  string // the grammar: "time limit", "memory size"
	Input string
	Pos   int    // byte offset into Input where it went wrong
	Msg   string // what is wrong there
	Want  string // what would be right
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "invalid %s %q: %s", e.What, e.Input, e.Msg)
	if e.Pos > 0 {
		fmt.Fprintf(&b, " at position %d", e.Pos)
	}
	if e.Want != "" {
		fmt.Fprintf(&b, "; expected %s", e.Want)
	}
	return b.String()
}

// text is an input on its way through a parser: its name, its rest and where that is.
type text struct {
	what, want, in string
	pos            int
}

func (t *text) fail(pos int, format string, args ...any) error {
	return &Error{What: t.what, Input: t.in, Pos: pos, Msg: fmt.Sprintf(format, args...), Want: t.want}
}

// unexpected blames the byte at pos.
func (t *text) unexpected() error {
	if t.end() {
		if t.in == "" {
			return t.fail(0, "must not be empty")
		}
		return t.fail(t.pos, "unexpected end")
	}
	return t.fail(t.pos, "unexpected %q", t.in[t.pos])
}

func (t *text) end() bool { return t.pos == len(t.in) }

func (t *text) peek() byte {
	if t.end() {
		return 0
	}
	return t.in[t.pos]
}

func (t *text) take(c byte) bool {
	if !t.end() && t.in[t.pos] == c {
		t.pos++
		return true
	}
	return false
}

// takeFold takes the word if it comes next, in any case.
func (t *text) takeFold(word string) bool {
	if len(t.in)-t.pos >= len(word) && strings.EqualFold(t.in[t.pos:t.pos+len(word)], word) {
		t.pos += len(word)
		return true
	}
	return false
}

func (t *text) blanks() {
	for t.peek() == ' ' || t.peek() == '\t' {
		t.pos++
	}
}

// digitCount tells how many digits come next.
func (t *text) digitCount() int {
	n := 0
	for t.pos+n < len(t.in) && isDigit(t.in[t.pos+n]) {
		n++
	}
	return n
}

// number reads digits up to limit.
func (t *text) number(limit int64) (int64, error) {
	n := t.digitCount()
	if n == 0 {
		return 0, t.unexpected()
	}
	var v int64
	for i := range n {
		d := int64(t.in[t.pos+i] - '0')
		if v > (limit-d)/10 {
			return 0, t.fail(t.pos, "number above %d", limit)
		}
		v = v*10 + d
	}
	t.pos += n
	return v, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
