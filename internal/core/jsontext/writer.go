package jsontext

import (
	"strconv"
	"unicode/utf8"
)

// AppendString appends s as a JSON string, as encoding/json does without its escapes for HTML: the form of what is
// stored and of what is not served as it is.
func AppendString(dst []byte, s string) []byte { return appendString(dst, s, &plainByte) }

// AppendHTMLString appends s as json.Marshal does: also <, > and & are escaped.
func AppendHTMLString(dst []byte, s string) []byte { return appendString(dst, s, &htmlByte) }

// htmlByte is plainByte without what acts in HTML.
var htmlByte = func() [256]bool {
	t := plainByte
	t['<'], t['>'], t['&'] = false, false, false
	return t
}()

const hexDigits = "0123456789abcdef"

func appendString(dst []byte, s string, plain *[256]bool) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		if s[i] < utf8.RuneSelf {
			dst = appendEscaped(append(dst, s[done:i]...), s[i])
			i++
			done = i
			continue
		}
		c, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			dst = append(append(dst, s[done:i]...), `\ufffd`...)
			done = i + 1
		case c == '\u2028' || c == '\u2029': // line ends of JavaScript
			dst = append(append(dst, s[done:i]...), `\u202`...)
			dst = append(dst, hexDigits[c&15])
			done = i + size
		}
		i += size
	}
	return append(append(dst, s[done:]...), '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\t':
		return append(dst, `\t`...)
	case '\r':
		return append(dst, `\r`...)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Object appends the members of one object to a buffer, as json.Marshal writes them. Names must need no escapes.
type Object struct {
	dst  []byte
	more bool
}

// BeginObject starts an object behind dst.
func BeginObject(dst []byte) Object { return Object{dst: append(dst, '{')} }

// End closes the object and returns the buffer.
func (o *Object) End() []byte { return append(o.dst, '}') }

func (o *Object) name(name string) {
	if o.more {
		o.dst = append(o.dst, ',')
	}
	o.more = true
	o.dst = append(o.dst, '"')
	o.dst = append(o.dst, name...)
	o.dst = append(o.dst, '"', ':')
}

// Int appends a number.
func (o *Object) Int(name string, n int64) {
	o.name(name)
	o.dst = strconv.AppendInt(o.dst, n, 10)
}

// OmitInt appends a number unless it is 0.
func (o *Object) OmitInt(name string, n int64) {
	if n != 0 {
		o.Int(name, n)
	}
}

// String appends a string.
func (o *Object) String(name, s string) {
	o.name(name)
	o.dst = AppendHTMLString(o.dst, s)
}

// OmitString appends a string unless it is empty.
func (o *Object) OmitString(name, s string) {
	if s != "" {
		o.String(name, s)
	}
}

// OmitBool appends true, or nothing.
func (o *Object) OmitBool(name string, v bool) {
	if v {
		o.name(name)
		o.dst = append(o.dst, "true"...)
	}
}
