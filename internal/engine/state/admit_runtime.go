package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/speccheck"
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
		spec.Runtime = core.RuntimeIn(spec.Project, s.rec.Project)
	}
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
	case c == nil:
		return nil
	case spec.Runtime != core.RuntimeContainer:
		return invalid("an image was given, but the runtime is %s", spec.Runtime)
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
	return speccheck.Container(c, rules)
}
