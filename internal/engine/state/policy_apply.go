package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// apply replaces what a policy names, in one go: all of it is checked first, as it would be afterwards.
func (in *ApplyPolicy) apply(s *State) (*core.PolicyDiff, error) {
	if err := adminOnly(in.By, "changes the policy"); err != nil {
		return nil, err
	}
	b := s.proposedPolicy(in)
	s.checkProposedPolicy(b, in)
	if err := b.err(); err != nil {
		return nil, err
	}
	d := &core.PolicyDiff{Changes: s.policyDifferences(b)}
	d.Exceeded = s.newExcesses(b)
	if in.Dry {
		return d, nil
	}
	if len(d.Exceeded) > 0 && !in.Force {
		return nil, errExcess(d.Exceeded)
	}
	s.replacePolicy(b)
	d.Applied = true
	return d, nil
}

// proposedPolicy is the policy as it would be.
func (s *State) proposedPolicy(in *ApplyPolicy) *policySet {
	b := s.currentPolicy()
	b.qos, b.projects = maps.Clone(b.qos), maps.Clone(b.projects)
	if in.Prune {
		clear(b.qos)
		maps.DeleteFunc(b.projects, func(n core.ProjectName, _ *core.Project) bool { return n != s.cfg.DefaultProject })
	}
	for i := range in.Policy.QOS {
		q := in.Policy.QOS[i]
		if _, twice := b.qos[q.Name]; twice &&
			slices.ContainsFunc(in.Policy.QOS[:i], func(o core.QOS) bool { return o.Name == q.Name }) {
			b.addFault("qos."+string(q.Name), "invalid_qos", "QOS %s is given twice", q.Name)
		}
		q.Created = s.view.now
		if old, ok := s.view.qos[q.Name]; ok {
			q.Created = old.Created
		}
		b.qos[q.Name] = &q
	}
	for i := range in.Policy.Projects {
		p := in.Policy.Projects[i]
		if slices.ContainsFunc(in.Policy.Projects[:i], func(o core.Project) bool { return o.Name == p.Name }) {
			b.addFault("projects."+string(p.Name), "invalid_project", "project %s is given twice", p.Name)
		}
		old, ok := s.view.projects[p.Name]
		p.Created = s.view.now
		members := map[core.UserName]core.Member{}
		if ok {
			p.Created = old.Created
			for _, m := range old.Members {
				if !in.Prune {
					members[m.User] = m
				}
			}
		}
		named := map[core.UserName]bool{}
		for _, m := range p.Members {
			if named[m.User] {
				b.addFault(fmt.Sprintf("projects.%s.members.%s", p.Name, m.User), "invalid_user", "%s is in project %s twice",
					m.User, p.Name)
			}
			if m.Role == core.RoleNone {
				m.Role = core.RoleUser
			}
			named[m.User], members[m.User] = true, m
		}
		p.Members = sorted(members)
		b.projects[p.Name] = &p
	}
	return b
}

func (s *State) checkProposedPolicy(b *policySet, in *ApplyPolicy) {
	if d := in.Policy.Defaults.Project; d != "" && d != s.cfg.DefaultProject {
		b.addFault("defaults.project", "invalid_project",
			"the default project is %s by the settings (accounting.default_project); a policy does not change it",
			s.cfg.DefaultProject)
	}
	for _, q := range sorted(b.qos) {
		b.checkQOS(q)
	}
	for _, p := range sorted(b.projects) {
		b.checkProject(p)
	}
	for _, q := range sorted(s.view.qos) {
		if _, stays := b.qos[q.Name]; stays {
			continue
		}
		if who := s.findQOSReference(b, q.Name); who != "" {
			b.addFault("qos."+string(q.Name), "qos_in_use", "QOS %s cannot go: %s names it", q.Name, who)
		}
	}
	for _, p := range sorted(s.view.projects) {
		if _, stays := b.projects[p.Name]; stays {
			continue
		}
		if why := s.findProjectReference(b, p.Name); why != "" {
			b.addFault("projects."+string(p.Name), "project_in_use", "project %s cannot go: %s", p.Name, why)
		}
	}
}

// replacePolicy makes a checked policy the one that holds. Entries that stay as they are are not written.
func (s *State) replacePolicy(b *policySet) {
	for _, p := range sorted(s.view.projects) {
		if _, stays := b.projects[p.Name]; !stays {
			s.deleteProject(p.Name)
		}
	}
	for _, q := range sorted(s.view.qos) {
		if _, stays := b.qos[q.Name]; !stays {
			s.deleteQOS(q.Name)
		}
	}
	for _, q := range sorted(b.qos) {
		if old, ok := s.view.qos[q.Name]; !ok || len(fieldChanges(old, q)) > 0 {
			s.putQOSRecord(q)
		}
	}
	for _, p := range sorted(b.projects) {
		if old, ok := s.view.projects[p.Name]; !ok || len(fieldChanges(old, p)) > 0 {
			s.putProjectRecord(p)
		}
	}
}

// policyDifferences lists what a policy would change, in order of names.
func (s *State) policyDifferences(b *policySet) []core.PolicyChange {
	out := []core.PolicyChange{}
	add := func(was, is any, isNew bool, format string, args ...any) {
		if c, any := policyChange(was, is, isNew, fmt.Sprintf(format, args...)); any {
			out = append(out, c)
		}
	}
	for _, q := range sorted(b.qos) {
		old, ok := s.view.qos[q.Name]
		add(old, q, !ok, "qos %s", q.Name)
	}
	for _, q := range sorted(s.view.qos) {
		if _, stays := b.qos[q.Name]; !stays {
			add(q, nil, false, "qos %s", q.Name)
		}
	}
	for _, p := range sorted(b.projects) {
		old, ok := s.view.projects[p.Name]
		if !ok {
			old = &core.Project{}
		}
		add(withoutMembers(old), withoutMembers(p), !ok, "project %s", p.Name)
		for _, m := range p.Members {
			was := old.Member(m.User)
			add(was, m, was.Role == core.RoleNone, "member %s of %s", m.User, p.Name)
		}
		for _, m := range old.Members {
			if p.Member(m.User).Role == core.RoleNone {
				add(m, nil, false, "member %s of %s", m.User, p.Name)
			}
		}
	}
	for _, p := range sorted(s.view.projects) {
		if _, stays := b.projects[p.Name]; !stays {
			add(p, nil, false, "project %s", p.Name)
		}
	}
	return out
}

// policyChange tells what becomes of an entry; false: nothing. A nil is stands for one that goes.
func policyChange(was, is any, isNew bool, what string) (core.PolicyChange, bool) {
	c := core.PolicyChange{Op: "change", What: what}
	switch {
	case is == nil:
		c.Op = "remove"
		return c, true
	case isNew:
		c.Op = "add"
	}
	c.Fields = fieldChanges(was, is)
	return c, isNew || len(c.Fields) > 0
}

// withoutMembers is a project without its members, which are told of one by one.
func withoutMembers(p *core.Project) *core.Project {
	c := *p
	c.Members = nil
	return &c
}

// fieldChanges compares two records by the fields of their JSON; the order is theirs by name.
func fieldChanges(was, is any) []core.FieldChange {
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
	for _, own := range []string{"name", "user", "created"} { // not settings
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
