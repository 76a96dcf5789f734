// Package input reads the bodies of requests into Go structs as dstack's server reads them into its models: every fault
// at once, each with the path that leads to it.
//
// A field is read by its json tag. Further rules are in the tag "in", separated by commas: required, ge=N, le=N, min=N
// and max=N (items of a list), uuid, time, and enum=A|B. Fields of type json.RawMessage keep what the client sent, byte
// for byte. A struct with a method Defaults is given its defaults before it is read.
//
// Keys that the struct does not have are passed over when they are null, false or empty: a newer client names what it
// does not use. Others are told to the caller, who knows the client's version.
package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/dstack/wire"
)

// maxFaults bounds how many faults are told of one request.
const maxFaults = 50

// Read reads a body into v, a pointer to a struct. unknown has the faults of keys that v does not have.
func Read(data []byte, v any) (faults, unknown wire.Invalid) {
	r := &reader{}
	if len(bytes.TrimSpace(data)) == 0 {
		return wire.Invalid{{Type: "missing", Loc: []any{"body"}, Msg: "Field required", Input: null}}, nil
	}
	if d := syntax(data); d != nil {
		return wire.Invalid{*d}, nil
	}
	r.read([]any{"body"}, data, reflect.ValueOf(v).Elem(), rules{})
	return r.faults, r.unknown
}

var null = json.RawMessage("null")

// syntax finds the fault of a text that is not JSON.
func syntax(data []byte) *wire.Detail {
	dec := json.NewDecoder(bytes.NewReader(data))
	var raw json.RawMessage
	err := dec.Decode(&raw)
	if err == nil {
		if _, more := dec.Token(); errors.Is(more, io.EOF) {
			return nil
		}
		//lint:ignore ST1005 the official server's text
		err = errors.New("Extra data")
	}
	at, cause := int64(len(data)), err.Error()
	var s *json.SyntaxError
	if errors.As(err, &s) {
		at = max(0, s.Offset-1)
	}
	return &wire.Detail{
		Type: "json_invalid", Loc: []any{"body", at}, Msg: "JSON decode error",
		Input: json.RawMessage("{}"), Ctx: map[string]any{"error": cause},
	}
}

type reader struct{ faults, unknown wire.Invalid }

func (r *reader) fault(kind string, loc []any, msg string, input []byte, ctx map[string]any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, wire.Detail{
			Type: kind, Loc: slices.Clone(loc), Msg: msg, Input: shorten(input), Ctx: ctx,
		})
	}
}

// shorten keeps an answer from repeating megabytes.
func shorten(input []byte) json.RawMessage {
	const most = 4 << 10
	if len(input) > most {
		return json.RawMessage(`"…"`)
	}
	return slices.Clone(input)
}

var rawType = reflect.TypeFor[json.RawMessage]()

func (r *reader) read(loc []any, data []byte, v reflect.Value, rule rules) {
	data = bytes.TrimSpace(data)
	if v.Type() == rawType {
		v.SetBytes(slices.Clone(data))
		return
	}
	if v.Kind() == reflect.Pointer {
		if string(data) == "null" {
			v.SetZero()
			return
		}
		elem := reflect.New(v.Type().Elem())
		r.read(loc, data, elem.Elem(), rule)
		v.Set(elem)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		r.readStruct(loc, data, v)
	case reflect.Slice:
		r.readList(loc, data, v, rule)
	case reflect.Map:
		r.readMap(loc, data, v)
	case reflect.String:
		r.readString(loc, data, v, rule)
	case reflect.Bool:
		if err := json.Unmarshal(data, v.Addr().Interface()); err != nil || string(data) == "null" {
			r.fault("bool_type", loc, "Input should be a valid boolean", data, nil)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		r.readInt(loc, data, v, rule)
	case reflect.Float64:
		if err := json.Unmarshal(data, v.Addr().Interface()); err != nil || string(data) == "null" {
			r.fault("float_type", loc, "Input should be a valid number", data, nil)
		}
	default:
		panic("input: a field of type " + v.Type().String())
	}
}

func (r *reader) readStruct(loc []any, data []byte, v reflect.Value) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil || keys == nil {
		r.fault("model_attributes_type", loc, "Input should be a valid dictionary or object to extract fields from", data,
			nil)
		return
	}
	if d, ok := v.Addr().Interface().(interface{ Defaults() }); ok {
		d.Defaults()
	}
	known := map[string]bool{}
	r.readFields(loc, data, keys, known, v)
	for _, name := range sortedKeys(keys) {
		if !known[name] && !isEmpty(keys[name]) && len(r.unknown) < maxFaults {
			r.unknown = append(r.unknown, wire.Detail{
				Type: "extra_forbidden", Loc: append(slices.Clone(loc), name),
				Msg: "Extra inputs are not permitted", Input: shorten(keys[name]),
			})
		}
	}
}

