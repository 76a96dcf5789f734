package people

import (
	"encoding/pem"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

func (a *People) userRows() []front.Row {
	return []front.Row{
		{Path: "/api/users/list", Level: front.Auth, Handle: front.OptionalBody(a.listUsers)},
		{Path: "/api/users/get_my_user", Level: front.Auth, Everywhere: true, Handle: front.NoBody(a.myUser)},
		{Path: "/api/users/get_user", Level: front.Auth, Handle: front.Body(a.getUser)},
		{
			Path: "/api/users/create", Level: front.GlobalAdmin, Scope: core.ScopeAdmin,
			Action: "user.create", Object: "user", Handle: front.Body(a.createUser),
		},
		{
			Path: "/api/users/update", Level: front.GlobalAdmin, Scope: core.ScopeAdmin,
			Action: "user.update", Object: "user", Handle: front.Body(a.updateUser),
		},
		{
			Path: "/api/users/delete", Level: front.GlobalAdmin, Scope: core.ScopeAdmin,
			Action: "user.delete", Object: "user", Handle: front.Body(a.deleteUsers),
		},
		{
			Path: "/api/users/refresh_token", Level: front.Auth, Scope: core.ScopeSubmit,
			Action: "token.rotate", Object: "token", Handle: front.Body(a.refreshToken),
		},
	}
}

type listUsersBody struct{ page }

func (a *People) listUsers(c *front.Call, in *listUsersBody) (any, error) {
	v := a.ViewOf(c.Caller, c.Snap)
	list, total := cut(&in.page, v.Users(), func(u *core.User) string { return string(u.Name) },
		func(u *core.User) core.Time { return u.Created }, wire.KindUser)
	out := make([]wire.User, 0, len(list))
	for _, u := range list {
		out = append(out, a.User(c.Snap, u))
	}
	if in.ReturnTotalCount {
		return wire.Users{TotalCount: &total, Users: out}, nil
	}
	return out, nil
}

// myUser is the caller, with the token of the call: a server keeps hashes only.
func (a *People) myUser(c *front.Call) (any, error) {
	out, err := a.withCreds(c, c.UserRecord, c.Token())
	return noteRead(a.Base, c, out), err
}

// noteRead has the audit log say that a private key was read.
func noteRead(b *call.Base, c *front.Call, u *wire.UserWithCreds) *wire.UserWithCreds {
	if u != nil && u.SSHPrivateKey != nil {
		e := b.AuditEntry(&call.Route{Audit: call.Auditing{Action: "ssh_key.read"}}, c.R, c.Caller, nil)
		e.Object = "ssh key of " + u.Username
		b.Audit.Note(e)
	}
	return u
}

// withCreds is the caller's own user with what nobody else gets. A token that may do less than its user has a key of
// its own, and one that only reads has none.
func (a *People) withCreds(c *front.Call, u *core.User, token string) (*wire.UserWithCreds, error) {
	out := &wire.UserWithCreds{Creds: wire.UserCreds{Token: token}}
	switch {
	case a.hasAll(c):
		private, err := a.ensureKey(c)
		if err != nil {
			return nil, err
		}
		out.SSHPrivateKey = &private
	case c.TokenRecord != nil && c.TokenRecord.Has(core.ScopeSubmit):
		t := c.TokenRecord
		for _, now := range a.Engine.Snapshot().TokensOf(u.Name) {
			if now.ID == t.ID { // it may have been given another secret by this very call
				t = now
			}
		}
		block, err := ssh.MarshalPrivateKey(a.tokens.PrivateKey(t), string(u.Name))
		if err != nil {
			return nil, err
		}
		private := string(pem.EncodeToMemory(block))
		out.SSHPrivateKey = &private
	}
	out.User = a.User(a.Engine.Snapshot(), u)
	return out, nil
}

// hasAll reports whether the caller may do all that the user's keys open: every job of the user's, in all projects, and
// of an administrator those of others. A token may do less, and so does a node that is not trusted: any uid is there
// for its root to take.
func (a *People) hasAll(c *front.Call) bool {
	if (c.Plain || c.Untrusted) && a.AdminByRecord(c.UserRecord) {
		return false
	}
	t := c.TokenRecord
	return t == nil || t.Project == "" && t.Has(core.ScopeSubmit)
}

type usernameBody struct {
	Username string `json:"username" in:"required"`
}

// getUser shows a user. Tokens and private keys are told to nobody but their owner: an administrator makes new ones.
func (a *People) getUser(c *front.Call, in *usernameBody) (any, error) {
	u, err := a.findUser(c, in.Username)
	if err != nil {
		return nil, err
	}
	if u.Name == c.User {
		out, err := a.withCreds(c, u, c.Token())
		return noteRead(a.Base, c, out), err
	}
	return &wire.UserWithCreds{User: a.User(c.Snap, u)}, nil
}

func (a *People) findUser(c *front.Call, name string) (*core.User, error) {
	u, err := a.ViewOf(c.Caller, c.Snap).FindUser(core.UserName(name))
	if err != nil {
		return nil, front.ErrNotExists()
	}
	return u, nil
}

type userBody struct {
	Username   string  `json:"username" in:"required"`
	GlobalRole string  `json:"global_role" in:"required,enum=admin|user"`
	Email      *string `json:"email"`
	Active     bool    `json:"active"`
}

// Defaults are those of a client that sends less.
func (b *userBody) Defaults() { b.Active = true }

// fill takes over what a request says of a user.
func (b *userBody) fill(u *core.User) {
	u.Disabled, u.Role = !b.Active, core.RoleUser
	if b.GlobalRole == wire.GlobalAdmin {
		u.Role = core.RoleAdmin
	}
	u.Email = ""
	if b.Email != nil {
		u.Email = *b.Email
	}
}

func (a *People) createUser(c *front.Call, in *userBody) (any, error) {
	c.About("user", in.Username)
	u := &core.User{Name: core.UserName(in.Username)}
	in.fill(u)
	return a.putUser(c, u, true)
}

func (a *People) updateUser(c *front.Call, in *userBody) (any, error) {
	c.About("user", in.Username)
	old, err := a.findUser(c, in.Username)
	if err != nil {
		return nil, err
	}
	u := *old
	in.fill(&u)
	return a.putUser(c, &u, false)
}

func (a *People) putUser(c *front.Call, u *core.User, isNew bool) (any, error) {
	_, err := engine.Do(c.Context(), a.Engine, &state.PutUser{By: c.Identity, User: u, New: isNew})
	if err != nil {
		return nil, err
	}
	return a.UserNamed(a.Engine.Snapshot(), u.Name), nil
}

type deleteUsersBody struct {
	Users []string `json:"users" in:"required,max=100"`
}

// deleteUsers disables users and revokes their tokens: their jobs and what they used stay in the history.
func (a *People) deleteUsers(c *front.Call, in *deleteUsersBody) (any, error) {
	for _, name := range in.Users {
		c.About("user", name)
		old, err := a.findUser(c, name)
		if err != nil {
			return nil, err
		}
		u := *old
		u.Disabled = true
		if _, err := a.putUser(c, &u, false); err != nil {
			return nil, err
		}
		for _, t := range c.Snap.TokensOf(u.Name) {
			if t.Revoked {
				continue
			}
			if _, err := engine.Do(c.Context(), a.Engine, &state.RevokeToken{By: c.Identity, ID: t.ID}); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// refreshToken gives a user another token. With the user's own the secret of the call's token is replaced; an
// administrator makes one for the user, and those made for dstack's clients before are revoked.
func (a *People) refreshToken(c *front.Call, in *usernameBody) (any, error) {
	u, err := a.findUser(c, in.Username)
	if err != nil {
		return nil, err
	}
	if u.Name != c.User && !c.Admin {
		return nil, front.ErrForbidden()
	}
	secret, err := a.tokens.Refresh(c.Context(), c.Caller, u.Name)
	if err != nil {
		return nil, err
	}
	if u.Name == c.User {
		return a.withCreds(c, u, secret)
	}
	return &wire.UserWithCreds{User: a.User(c.Snap, u), Creds: wire.UserCreds{Token: secret}}, nil
}
