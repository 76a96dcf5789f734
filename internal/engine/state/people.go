package state

import (
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
)

// apply finds the user of a uid, or makes one in the default project: with accounting enforcement off anybody the
// kernel knows may work.
func (in *EnsureUser) apply(s *State) (*core.User, error) {
	if u, ok := s.view.usersByUID[in.UID]; ok {
		return u, nil
	}
	name := core.UserName(in.UnixName)
	if name == "" {
		name = core.UserName(fmt.Sprintf("uid%d", in.UID))
	}
	uid := in.UID
	if u, ok := s.view.users[name]; ok {
		if u.UnixName == in.UnixName && u.UID == nil { // made by an administrator; now we know its uid
			c := *u
			c.UID = &uid
			s.putUserRecord(&c)
			return &c, nil
		}
		if u.UnixName != in.UnixName || *u.UID != in.UID {
			name = core.UserName(fmt.Sprintf("%s.%d", name, in.UID))
			if _, taken := s.view.users[name]; taken {
				return nil, core.Errorf(core.Conflict, "uid %d and user %s do not belong together; ask an administrator",
					in.UID, name).Because("user_exists")
			}
		}
	}
	if s.cfg.EnforceAccounts {
		return nil, core.Errorf(core.Unknown, "no user has uid %d; an administrator must add %s", in.UID,
			name).Because("invalid_account")
	}
	u := &core.User{Name: name, UnixName: in.UnixName, UID: &uid, Role: core.RoleUser, Default: s.cfg.DefaultProject,
		Created: s.view.now}
	if uid == 0 {
		u.Role = core.RoleAdmin // only on the server's own host does anybody come in as uid 0
	}
	s.putUserRecord(u)
	s.addMember(s.cfg.DefaultProject, u.Name, core.RoleUser)
	return u, nil
}

func (s *State) putUserRecord(u *core.User) {
	if !s.owned.users {
		s.view.users, s.view.usersByUID, s.owned.users = maps.Clone(s.view.users), maps.Clone(s.view.usersByUID), true
	}
	if old, ok := s.view.users[u.Name]; ok && old.UID != nil {
		delete(s.view.usersByUID, *old.UID)
	}
	s.view.users[u.Name] = u
	if u.UID != nil {
		s.view.usersByUID[*u.UID] = u
	}
	s.changes.Users = append(slices.DeleteFunc(s.changes.Users, func(o *core.User) bool { return o.Name == u.Name }), u)
	s.event(core.UserChanged, core.Event{User: u.Name})
}

// addMember makes a user a member of a project, which is made if need be.
func (s *State) addMember(name core.ProjectName, user core.UserName, role core.Role) {
	p := core.Project{Name: name, Created: s.view.now}
	if old, ok := s.view.projects[name]; ok {
		p = *old
	}
	p.Members = slices.Clone(p.Members)
	i, found := slices.BinarySearchFunc(p.Members, user, func(m core.Member, u core.UserName) int {
		switch {
		case m.User < u:
			return -1
		case m.User > u:
			return 1
		}
		return 0
	})
	if found {
		p.Members[i].Role = role
	} else {
		p.Members = slices.Insert(p.Members, i, core.Member{User: user, Role: role})
	}
	s.putProjectRecord(&p)
}

func (s *State) putProjectRecord(p *core.Project) {
	ownMap(&s.owned.projects, &s.view.projects)
	old := s.view.projects[p.Name]
	s.projectChanged(old, p)
	s.view.projects[p.Name] = p
	if old == nil || old.Parent != p.Parent {
		s.resendAllReservations()
	}
	s.changes.Projects = append(slices.DeleteFunc(s.changes.Projects,
		func(o *core.Project) bool { return o.Name == p.Name }), p)
	s.event(core.ProjectChanged, core.Event{Data: append(appendJSON([]byte(`{"project":`), string(p.Name)), '}')})
}

func adminOnly(by core.Identity, what string) error {
	if by.Admin {
		return nil
	}
	return core.Errorf(core.Denied, "only an administrator %s", what).Because("access_denied")
}

