package call

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
)

// locate finds the first key in data that a type does not have where it stands, and gives the offset of its first
// character; -1: there is none. The decoder's own error has only the key's name, which may be a value before, or a key
// of another object.
func locate(data []byte, t reflect.Type) int64 {
	l := &locator{data: data, dec: json.NewDecoder(bytes.NewReader(data)), at: -1}
	l.value(t)
	return l.at
}

type locator struct {
	data []byte
	dec  *json.Decoder
	at   int64
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value reads one value that is to become a t (nil: anything) and reports whether to continue.
func (l *locator) value(t reflect.Type) bool {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && (t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)) {
		t = nil // it reads its own keys
	}
	token, err := l.dec.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('{'):
		return l.object(t)
	case json.Delim('['):
		var elem reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			elem = t.Elem()
		}
		for l.dec.More() {
			if !l.value(elem) {
				return false
			}
		}
		_, err = l.dec.Token()
	}
	return err == nil
}

func (l *locator) object(t reflect.Type) bool {
	for l.dec.More() {
		token, err := l.dec.Token()
		key, isText := token.(string)
		if err != nil || !isText {
			return false
		}
		var elem reflect.Type
		switch {
		case t == nil:
		case t.Kind() == reflect.Map:
			elem = t.Elem()
		case t.Kind() == reflect.Struct:
			f, known := keyOf(t, key)
			if !known {
				l.at = int64(bytes.LastIndexByte(l.data[:l.dec.InputOffset()-1], '"'))
				return false
			}
			elem = f
		}
		if !l.value(elem) {
			return false
		}
	}
	_, err := l.dec.Token()
	return err == nil
}

// keyOf is the type of what a key of a struct holds. As encoding/json does, it takes a key in any case.
func keyOf(t reflect.Type, key string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() || name == "" && f.Anonymous {
			continue
		}
		if strings.EqualFold(cmp.Or(name, f.Name), key) {
			return f.Type, true
		}
	}
	return nil, false
}
