package doc

import (
	"reflect"

	"bireme.dev/bireme/internal/core/jsontext"
)

// Decoder reads documents, one after another, and keeps equal strings once, and what they were parsed as. It is for
// one goroutine.
type Decoder struct {
	r      jsontext.Reader
	seen   map[string]string
	parsed map[parsedKey]any
}

// parsedKey names a text that was parsed as a type.
type parsedKey struct {
	t    reflect.Type
	text string
}

// Only short strings are worth a lookup, and a decoder must not remember the whole database.
const (
	internLen = 128
	internMax = 1 << 16
)

func (d *Decoder) reset(text []byte) {
	d.r.Reset(text)
	if d.seen == nil {
		d.seen, d.parsed = map[string]string{}, map[parsedKey]any{}
	}
}

// Intern returns a string equal to b, the same one for equal b.
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
