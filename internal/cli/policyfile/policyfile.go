package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
)

// File is a policy with where in its file everything stands.
type File struct {
	Policy core.Policy
	name   string
	places map[string]string // path of an entry ("projects.physics.members.ann") -> "line 3, column 5"
	faults []core.Fault
}

// Parse reads a policy. The error has every fault, with its line and column.
func Parse(name string, data []byte) (*File, error) {
	f := &File{name: name, places: map[string]string{}}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return f, nil
	case err != nil:
		f.faults = append(f.faults, core.Fault{Message: strings.TrimPrefix(err.Error(), "yaml: ")})
		return f, f.err()
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		f.add(&more, "", "a policy is one document, and here is another")
	}
	if len(doc.Content) == 1 && doc.Content[0].Tag != "!!null" {
		f.top(doc.Content[0])
	}
	return f, f.err()
}

func (f *File) add(n *yaml.Node, path, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if path != "" {
		msg = path + ": " + msg
	}
	where := ""
	if n.Line > 0 {
		where = fmt.Sprintf("line %d, column %d", n.Line, n.Column)
	}
	f.faults = append(f.faults, core.Fault{Path: where, Message: msg})
}

func (f *File) err() error {
	if len(f.faults) == 0 {
		return nil
	}
	return f.worded(&core.Error{Code: core.Invalid, Reason: "invalid_policy", Faults: f.faults})
}

// worded returns an error with one line a fault, each with its place.
func (f *File) worded(e *core.Error) error {
	lines := make([]string, len(e.Faults))
	for i, x := range e.Faults {
		lines[i] = f.name + ": " + x.Message
		if x.Path != "" {
			lines[i] = f.name + ", " + x.Path + ": " + x.Message
		}
	}
	e.Message = strings.Join(lines, "\n")
	return e
}

// Place rewords the faults a server found: where the file names what is wrong, its line is told.
func (f *File) Place(err error) error {
	var e *core.Error
	if !errors.As(err, &e) || len(e.Faults) == 0 {
		return err
	}
	c := *e
	c.Faults = slices.Clone(e.Faults)
	for i := range c.Faults {
		c.Faults[i].Path = f.places[c.Faults[i].Path]
	}
	_ = f.worded(&c)
	return &c
}

// each goes through a mapping's keys.
func (f *File) each(n *yaml.Node, path string, do func(key, val *yaml.Node)) {
	n = resolve(n)
	if n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.add(n, path, "expected key: value pairs")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], resolve(n.Content[i+1])
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			f.add(key, path, "a key is plain text")
		case seen[key.Value]:
			f.add(key, path, "%s is given twice", key.Value)
		default:
			seen[key.Value] = true
			do(key, val)
		}
	}
}

// resolve follows an alias once; those that continue are faults of their kind.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (f *File) unknown(key *yaml.Node, path string, known []string) {
	f.add(key, path, "there is no key %q%s", key.Value, nearest.Hint(key.Value, known))
}

func (f *File) top(n *yaml.Node) {
	f.each(n, "", func(key, val *yaml.Node) {
		switch key.Value {
		case "defaults":
			f.place("defaults", key)
			f.defaults(val)
		case "qos":
			f.each(val, "qos", f.qos)
		case "projects":
			f.each(val, "projects", func(key, val *yaml.Node) { f.project("", key, val, 0) })
		default:
			f.unknown(key, "", []string{"defaults", "qos", "projects"})
		}
	})
}

func (f *File) place(path string, n *yaml.Node) {
	f.places[path] = fmt.Sprintf("line %d, column %d", n.Line, n.Column)
}

func (f *File) defaults(n *yaml.Node) {
	f.each(n, "defaults", func(key, val *yaml.Node) {
		if key.Value != "project" {
			f.unknown(key, "defaults", []string{"project"})
			return
		}
		f.place("defaults.project", key)
		f.Policy.Defaults.Project = core.ProjectName(val.Value)
	})
}

func (f *File) qos(key, val *yaml.Node) {
	path := "qos." + key.Value
	f.place(path, key)
	q := core.QOS{Name: core.QOSName(key.Value)}
	f.each(val, path, func(key, val *yaml.Node) {
		if !set(f, qosFields, &q, path, key, val) {
			f.unknown(key, path, names(qosFields))
		}
	})
	f.Policy.QOS = append(f.Policy.QOS, q)
}

// maxDepth bounds how deep projects are in each other, for files that refer to themselves.
const maxDepth = 100

