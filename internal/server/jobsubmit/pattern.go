package jobsubmit

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxSteps bounds the matching of patterns in one call: patterns backtrack, and what they are held against is as long
// as users like.
const maxSteps = 5_000_000

// maxPattern bounds how deep a match nests, and what a set costs for each character.
const maxPattern = 64 << 10

// pattern is a Lua pattern that is held against a text.
type pattern struct {
	text, pat string
	call      *call
	caps      []capture
}

// capture is a part of the text that a pair of parentheses has matched; end is open or position until it is known.
type capture struct{ start, end int }

const (
	open     = -1 // its parenthesis is not closed yet
	position = -2 // (): where it is, not what
)

const maxCaptures = 32

var (
	errPattern = errors.New("malformed pattern")
	errSteps   = errors.New("it took too long to match a pattern")
)

// patternFault is what a match panics with; find recovers it.
type patternFault struct{ err error }

func (p *pattern) fail(err error) { panic(patternFault{err}) }

// find looks for the first match at or after a place. start is -1 where there is none.
func (p *pattern) find(from int) (start, end int, err error) {
	defer func() {
		if v := recover(); v != nil {
			f, ok := v.(patternFault)
			if !ok {
				panic(v)
			}
			start, end, err = -1, -1, f.err
		}
	}()
	if len(p.pat) > maxPattern {
		p.call.over = "a pattern that is too long"
		return -1, -1, errSteps
	}
	at, anchored := 0, strings.HasPrefix(p.pat, "^")
	if anchored {
		at = 1
	}
	for s := from; s <= len(p.text); s++ {
		p.caps = p.caps[:0]
		if e := p.match(s, at); e >= 0 {
			return s, e, nil
		}
		if anchored {
			break
		}
	}
	return -1, -1, nil
}

// match holds the pattern from at against the text from s, and gives where the match ends; -1: there is none.
func (p *pattern) match(s, at int) int {
	for {
		p.step(1)
		if at == len(p.pat) {
			return s
		}
		switch c := p.pat[at]; {
		case c == '(':
			if strings.HasPrefix(p.pat[at+1:], ")") {
				return p.startCapture(s, at+2, position)
			}
			return p.startCapture(s, at+1, open)
		case c == ')':
			return p.endCapture(s, at+1)
		case c == '$' && at+1 == len(p.pat):
			if s == len(p.text) {
				return s
			}
			return -1
		case c == '%' && at+1 < len(p.pat) && p.pat[at+1] == 'b':
			if s = p.balance(s, at+2); s < 0 {
				return -1
			}
			at += 4
			continue
		case c == '%' && at+1 < len(p.pat) && p.pat[at+1] == 'f':
			next := p.item(at + 2)
			if !p.frontier(s, at+2, next) {
				return -1
			}
			at = next
			continue
		case c == '%' && at+1 < len(p.pat) && p.pat[at+1] >= '0' && p.pat[at+1] <= '9':
			if s = p.again(s, int(p.pat[at+1]-'1')); s < 0 {
				return -1
			}
			at += 2
			continue
		}
		next := p.item(at)
		var suffix byte
		if next < len(p.pat) {
			suffix = p.pat[next]
		}
		switch suffix {
		case '?':
			if s < len(p.text) && p.single(p.text[s], at, next) {
				if e := p.match(s+1, next+1); e >= 0 {
					return e
				}
			}
			at = next + 1
		case '*':
			return p.most(s, at, next, 0)
		case '+':
			return p.most(s, at, next, 1)
		case '-':
			return p.least(s, at, next)
		default:
			if s >= len(p.text) || !p.single(p.text[s], at, next) {
				return -1
			}
			s, at = s+1, next
		}
	}
}

// step counts work; every so often the clock is read.
func (p *pattern) step(n int) {
	was := p.call.steps
	p.call.steps += n
	if p.call.steps > maxSteps || was>>14 != p.call.steps>>14 && time.Now().After(p.call.end) {
		p.call.over = "too long to match a pattern"
		p.fail(errSteps)
	}
}

// most matches as many of an item as there are, then fewer, but not fewer than least.
func (p *pattern) most(s, at, next, least int) int {
	n := 0
	for s+n < len(p.text) && p.single(p.text[s+n], at, next) {
		n++
	}
	p.step(n)
	for ; n >= least; n-- {
		if e := p.match(s+n, next+1); e >= 0 {
			return e
		}
	}
	return -1
}

// least matches as few of an item as will do.
func (p *pattern) least(s, at, next int) int {
	for {
		if e := p.match(s, next+1); e >= 0 {
			return e
		}
		if s >= len(p.text) || !p.single(p.text[s], at, next) {
			return -1
		}
		s++
	}
}

