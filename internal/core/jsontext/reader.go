package jsontext

import (
	"fmt"
	"iter"
	"math"
)

// maxDepth is the nesting limit of encoding/json.
const maxDepth = 10_000

// Reader reads one JSON text from its beginning to its end. The zero Reader is ready for Reset. After the first error
// it stays at the end of the text, every method returns zero values, and Err says what was wrong and where.
type Reader struct {
	data  []byte
	pos   int
	depth int
	err   error
}

// NewReader returns a Reader of data, which must not change while it is used.
func NewReader(data []byte) Reader { return Reader{data: data} }

// Reset starts over with another text.
func (r *Reader) Reset(data []byte) { *r = Reader{data: data} }

// Err returns the first error, nil if there was none.
func (r *Reader) Err() error { return r.err }

// Offset returns how many bytes were read.
func (r *Reader) Offset() int { return r.pos }

// Raw returns the text from an earlier offset to here.
func (r *Reader) Raw(from int) []byte { return r.data[from:r.pos:r.pos] }

// Rest returns what was not read yet.
func (r *Reader) Rest() []byte { return r.data[r.pos:] }

// Fail records an error at this place, unless there is one already.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.pos, fmt.Errorf(format, args...))
	}
	r.pos = len(r.data)
}

// Peek skips white space and returns the next byte, 0 at the end.
func (r *Reader) Peek() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// End fails if anything but white space follows.
func (r *Reader) End() {
	r.Peek()
	if r.pos < len(r.data) {
		r.Fail("something follows the value")
	}
}

func (r *Reader) take(c byte) bool {
	if r.pos < len(r.data) && r.data[r.pos] == c || r.Peek() == c { // our own writers put no white space in between
		r.pos++
		return true
	}
	return false
}

func (r *Reader) want(c byte) bool {
	if r.take(c) {
		return true
	}
	r.Fail("want %q", c)
	return false
}

// open enters an object or list.
func (r *Reader) open(c byte) bool {
	if !r.want(c) {
		return false
	}
	if r.depth++; r.depth > maxDepth {
		r.Fail("exceeded the nesting limit of %d", maxDepth)
		return false
	}
	return true
}

// Members iterates over the keys of the object that begins here. The loop's body must read or skip each value. A key is
// valid until the next one is read.
func (r *Reader) Members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !r.open('{') {
			return
		}
		if !r.take('}') {
			for {
				key := r.Text()
				if !r.want(':') || !yield(key) || r.err != nil {
					return
				}
				if r.take(',') {
					continue
				}
				if !r.want('}') {
					return
				}
				break
			}
		}
		r.depth--
	}
}

// Elements iterates over the list that begins here. The loop's body must read or skip each element.
func (r *Reader) Elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		if !r.open('[') {
			return
		}
		if !r.take(']') {
			for i := 0; ; i++ {
				if !yield(i) || r.err != nil {
					return
				}
				if r.take(',') {
					continue
				}
				if !r.want(']') {
					return
				}
				break
			}
		}
		r.depth--
	}
}

// CountElements returns how many elements the list that begins here has, and stays in front of it.
func (r *Reader) CountElements() int {
	from, n := r.pos, 0
	for range r.Elements() {
		r.Skip()
		n++
	}
	if r.err != nil {
		return 0
	}
	r.pos = from
	return n
}

// Skip reads any value and drops it.
func (r *Reader) Skip() {
	switch r.Peek() {
	case '{':
		for range r.Members() {
			r.Skip()
		}
	case '[':
		for range r.Elements() {
			r.Skip()
		}
	case '"':
		r.skipText()
	case 't', 'f':
		r.Bool()
	case 'n':
		if !r.Null() {
			r.Fail("want a value")
		}
	default:
		r.skipNumber()
	}
}

// Null reads null, if that is what follows.
func (r *Reader) Null() bool { return r.Peek() == 'n' && r.word("null") }

func (r *Reader) word(w string) bool {
	if len(r.data)-r.pos >= len(w) && string(r.data[r.pos:r.pos+len(w)]) == w {
		r.pos += len(w)
		return true
	}
	return false
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	switch r.Peek() {
	case 't':
		if r.word("true") {
			return true
		}
	case 'f':
		if r.word("false") {
			return false
		}
	}
	r.Fail("want true or false")
	return false
}

// Uint reads an integer that is not negative.
func (r *Reader) Uint() uint64 {
	r.Peek()
	from, n := r.pos, uint64(0)
	for ; r.pos < len(r.data); r.pos++ {
		c := r.data[r.pos] - '0'
		if c > 9 {
			break
		}
		if n >= math.MaxUint64/10 && (n > math.MaxUint64/10 || c > math.MaxUint64%10) {
			r.Fail("number too big")
			return 0
		}
		n = n*10 + uint64(c)
	}
	switch digits := r.pos - from; {
	case digits == 0:
		r.Fail("want a number")
		return 0
	case digits > 1 && r.data[from] == '0':
		r.Fail("a number begins with 0")
		return 0
	case r.pos < len(r.data) && (r.data[r.pos] == '.' || r.data[r.pos]|0x20 == 'e'):
		r.Fail("want an integer")
		return 0
	}
	return n
}

// Int reads an integer.
func (r *Reader) Int() int64 {
	if r.Peek() != '-' {
		n := r.Uint()
		if n > math.MaxInt64 {
			r.Fail("number too big")
			return 0
		}
		return int64(n)
	}
	r.pos++
	if r.pos == len(r.data) || r.data[r.pos]-'0' > 9 {
		r.Fail("want a number")
		return 0
	}
	n := r.Uint()
	if n > -math.MinInt64 {
		r.Fail("number too small")
		return 0
	}
	return int64(-n)
}

// Int32 reads an integer of 32 bits.
func (r *Reader) Int32() int32 {
	n := r.Int()
	if int64(int32(n)) != n {
		r.Fail("number too big")
	}
	return int32(n)
}

// Uint32 reads an integer of 32 bits that is not negative.
func (r *Reader) Uint32() uint32 {
	n := r.Uint()
	if n > math.MaxUint32 {
		r.Fail("number too big")
	}
	return uint32(n)
}

// Uint16 reads an integer of 16 bits that is not negative.
func (r *Reader) Uint16() uint16 {
	n := r.Uint()
	if n > math.MaxUint16 {
		r.Fail("number too big")
	}
	return uint16(n)
}

// skipNumber reads any number: -? (0 | [1-9][0-9]*) ([.][0-9]+)? ([eE][+-]?[0-9]+)?
func (r *Reader) skipNumber() {
	if r.pos < len(r.data) && r.data[r.pos] == '-' {
		r.pos++
	}
	whole := r.pos
	ok := r.digits() && (r.data[whole] != '0' || r.pos == whole+1)
	if ok && r.pos < len(r.data) && r.data[r.pos] == '.' {
		r.pos++
		ok = r.digits()
	}
	if ok && r.pos < len(r.data) && r.data[r.pos]|0x20 == 'e' {
		r.pos++
		if r.pos < len(r.data) && (r.data[r.pos] == '+' || r.data[r.pos] == '-') {
			r.pos++
		}
		ok = r.digits()
	}
	if !ok {
		r.Fail("want a value")
	}
}

// digits reads at least one digit.
func (r *Reader) digits() bool {
	from := r.pos
	for r.pos < len(r.data) && r.data[r.pos]-'0' <= 9 {
		r.pos++
	}
	return r.pos > from
}
