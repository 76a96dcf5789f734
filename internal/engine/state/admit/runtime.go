package admit

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// Runtime fixes what the job runs in and checks what was asked of it. Containers may have anything of their nodes
// whose project an administrator trusts, or where nobody else's jobs can be.
func (a *Admission) Runtime(by core.Identity, spec *core.Spec) error {
	c := spec.More().Container
	said := spec.Runtime != ""
	switch {
	case said:
	case c != nil:
		spec.Runtime = core.RuntimeContainer
	default:
		spec.Runtime = core.RuntimeIn(spec.Project, a.rec.Project)
	}
	if err := speccheck.Runtime(spec, said); err != nil || c == nil {
		return err
	}
	rules := &a.cfg.Containers
	if p, ok := a.rec.Project(spec.Project); by.Admin || c.Submitter || ok && p.Trusted ||
		a.cluster.OwnedBy(spec.Project, spec.Partition) {
		rules = nil
	}
	if bounded := rules != nil; c.Bounded != bounded {
		extra, box := *spec.Extra, *c
		box.Bounded, extra.Container = bounded, &box
		spec.Extra, c = &extra, &box
	}
	return speccheck.Container(c, rules)
}