func (in *PutUser) apply(s *State) (None, error) {
	if err := adminOnly(in.By, "may add or change users"); err != nil {
		return none, err
	}
	if !named.IsValid(string(in.User.Name)) {
		return none, core.Errorf(core.Invalid, "%q is not a valid user name", in.User.Name).Because("invalid_name")
	}
	old, ok := s.view.users[in.User.Name]
	if ok && in.New {
		return none, core.Errorf(core.Conflict, "user %s already exists", in.User.Name).Because("user_exists")
	}
	if in.User.Disabled && (in.User.Name == in.By.User || in.User.UID != nil && *in.User.UID == 0) {
		return none, core.Errorf(core.Conflict,
			"%s cannot be disabled: you cannot disable yourself or root of the server's host, who must be able to enable others",
			in.User.Name).Because("last_administrator")
	}
	u := *in.User
	if ok {
		u.Created = old.Created
	} else {
		u.Created = s.view.now
	}
	if u.Role == "" {
		u.Role = core.RoleUser
	}
	if u.UID != nil {
		if other, taken := s.view.usersByUID[*u.UID]; taken && other.Name != u.Name {
			return none, core.Errorf(core.Conflict, "uid %d belongs to %s", *u.UID, other.Name).Because("user_exists")
		}
	}
	if u.Default == "" {
		u.Default = s.cfg.DefaultProject
	}
	moved := !ok || u.Default != old.Default
	if _, known := s.view.projects[u.Default]; moved && !known && u.Default != s.cfg.DefaultProject {
		return none, core.Errorf(core.Invalid, "there is no project %q", u.Default).Because("invalid_project")
	}
	s.putUserRecord(&u)
	if moved && s.view.Role(u.Name, u.Default) == core.RoleNone { // one's default project is one of one's own
		s.addMember(u.Default, u.Name, core.RoleUser)
	}
	return none, nil
}

func (in *PutProject) apply(s *State) (None, error) {
	old, ok := s.view.projects[in.Project.Name]
	manager := ok && s.isManager(in.By, in.Project.Name)
	if !in.By.Admin && !manager {
		return none, core.Errorf(core.Denied,
			"only an administrator, or a manager of the project, changes it").Because("access_denied")
	}
	if ok && in.New {
		return none, core.Errorf(core.Conflict, "project %s already exists", in.Project.Name).Because("project_exists")
	}
	p := *in.Project
	p.Created = s.view.now
	if ok {
		p.Created = old.Created
	}
	p.Members = slices.Clone(p.Members)
	if !in.By.Admin { // a manager is one of a project that is there
		p.Shares, p.Parent, p.Assoc = old.Shares, old.Parent, old.Assoc
		for i := range p.Members {
			m := &p.Members[i]
			m.Assoc = old.Member(m.User).Assoc
		}
	}
	b := s.currentPolicy()
	b.Projects = maps.Clone(b.Projects)
	b.Projects[p.Name] = &p
	if b.CheckProject(&p); b.Err() != nil {
		return none, b.Err()
	}
	for _, m := range p.Members {
		if !in.By.Admin && m.Role.Rank() > s.view.Role(in.By.User, p.Name).Rank() {
			return none, core.Errorf(core.Denied, "you cannot give a role above your own").Because("access_denied")
		}
	}
	slices.SortFunc(p.Members, func(a, b core.Member) int {
		if a.User < b.User {
			return -1
		}
		return 1
	})
	s.putProjectRecord(&p)
	return none, nil
}

