package state

import (
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/policyset"
)

// currentPolicy is the policy as it is. Its maps may be replaced but not changed.
func (s *State) currentPolicy() *policyset.Set {
	return &policyset.Set{QOS: s.rec.QOSByName(), Projects: s.people.ProjectsByName(), Users: s.people.UsersByName()}
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

func (s *State) putQOSRecord(q *core.QOS) {
	s.qosChanged(s.rec.PutQOS(q), q)
}

func (in *DropQOS) apply(s *State) (None, error) {
	if err := people.AdminOnly(in.By, "may remove a QOS"); err != nil {
		return none, err
	}
	if _, ok := s.rec.QOSByName()[in.Name]; !ok {
		return none, core.Errorf(core.NotFound, "there is no QOS %q", in.Name).Because("invalid_qos")
	}
	if who := s.findQOSReference(s.currentPolicy(), in.Name); who != "" {
		return none, core.Errorf(core.Conflict, "QOS %s stays: %s names it", in.Name, who).Because("qos_in_use")
	}
	s.deleteQOS(in.Name)
	return none, nil
}

func (s *State) deleteQOS(name core.QOSName) {
	s.qosChanged(s.rec.DeleteQOS(name), nil)
}

// findQOSReference finds something that needs a QOS to be there.
func (s *State) findQOSReference(b *policyset.Set, name core.QOSName) string {
	for _, q := range named.Sorted(b.QOS) {
		if q.Name != name && slices.Contains(q.Preempt, name) {
			return "QOS " + string(q.Name)
		}
	}
	uses := func(a *core.Association) bool { return a.DefaultQOS == name || slices.Contains(a.QOS, name) }
	for _, p := range named.Sorted(b.Projects) {
		if uses(&p.Assoc) {
			return "project " + string(p.Name)
		}
		for i := range p.Members {
			if uses(&p.Members[i].Assoc) {
				return fmt.Sprintf("%s in project %s", p.Members[i].User, p.Name)
			}
		}
	}
	for i := range s.cfg.Partitions {
		if p := &s.cfg.Partitions[i]; p.QOS == name || slices.Contains(p.AllowQOS, name) {
			return "partition " + string(p.Name)
		}
	}
	for j := range s.rec.Jobs() {
		if j.Spec.QOS == name {
			return fmt.Sprintf("job %d", j.ID)
		}
	}
	return ""
}

func (in *DropProject) apply(s *State) (None, error) {
	if err := people.AdminOnly(in.By, "may remove a project"); err != nil {
		return none, err
	}
	if _, ok := s.rec.Project(in.Name); !ok {
		return none, core.Errorf(core.NotFound, "there is no project %q", in.Name).Because("invalid_project")
	}
	if why := s.findProjectReference(s.currentPolicy(), in.Name); why != "" {
		return none, core.Errorf(core.Conflict, "project %s stays: %s", in.Name, why).Because("project_in_use")
	}
	s.deleteProject(in.Name)
	return none, nil
}

// findProjectReference tells what needs a project to be there.
func (s *State) findProjectReference(b *policyset.Set, name core.ProjectName) string {
	if name == s.cfg.DefaultProject {
		return "the settings make it everybody's default"
	}
	for _, p := range named.Sorted(b.Projects) {
		if p.Parent == name && p.Name != name {
			return fmt.Sprintf("project %s is below it", p.Name)
		}
	}
	for _, u := range named.Sorted(b.Users) {
		if u.Default == name {
			return fmt.Sprintf("it is the default of %s", u.Name)
		}
	}
	for j := range s.rec.Jobs() {
		if j.Spec.Project == name {
			return fmt.Sprintf("job %d belongs to it", j.ID)
		}
	}
	for _, f := range s.rec.Fleets() {
		if f.Project == name {
			return fmt.Sprintf("fleet %s belongs to it", f.Name)
		}
	}
	for _, r := range s.rec.Runs() {
		if r.Project == name {
			return "a run belongs to it"
		}
	}
	return ""
}

func (s *State) deleteProject(name core.ProjectName) {
	s.people.DeleteProject(name)
	s.charges.DeleteProject(name)
	s.credentials.DeleteProject(name)
	s.limits.MarkStale()
	s.ranking.Soon()
}