func (f *File) project(parent core.ProjectName, key, val *yaml.Node, depth int) {
	path := "projects." + key.Value
	if depth > maxDepth {
		f.add(key, path, "projects lie more than %d deep", maxDepth)
		return
	}
	if first, twice := f.places[path]; twice {
		f.add(key, path, "it is given twice, first at %s", first)
		return
	}
	f.place(path, key)
	p := core.Project{Name: core.ProjectName(key.Value), Parent: parent}
	at := len(f.Policy.Projects)
	f.Policy.Projects = append(f.Policy.Projects, p)
	f.each(val, path, func(key, val *yaml.Node) {
		switch key.Value {
		case "parent":
			if given := core.ProjectName(val.Value); parent != "" && given != parent {
				f.add(val, path, "it lies below %s, and says %s", parent, given)
			} else {
				p.Parent = given
			}
		case "members":
			f.each(val, path+".members", func(key, val *yaml.Node) { f.member(&p, path, key, val) })
		case "projects":
			f.each(val, path+".projects", func(key, val *yaml.Node) { f.project(p.Name, key, val, depth+1) })
		default:
			if !set(f, projectFields, &p, path, key, val) {
				f.unknown(key, path, names(projectFields, "parent", "members", "projects"))
			}
		}
	})
	f.Policy.Projects[at] = p
}

// member is NAME: ROLE or NAME: {role: …, shares: …, …}.
func (f *File) member(p *core.Project, path string, key, val *yaml.Node) {
	path += ".members." + key.Value
	f.place(path, key)
	m := core.Member{User: core.UserName(key.Value), Role: core.RoleUser}
	if val.Kind == yaml.ScalarNode && val.Tag != "!!null" {
		m.Role = core.Role(val.Value)
	} else {
		f.each(val, path, func(key, val *yaml.Node) {
			if !set(f, memberFields, &m, path, key, val) {
				f.unknown(key, path, names(memberFields))
			}
		})
	}
	p.Members = append(p.Members, m)
}

// set sets the field a key names; false if there is none of that name.
func set[T any](f *File, fields []field[T], v *T, path string, key, val *yaml.Node) bool {
	for _, x := range fields {
		if x.name != key.Value {
			continue
		}
		if err := read(val, x.at(v)); err != nil {
			f.add(val, path+"."+key.Value, "%v", err)
		}
		return true
	}
	return false
}

// Format writes a policy as Parse reads it; projects lie below their parents.
func Format(p *core.Policy) ([]byte, error) {
	top := mapping()
	if p.Defaults.Project != "" {
		d := mapping()
		put(d, "project", text(string(p.Defaults.Project)))
		put(top, "defaults", d)
	}
	qos := mapping()
	for i := range p.QOS {
		put(qos, string(p.QOS[i].Name), entry(qosFields, &p.QOS[i]))
	}
	put(top, "qos", qos)
	put(top, "projects", below(p.Projects, "", map[core.ProjectName]bool{}))
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(top); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func put(m *yaml.Node, key string, val *yaml.Node) {
	if val.Kind == yaml.MappingNode && len(val.Content) == 0 {
		val.Style = yaml.FlowStyle
	}
	m.Content = append(m.Content, text(key), val)
}

func entry[T any](fields []field[T], v *T) *yaml.Node {
	m := mapping()
	for _, f := range fields {
		if n := write(f.at(v)); n != nil {
			put(m, f.name, n)
		}
	}
	return m
}

// below writes the projects of a parent. Those whose parent is not there, or that are in a circle, come at the top with
// it named.
func below(all []core.Project, parent core.ProjectName, done map[core.ProjectName]bool) *yaml.Node {
	m := mapping()
	for i := range all {
		p := &all[i]
		if p.Parent != parent && (parent != "" || rooted(all, p)) || done[p.Name] {
			continue
		}
		done[p.Name] = true
		e := entry(projectFields, p)
		if p.Parent != parent {
			put(e, "parent", text(string(p.Parent)))
		}
		members := mapping()
		for k := range p.Members {
			put(members, string(p.Members[k].User), member(&p.Members[k]))
		}
		if len(members.Content) > 0 {
			put(e, "members", members)
		}
		if sub := below(all, p.Name, done); len(sub.Content) > 0 {
			put(e, "projects", sub)
		}
		put(m, string(p.Name), e)
	}
	return m
}

func rooted(all []core.Project, p *core.Project) bool {
	for range all {
		if p.Parent == "" {
			return true
		}
		i := slices.IndexFunc(all, func(o core.Project) bool { return o.Name == p.Parent })
		if i < 0 {
			return false
		}
		p = &all[i]
	}
	return false
}

func member(m *core.Member) *yaml.Node {
	e := entry(memberFields, m)
	if len(e.Content) == 2 && m.Role != "" {
		return text(string(m.Role))
	}
	return e
}

// Limits lists the limits of a QOS as a policy has them, each as "key=value".
func Limits(q *core.QOS) []string {
	var out []string
	for _, f := range qosFields {
		if !strings.HasPrefix(f.name, "grp_") && !strings.HasPrefix(f.name, "max_") &&
			!strings.HasPrefix(f.name, "min_") && !strings.HasSuffix(f.name, "_hours") {
			continue
		}
		n := write(f.at(q))
		if n == nil {
			continue
		}
		value := n.Value
		for i := 0; i+1 < len(n.Content); i += 2 {
			value += "," + n.Content[i].Value + "=" + n.Content[i+1].Value
		}
		out = append(out, f.name+"="+strings.TrimPrefix(value, ","))
	}
	return out
}