// apply changes one member of a project; a manager's reach ends at the manager's own role, up and down.
func (in *PutMember) apply(s *State) (None, error) {
	p, ok := s.view.projects[in.Project]
	if !ok {
		return none, core.Errorf(core.NotFound, "there is no project %q", in.Project).Because("invalid_project")
	}
	mine := s.view.Role(in.By.User, in.Project).Rank()
	if in.By.Plain {
		mine = core.RoleNone.Rank()
	}
	if !in.By.Admin && mine < core.RoleManager.Rank() {
		return none, core.Errorf(core.Denied,
			"only an administrator, or a manager of the project, changes it").Because("access_denied")
	}
	if _, there := s.view.users[in.User]; !there {
		return none, core.Errorf(core.Invalid, "there is no user %q", in.User).Because("invalid_user")
	}
	if in.Role != core.RoleNone && in.Role.Rank() == 0 {
		return none, core.Errorf(core.Invalid, "role %q: expected user, manager or admin", in.Role)
	}
	old := core.RoleNone
	at := slices.IndexFunc(p.Members, func(m core.Member) bool { return m.User == in.User })
	if at >= 0 {
		old = p.Members[at].Role
	}
	if !in.By.Admin && max(old.Rank(), in.Role.Rank()) > mine {
		return none, core.Errorf(core.Denied, "you cannot give or take a role above your own").Because("access_denied")
	}
	if in.Shares != nil || in.Assoc != nil {
		if err := s.checkMemberShares(in); err != nil {
			return none, err
		}
	}
	switch {
	case in.Role == core.RoleNone && at < 0:
	case in.Role == core.RoleNone:
		less := *p
		less.Members = slices.Delete(slices.Clone(p.Members), at, at+1)
		s.putProjectRecord(&less)
	case in.Role != old || in.Shares != nil || in.Assoc != nil:
		s.addMember(in.Project, in.User, in.Role)
		s.setMemberShares(in)
	}
	return none, nil
}

// checkMemberShares tells what is wrong with what a member is to get beside a role.
func (s *State) checkMemberShares(in *PutMember) error {
	if err := adminOnly(in.By, "may change shares, limits and QOS"); err != nil {
		return err
	}
	if in.Role == core.RoleNone {
		return core.Errorf(core.Invalid, "a user who leaves a project cannot have shares or limits in it")
	}
	if in.Shares != nil && *in.Shares < 0 {
		return core.Errorf(core.Invalid, "shares must not be negative")
	}
	if in.Assoc == nil {
		return nil
	}
	b := s.currentPolicy()
	b.CheckAssoc("", fmt.Sprintf("%s in project %s", in.User, in.Project), in.Assoc)
	return b.Err()
}

// setMemberShares gives a member shares and limits.
func (s *State) setMemberShares(in *PutMember) {
	if in.Shares == nil && in.Assoc == nil {
		return
	}
	p := *s.view.projects[in.Project]
	p.Members = slices.Clone(p.Members)
	for i := range p.Members {
		if m := &p.Members[i]; m.User == in.User {
			if in.Shares != nil {
				m.Shares = *in.Shares
			}
			if in.Assoc != nil {
				m.Assoc = *in.Assoc
			}
		}
	}
	s.putProjectRecord(&p)
}

func (s *State) putTokenRecord(t *core.Token) {
	s.ownTokens()
	if old, ok := s.view.tokens[t.ID]; ok {
		delete(s.view.tokensByHash, old.Hash)
		delete(s.view.tokensByHash, old.Prior)
	}
	s.view.addToken(t)
	s.changes.Tokens = append(slices.DeleteFunc(s.changes.Tokens, func(o *core.Token) bool { return o.ID == t.ID }), t)
	s.event(core.TokenChanged, core.Event{User: t.User, Data: append(appendJSON([]byte(`{"token":`), t.ID), '}')})
}

// apply spends a join token.
func (in *UseToken) apply(s *State) (*core.Token, error) {
	t, ok := s.view.tokens[in.ID]
	switch {
	case !ok || t.Kind != "join" || t.Revoked:
		return nil, core.Errorf(core.Unknown, "unknown join token").Because("bad_token")
	case t.Used != 0:
		return nil, core.Errorf(core.Conflict, "this join token was used already, for node %s", t.Node).Because("bad_token")
	case t.Expires != 0 && t.Expires < s.view.now:
		return nil, core.Errorf(core.Unknown, "this join token expired at %s",
			t.Expires.Go().UTC().Format("2006-01-02T15:04:05Z")).Because("bad_token")
	case t.Node != "" && t.Node != in.Node:
		return nil, core.Errorf(core.Denied, "this join token is for node %s", t.Node).Because("bad_token")
	}
	if err := s.pinNodeKey(t, in); err != nil {
		return nil, err
	}
	used := *t
	used.Used, used.Node = s.view.now, in.Node
	s.putTokenRecord(&used)
	return &used, nil
}
