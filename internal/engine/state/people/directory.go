package people

import (
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// Journal is where a Directory records what it changes.
type Journal interface {
	Now() core.Time
	Changes() *core.Changes // of the batch under way
	Event(core.EventKind, core.Event)
	TakeProjectID() int64   // for a project or a member of one
	LoadProjectID(id int64) // notes one that is stored already
}

// Directory changes Tables by the rules of users, projects and tokens.
type Directory struct {
	t     *Tables
	log   Journal
	owned struct{ users, projects, tokens bool } // no snapshot shares these maps
}

// NewDirectory makes the writer of tables.
func NewDirectory(t *Tables, log Journal) *Directory {
	for _, p := range t.projects {
		log.LoadProjectID(p.ID)
		for i := range p.Members {
			log.LoadProjectID(p.Members[i].ID)
		}
	}
	return &Directory{t: t, log: log}
}

// The ids of Slurm's account root and of user root in it, which are shown also without a record.
const (
	rootName   = "root"
	rootID     = 1
	rootUserID = 2
)

// number gives a project and its members the ids that they have, or new ones.
func (d *Directory) number(old, p *core.Project) {
	if old == nil {
		old = &core.Project{}
	}
	take := func(had int64) int64 {
		if had == 0 {
			had = d.log.TakeProjectID()
		}
		return had
	}
	root := p.Name == rootName && (old.ID == 0 || old.ID == rootID)
	if root {
		p.ID = rootID
	} else if p.ID == 0 || p.ID != old.ID {
		p.ID = take(old.ID)
	}
	for i := range p.Members { // the list may be the old record's: what is right is not written
		m := &p.Members[i]
		if had := old.Member(m.User).ID; root && m.User == rootName && had == 0 {
			m.ID = rootUserID
		} else if m.ID == 0 || m.ID != had {
			m.ID = take(had)
		}
	}
}

// Numbered reports whether a project and its members have their ids. Records of earlier versions have none.
func Numbered(p *core.Project) bool {
	return p.ID != 0 && !slices.ContainsFunc(p.Members, func(m core.Member) bool { return m.ID == 0 })
}

// Published notes that a snapshot has the tables as they are: each map is copied before its next change.
func (d *Directory) Published() {
	d.owned.users, d.owned.projects, d.owned.tokens = false, false, false
}

// UsersByName is the present table of users, to read.
func (d *Directory) UsersByName() map[core.UserName]*core.User { return d.t.users }

// ProjectsByName is the present table of projects, to read.
func (d *Directory) ProjectsByName() map[core.ProjectName]*core.Project { return d.t.projects }

// Users lists all users, by name.
func (d *Directory) Users() []*core.User { return d.t.Users() }

// StoreUser stores a changed user.
func (d *Directory) StoreUser(u *core.User) { d.putUser(u) }

func (d *Directory) putUser(u *core.User) {
	if !d.owned.users {
		d.t.users, d.t.usersByUID, d.owned.users = maps.Clone(d.t.users), maps.Clone(d.t.usersByUID), true
	}
	if old, ok := d.t.users[u.Name]; ok && old.UID != nil {
		delete(d.t.usersByUID, *old.UID)
	}
	d.t.users[u.Name] = u
	if u.UID != nil {
		d.t.usersByUID[*u.UID] = u
	}
	c := d.log.Changes()
	c.Users = append(slices.DeleteFunc(c.Users, func(o *core.User) bool { return o.Name == u.Name }), u)
	d.log.Event(core.UserChanged, core.Event{User: u.Name})
}

// DeleteUser removes a user and the user's tokens. The caller has taken the user out of all projects.
func (d *Directory) DeleteUser(u *core.User) {
	if !d.owned.users {
		d.t.users, d.t.usersByUID, d.owned.users = maps.Clone(d.t.users), maps.Clone(d.t.usersByUID), true
	}
	delete(d.t.users, u.Name)
	if u.UID != nil {
		delete(d.t.usersByUID, *u.UID)
	}
	for _, id := range slices.Sorted(maps.Keys(d.t.tokens)) {
		if t := d.t.tokens[id]; t.Kind == "user" && t.User == u.Name {
			d.deleteToken(t)
		}
	}
	c := d.log.Changes()
	c.Users = slices.DeleteFunc(c.Users, func(o *core.User) bool { return o.Name == u.Name })
	c.GoneUsers = append(c.GoneUsers, u.Name)
	d.log.Event(core.UserChanged, core.Event{User: u.Name, Data: []byte(`{"gone":true}`)})
}

// StoreProject stores a project and returns the record that it replaces, nil if there was none.
func (d *Directory) StoreProject(p *core.Project) (old *core.Project) {
	d.ownProjects()
	old = d.t.projects[p.Name]
	d.number(old, p)
	d.t.projects[p.Name] = p
	c := d.log.Changes()
	c.Projects = append(slices.DeleteFunc(c.Projects, func(o *core.Project) bool { return o.Name == p.Name }), p)
	d.log.Event(core.ProjectChanged,
		core.Event{Data: append(jsontext.AppendString([]byte(`{"project":`), string(p.Name)), '}')})
	return old
}

// DeleteProject removes a project.
func (d *Directory) DeleteProject(name core.ProjectName) {
	d.ownProjects()
	delete(d.t.projects, name)
	c := d.log.Changes()
	c.Projects = slices.DeleteFunc(c.Projects, func(o *core.Project) bool { return o.Name == name })
	c.GoneProjects = append(c.GoneProjects, name)
	d.log.Event(core.ProjectChanged,
		core.Event{Data: append(jsontext.AppendString([]byte(`{"gone":true,"project":`), string(name)), '}')})
}

func (d *Directory) ownProjects() {
	if !d.owned.projects {
		d.t.projects, d.owned.projects = maps.Clone(d.t.projects), true
	}
}

func (d *Directory) putToken(t *core.Token) {
	d.ownTokens()
	if old, ok := d.t.tokens[t.ID]; ok {
		delete(d.t.tokensByHash, old.Hash)
		delete(d.t.tokensByHash, old.Prior)
	}
	d.t.addToken(t)
	d.noteToken(t)
	d.log.Event(core.TokenChanged,
		core.Event{User: t.User, Data: append(jsontext.AppendString([]byte(`{"token":`), t.ID), '}')})
}

func (d *Directory) deleteToken(t *core.Token) {
	d.ownTokens()
	delete(d.t.tokens, t.ID)
	delete(d.t.tokensByHash, t.Hash)
	delete(d.t.tokensByHash, t.Prior)
	c := d.log.Changes()
	c.Tokens = slices.DeleteFunc(c.Tokens, func(o *core.Token) bool { return o.ID == t.ID })
	c.GoneTokens = append(c.GoneTokens, t.ID)
}

// noteToken has the batch store a token.
func (d *Directory) noteToken(t *core.Token) {
	c := d.log.Changes()
	c.Tokens = append(slices.DeleteFunc(c.Tokens, func(o *core.Token) bool { return o.ID == t.ID }), t)
}

func (d *Directory) ownTokens() {
	if !d.owned.tokens {
		d.t.tokens, d.t.tokensByHash, d.owned.tokens = maps.Clone(d.t.tokens), maps.Clone(d.t.tokensByHash), true
	}
}
