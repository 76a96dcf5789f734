package dstack

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// env reads both forms: a list of NAME=VALUE, NAME= and NAME, or a mapping.
func (r *reader) env(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.SequenceNode:
		items, _ := r.items(n, path)
		seen := map[string]bool{}
		for i, item := range items {
			p := index(path, i)
			s, ok := r.text(item, p)
			if !ok {
				continue
			}
			name, value, has := strings.Cut(s, "=")
			if seen[name] {
				r.add(item, p, "%s is listed twice", name)
				continue
			}
			seen[name] = true
			r.variable(variable{name: name, value: value, bare: !has, node: item}, p)
		}
	case yaml.MappingNode:
		for _, e := range r.entries(n, path) {
			p := join(path, e.key.Value)
			if isNull(e.value) {
				r.add(e.value, p, "has no value; to take the caller's use the list form: env: [%s]", clip(e.key.Value))
				continue
			}
			if value, ok := r.text(e.value, p); ok {
				r.variable(variable{name: e.key.Value, value: value, node: e.value}, p)
			}
		}
	default:
		r.add(n, path, "must be a list of NAME=VALUE or a mapping, not %s", kindOf(n))
	}
}

func (r *reader) variable(v variable, path string) {
	if !envForm().MatchString(v.name) {
		r.add(v.node, path, "%q is not a variable name: use letters, digits and _, and no digit first", clip(v.name))
		return
	}
	if r.fleet != nil {
		r.fleet.env = append(r.fleet.env, v)
		return
	}
	r.task.Env = append(r.task.Env, v)
}

// environment completes variables of a file: those of extra ("NAME=VALUE", or a bare "NAME") win over the file's, and
// bare ones are looked up. What has no value is a fault.
func environment(f *faults, vars []variable, extra []string, lookup func(string) (string, bool)) []string {
	vars = append([]variable(nil), vars...)
	for _, s := range extra {
		name, value, has := strings.Cut(s, "=")
		if !envForm().MatchString(name) {
			f.add(nil, "-e "+clip(s), "%q is not a variable name: use letters, digits and _, and no digit first", clip(name))
			continue
		}
		v := variable{name: name, value: value, bare: !has}
		replaced := false
		for i := range vars {
			if vars[i].name == name {
				vars[i], replaced = v, true
			}
		}
		if !replaced {
			vars = append(vars, v)
		}
	}
	env := make([]string, 0, len(vars))
	for _, v := range vars {
		value := v.value
		if v.bare {
			got, ok := lookup(v.name)
			if !ok {
				f.add(v.node, "env", "%s has no value: set it in your environment or give -e %s=VALUE", v.name, v.name)
				continue
			}
			value = got
		} else if v.node != nil { // what is given by -e or taken from the caller is not interpolated
			got, err := interpolate(value, nil)
			if err != nil {
				f.add(v.node, "env."+v.name, "%s", err.Error())
				continue
			}
			value = got
		}
		env = append(env, v.name+"="+value)
	}
	return env
}