func (r *reader) readFields(loc []any, data []byte, keys map[string]json.RawMessage, known map[string]bool,
	v reflect.Value,
) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			r.readFields(loc, data, keys, known, v.Field(i))
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		known[name] = true
		rule, at := parseRules(f.Tag.Get("in")), append(slices.Clip(loc), name)
		part, there := keys[name]
		switch {
		case there:
			r.read(at, part, v.Field(i), rule)
		case rule.required:
			r.fault("missing", at, "Field required", data, nil)
		}
	}
}

func (r *reader) readList(loc []any, data []byte, v reflect.Value, rule rules) {
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil || string(data) == "null" {
		r.fault("list_type", loc, "Input should be a valid list", data, nil)
		return
	}
	if rule.max > 0 && len(items) > rule.max {
		r.fault("too_long", loc, "List should have at most "+strconv.Itoa(rule.max)+" items after validation, not "+
			strconv.Itoa(len(items)), data, map[string]any{
			"field_type": "List", "max_length": rule.max, "actual_length": len(items),
		})
		return
	}
	if len(items) < rule.min {
		r.fault("too_short", loc, "List should have at least "+strconv.Itoa(rule.min)+" item after validation, not "+
			strconv.Itoa(len(items)), data, map[string]any{
			"field_type": "List", "min_length": rule.min, "actual_length": len(items),
		})
		return
	}
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		r.read(append(slices.Clip(loc), i), item, list.Index(i), rule)
	}
	v.Set(list)
}

func (r *reader) readMap(loc []any, data []byte, v reflect.Value) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil || string(data) == "null" {
		r.fault("dict_type", loc, "Input should be a valid dictionary", data, nil)
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(keys))
	for _, name := range sortedKeys(keys) {
		elem := reflect.New(v.Type().Elem()).Elem()
		r.read(append(slices.Clip(loc), name), keys[name], elem, rules{})
		m.SetMapIndex(reflect.ValueOf(name), elem)
	}
	v.Set(m)
}

func (r *reader) readString(loc []any, data []byte, v reflect.Value, rule rules) {
	var text string
	if err := json.Unmarshal(data, &text); err != nil || string(data) == "null" {
		r.fault("string_type", loc, "Input should be a valid string", data, nil)
		return
	}
	v.SetString(text)
	switch {
	case len(rule.enum) > 0 && !slices.Contains(rule.enum, text):
		words := enumText(rule.enum)
		r.fault("enum", loc, "Input should be "+words, data, map[string]any{"expected": words})
	case rule.uuid && !wire.IsUUID(text):
		r.fault("uuid_parsing", loc, "Input should be a valid UUID", data, map[string]any{"error": "not a UUID"})
	case rule.time:
		if _, ok := wire.ParseTime(text); !ok {
			r.fault("datetime_from_date_parsing", loc, "Input should be a valid datetime or date", data,
				map[string]any{"error": "not a time"})
		}
	case strings.ContainsRune(text, 0):
		r.fault("value_error", loc, "Value error, the text contains a NUL byte", data, map[string]any{"error": struct{}{}})
	}
}

func (r *reader) readInt(loc []any, data []byte, v reflect.Value, rule rules) {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || v.OverflowInt(n) {
		r.fault("int_type", loc, "Input should be a valid integer", data, nil)
		return
	}
	v.SetInt(n)
	switch {
	case rule.ge != nil && n < *rule.ge:
		r.fault("greater_than_equal", loc, "Input should be greater than or equal to "+strconv.FormatInt(*rule.ge, 10),
			data, map[string]any{"ge": *rule.ge})
	case rule.le != nil && n > *rule.le:
		r.fault("less_than_equal", loc, "Input should be less than or equal to "+strconv.FormatInt(*rule.le, 10),
			data, map[string]any{"le": *rule.le})
	}
}

// isEmpty reports whether a value says nothing: null, false, or empty.
func isEmpty(data json.RawMessage) bool {
	switch text := string(bytes.TrimSpace(data)); text {
	case "null", "false", `""`:
		return true
	default:
		text = strings.Join(strings.Fields(text), "")
		return text == "[]" || text == "{}"
	}
}

func sortedKeys(m map[string]json.RawMessage) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// enumText lists words as a validation error does: 'a', 'b' or 'c'.
func enumText(words []string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString("'" + w + "'")
	}
	return b.String()
}
