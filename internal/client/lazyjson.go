package client

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// encoding/json prepares an encoder for every type that a value could hold before it writes the first one: a third of a
// millisecond for the request of sbatch, whose rare parts are nearly always absent, and a command makes one request in its
// life. What follows writes the same bytes and looks at a type only when there is a value of it. What it does not know it
// leaves to encoding/json. lazyjson_test.go holds it to that.

var (
	ownJSON = reflect.TypeFor[json.Marshaler]()
	ownText = reflect.TypeFor[encoding.TextMarshaler]()
)

// marshal is json.Marshal for one use.
func marshal(v any) ([]byte, error) { return appendValue(make([]byte, 0, 16<<10), reflect.ValueOf(v)) }

func appendValue(dst []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(dst, "null"...), nil
	}
	t := v.Type()
	if t.PkgPath() != "" && (speaks(t) || speaks(reflect.PointerTo(t))) {
		return appendOther(dst, v)
	}
	switch t.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(dst, v.Uint(), 10), nil
	case reflect.String:
		return appendText(dst, v.String()), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return appendValue(dst, v.Elem())
	case reflect.Slice:
		if v.IsNil() || t.Elem().Kind() == reflect.Uint8 {
			return appendOther(dst, v)
		}
		return appendList(dst, v)
	case reflect.Struct:
		return appendStruct(dst, v)
	}
	return appendOther(dst, v)
}

func speaks(t reflect.Type) bool { return t.Implements(ownJSON) || t.Implements(ownText) }

// appendOther leaves a value to encoding/json, by its address where it has one: some methods need that.
func appendOther(dst []byte, v reflect.Value) ([]byte, error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	b, err := json.Marshal(v.Interface())
	return append(dst, b...), err
}

func appendList(dst []byte, v reflect.Value) (_ []byte, err error) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(dst, v.Index(i)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendStruct(dst []byte, v reflect.Value) (_ []byte, err error) {
	t, start := v.Type(), len(dst)
	dst = append(dst, '{')
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous || options != "" && options != "omitempty" && options != "omitzero" {
			return appendOther(dst[:start], v)
		}
		if !f.IsExported() || tag == "-" || absent(v.Field(i), options) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), name...), '"', ':')
		if dst, err = appendValue(dst, v.Field(i)); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// absent tells that a member is left out.
func absent(v reflect.Value, options string) bool {
	switch options {
	case "omitzero":
		if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
		return v.IsZero()
	case "omitempty":
		switch v.Kind() {
		case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
			return v.Len() == 0
		case reflect.Struct:
			return false
		}
		return v.IsZero()
	}
	return false
}

// appendText quotes as encoding/json does, which is asked where that is more than putting quotes around.
func appendText(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s)
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
