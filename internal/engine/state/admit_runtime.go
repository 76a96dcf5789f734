package state

import (
	"path"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// admitRuntime fixes what the job runs in and checks what was asked of it.
func (s *State) admitRuntime(by core.Identity, spec *core.Spec) error {
	c := spec.More().Container
	said := spec.Runtime != ""
	switch {
	case said:
	case c != nil:
		spec.Runtime = core.RuntimeContainer
	default:
		spec.Runtime = core.RuntimeIn(spec.Project, s.view.Project)
	}
	invalid := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, format, args...).Because("invalid_runtime")
	}
	switch {
	case spec.Runtime != core.RuntimeProcess && spec.Runtime != core.RuntimeContainer:
		return invalid("runtime %q is not known here; there are: %s, %s", spec.Runtime, core.RuntimeProcess,
			core.RuntimeContainer)
	case c == nil && spec.Runtime == core.RuntimeContainer && !said:
		return invalid("project %s runs in containers: name an image, or say runtime %s", spec.Project, core.RuntimeProcess)
	case c == nil && spec.Runtime == core.RuntimeContainer:
		return invalid("a container needs an image")
	case c == nil:
		return nil
	case spec.Runtime != core.RuntimeContainer:
		return invalid("an image was named, but the runtime is %s", spec.Runtime)
	}
	rules := &s.cfg.Containers
	if by.Admin || c.Submitter {
		rules = nil
	}
	if bounded := rules != nil; c.Bounded != bounded {
		extra, box := *spec.Extra, *c
		box.Bounded, extra.Container = bounded, &box
		spec.Extra, c = &extra, &box
	}
	return CheckContainer(c, rules)
}

// CheckContainer checks what is asked of a container. Root inside is root on the node for whatever of the node it is
// shown; so rules say what of it anybody may have. There are none for administrators, nor for containers that are their
// submitters inside, too.
func CheckContainer(c *core.Container, rules *core.ContainerRules) error {
	invalid := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, format, args...).Because("invalid_runtime")
	}
	switch {
	case c.Bundle != "" && (c.Image != "" || !c.Submitter):
		return invalid("a bundle is run without an image, as its submitter")
	case c.Bundle != "" && (!path.IsAbs(c.Bundle) || path.Clean(c.Bundle) != c.Bundle):
		return invalid("bundle %q: its path must be absolute, without . or .. in it", c.Bundle)
	case c.Bundle == "" && (c.Image == "" || strings.ContainsAny(c.Image, " \t\n?#")):
		return invalid("%q is no name of an image", c.Image)
	case c.Privileged && c.Submitter:
		return invalid("a container of the submitting user cannot be privileged")
	case rules != nil && c.Privileged && !rules.Privileged:
		return core.Errorf(core.Denied,
			"only an administrator's containers may be privileged; "+
				"the setting step.privileged would let everybody's").Because("access_denied")
	}
	for _, m := range c.Mounts {
		if !path.IsAbs(m.Source) || !path.IsAbs(m.Target) || path.Clean(m.Source) != m.Source ||
			path.Clean(m.Target) != m.Target {
			return invalid("mount %s:%s: both paths must be absolute, without . or .. in them", m.Source, m.Target)
		}
		if first, _, _ := strings.Cut(m.Target[1:], "/"); first == "" || first == "proc" || first == "sys" ||
			first == ".bireme" {
			return invalid("mount %s:%s: nothing is mounted over /, /proc, /sys or /.bireme", m.Source, m.Target)
		}
		if rules != nil && rules.Below(m.Source) == "" {
			what := "the setting step.volumes names paths for everybody"
			if len(rules.Volumes) > 0 {
				what = "others may mount what is below " + strings.Join(rules.Volumes, ", ")
			}
			return core.Errorf(core.Denied, "mount %s: only an administrator's containers may mount any path of their node; %s",
				m.Source, what).Because("access_denied")
		}
	}
	for _, p := range c.Ports {
		if p.Container < 1 || p.Container > 65535 || p.Local < 0 || p.Local > 65535 {
			return invalid("port %d:%d: ports go from 1 to 65535", p.Local, p.Container)
		}
	}
	return nil
}
