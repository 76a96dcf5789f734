package speccheck

import (
	"path"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Runtime checks that a job's runtime and its container go together; said: the submission named the runtime.
func Runtime(spec *core.Spec, said bool) error {
	c := spec.More().Container
	invalid := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, format, args...).Because("invalid_runtime")
	}
	switch {
	case spec.Runtime != core.RuntimeProcess && spec.Runtime != core.RuntimeContainer:
		return invalid("unknown runtime %q; expected %s or %s", spec.Runtime, core.RuntimeProcess,
			core.RuntimeContainer)
	case c == nil && spec.Runtime == core.RuntimeContainer && !said:
		return invalid("project %s runs in containers: give an image, or set runtime to %s", spec.Project,
			core.RuntimeProcess)
	case c == nil && spec.Runtime == core.RuntimeContainer:
		return invalid("a container needs an image")
	case c != nil && spec.Runtime != core.RuntimeContainer:
		return invalid("an image was given, but the runtime is %s", spec.Runtime)
	}
	return nil
}

// Container checks what is asked of a container. Root inside is root on the node for whatever of the node it is
// shown; so rules say what of it anybody may have. There are none for administrators, nor for containers that are their
// submitters inside, too.
func Container(c *core.Container, rules *core.ContainerRules) error {
	invalid := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, format, args...).Because("invalid_runtime")
	}
	switch {
	case c.Bundle != "" && (c.Image != "" || !c.Submitter):
		return invalid("a bundle cannot be combined with an image or another user")
	case c.Bundle != "" && (!path.IsAbs(c.Bundle) || path.Clean(c.Bundle) != c.Bundle):
		return invalid("bundle %q: its path must be absolute, without . or .. in it", c.Bundle)
	case c.Bundle == "" && (c.Image == "" || strings.ContainsAny(c.Image, " \t\n?#")):
		return invalid("%q is not an image name", c.Image)
	case c.Privileged && c.Submitter:
		return invalid("a container of the submitting user cannot be privileged")
	case rules != nil && c.Privileged && !rules.Privileged:
		return core.Errorf(core.Denied,
			"only containers of administrators and of trusted projects may be privileged, unless step.privileged is "+
				"set; an administrator makes a project trusted: bireme projects set NAME --trusted").Because("access_denied")
	}
	for _, m := range c.Mounts {
		if !path.IsAbs(m.Source) || !path.IsAbs(m.Target) || path.Clean(m.Source) != m.Source ||
			path.Clean(m.Target) != m.Target {
			return invalid("mount %s:%s: both paths must be absolute, without . or .. in them", m.Source, m.Target)
		}
		if first, _, _ := strings.Cut(m.Target[1:], "/"); first == "" || first == "proc" || first == "sys" ||
			first == ".bireme" {
			return invalid("mount %s:%s: the target must not be /, /proc, /sys or /.bireme", m.Source, m.Target)
		}
		if rules != nil && rules.Below(m.Source) == "" {
			what := "the setting step.volumes names paths for everybody"
			if len(rules.Volumes) > 0 {
				what = "others may mount what is below " + strings.Join(rules.Volumes, ", ")
			}
			return core.Errorf(core.Denied, "mount %s: only containers of administrators and of trusted projects may mount "+
				"any path of their node; %s", m.Source, what).Because("access_denied")
		}
	}
	for _, p := range c.Ports {
		if p.Container < 1 || p.Container > 65535 || p.Local < 0 || p.Local > 65535 {
			return invalid("port %d:%d: must be from 1 to 65535", p.Local, p.Container)
		}
	}
	return nil
}
