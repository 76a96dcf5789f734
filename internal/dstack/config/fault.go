package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Path    string `json:"path"`   // task.ports.0; "" for the document
	Line    int    `json:"line"`   // from 1; 0: not known
	Column  int    `json:"column"` // from 1
	Message string `json:"message"`

	Type string         `json:"-"` // the word of a request's error: missing, extra_forbidden, value_error, …
	loc  []any          // the path in parts: texts and indices
	ctx  map[string]any // what a Type has beside its text
	in   *tree.Node
}

// String is the fault on one line, without the file.
func (f *Fault) String() string {
	s := f.Message
	if f.Path != "" {
		s = f.Path + ": " + s
	}
	if f.Line > 0 {
		s = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, s)
	}
	return s
}

// Faults is everything that is wrong with a configuration: wrong values in the order of the file, then unknown keys.
type Faults []Fault

// Error lists all of them, a line each.
func (f Faults) Error() string { return strings.Join(f.lines(""), "\n") }

func (f Faults) lines(file string) []string {
	list := make([]string, len(f))
	for i := range f {
		sep := ": "
		if f[i].Line > 0 {
			sep = ", "
		}
		list[i] = f[i].String()
		if file != "" {
			list[i] = file + sep + list[i]
		}
	}
	return list
}

// In is the error of a command that read file: each fault on a line of its own.
func (f Faults) In(file string) error {
	e := &core.Error{
		Code: core.Invalid, Reason: "invalid_configuration", Message: strings.Join(f.lines(file), "\n"),
	}
	for i := range f {
		msg := f[i].Message
		if f[i].Path != "" {
			msg = f[i].Path + ": " + msg
		}
		where := ""
		if f[i].Line > 0 {
			where = fmt.Sprintf("line %d, column %d", f[i].Line, f[i].Column)
		}
		e.Faults = append(e.Faults, core.Fault{Path: where, Message: msg})
	}
	return e
}

// Fault is a fault that is found after the configuration was read, at a place in it: ports, 0.
func (c *Configuration) Fault(message string, loc ...any) Fault {
	p := c.pathOf(loc...)
	f := Fault{Path: p.String(), loc: p.loc(), Message: message, Type: typeValue, in: c.placeOf(loc...)}
	if f.in != nil {
		f.Line, f.Column = f.in.Line, f.in.Column
	}
	return f
}

// Wrote reports whether the configuration as it was read has a key, such as resources, memory, with something.
func (c *Configuration) Wrote(keys ...string) bool {
	n := c.root
	for _, k := range keys {
		if n == nil || n.Form != tree.Mapping {
			return false
		}
		n = n.Get(k)
	}
	return n != nil && n.Form != tree.Null
}

// Detail is one entry of the answer to a request that does not fit its form (status 422).
type Detail struct {
	Type  string         `json:"type"`
	Loc   []any          `json:"loc"`
	Msg   string         `json:"msg"`
	Input any            `json:"input"`
	Ctx   map[string]any `json:"ctx,omitempty"`
}

// Details gives the faults as a 422 answer has them. loc is where the configuration was in the request, such as body,
// run_spec, configuration.
func (f Faults) Details(loc ...any) []Detail {
	list := make([]Detail, len(f))
	for i := range f {
		x := &f[i]
		d := Detail{Type: x.Type, Loc: append(slices.Clone(loc), x.loc...), Msg: x.Message, Input: x.in.Native(), Ctx: x.ctx}
		switch x.Type {
		case "":
			d.Type = typeValue
			fallthrough
		case typeValue:
			d.Msg = "Value error, " + x.Message
			d.Ctx = map[string]any{"error": struct{}{}}
		case typeMissing:
			d.Msg = "Field required"
		case typeExtra:
			d.Msg = "Extra inputs are not permitted"
		}
		list[i] = d
	}
	return list
}

// The words for what is wrong in an answer to a request.
const (
	typeValue   = "value_error"
	typeMissing = "missing"
	typeExtra   = "extra_forbidden"
	typeList    = "list_type"
	typeMapping = "model_attributes_type"
	typeText    = "string_type"
	typeBool    = "bool_parsing"
	typeInt     = "int_parsing"
	typeFloat   = "float_parsing"
	typeEnum    = "enum"
	typeMin     = "greater_than_equal"
	typeAbove   = "greater_than"
	typeMax     = "less_than_equal"
	typeTag     = "union_tag_invalid"
	typeNoTag   = "union_tag_not_found"
)

// path is where a value is: steps from the type word on.
type path struct {
	up    *path
	name  string
	index int // where name is ""
}

func (p *path) key(name string) *path { return &path{up: p, name: name} }

func (p *path) at(i int) *path { return &path{up: p, index: i} }

// loc gives the steps in order.
func (p *path) loc() (steps []any) {
	for ; p != nil; p = p.up {
		if p.name != "" {
			steps = append(steps, p.name)
		} else {
			steps = append(steps, p.index)
		}
	}
	slices.Reverse(steps)
	return steps
}

func (p *path) String() string {
	var parts []string
	for _, s := range p.loc() {
		if i, ok := s.(int); ok {
			parts = append(parts, strconv.Itoa(i))
		} else {
			parts = append(parts, s.(string))
		}
	}
	return strings.Join(parts, ".")
}