func (p *pattern) startCapture(s, at, what int) int {
	if len(p.caps) >= maxCaptures {
		p.fail(fmt.Errorf("%w (too many captures)", errPattern))
	}
	n := len(p.caps)
	p.caps = append(p.caps, capture{s, what})
	e := p.match(s, at)
	if e < 0 {
		p.caps = p.caps[:n]
	}
	return e
}

func (p *pattern) endCapture(s, at int) int {
	for i := len(p.caps) - 1; i >= 0; i-- {
		if p.caps[i].end != open {
			continue
		}
		p.caps[i].end = s
		e := p.match(s, at)
		if e < 0 {
			p.caps[i].end = open
		}
		return e
	}
	p.fail(fmt.Errorf("%w (a parenthesis is not opened)", errPattern))
	return -1
}

// again matches what a capture has matched.
func (p *pattern) again(s, n int) int {
	if n < 0 || n >= len(p.caps) || p.caps[n].end < 0 {
		p.fail(fmt.Errorf("%w (there is no such capture)", errPattern))
	}
	if part := p.text[p.caps[n].start:p.caps[n].end]; strings.HasPrefix(p.text[s:], part) {
		return s + len(part)
	}
	return -1
}

// balance matches %bxy: from an x to the y that closes it.
func (p *pattern) balance(s, at int) int {
	if at+1 >= len(p.pat) {
		p.fail(fmt.Errorf("%w (%%b needs two characters)", errPattern))
	}
	if s >= len(p.text) || p.text[s] != p.pat[at] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(p.text); i++ {
		p.step(1)
		switch p.text[i] {
		case p.pat[at+1]:
			if depth--; depth == 0 {
				return i + 1
			}
		case p.pat[at]:
			depth++
		}
	}
	return -1
}

// frontier matches %f[set]: the place where the set begins.
func (p *pattern) frontier(s, at, next int) bool {
	if at >= len(p.pat) || p.pat[at] != '[' {
		p.fail(fmt.Errorf("%w (%%f needs a set)", errPattern))
	}
	var before, here byte
	if s > 0 {
		before = p.text[s-1]
	}
	if s < len(p.text) {
		here = p.text[s]
	}
	return !p.inSet(before, at, next) && p.inSet(here, at, next)
}

// item gives where the single-character item at a place ends.
func (p *pattern) item(at int) int {
	if at >= len(p.pat) {
		p.fail(errPattern)
	}
	switch p.pat[at] {
	case '%':
		if at+1 >= len(p.pat) {
			p.fail(fmt.Errorf("%w (it ends with %%)", errPattern))
		}
		return at + 2
	case '[':
		i := at + 1
		if i < len(p.pat) && p.pat[i] == '^' {
			i++
		}
		for first := true; ; first = false {
			switch {
			case i >= len(p.pat):
				p.fail(fmt.Errorf("%w (a set is not closed)", errPattern))
			case p.pat[i] == ']' && !first:
				return i + 1
			case p.pat[i] == '%':
				i++
			}
			i++
		}
	}
	return at + 1
}

// single reports whether a character is one of an item.
func (p *pattern) single(c byte, at, next int) bool {
	switch p.pat[at] {
	case '.':
		return true
	case '%':
		return inClass(c, p.pat[at+1])
	case '[':
		return p.inSet(c, at, next)
	}
	return p.pat[at] == c
}

// inSet reports whether a character is in the set [...] that ends before next.
func (p *pattern) inSet(c byte, at, next int) bool {
	i, end, want := at+1, next-1, true
	if p.pat[i] == '^' {
		i, want = i+1, false
	}
	for ; i < end; i++ {
		switch {
		case p.pat[i] == '%' && i+1 < end:
			i++
			if inClass(c, p.pat[i]) {
				return want
			}
		case i+2 < end && p.pat[i+1] == '-':
			if p.pat[i] <= c && c <= p.pat[i+2] {
				return want
			}
			i += 2
		case p.pat[i] == c:
			return want
		}
	}
	return !want
}

// inClass reports whether a character is of the class %x; a capital is everything else.
func inClass(c, class byte) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	digit := c >= '0' && c <= '9'
	var in bool
	switch class | 0x20 {
	case 'a':
		in = letter
	case 'd':
		in = digit
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'w':
		in = letter || digit
	case 'x':
		in = digit || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'p':
		in = c > ' ' && c < 127 && !letter && !digit
	case 'c':
		in = c < ' ' || c == 127
	case 'g':
		in = c > ' ' && c < 127
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if class >= 'A' && class <= 'Z' {
		return !in
	}
	return in
}
