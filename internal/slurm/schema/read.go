package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Input is a record that was read: the values of the fields that were given, as string, bool, Number, []string, Input
// or []Input.
type Input map[string]any

// in is the record within which a name with dots lies, and its last part.
func (in Input) in(name string) (Input, string) {
	for {
		head, rest, nested := strings.Cut(name, ".")
		if !nested {
			return in, name
		}
		inner, ok := in[head].(Input)
		if !ok {
			return nil, rest
		}
		in, name = inner, rest
	}
}

// Text is a field as text; "" where it was not given.
func (in Input) Text(name string) string { m, n := in.in(name); s, _ := m[n].(string); return s }

// Has reports whether a field was given.
func (in Input) Has(name string) bool { m, n := in.in(name); _, ok := m[n]; return ok }

// List is a field that is a list of words.
func (in Input) List(name string) []string { m, n := in.in(name); l, _ := m[n].([]string); return l }

// Records is a field that is a list of records.
func (in Input) Records(name string) []Input { m, n := in.in(name); l, _ := m[n].([]Input); return l }

// Bool is a field that is true or false.
func (in Input) Bool(name string) bool { m, n := in.in(name); b, _ := m[n].(bool); return b }

// Number is a field that is a number.
func (in Input) Number(name string) Number { m, k := in.in(name); n, _ := m[k].(Number); return n }

// IsSet reports whether there is a number, be it infinite.
func (n Number) IsSet() bool { return n.state != 0 }

// IsInfinite reports whether it has no bound.
func (n Number) IsInfinite() bool { return n.state == 2 }

// Whole is the number without its fraction.
func (n Number) Whole() int64 { return n.whole }

// Value is the number.
func (n Number) Value() float64 { return n.value }

// Note is what is wrong with a body, and where: a path of keys with slashes.
type Note struct {
	Path string
	Text string
}

// Read reads a decoded document (maps, lists, strings, json.Number, bool and nil) as a record of a version. Keys that
// this version does not know are passed over, with a warning each; values that do not fit are faults.
func (o *Object) Read(doc any, v Version) (in Input, warnings, faults []Note) {
	r := &reader{version: v}
	in = r.object(o, doc, "#")
	return in, r.warnings, r.faults
}

type reader struct {
	version          Version
	warnings, faults []Note
}

// maxNotes bounds how many notes a body gets.
const maxNotes = 100

func (r *reader) fault(path, format string, args ...any) {
	if len(r.faults) < maxNotes {
		r.faults = append(r.faults, Note{path, fmt.Sprintf(format, args...)})
	}
}

func (r *reader) object(o *Object, doc any, path string) Input {
	m, ok := doc.(map[string]any)
	if !ok {
		r.fault(path, "expected a dictionary, found %s", kindOf(doc))
		return nil
	}
	in := Input{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if path == "#" && (key == "meta" || key == "errors" || key == "warnings") {
			continue // an answer that is sent back
		}
		at := path + "/" + key
		i, known := o.index[key]
		var f *form
		if known {
			f = o.fields[i].form(r.version)
		}
		if f == nil || f.kind == absent {
			if len(r.warnings) < maxNotes {
				r.warnings = append(r.warnings, Note{path + "/", fmt.Sprintf("Ignoring unknown field %.80q", key)})
			}
			continue
		}
		if m[key] == nil {
			continue
		}
		if value := r.value(f, m[key], at); value != nil {
			in[key] = value
		}
	}
	return in
}

func (r *reader) value(f *form, doc any, path string) any {
	switch f.kind {
	case text, textOrNull:
		return r.text(doc, path)
	case boolean:
		return r.boolean(doc, path)
	case integer, integerOrNull, double:
		if n, ok := r.number(doc, path); ok && n.state == 1 {
			return n
		}
	case optional:
		if s, ok := doc.(string); ok && f.words == clock && strings.ContainsAny(s, ":-") {
			return s
		}
		if n, ok := r.optional(doc, path); ok {
			return n
		}
	case list:
		return r.list(f.elem, doc, path)
	case object:
		if in := r.object(Of(f.name), doc, path); in != nil {
			return in
		}
	case free, absent:
	}
	return nil
}

