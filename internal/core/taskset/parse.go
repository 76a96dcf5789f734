package taskset

import (
	"fmt"
	"strconv"
)

// Error is a fault in the text of a set: what is wrong at which byte.
type Error struct {
	Text string
	Pos  int // byte offset into Text
	Msg  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("invalid task indices %q at position %d: %s", e.Text, e.Pos, e.Msg)
}

// Parse reads a list of indices and ranges with steps: 0-15, 1,3,5, 0,6,16-32, 1-7:2. One pair of
// brackets around the whole is allowed, as in a job id 123_[1-3].
func Parse(text string) (Set, error) {
	p := parser{text: text, end: len(text)}
	if len(text) >= 2 && text[0] == '[' && text[len(text)-1] == ']' {
		p.pos, p.end = 1, len(text)-1
	}
	start := p.pos
	var rs []Range
	for {
		r, err := p.item()
		if err != nil {
			return Set{}, err
		}
		rs = append(rs, r)
		if p.pos == p.end {
			break
		}
		if c := text[p.pos]; c != ',' {
			return Set{}, p.fail(p.pos, "expected ',' between indices, found %q", c)
		}
		p.pos++
	}
	s, err := New(rs...)
	if err != nil {
		return Set{}, p.fail(start, "%s", err.Error())
	}
	return s, nil
}

type parser struct {
	text     string
	pos, end int
}

func (p *parser) fail(pos int, format string, args ...any) error {
	return &Error{Text: p.text, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) take(c byte) bool {
	if p.pos < p.end && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) item() (Range, error) {
	start := p.pos
	first, err := p.number("index")
	if err != nil {
		return Range{}, err
	}
	r := Range{first, first, 1}
	if !p.take('-') {
		return r, nil
	}
	if r.Last, err = p.number("index"); err != nil {
		return Range{}, err
	}
	if r.Last < r.First {
		return Range{}, p.fail(start, "range %s runs backwards", p.text[start:p.pos])
	}
	if !p.take(':') {
		return r, nil
	}
	at := p.pos
	if r.Step, err = p.number("step"); err != nil {
		return Range{}, err
	}
	if r.Step == 0 {
		return Range{}, p.fail(at, "the step must be 1 or more")
	}
	return r, nil
}

func (p *parser) number(what string) (int32, error) {
	start := p.pos
	for p.pos < p.end && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	if p.pos == start {
		if start == p.end {
			return 0, p.fail(start, "expected a task %s at the end", what)
		}
		return 0, p.fail(start, "expected a task %s, found %q", what, p.text[start])
	}
	v, err := strconv.ParseInt(p.text[start:p.pos], 10, 32)
	if err != nil || v > MaxIndex {
		return 0, p.fail(start, "task %s above %d", what, MaxIndex)
	}
	return int32(v), nil
}
