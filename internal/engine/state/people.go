package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

func (in *EnsureUser) apply(s *State) (*core.User, error) {
	u, created, err := s.people.EnsureUser(in.UID, in.UnixName, s.cfg.DefaultProject, s.cfg.EnforceProjects)
	if created {
		s.putProjectRecord(s.people.WithMember(s.cfg.DefaultProject, u.Name, core.RoleUser))
	}
	return u, err
}

func (in *PutUser) apply(s *State) (None, error) {
	join, err := s.people.PutUser(in.By, in.User, in.New, s.cfg.DefaultProject)
	if join {
		u, _ := s.rec.User(in.User.Name)
		s.putProjectRecord(s.people.WithMember(u.Default, u.Name, core.RoleUser))
	}
	return none, err
}

// ProjectChanged is the reason of a refusal: the project is not the one that the change was made from any more.
const ProjectChanged = people.ProjectChanged

func (in *PutProject) apply(s *State) (None, error) {
	if err := s.people.CheckUnchanged(in.Was); err != nil {
		return none, err
	}
	p, err := s.people.CheckProject(in.By, in.Project, in.New, s.currentPolicy())
	if err == nil {
		s.putProjectRecord(p)
	}
	return none, err
}

func (in *PutMember) apply(s *State) (None, error) {
	p, err := s.people.ChangeMember((*people.MemberChange)(in), s.currentPolicy())
	if p != nil {
		s.putProjectRecord(p)
		if p = s.people.WithShares((*people.MemberChange)(in)); p != nil { // role and shares are two events
			s.putProjectRecord(p)
		}
	}
	return none, err
}
