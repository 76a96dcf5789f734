package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// admitRuntime fixes what the job runs in and checks what was asked of it. Containers may have anything of their nodes
// whose project an administrator trusts, or where nobody else's jobs can be.
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
	if err := speccheck.Runtime(spec, said); err != nil || c == nil {
		return err
	}
	rules := &s.cfg.Containers
	if p, ok := s.rec.Project(spec.Project); by.Admin || c.Submitter || ok && p.Trusted ||
		s.cluster.OwnedBy(spec.Project, spec.Partition) {
		rules = nil
	}
	if bounded := rules != nil; c.Bounded != bounded {
		extra, box := *spec.Extra, *c
		box.Bounded, extra.Container = bounded, &box
		spec.Extra, c = &extra, &box
	}
	return speccheck.Container(c, rules)
}
