package jsontext

import (
	"encoding/binary"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text reads a string. The result is part of the data where the string has no escapes and is valid UTF-8, a copy
// otherwise.
func (r *Reader) Text() []byte {
	if !r.want('"') {
		return nil
	}
	from := r.pos
	r.plain()
	if r.pos < len(r.data) && r.data[r.pos] == '"' {
		r.pos++
		return r.data[from : r.pos-1 : r.pos-1]
	}
	r.pos = from
	return r.appendRest(nil)
}

// AppendText reads a string and appends it to dst.
func (r *Reader) AppendText(dst []byte) []byte {
	if !r.want('"') {
		return dst
	}
	return r.appendRest(dst)
}

// appendRest appends what is left of a string to dst and reads its closing quote.
func (r *Reader) appendRest(dst []byte) []byte {
	for {
		from := r.pos
		r.plain()
		dst = append(dst, r.data[from:r.pos]...)
		if r.pos == len(r.data) {
			r.Fail("a string does not end")
			return dst
		}
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return dst
		case c == '\\':
			dst = r.appendEscape(dst)
			if r.err != nil {
				return dst
			}
		case c < ' ':
			r.Fail("a control character in a string")
			return dst
		default:
			dst = append(dst, "\ufffd"...)
			r.pos++
		}
	}
}

// skipText reads a string without copying it.
func (r *Reader) skipText() {
	r.pos++
	for {
		r.plain()
		if r.pos == len(r.data) {
			r.Fail("a string does not end")
			return
		}
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return
		case c == '\\':
			var scratch [2 * utf8.UTFMax]byte
			r.appendEscape(scratch[:0])
			if r.err != nil {
				return
			}
		case c < ' ':
			r.Fail("a control character in a string")
			return
		default:
			r.pos++
		}
	}
}

// plain moves over bytes that stand for themselves: it stops at a quote, a backslash, a control character, invalid
// UTF-8 or the end.
func (r *Reader) plain() {
	data, i := r.data, r.pos
	for {
		for i+8 <= len(data) && allPlain(binary.LittleEndian.Uint64(data[i:])) {
			i += 8
		}
		for i < len(data) && plainByte[data[i]] {
			i++
		}
		if i == len(data) || data[i] < utf8.RuneSelf {
			break
		}
		c, size := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	r.pos = i
}

// plainByte is true for ASCII that needs no escape.
var plainByte = func() (t [256]bool) {
	for c := range utf8.RuneSelf {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// allPlain reports whether all eight bytes of x are plain. It looks at all of them at once: a subtraction sets the
// top bit of a byte that is below what is subtracted; a borrow may then also mark the bytes above, never clear a
// mark.
func allPlain(x uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	control := x - ones*' '
	quote := x ^ ones*'"' - ones
	backslash := x ^ ones*'\\' - ones
	return (x|control|quote|backslash)&tops == 0
}

// appendEscape reads one escape sequence.
func (r *Reader) appendEscape(dst []byte) []byte {
	if r.pos+1 >= len(r.data) {
		r.Fail("a string does not end")
		return dst
	}
	c := r.data[r.pos+1]
	switch c {
	case '"', '\\', '/':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		return r.appendUnicode(dst)
	default:
		r.Fail("%q is no escape sequence", r.data[r.pos:r.pos+2])
		return dst
	}
	r.pos += 2
	return append(dst, c)
}

// appendUnicode reads \uXXXX, or two of them that are a surrogate pair.
func (r *Reader) appendUnicode(dst []byte) []byte {
	c, ok := hex4(r.data[r.pos:])
	if !ok {
		r.Fail("want four hexadecimal digits behind \\u")
		return dst
	}
	r.pos += 6
	if utf16.IsSurrogate(c) {
		low, ok := hex4(r.data[r.pos:])
		pair := utf16.DecodeRune(c, low)
		if c = unicode.ReplacementChar; ok && pair != c {
			c = pair
			r.pos += 6
		}
	}
	return utf8.AppendRune(dst, c)
}

// hex4 decodes \uXXXX at the beginning of b.
func hex4(b []byte) (c rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, d := range b[2:6] {
		switch {
		case d-'0' <= 9:
			d -= '0'
		case d|0x20-'a' <= 5:
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		c = c<<4 | rune(d)
	}
	return c, true
}
