package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/policyset"
)

// apply replaces what a policy names, in one go: all of it is checked first, as it would be afterwards.
func (in *ApplyPolicy) apply(s *State) (*core.PolicyDiff, error) {
	if err := people.AdminOnly(in.By, "may change the policy"); err != nil {
		return nil, err
	}
	now := s.currentPolicy()
	b := now.Propose(&in.Policy, in.Prune, s.cfg.DefaultProject, s.rec.Now())
	in.check(s, b)
	if err := b.Err(); err != nil {
		return nil, err
	}
	d := &core.PolicyDiff{Changes: b.Differences(now)}
	d.Exceeded = b.NewExcesses(now, s.rec.Jobs())
	if in.Dry {
		return d, nil
	}
	if len(d.Exceeded) > 0 && !in.Force {
		return nil, policyset.ErrExceeded(d.Exceeded)
	}
	s.replacePolicy(b)
	d.Applied = true
	return d, nil
}

// replacePolicy makes a checked policy the one that holds. Entries that stay as they are are not written.
func (s *State) replacePolicy(b *policyset.Set) {
	for _, p := range s.rec.Projects() {
		if _, stays := b.Projects[p.Name]; !stays {
			s.deleteProject(p.Name)
		}
	}
	for _, q := range named.Sorted(s.rec.QOSByName()) {
		if _, stays := b.QOS[q.Name]; !stays {
			s.deleteQOS(q.Name)
		}
	}
	for _, q := range named.Sorted(b.QOS) {
		if old, ok := s.rec.QOSByName()[q.Name]; !ok || len(policyset.FieldChanges(old, q)) > 0 {
			s.putQOSRecord(q)
		}
	}
	for _, p := range named.Sorted(b.Projects) {
		if old, ok := s.rec.Project(p.Name); !ok || len(policyset.FieldChanges(old, p)) > 0 {
			s.putProjectRecord(p)
		}
	}
}

// check finds the faults of the policy as it would be.
func (in *ApplyPolicy) check(s *State, b *policyset.Set) {
	if d := in.Policy.Defaults.Project; d != "" && d != s.cfg.DefaultProject {
		b.AddFault("defaults.project", "invalid_project",
			"the default project is %s by the settings (accounting.default_project); a policy does not change it",
			s.cfg.DefaultProject)
	}
	for _, q := range named.Sorted(b.QOS) {
		b.CheckQOS(q)
	}
	for _, p := range named.Sorted(b.Projects) {
		b.CheckProject(p)
	}
	for _, q := range named.Sorted(s.rec.QOSByName()) {
		if _, stays := b.QOS[q.Name]; stays {
			continue
		}
		if who := b.QOSReference(s.policyUses(), q.Name, false); who != "" {
			b.AddFault("qos."+string(q.Name), "qos_in_use", "QOS %s cannot be removed: %s names it", q.Name, who)
		}
	}
	for _, p := range s.rec.Projects() {
		if _, stays := b.Projects[p.Name]; stays {
			continue
		}
		if why := b.ProjectReference(s.policyUses(), p.Name, false); why != "" {
			b.AddFault("projects."+string(p.Name), "project_in_use", "project %s cannot be removed: %s", p.Name, why)
		}
	}
}
