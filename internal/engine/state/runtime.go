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
		return invalid("runtime %q is not known here; there are: %s, %s", spec.Runtime, core.RuntimeProcess, core.RuntimeContainer)
	case c == nil && spec.Runtime == core.RuntimeContainer && !said:
		return invalid("project %s runs in containers: name an image, or say runtime %s", spec.Project, core.RuntimeProcess)
	case c == nil && spec.Runtime == core.RuntimeContainer:
		return invalid("a container needs an image")
	case c == nil:
		return nil
	case spec.Runtime != core.RuntimeContainer:
		return invalid("an image was named, but the runtime is %s", spec.Runtime)
	case c.Bundle != "" && (c.Image != "" || !c.Submitter):
		return invalid("a bundle is run without an image, as its submitter")
	case c.Bundle != "" && (!path.IsAbs(c.Bundle) || path.Clean(c.Bundle) != c.Bundle):
		return invalid("bundle %q: its path must be absolute, without . or .. in it", c.Bundle)
	case c.Bundle == "" && (c.Image == "" || strings.ContainsAny(c.Image, " \t\n?#")):
		return invalid("%q is no name of an image", c.Image)
	case c.Privileged && c.Submitter:
		return invalid("a container of the submitting user cannot be privileged")
	}
	// Root inside is root on the node for whatever of the node is shown: that would make everybody root there.
	if !by.Admin && !c.Submitter && (c.Privileged || len(c.Mounts) > 0) {
		return core.Errorf(core.Denied, "only an administrator's containers may be privileged or mount paths of their node").Because("access_denied")
	}
	for _, m := range c.Mounts {
		if !path.IsAbs(m.Source) || !path.IsAbs(m.Target) || path.Clean(m.Source) != m.Source || path.Clean(m.Target) != m.Target {
			return invalid("mount %s:%s: both paths must be absolute, without . or .. in them", m.Source, m.Target)
		}
		if first, _, _ := strings.Cut(m.Target[1:], "/"); first == "" || first == "proc" || first == "sys" || first == ".bireme" {
			return invalid("mount %s:%s: nothing is mounted over /, /proc, /sys or /.bireme", m.Source, m.Target)
		}
	}
	for _, p := range c.Ports {
		if p.Container < 1 || p.Container > 65535 || p.Local < 0 || p.Local > 65535 {
			return invalid("port %d:%d: ports go from 1 to 65535", p.Local, p.Container)
		}
	}
	return nil
}
