package people

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/identity"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/vault"
)

// People answers calls on users and projects.
type People struct {
	*call.Base
	tokens *identity.Tokens
	vault  *vault.Vault
}

// New makes the handlers.
func New(b *call.Base, tokens *identity.Tokens, v *vault.Vault) *People {
	return &People{Base: b, tokens: tokens, vault: v}
}

// Rows lists the routes.
func (a *People) Rows() []front.Row {
	return append(append(a.userRows(), a.keyRows()...), a.projectRows()...)
}

// User is a user as clients see it.
func (a *People) User(snap *state.Snapshot, u *core.User) wire.User {
	out := wire.User{
		ID: wire.UUID(wire.KindUser, string(u.Name)), Username: string(u.Name), CreatedAt: wire.Time(u.Created),
		GlobalRole: wire.GlobalUser, Active: !u.Disabled,
	}
	if a.AdminByRecord(u) {
		out.GlobalRole, out.Permissions.CanCreateProjects = wire.GlobalAdmin, true
	}
	if u.Email != "" {
		out.Email = &u.Email
	}
	if k, ok := snap.Credential(core.SSHKeyCredential, string(u.Name), ""); ok {
		out.SSHPublicKey = &k.Info
	}
	return out
}

// UserNamed is a user by name, also one that there is no more.
func (a *People) UserNamed(snap *state.Snapshot, name core.UserName) wire.User {
	if u, ok := snap.User(name); ok {
		return a.User(snap, u)
	}
	return a.User(snap, &core.User{Name: name, Disabled: true})
}

// seenBy is a project as the caller sees it. Who is not a member of it, which is public then, gets to know who is, and
// no e-mail addresses.
func seenBy(c *front.Call, p *core.Project, out wire.Project) wire.Project {
	if c.Admin || c.RoleIn(p) != core.RoleNone {
		return out
	}
	out.Owner.Email = nil
	for i := range out.Members {
		out.Members[i].User.Email = nil
	}
	return out
}

// Project is a project as its members see it.
func (a *People) Project(snap *state.Snapshot, p *core.Project, withMembers bool) wire.Project {
	out := wire.Project{
		ProjectID: wire.UUID(wire.KindProject, string(p.Name)), ProjectName: string(p.Name),
		Owner: a.UserNamed(snap, a.ownerOf(snap, p)), CreatedAt: wire.Time(p.Created),
		Backends: []wire.Backend{}, Members: []wire.Member{}, IsPublic: p.Public,
	}
	if p.Templates != "" {
		out.TemplatesRepo = &p.Templates
	}
	if withMembers {
		for _, m := range p.Members {
			out.Members = append(out.Members, a.member(snap, m))
		}
	}
	return out
}

func (a *People) member(snap *state.Snapshot, m core.Member) wire.Member {
	return wire.Member{
		User: a.UserNamed(snap, m.User), ProjectRole: string(cmp.Or(m.Role, core.RoleUser)),
		Permissions: wire.MemberPermissions{
			CanManageSSHFleets: a.isAdmin(snap, m.User), // who adds hosts runs a program on them as root
			CanManageSecrets: m.Role == core.RoleAdmin || m.Role == core.RoleManager &&
				a.Settings().Dstack.ManagersManageSecrets,
		},
	}
}

func (a *People) isAdmin(snap *state.Snapshot, name core.UserName) bool {
	u, ok := snap.User(name)
	return ok && a.AdminByRecord(u)
}

// ownerOf is who made a project, or the first of those who may do everything in it.
func (a *People) ownerOf(snap *state.Snapshot, p *core.Project) core.UserName {
	if p.Owner != "" {
		return p.Owner
	}
	if i := slices.IndexFunc(p.Members, func(m core.Member) bool { return m.Role == core.RoleAdmin }); i >= 0 {
		return p.Members[i].User
	}
	for _, u := range snap.Users() {
		if a.AdminByRecord(u) && !u.Disabled {
			return u.Name
		}
	}
	return "root"
}

// sees reports whether the caller gets to know of a project: its members do, and everybody of one that is public.
func sees(c *front.Call, p *core.Project) bool {
	if c.TokenRecord != nil && c.TokenRecord.Project != "" && c.TokenRecord.Project != p.Name {
		return false
	}
	return c.RoleIn(p) != core.RoleNone || p.Public
}

// byAge orders records by when they were made, the newest first unless ascending; ties by id.
func byAge(ascending bool, a, b core.Time, idA, idB string) int {
	n := cmp.Or(cmp.Compare(a, b), strings.Compare(idA, idB))
	if ascending {
		return n
	}
	return -n
}

// page is which part of a list is asked for.
type page struct {
	ReturnTotalCount bool    `json:"return_total_count"`
	NamePattern      *string `json:"name_pattern"`
	PrevCreatedAt    *string `json:"prev_created_at" in:"time"`
	PrevID           *string `json:"prev_id" in:"uuid"`
	Limit            int     `json:"limit" in:"ge=0,le=2000"`
	Ascending        bool    `json:"ascending"`
}

// Defaults are those of a client that sends nothing.
func (p *page) Defaults() { p.Limit = 2000 }

// cut keeps what comes after the cursor, at most a page of it. total is the count of all that match.
func cut[T any](p *page, list []*T, name func(*T) string, made func(*T) core.Time, kind string) (out []*T, total int) {
	for _, x := range list {
		if p.NamePattern == nil || strings.Contains(strings.ToLower(name(x)), strings.ToLower(*p.NamePattern)) {
			out = append(out, x)
		}
	}
	id := func(x *T) string { return wire.UUID(kind, name(x)) }
	slices.SortFunc(out, func(x, y *T) int { return byAge(p.Ascending, made(x), made(y), id(x), id(y)) })
	total = len(out)
	if p.PrevCreatedAt != nil {
		at, _ := wire.ParseTime(*p.PrevCreatedAt) // it has been checked
		prev := ""
		if p.PrevID != nil {
			prev = *p.PrevID
		}
		out = slices.DeleteFunc(out, func(x *T) bool {
			if made(x) == at && prev == "" {
				return true
			}
			return byAge(p.Ascending, made(x), at, id(x), prev) <= 0
		})
	}
	return out[:min(len(out), p.Limit)], total
}
