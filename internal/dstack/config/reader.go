package config

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core/nearest"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

// reader collects faults while a tree is read. Its methods give the zero value for what is wrong.
type reader struct {
	faults  []Fault
	unknown []Fault                            // unknown keys are told last
	lenient bool                               // unknown keys that say nothing (null, false, empty) are dropped
	request bool                               // what a client has completed: its arguments and paths
	check   func(kind Kind, name string) error // of the configuration's name; nil: any will do
}

// fail notes a fault at n.
func (r *reader) fail(n *tree.Node, p *path, kind, format string, args ...any) *Fault {
	f := Fault{Message: fmt.Sprintf(format, args...), Type: kind, in: n}
	if p != nil {
		f.loc, f.Path = p.loc(), p.String()
	}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
	}
	r.faults = append(r.faults, f)
	return &r.faults[len(r.faults)-1]
}

// err gives the faults in order: wrong values by their place, then unknown keys by theirs.
func (r *reader) err() error {
	if len(r.faults)+len(r.unknown) == 0 {
		return nil
	}
	for _, list := range [][]Fault{r.faults, r.unknown} {
		slices.SortStableFunc(list, func(a, b Fault) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
	}
	return Faults(append(r.faults, r.unknown...))
}

// fields reads the keys of a mapping. Which keys it knows is what it was asked for.
type fields struct {
	r     *reader
	n     *tree.Node
	p     *path
	known []string
	tags  bool // the keys were written as tags with our prefix
}

// mapping begins a mapping; nil with a fault where n is none.
func (r *reader) mapping(n *tree.Node, p *path, want string) *fields {
	if n.Form != tree.Mapping {
		r.fail(n, p, typeMapping, "must be %s, not %s", want, n.Describe())
		return nil
	}
	return &fields{r: r, n: n, p: p}
}

// get gives the value of a key with its path; nil where the key is not there.
func (f *fields) get(key string) (*tree.Node, *path) {
	f.known = append(f.known, key)
	v := f.n.Get(key)
	if v == nil {
		return nil, nil
	}
	if f.tags {
		key = tagOf(key)
	}
	return v, f.p.key(key)
}

// has reports whether a key is there.
func (f *fields) has(key string) bool { return f.n.Get(key) != nil }

// given reports whether a key is there with something.
func (f *fields) given(key string) bool {
	v := f.n.Get(key)
	return v != nil && v.Form != tree.Null
}

// need is get for a key that must be there.
func (f *fields) need(key string) (*tree.Node, *path) {
	v, p := f.get(key)
	if v == nil {
		f.r.fail(f.n, f.p.key(key), typeMissing, "is missing")
	}
	return v, p
}

// failAt notes a fault of a key's value, or of the mapping where the key is not there.
func (f *fields) failAt(key, format string, args ...any) {
	n := f.n
	if v := f.n.Get(key); v != nil {
		n = v
	}
	f.r.fail(n, f.p.key(key), typeValue, format, args...)
}

// done notes every key that nobody asked for.
func (f *fields) done() {
	for _, e := range f.n.Keys {
		name := e.Key.Plain()
		if e.Key.Form == tree.Text && slices.Contains(f.known, name) || f.r.lenient && e.Value.SaysNothing() {
			continue
		}
		msg := "unknown key"
		if f.p != nil && f.p.up == nil && isResource(name) {
			msg += "; it belongs below resources"
		} else {
			slices.Sort(f.known)
			msg += nearest.Hint(name, f.known)
		}
		p := f.p.key(name)
		f.r.unknown = append(f.r.unknown, Fault{
			Path: p.String(), loc: p.loc(), Line: e.Key.Line, Column: e.Key.Column, Message: msg, Type: typeExtra, in: e.Value,
		})
	}
}

func isResource(key string) bool {
	return slices.Contains([]string{"cpu", "memory", "gpu", "disk", "shm_size"}, key)
}

// text reads a text; numbers become one.
func (r *reader) text(n *tree.Node, p *path) (string, bool) {
	switch n.Form {
	case tree.Text, tree.Int, tree.Real:
		return n.Plain(), true
	default: // refused below
	}
	r.fail(n, p, typeText, "must be a text, not %s", n.Describe())
	return "", false
}

// optText reads a text that may be null.
func (f *fields) optText(key string) *string {
	n, p := f.get(key)
	if n == nil || n.Form == tree.Null {
		return nil
	}
	if s, ok := f.r.text(n, p); ok {
		return &s
	}
	return nil
}

// needText reads a text that must be there.
func (f *fields) needText(key string) string {
	n, p := f.need(key)
	if n == nil {
		return ""
	}
	s, _ := f.r.text(n, p)
	return s
}

// word reads one of some words, which may be null.
func (f *fields) word(key string, words ...string) *string {
	n, p := f.get(key)
	if n == nil || n.Form == tree.Null {
		return nil
	}
	return f.r.oneOf(n, p, words)
}

func (r *reader) oneOf(n *tree.Node, p *path, words []string) *string {
	if n.Form == tree.Text && slices.Contains(words, n.Text) {
		return &n.Text
	}
	hint := ""
	if n.Form == tree.Text {
		hint = nearest.Hint(n.Text, words)
	}
	list := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	if len(words) == 1 {
		list = words[0]
	}
	x := r.fail(n, p, typeEnum, "must be %s, not %s%s", list, n.Describe(), hint)
	x.ctx = map[string]any{"expected": list}
	return nil
}

// list reads each item of a list; what is none is a fault.
func (r *reader) list(n *tree.Node, p *path, each func(*tree.Node, *path)) bool {
	if n.Form != tree.List {
		r.fail(n, p, typeList, "must be a list, not %s", n.Describe())
		return false
	}
	for i, item := range n.Items {
		each(item, p.at(i))
	}
	return true
}

// texts reads a list of texts that must not be null; absent is empty.
func (f *fields) texts(key string) []string {
	n, p := f.get(key)
	out := []string{}
	if n == nil {
		return out
	}
	f.r.list(n, p, func(n *tree.Node, p *path) {
		if s, ok := f.r.text(n, p); ok {
			out = append(out, s)
		}
	})
	return out
}

// optTexts reads a list of texts that may be null.
func (f *fields) optTexts(key string) []string {
	if n := f.n.Get(key); n == nil || n.Form == tree.Null {
		f.get(key)
		return nil
	}
	return f.texts(key)
}

// items reads a list that must not be null; absent is empty.
func items[T any](f *fields, key string, one func(*tree.Node, *path) (T, bool)) []T {
	n, p := f.get(key)
	out := []T{}
	if n == nil {
		return out
	}
	f.r.list(n, p, func(n *tree.Node, p *path) {
		if v, ok := one(n, p); ok {
			out = append(out, v)
		}
	})
	return out
}

// optItems reads a list that may be null.
func optItems[T any](f *fields, key string, one func(*tree.Node, *path) (T, bool)) []T {
	if n := f.n.Get(key); n == nil || n.Form == tree.Null {
		f.get(key)
		return nil
	}
	return items(f, key, one)
}

// opt reads a value that may be null.
func opt[T any](f *fields, key string, one func(*tree.Node, *path) (T, bool)) *T {
	n, p := f.get(key)
	if n == nil || n.Form == tree.Null {
		return nil
	}
	if v, ok := one(n, p); ok {
		return &v
	}
	return nil
}
