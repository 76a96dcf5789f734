package state

import (
	"maps"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/policyset"
)

// currentPolicy is the policy as it is. Its maps may be replaced but not changed.
func (s *State) currentPolicy() *policyset.Set {
	return &policyset.Set{QOS: s.rec.QOSByName(), Projects: s.people.ProjectsByName(), Users: s.people.UsersByName()}
}

// policyUses is what may name a QOS or a project beside the policy.
func (s *State) policyUses() *policyset.Uses {
	return &policyset.Uses{
		DefaultProject: s.cfg.DefaultProject, Partitions: s.cfg.Partitions, Jobs: s.rec.Jobs(), Fleets: s.rec.Fleets(),
		Runs: s.rec.Runs(),
	}
}

func (in *PutQOS) apply(s *State) (None, error) {
	if err := people.AdminOnly(in.By, "may add or change a QOS"); err != nil {
		return none, err
	}
	q := *in.QOS
	old, ok := s.rec.QOSByName()[q.Name]
	if ok && in.New {
		return none, core.Errorf(core.Conflict, "QOS %s already exists", q.Name).Because("qos_exists")
	}
	b := s.currentPolicy()
	b.QOS = maps.Clone(b.QOS)
	b.QOS[q.Name] = &q
	if b.CheckQOS(&q); b.Err() != nil {
		return none, b.Err()
	}
	q.Created = s.rec.Now()
	if ok {
		q.Created = old.Created
	}
	s.putQOSRecord(&q)
	return none, nil
}

func (in *DropQOS) apply(s *State) (None, error) {
	if err := people.AdminOnly(in.By, "may remove a QOS"); err != nil {
		return none, err
	}
	if _, ok := s.rec.QOSByName()[in.Name]; !ok {
		return none, core.Errorf(core.NotFound, "there is no QOS %q", in.Name).Because("invalid_qos")
	}
	if who := s.currentPolicy().QOSReference(s.policyUses(), in.Name, in.Unlist); who != "" {
		return none, core.Errorf(core.Conflict, "QOS %s stays: %s names it", in.Name, who).Because("qos_in_use")
	}
	if in.Unlist {
		s.unlistQOS(in.Name)
	}
	s.deleteQOS(in.Name)
	return none, nil
}

func (in *DropProject) apply(s *State) (None, error) {
	if err := people.AdminOnly(in.By, "may remove a project"); err != nil {
		return none, err
	}
	if _, ok := s.rec.Project(in.Name); !ok {
		return none, core.Errorf(core.NotFound, "there is no project %q", in.Name).Because("invalid_project")
	}
	if why := s.currentPolicy().ProjectReference(s.policyUses(), in.Name, in.Members); why != "" {
		return none, core.Errorf(core.Conflict, "project %s stays: %s", in.Name, why).Because("project_in_use")
	}
	if list := s.rec.VolumesOf(in.Name); len(list) > 0 {
		return none, core.Errorf(core.Conflict, "project %s stays: it has volume %s; delete it first", in.Name,
			list[0].Name).Because("project_in_use")
	}
	if in.Members {
		s.leaveDefault(in.Name)
	}
	s.deleteProject(in.Name)
	return none, nil
}
