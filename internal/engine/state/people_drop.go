package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
)

func (in *DropUser) apply(s *State) (None, error) {
	if err := people.AdminOnly(in.By, "may delete users"); err != nil {
		return none, err
	}
	u, ok := s.rec.User(in.Name)
	if !ok {
		return none, core.Errorf(core.NotFound, "there is no user %q", in.Name).Because("invalid_user")
	}
	if u.Name == in.By.User || u.UID != nil && *u.UID == 0 {
		return none, core.Errorf(core.Conflict, "%s cannot be deleted: you cannot delete yourself or root of the server's "+
			"host, who must be able to add others", u.Name).Because("last_administrator")
	}
	for j := range s.rec.Jobs() {
		if j.Spec.User == u.Name && j.Live() {
			return none, core.Errorf(core.Conflict, "user %s cannot be deleted: job %d is not finished", u.Name,
				j.ID).Because("jobs_active")
		}
	}
	for _, p := range s.rec.Projects() {
		if i := slices.IndexFunc(p.Members, func(m core.Member) bool { return m.User == u.Name }); i >= 0 {
			less := *p
			less.Members = slices.Delete(slices.Clone(p.Members), i, i+1)
			s.putProjectRecord(&less)
		}
	}
	s.credentials.DeleteUser(u.Name)
	s.people.DeleteUser(u)
	return none, nil
}

// leaveDefault gives users whose default project goes another of their projects, the first by name, or none.
func (s *State) leaveDefault(name core.ProjectName) {
	for _, u := range s.people.Users() {
		if u.Default != name {
			continue
		}
		next := *u
		next.Default = ""
		for _, p := range s.rec.Projects() {
			if p.Name != name && p.Member(u.Name).Role != core.RoleNone {
				next.Default = p.Name
				break
			}
		}
		s.people.StoreUser(&next)
	}
}

// unlistQOS takes a QOS out of the lists of those that only may use or preempt it.
func (s *State) unlistQOS(name core.QOSName) {
	without := func(list []core.QOSName) []core.QOSName {
		return slices.DeleteFunc(slices.Clone(list), func(q core.QOSName) bool { return q == name })
	}
	for _, q := range named.Sorted(s.rec.QOSByName()) {
		if q.Name != name && slices.Contains(q.Preempt, name) {
			next := *q
			next.Preempt = without(q.Preempt)
			s.putQOSRecord(&next)
		}
	}
	for _, p := range s.rec.Projects() {
		next, changed := *p, slices.Contains(p.Assoc.QOS, name)
		next.Assoc.QOS = without(p.Assoc.QOS)
		next.Members = slices.Clone(p.Members)
		for i := range next.Members {
			if m := &next.Members[i]; slices.Contains(m.Assoc.QOS, name) {
				m.Assoc.QOS, changed = without(m.Assoc.QOS), true
			}
		}
		if changed {
			s.putProjectRecord(&next)
		}
	}
}

func (*NumberPolicy) apply(s *State) (None, error) {
	for _, q := range named.Sorted(s.rec.QOSByName()) {
		if q.ID == 0 {
			next := *q
			s.putQOSRecord(&next)
		}
	}
	for _, p := range s.rec.Projects() {
		if !people.Numbered(p) {
			next := *p
			next.Members = slices.Clone(p.Members)
			s.putProjectRecord(&next)
		}
	}
	return none, nil
}
