package doc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"unicode/utf8"
)

// Decoder reads documents, one after another, and keeps equal strings once. It is for one goroutine.
type Decoder struct {
	text []byte
	pos  int
	err  error
	seen map[string]string
}

// Only short strings are worth a look-up, and a decoder must not remember the whole database.
const (
	internLen = 128
	internMax = 1 << 16
)

func (d *Decoder) reset(text []byte) {
	d.text, d.pos, d.err = text, 0, nil
	if d.seen == nil {
		d.seen = map[string]string{}
	}
}

// Intern gives a string equal to b, the same one for equal b.
func (d *Decoder) Intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := d.seen[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(s) <= internLen && len(d.seen) < internMax && d.seen != nil {
		d.seen[s] = s
	}
	return s
}

func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("at byte %d: "+format, append([]any{d.pos}, args...)...)
	}
	d.pos = len(d.text)
}

func (d *Decoder) space() {
	for d.pos < len(d.text) {
		switch d.text[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// peek gives the next byte that is no space, 0 at the end.
func (d *Decoder) peek() byte {
	d.space()
	if d.pos < len(d.text) {
		return d.text[d.pos]
	}
	return 0
}

func (d *Decoder) take(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.pos++
	return true
}

func (d *Decoder) want(c byte) bool {
	if !d.take(c) {
		d.fail("want %q", c)
		return false
	}
	return true
}

func (d *Decoder) end() {
	if d.err == nil && d.peek() != 0 {
		d.fail("something follows the document")
	}
}

// members walks an object; the body must read or skip each value.
func (d *Decoder) members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !d.want('{') || d.take('}') {
			return
		}
		for {
			key := d.plain()
			if d.err != nil || !d.want(':') || !yield(key) || d.err != nil {
				return
			}
			if d.take(',') {
				continue
			}
			d.want('}')
			return
		}
	}
}

// elements walks a list; the body must read or skip each element.
func (d *Decoder) elements() iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		if !d.want('[') || d.take(']') {
			return
		}
		for {
			if !yield(struct{}{}) || d.err != nil {
				return
			}
			if d.take(',') {
				continue
			}
			d.want(']')
			return
		}
	}
}

// count tells how many elements the list that begins here has, and stays in front of it.
func (d *Decoder) count() int {
	from, n := d.pos, 0
	for range d.elements() {
		d.skip()
		n++
	}
	if d.err == nil {
		d.pos = from
	}
	return n
}

// skip passes over any value.
func (d *Decoder) skip() {
	switch d.peek() {
	case '{':
		for range d.members() {
			d.skip()
		}
	case '[':
		for range d.elements() {
			d.skip()
		}
	case '"':
		d.quoted()
	default:
		from := d.pos
		for d.pos < len(d.text) && !bytes.ContainsRune([]byte(",]} \t\n\r"), rune(d.text[d.pos])) {
			d.pos++
		}
		if from == d.pos {
			d.fail("want a value")
		}
	}
}

func (d *Decoder) null() bool { return d.word("null") }

func (d *Decoder) word(w string) bool {
	d.space()
	if len(d.text)-d.pos >= len(w) && string(d.text[d.pos:d.pos+len(w)]) == w {
		d.pos += len(w)
		return true
	}
	return false
}

func (d *Decoder) bool() bool {
	switch {
	case d.word("true"):
		return true
	case d.word("false"):
	default:
		d.fail("want true or false")
	}
	return false
}

func (d *Decoder) uint() uint64 {
	d.space()
	from, n := d.pos, uint64(0)
	for ; d.pos < len(d.text); d.pos++ {
		c := d.text[d.pos] - '0'
		if c > 9 {
			break
		}
		if n > math.MaxUint64/10 || n == math.MaxUint64/10 && c > math.MaxUint64%10 {
			d.fail("number too big")
			return 0
		}
		n = n*10 + uint64(c)
	}
	if from == d.pos {
		d.fail("want a number")
	}
	return n
}

func (d *Decoder) int() int64 {
	if d.take('-') {
		n := d.uint()
		if n > -math.MinInt64 {
			d.fail("number too small")
		}
		return int64(-n)
	}
	n := d.uint()
	if n > math.MaxInt64 {
		d.fail("number too big")
	}
	return int64(n)
}

// quoted passes over a string and gives what is between the quotes, and whether something in it is escaped.
func (d *Decoder) quoted() (raw []byte, escaped bool) {
	if !d.want('"') {
		return nil, false
	}
	for from, i := d.pos, d.pos; i < len(d.text); i++ {
		switch d.text[i] {
		case '"':
			d.pos = i + 1
			return d.text[from:i], escaped
		case '\\':
			escaped = true
			i++
		}
	}
	d.fail("a string does not end")
	return nil, false
}

// plain reads a string that has no reason to be escaped: a key, a hash.
func (d *Decoder) plain() []byte {
	raw, escaped := d.quoted()
	if escaped {
		return []byte(unescape(d, raw))
	}
	return raw
}

func (d *Decoder) string() string {
	raw, escaped := d.quoted()
	if escaped {
		return unescape(d, raw)
	}
	return d.Intern(raw)
}

func unescape(d *Decoder, raw []byte) (s string) {
	quoted := append(append([]byte{'"'}, raw...), '"')
	if err := json.Unmarshal(quoted, &s); err != nil {
		d.fail("%v", err)
	}
	return s
}

const hexDigits = "0123456789abcdef"

// appendString writes s as JSON. As in encoding/json, bytes that are no UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[done:i]...), "\ufffd"...)
				done = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[done:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}