// text takes numbers and truth values too, as Slurm converts them.
func (r *reader) text(doc any, path string) any {
	switch x := doc.(type) {
	case string:
		return x
	case json.Number:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	}
	r.fault(path, "expected a string, found %s", kindOf(doc))
	return nil
}

func (r *reader) boolean(doc any, path string) any {
	switch x := doc.(type) {
	case bool:
		return x
	case json.Number:
		return x.String() != "0"
	case string:
		switch strings.ToLower(x) {
		case "true", "yes", "on", "1":
			return true
		case "false", "no", "off", "0", "":
			return false
		}
	}
	r.fault(path, "expected true or false, found %s", kindOf(doc))
	return nil
}

// number reads a number, or a text that is one.
func (r *reader) number(doc any, path string) (Number, bool) {
	var digits string
	switch x := doc.(type) {
	case json.Number:
		digits = x.String()
	case string:
		switch digits = strings.TrimSpace(x); strings.ToLower(digits) {
		case "":
			return Number{}, true
		case "infinite", "infinity", "unlimited":
			return Infinite, true
		}
	case float64:
		digits = strconv.FormatFloat(x, 'g', -1, 64)
	case int:
		digits = strconv.Itoa(x)
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return Int(n), true
	}
	f, err := strconv.ParseFloat(digits, 64)
	if digits == "" || err != nil || math.Abs(f) > 1<<62 || math.IsNaN(f) {
		r.fault(path, "expected a number, found %s", kindOf(doc))
		return Number{}, false
	}
	return Float(f), true
}

// optional reads a number, or {"set", "infinite", "number"}; a number alone is set.
func (r *reader) optional(doc any, path string) (Number, bool) {
	m, ok := doc.(map[string]any)
	if !ok {
		return r.number(doc, path)
	}
	flag := func(key string) (bool, bool) {
		b, has := m[key].(bool)
		return b, has
	}
	set, said := flag("set")
	if inf, _ := flag("infinite"); inf && (set || !said) {
		return Infinite, true
	}
	n, has := m["number"]
	if !has || n == nil || said && !set {
		return Number{}, true
	}
	return r.number(n, path+"/number")
}

// list reads a list, or a text with commas in it. Lists of records may be objects by name, of which the values count.
func (r *reader) list(elem *form, doc any, path string) any {
	items, ok := doc.([]any)
	if !ok {
		switch x := doc.(type) {
		case string:
			for _, w := range strings.Split(x, ",") {
				if w = strings.TrimSpace(w); w != "" {
					items = append(items, w)
				}
			}
		case map[string]any:
			if elem.kind == text { // K=V, as old versions gave an environment
				for _, key := range slices.Sorted(maps.Keys(x)) {
					if s, isText := r.text(x[key], path+"/"+key).(string); isText {
						items = append(items, key+"="+s)
					}
				}
				break
			}
			items = []any{x}
		default:
			r.fault(path, "expected a list, found %s", kindOf(doc))
			return nil
		}
	}
	if elem.kind == object {
		list := []Input{}
		for i, item := range items {
			if in := r.object(Of(elem.name), item, path+"["+strconv.Itoa(i)+"]"); in != nil {
				list = append(list, in)
			}
		}
		return list
	}
	list := []string{}
	for i, item := range items {
		if s, isText := r.text(item, path+"["+strconv.Itoa(i)+"]").(string); isText {
			list = append(list, s)
		}
	}
	return list
}

func kindOf(doc any) string {
	switch doc.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a dictionary"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a truth value"
	}
	return "a number"
}

// ParseNumber reads a number that stands in a text.
func ParseNumber(text string) (Number, error) {
	r := &reader{}
	n, ok := r.number(text, "")
	if !ok {
		return n, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}
