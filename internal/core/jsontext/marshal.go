package jsontext

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// Marshal returns what json.Marshal does, at less cost for a process that encodes one value in its life:
// encoding/json prepares an encoder for every type that a value could hold before it writes the first one, a third of
// a millisecond for the request of sbatch, whose rare parts are nearly always absent. Marshal looks at a type only
// when there is a value of it. Types with methods of their own, maps, floats and embedded fields go through
// encoding/json.
func Marshal(v any) ([]byte, error) { return appendValue(make([]byte, 0, 16<<10), reflect.ValueOf(v)) }

func appendValue(dst []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(dst, "null"...), nil
	}
	t := v.Type()
	if t.PkgPath() != "" && (hasMethod(t) || hasMethod(reflect.PointerTo(t))) {
		if t.Kind() == reflect.Struct && t.Implements(textMarshaler) && !reflect.PointerTo(t).Implements(marshaler) {
			text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
			return AppendHTMLString(dst, string(text)), err
		}
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
		return AppendHTMLString(dst, v.String()), nil
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

func hasMethod(t reflect.Type) bool { return t.Implements(marshaler) || t.Implements(textMarshaler) }

// appendOther writes a value by encoding/json, through its address where it has one: methods of pointers count then.
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
		if !f.IsExported() || tag == "-" || isOmitted(v.Field(i), options) {
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

// isOmitted reports whether a member is left out.
func isOmitted(v reflect.Value, options string) bool {
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
