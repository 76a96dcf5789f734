package config

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core/nearest"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

var kinds = []string{
	string(KindTask), string(KindDevEnvironment), string(KindService), string(KindFleet), string(KindVolume),
	string(KindGateway), string(KindPreset),
}

// Read reads a configuration file in YAML. The error is Faults: everything that is wrong with it.
func Read(src []byte) (*Configuration, error) {
	root, f := tree.ParseYAML(src)
	if f != nil {
		return nil, syntax(f)
	}
	r := &reader{}
	return r.result(root)
}

// ReadNamed is Read, and what check says of the name that the configuration gives itself is among the faults.
func ReadNamed(src []byte, check func(kind Kind, name string) error) (*Configuration, error) {
	root, f := tree.ParseYAML(src)
	if f != nil {
		return nil, syntax(f)
	}
	r := &reader{check: check}
	return r.result(root)
}

// ReadJSON reads a configuration of a request, in the form that clients send, old ones included. The error is Faults.
// Keys that are not known are taken where they say nothing.
func ReadJSON(src []byte) (*Configuration, error) {
	root, f := tree.ParseJSON(src)
	if f != nil {
		return nil, syntax(f)
	}
	r := &reader{lenient: true, request: true}
	return r.result(root)
}

// UnmarshalJSON is ReadJSON.
func (c *Configuration) UnmarshalJSON(src []byte) error {
	got, err := ReadJSON(src)
	if err == nil {
		*c = *got
	}
	return err
}

func (r *reader) result(root *tree.Node) (*Configuration, error) {
	c := r.configuration(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// configuration reads the mapping that the key `type` tells the kind of.
func (r *reader) configuration(n *tree.Node) *Configuration {
	if n.Form != tree.Mapping {
		r.fail(n, nil, typeMapping, "expected a mapping that starts with `type: task`, not %s", n.Describe())
		return nil
	}
	word := n.Get("type")
	switch {
	case word == nil:
		r.fail(n, nil, typeNoTag, "type is missing; it is one of %s", strings.Join(kinds, ", "))
		return nil
	case word.Form != tree.Text || !slices.Contains(kinds, word.Text):
		r.fail(word, nil, typeTag, "type: %s is not a configuration type%s; it is one of %s", word.Describe(),
			nearest.Hint(word.Text, kinds), strings.Join(kinds, ", "))
		return nil
	}
	c := &Configuration{Kind: Kind(word.Text), root: n}
	f := &fields{r: r, n: n, p: &path{name: word.Text}}
	f.get("type")
	run := runReader{policyReader{resourceReader{r}}}
	switch c.Kind {
	case KindTask:
		c.Task = run.task(f)
	case KindDevEnvironment:
		c.DevEnvironment = run.devEnvironment(f)
	case KindService:
		c.Service = serviceReader{run}.service(f)
	case KindFleet:
		c.Fleet = fleetReader{run}.fleet(f)
	case KindVolume:
		c.Volume = cloudReader{serviceReader{run}}.volume(f)
	case KindGateway:
		c.Gateway = cloudReader{serviceReader{run}}.gateway(f)
	case KindPreset:
		c.Preset = cloudReader{serviceReader{run}}.preset(f)
	}
	if c.Kind.IsRun() {
		c.Additions = additionReader{r}.additions(f, &c.Policy().Tags)
	}
	if v := n.Get("name"); r.check != nil && v != nil && c.Name() != "" {
		if err := r.check(c.Kind, c.Name()); err != nil {
			r.fail(v, f.p.key("name"), typeValue, "%s", err)
		}
	}
	f.done()
	if c.Kind.IsRun() && len(r.faults) == 0 {
		r.checkVariables(c)
	}
	return c
}

// ReadProfiles reads the file profiles.yml. The error is Faults.
func ReadProfiles(src []byte) (*Profiles, error) {
	root, f := tree.ParseYAML(src)
	if f != nil {
		return nil, syntax(f)
	}
	r := &reader{}
	out := &Profiles{}
	if m := r.mapping(root, nil, "a mapping with profiles"); m != nil {
		n, p := m.need("profiles")
		if n != nil {
			r.list(n, p, func(n *tree.Node, p *path) { out.Profiles = append(out.Profiles, r.profile(n, p)) })
		}
		m.done()
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// IsProfiles reports whether a file is a profiles.yml: a mapping with `profiles` and no `type`.
func IsProfiles(src []byte) bool {
	root, f := tree.ParseYAML(src)
	return f == nil && root.Form == tree.Mapping && root.Get("profiles") != nil && root.Get("type") == nil
}

// ReadProfileJSON reads a profile of a request. The error is Faults.
func ReadProfileJSON(src []byte) (*Profile, error) {
	root, f := tree.ParseJSON(src)
	if f != nil {
		return nil, syntax(f)
	}
	r := &reader{lenient: true, request: true}
	p := r.profile(root, nil)
	if err := r.err(); err != nil {
		return nil, err
	}
	return &p, nil
}

// UnmarshalJSON is ReadProfileJSON.
func (p *Profile) UnmarshalJSON(src []byte) error {
	got, err := ReadProfileJSON(src)
	if err == nil {
		*p = *got
	}
	return err
}

func (r *reader) profile(n *tree.Node, at *path) (p Profile) {
	f := r.mapping(n, at, "a mapping of profile properties")
	if f == nil {
		return p
	}
	p.Policy = policyReader{resourceReader{r}}.policy(f)
	if f.has("name") {
		p.Name = f.needText("name")
	} else {
		f.get("name")
	}
	p.Default = f.flag("default", false)
	f.done()
	return p
}

// syntax is the fault of a text that is no YAML or JSON at all.
func syntax(e *tree.Error) Faults {
	return Faults{{Line: e.Line, Column: e.Column, Message: e.Message, Type: "json_invalid"}}
}
