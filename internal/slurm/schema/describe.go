package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// kind is the form of a value.
type kind uint8

const (
	absent     kind = iota
	text            // string
	textOrNull      // string, or null where there is nothing
	boolean
	integer       // a number; 0 where there is none
	integerOrNull // a number, or null where there is none
	double
	optional // {"set", "infinite", "number"}
	list
	object
	free // an object without a description
)

// form is how a version writes a field.
type form struct {
	kind   kind
	format string // of numbers: int32, int64, uint32 …
	elem   *form  // of a list
	name   string // of an object
	words  string // the set of words that a text is one of; empty: any
}

// field is one line of a table: a name, and a form for each span of versions.
type field struct {
	name  string
	spans []span
}

type span struct {
	from, to Version
	form     form
}

// form is that of a version; its kind is absent where that has no such field.
func (f *field) form(v Version) *form {
	for i := range f.spans {
		if s := &f.spans[i]; v >= s.from && v <= s.to {
			return &s.form
		}
	}
	return &form{}
}

// Object is the description of a record.
type Object struct {
	name   string
	fields []field
	index  map[string]int
}

// Name is what the OpenAPI document calls it, after the version.
func (o *Object) Name() string { return o.name }

// objects are all descriptions by name.
var objects = sync.OnceValue(func() map[string]*Object {
	all := map[string]*Object{}
	for _, text := range tables {
		var o *Object
		for _, line := range strings.Split(text, "\n") {
			words := strings.Fields(line)
			switch {
			case len(words) == 0:
			case words[0] == "object":
				o = &Object{name: words[1], index: map[string]int{}}
				all[o.name] = o
			default:
				addField(all, o, parseField(words))
			}
		}
	}
	return all
})

// addField adds a line to an object. A name with dots is a field of an object within it: a.b is b of a.
func addField(all map[string]*Object, o *Object, f field) {
	head, rest, nested := strings.Cut(f.name, ".")
	if !nested {
		o.index[f.name] = len(o.fields)
		o.fields = append(o.fields, f)
		return
	}
	name := o.name + "_" + head
	inner := all[name]
	if inner == nil {
		inner = &Object{name: name, index: map[string]int{}}
		all[name] = inner
		o.index[head] = len(o.fields)
		o.fields = append(o.fields, field{name: head, spans: []span{{
			from: Newest, to: Recorded, form: form{kind: object, name: name},
		}}})
	}
	// The inner object is there in all versions that have one of its fields.
	outer := &o.fields[o.index[head]].spans[0]
	for _, s := range f.spans {
		outer.from, outer.to = min(outer.from, s.from), max(outer.to, s.to)
	}
	f.name = rest
	addField(all, inner, f)
}

// Of finds a description. There must be one.
func Of(name string) *Object {
	o := objects()[name]
	if o == nil {
		panic("schema: there is no object " + name)
	}
	return o
}

// parseField reads NAME [SPAN:]FORM…: a form without a span is that of all REST versions.
func parseField(words []string) field {
	f := field{name: words[0]}
	for _, w := range words[1:] {
		s := span{from: Oldest, to: Newest}
		if versions, rest, ok := strings.Cut(w, ":"); ok {
			w = rest
			from, to, isSpan := strings.Cut(versions, "-")
			s.from = version(from)
			s.to = s.from
			if isSpan {
				s.to = Newest
				if to != "" {
					s.to = version(to)
				}
			}
		}
		s.form = parseForm(w)
		f.spans = append(f.spans, s)
	}
	return f
}

func version(digits string) Version {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(fmt.Sprintf("schema: version %q", digits))
	}
	return Version(n)
}

// clock marks numbers of minutes that may be given as a time, too: "1-12:00:00".
const clock = "clock"

var plainForms = map[string]form{
	"string": {kind: text}, "string/null": {kind: textOrNull}, "bool": {kind: boolean}, "object": {kind: free},
	"int32": {kind: integer, format: "int32"}, "int64": {kind: integer, format: "int64"},
	"int": {kind: integer, format: "int64"}, "int/null": {kind: integerOrNull, format: "int64"},
	"double":  {kind: double, format: "double"},
	"uint16?": {kind: optional, format: "int32"}, "uint32?": {kind: optional, format: "int32"},
	"minutes?": {kind: optional, format: "int32", words: clock},
	"uint64?":  {kind: optional, format: "int64"}, "double?": {kind: optional, format: "double"},
}

// parseForm reads a form: a plain one, [FORM], @OBJECT or %WORDS.
func parseForm(w string) form {
	if f, ok := plainForms[w]; ok {
		return f
	}
	switch w[0] {
	case '[':
		elem := parseForm(strings.TrimSuffix(w[1:], "]"))
		return form{kind: list, elem: &elem}
	case '@':
		return form{kind: object, name: w[1:]}
	case '%':
		return form{kind: text, words: w[1:]}
	}
	panic(fmt.Sprintf("schema: form %q", w))
}

// Known reports whether a word is one of a set.
func Known(set, word string) bool { return slices.Contains(strings.Fields(sets[set]), word) }
