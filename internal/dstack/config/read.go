package config

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core/nearest"
)

var kinds = []string{
	string(KindTask), string(KindDevEnvironment), string(KindService), string(KindFleet), string(KindVolume),
	string(KindGateway), string(KindPreset),
}

// Read reads a configuration file in YAML. The error is Faults: everything that is wrong with it.
func Read(src []byte) (*Configuration, error) {
	root, f := parseYAML(src)
	if f != nil {
		return nil, Faults{*f}
	}
	r := &reader{}
	return r.result(root)
}

// ReadJSON reads a configuration of a request, in the form that clients send, old ones included. The error is Faults.
// Keys that are not known are taken where they say nothing.
func ReadJSON(src []byte) (*Configuration, error) {
	root, f := parseJSON(src)
	if f != nil {
		return nil, Faults{*f}
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

func (r *reader) result(root *node) (*Configuration, error) {
	c := r.configuration(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// configuration reads the mapping that the key `type` tells the kind of.
func (r *reader) configuration(n *node) *Configuration {
	if n.form != isMapping {
		r.fail(n, nil, typeMapping, "expected a mapping that starts with `type: task`, not %s", n.describe())
		return nil
	}
	word := n.get("type")
	switch {
	case word == nil:
		r.fail(n, nil, typeNoTag, "type is missing; it is one of %s", strings.Join(kinds, ", "))
		return nil
	case word.form != isText || !slices.Contains(kinds, word.text):
		r.fail(word, nil, typeTag, "type: %s is not a configuration type%s; it is one of %s", word.describe(),
			nearest.Hint(word.text, kinds), strings.Join(kinds, ", "))
		return nil
	}
	c := &Configuration{Kind: Kind(word.text), root: n}
	f := &fields{r: r, n: n, p: &path{name: word.text}}
	f.get("type")
	switch c.Kind {
	case KindTask:
		c.Task = r.task(f)
	case KindDevEnvironment:
		c.DevEnvironment = r.devEnvironment(f)
	case KindService:
		c.Service = r.service(f)
	case KindFleet:
		c.Fleet = r.fleet(f)
	case KindVolume:
		c.Volume = r.volume(f)
	case KindGateway:
		c.Gateway = r.gateway(f)
	case KindPreset:
		c.Preset = r.preset(f)
	}
	if c.Kind.IsRun() {
		c.Additions = r.additions(f, &c.Policy().Tags)
	}
	f.done()
	if c.Kind.IsRun() && len(r.faults) == 0 {
		r.checkVariables(c)
	}
	return c
}

// ReadProfiles reads the file profiles.yml. The error is Faults.
func ReadProfiles(src []byte) (*Profiles, error) {
	root, f := parseYAML(src)
	if f != nil {
		return nil, Faults{*f}
	}
	r := &reader{}
	out := &Profiles{}
	if m := r.mapping(root, nil, "a mapping with profiles"); m != nil {
		n, p := m.need("profiles")
		if n != nil {
			r.list(n, p, func(n *node, p *path) { out.Profiles = append(out.Profiles, r.profile(n, p)) })
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
	root, f := parseYAML(src)
	return f == nil && root.form == isMapping && root.get("profiles") != nil && root.get("type") == nil
}

// ReadProfileJSON reads a profile of a request. The error is Faults.
func ReadProfileJSON(src []byte) (*Profile, error) {
	root, f := parseJSON(src)
	if f != nil {
		return nil, Faults{*f}
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

func (r *reader) profile(n *node, at *path) (p Profile) {
	f := r.mapping(n, at, "a mapping of profile properties")
	if f == nil {
		return p
	}
	p.Policy = r.policy(f)
	if f.has("name") {
		p.Name = f.needText("name")
	} else {
		f.get("name")
	}
	p.Default = f.flag("default", false)
	f.done()
	return p
}
