package policyset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
)

// Propose is the policy as it would be.
func (old *Set) Propose(policy *core.Policy, prune bool, keep core.ProjectName, now core.Time) *Set {
	b := &Set{QOS: old.QOS, Projects: old.Projects, Users: old.Users}
	b.QOS, b.Projects = maps.Clone(b.QOS), maps.Clone(b.Projects)
	if prune {
		clear(b.QOS)
		maps.DeleteFunc(b.Projects, func(n core.ProjectName, _ *core.Project) bool { return n != keep })
	}
	for i := range policy.QOS {
		q := policy.QOS[i]
		if _, twice := b.QOS[q.Name]; twice &&
			slices.ContainsFunc(policy.QOS[:i], func(o core.QOS) bool { return o.Name == q.Name }) {
			b.AddFault("qos."+string(q.Name), "invalid_qos", "QOS %s is listed twice", q.Name)
		}
		q.Created = now
		if was, ok := old.QOS[q.Name]; ok {
			q.Created, q.ID = was.Created, was.ID
		}
		b.QOS[q.Name] = &q
	}
	for i := range policy.Projects {
		p := policy.Projects[i]
		if slices.ContainsFunc(policy.Projects[:i], func(o core.Project) bool { return o.Name == p.Name }) {
			b.AddFault("projects."+string(p.Name), "invalid_project", "project %s is listed twice", p.Name)
		}
		was, ok := old.Projects[p.Name]
		p.Created = now
		members := map[core.UserName]core.Member{}
		if ok {
			p.Created, p.Owner, p.Public, p.Templates = was.Created, was.Owner, was.Public, was.Templates
			p.ID = was.ID
			for _, m := range was.Members {
				if !prune {
					members[m.User] = m
				}
			}
		}
		listed := map[core.UserName]bool{}
		for _, m := range p.Members {
			if listed[m.User] {
				b.AddFault(fmt.Sprintf("projects.%s.members.%s", p.Name, m.User), "invalid_user", "%s is in project %s twice",
					m.User, p.Name)
			}
			if m.Role == core.RoleNone {
				m.Role = core.RoleUser
			}
			if m.ID = 0; ok {
				m.ID = was.Member(m.User).ID
			}
			listed[m.User], members[m.User] = true, m
		}
		p.Members = named.Sorted(members)
		b.Projects[p.Name] = &p
	}
	return b
}

// Differences lists what a policy would change, in order of names.
func (b *Set) Differences(was *Set) []core.PolicyChange {
	out := []core.PolicyChange{}
	add := func(old, is any, isNew bool, format string, args ...any) {
		if c, any := Change(old, is, isNew, fmt.Sprintf(format, args...)); any {
			out = append(out, c)
		}
	}
	for _, q := range named.Sorted(b.QOS) {
		old, ok := was.QOS[q.Name]
		add(old, q, !ok, "qos %s", q.Name)
	}
	for _, q := range named.Sorted(was.QOS) {
		if _, stays := b.QOS[q.Name]; !stays {
			add(q, nil, false, "qos %s", q.Name)
		}
	}
	for _, p := range named.Sorted(b.Projects) {
		old, ok := was.Projects[p.Name]
		if !ok {
			old = &core.Project{}
		}
		add(withoutMembers(old), withoutMembers(p), !ok, "project %s", p.Name)
		for _, m := range p.Members {
			has := old.Member(m.User)
			add(has, m, has.Role == core.RoleNone, "member %s of %s", m.User, p.Name)
		}
		for _, m := range old.Members {
			if p.Member(m.User).Role == core.RoleNone {
				add(m, nil, false, "member %s of %s", m.User, p.Name)
			}
		}
	}
	for _, p := range named.Sorted(was.Projects) {
		if _, stays := b.Projects[p.Name]; !stays {
			add(p, nil, false, "project %s", p.Name)
		}
	}
	return out
}

// Change tells what becomes of an entry; false: nothing. A nil is stands for one that goes.
func Change(was, is any, isNew bool, what string) (core.PolicyChange, bool) {
	c := core.PolicyChange{Op: "change", What: what}
	switch {
	case is == nil:
		c.Op = "remove"
		return c, true
	case isNew:
		c.Op = "add"
	}
	c.Fields = FieldChanges(was, is)
	return c, isNew || len(c.Fields) > 0
}

// withoutMembers is a project without its members, which are told of one by one.
func withoutMembers(p *core.Project) *core.Project {
	c := *p
	c.Members = nil
	return &c
}

// FieldChanges compares two records by the fields of their JSON; the order is theirs by name.
func FieldChanges(was, is any) []core.FieldChange {
	a, b := fieldTexts(was), fieldTexts(is)
	names := maps.Clone(a)
	maps.Copy(names, b)
	var out []core.FieldChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			out = append(out, core.FieldChange{Name: name, Was: a[name], Is: b[name]})
		}
	}
	return out
}

func fieldTexts(v any) map[string]string {
	out := map[string]string{}
	data, err := json.Marshal(v)
	var tree any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	core.Assert(err == nil, "a policy record has no JSON: %v", err)
	flatten("", tree, out)
	for _, own := range []string{"name", "user", "created", "id"} { // not settings
		delete(out, own)
	}
	return out
}

// flatten names fields by their own name: what lies in "assoc" and "limits" is told as if it lay outside.
func flatten(name string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			switch {
			case k == "assoc" || k == "limits":
				flatten(name, x, out)
			case name != "":
				flatten(name+"."+k, x, out)
			default:
				flatten(k, x, out)
			}
		}
	case []any:
		words := make([]string, len(v))
		for i, x := range v {
			if words[i] = fmt.Sprint(x); name == "members" {
				text, _ := json.Marshal(x) // it came from JSON
				words[i] = string(text)
			}
		}
		out[name] = strings.Join(words, ",")
	case nil:
	case float64:
		text, _ := json.Marshal(v)
		out[name] = string(text)
	default:
		out[name] = fmt.Sprint(v)
	}
}
