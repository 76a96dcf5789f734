package people

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/policy"
)

// Tables are users, projects and tokens at one moment. Those of a snapshot never change.
type Tables struct {
	users        map[core.UserName]*core.User
	usersByUID   map[uint32]*core.User
	projects     map[core.ProjectName]*core.Project
	tokens       map[string]*core.Token
	tokensByHash map[core.Hash]*core.Token // by the secret, and by the one before it
}

// NewTables builds tables of stored records.
func NewTables(users []*core.User, projects []*core.Project, tokens []*core.Token) Tables {
	t := Tables{
		users: map[core.UserName]*core.User{}, usersByUID: map[uint32]*core.User{},
		projects: map[core.ProjectName]*core.Project{},
		tokens:   map[string]*core.Token{}, tokensByHash: map[core.Hash]*core.Token{},
	}
	for _, u := range users {
		t.users[u.Name] = u
		if u.UID != nil {
			t.usersByUID[*u.UID] = u
		}
	}
	for _, p := range projects {
		t.projects[p.Name] = p
	}
	for _, x := range tokens {
		t.addToken(x)
	}
	return t
}

// User finds a user by name.
func (t *Tables) User(name core.UserName) (*core.User, bool) { u, ok := t.users[name]; return u, ok }

// UserByUID finds the user a uid belongs to.
func (t *Tables) UserByUID(uid uint32) (*core.User, bool) { u, ok := t.usersByUID[uid]; return u, ok }

// Users lists all, by name.
func (t *Tables) Users() []*core.User { return named.Sorted(t.users) }

// Project finds a project.
func (t *Tables) Project(name core.ProjectName) (*core.Project, bool) {
	p, ok := t.projects[name]
	return p, ok
}

// Projects lists all, by name.
func (t *Tables) Projects() []*core.Project { return named.Sorted(t.projects) }

// Role is what a user may do in a project.
func (t *Tables) Role(user core.UserName, project core.ProjectName) core.Role {
	p, ok := t.projects[project]
	if !ok {
		return core.RoleNone
	}
	for _, m := range p.Members {
		if m.User == user {
			return m.Role
		}
	}
	return core.RoleNone
}

// TokenByHash finds a token by the hash of its secret.
func (t *Tables) TokenByHash(h core.Hash) (*core.Token, bool) {
	x, ok := t.tokensByHash[h]
	return x, ok
}

// Token finds a token by its id.
func (t *Tables) Token(id string) (*core.Token, bool) { x, ok := t.tokens[id]; return x, ok }

// TokensOf lists the tokens with which a user signs in, by id.
func (t *Tables) TokensOf(user core.UserName) []*core.Token {
	var out []*core.Token
	for _, x := range t.tokens {
		if x.Kind == "user" && x.User == user {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b *core.Token) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// addToken makes a token found by its id and by its secrets.
func (t *Tables) addToken(x *core.Token) {
	t.tokens[x.ID], t.tokensByHash[x.Hash] = x, x
	if !x.Prior.IsZero() {
		t.tokensByHash[x.Prior] = x
	}
}

// Tokens lists all, by id.
func (t *Tables) Tokens() []*core.Token { return named.Sorted(t.tokens) }

// IsUnder reports whether a project, or one above it, is in a list.
func (t *Tables) IsUnder(project core.ProjectName, list []core.ProjectName) bool {
	for range len(t.projects) + 1 {
		if slices.Contains(list, project) {
			return true
		}
		p := t.projects[project]
		if p == nil || p.Parent == "" {
			return false
		}
		project = p.Parent
	}
	return false
}

// EachAssociation visits the associations that a user in a project is under, from the nearest up, until visit returns
// true.
func (t *Tables) EachAssociation(user core.UserName, project core.ProjectName, visit func(*core.Association) bool) {
	for range len(t.projects) + 1 {
		p := t.projects[project]
		if p == nil {
			return
		}
		for i := range p.Members {
			if p.Members[i].User == user && visit(&p.Members[i].Assoc) {
				return
			}
		}
		if visit(&p.Assoc) || p.Parent == "" {
			return
		}
		project, user = p.Parent, ""
	}
}

// Associations lists projects and their members, without what they used.
func (t *Tables) Associations() []policy.Assoc {
	var list []policy.Assoc
	for _, p := range named.Sorted(t.projects) {
		a := policy.Assoc{Project: p.Name, Priority: p.Assoc.Priority, Limits: p.Assoc.Limits}
		a.Shares, a.ShareParent = shareCount(p.Shares)
		if reachesRoot(t.projects, p) {
			a.Parent = p.Parent
		}
		list = append(list, a)
		for i := range p.Members {
			m := &p.Members[i]
			a := policy.Assoc{Project: p.Name, User: m.User, Priority: m.Assoc.Priority, Limits: m.Assoc.Limits}
			a.Shares, a.ShareParent = shareCount(m.Shares)
			list = append(list, a)
		}
	}
	return list
}

// shareCount converts stored shares: 0 is one share, core.SharesParent means those of the parent.
func shareCount(n int32) (int64, bool) {
	if n == core.SharesParent {
		return 0, true
	}
	return int64(max(n, 1)), false
}

// reachesRoot reports whether the parents of a project lead to the root. Records from before cycles were refused may
// have one.
func reachesRoot(projects map[core.ProjectName]*core.Project, p *core.Project) bool {
	for range projects {
		if p.Parent == "" {
			return true
		}
		if p = projects[p.Parent]; p == nil {
			return false
		}
	}
	return false
}
