package people

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
)

// AdminOnly returns an error unless the caller is an administrator.
func AdminOnly(by core.Identity, what string) error {
	if by.Admin {
		return nil
	}
	return core.Errorf(core.Denied, "only an administrator %s", what).Because("access_denied")
}

// EnsureUser finds the user of a uid, or creates one in the default project: unless accounts are enforced, every user
// that the kernel knows may submit. The caller makes a created user a member of that project.
func (d *Directory) EnsureUser(id uint32, unixName string, project core.ProjectName, enforce bool) (
	user *core.User, created bool, err error,
) {
	if u, ok := d.t.usersByUID[id]; ok {
		return u, false, nil
	}
	name := core.UserName(unixName)
	if name == "" {
		name = core.UserName(fmt.Sprintf("uid%d", id))
	}
	uid := id
	if u, ok := d.t.users[name]; ok {
		if u.UnixName == unixName && u.UID == nil { // an administrator made it without a uid
			c := *u
			c.UID = &uid
			d.putUser(&c)
			return &c, false, nil
		}
		if u.UnixName != unixName || *u.UID != id {
			name = core.UserName(fmt.Sprintf("%s.%d", name, id))
			if _, taken := d.t.users[name]; taken {
				return nil, false, core.Errorf(core.Conflict, "uid %d and user %s do not belong together; ask an administrator",
					id, name).Because("user_exists")
			}
		}
	}
	if enforce {
		return nil, false, core.Errorf(core.Unknown, "no user has uid %d; an administrator must add %s", id,
			name).Because("invalid_account")
	}
	u := &core.User{
		Name: name, UnixName: unixName, UID: &uid, Role: core.RoleUser, Default: project,
		Created: d.log.Now(),
	}
	if uid == 0 {
		u.Role = core.RoleAdmin // uid 0 is known on the server's own host only
	}
	d.putUser(u)
	return u, true, nil
}

// PutUser creates or replaces a user. It reports whether the caller must make the user a member of the user's default
// project; project is the default of users that name none.
func (d *Directory) PutUser(by core.Identity, user *core.User, create bool, project core.ProjectName) (
	join bool, err error,
) {
	if err := AdminOnly(by, "may add or change users"); err != nil {
		return false, err
	}
	if !named.IsValid(string(user.Name)) {
		return false, core.Errorf(core.Invalid, "%q is not a valid user name", user.Name).Because("invalid_name")
	}
	old, ok := d.t.users[user.Name]
	if ok && create {
		return false, core.Errorf(core.Conflict, "user %s already exists", user.Name).Because("user_exists")
	}
	if user.Disabled && (user.Name == by.User || user.UID != nil && *user.UID == 0) {
		return false, core.Errorf(core.Conflict,
			"%s cannot be disabled: you cannot disable yourself or root of the server's host, who must be able to enable others",
			user.Name).Because("last_administrator")
	}
	u := *user
	if ok {
		u.Created, u.NoJWTs = old.Created, old.NoJWTs
	} else {
		u.Created, u.NoJWTs = d.log.Now(), 0
	}
	if u.Role == "" {
		u.Role = core.RoleUser
	}
	if u.UID != nil {
		if other, taken := d.t.usersByUID[*u.UID]; taken && other.Name != u.Name {
			return false, core.Errorf(core.Conflict, "uid %d belongs to %s", *u.UID, other.Name).Because("user_exists")
		}
	}
	if u.Default == "" {
		u.Default = project
	}
	moved := !ok || u.Default != old.Default
	if _, known := d.t.projects[u.Default]; moved && !known && u.Default != project {
		return false, core.Errorf(core.Invalid, "there is no project %q", u.Default).Because("invalid_project")
	}
	d.putUser(&u)
	return moved && d.t.Role(u.Name, u.Default) == core.RoleNone, nil
}

// RevokeJWTs has the JWTs of a user that were made until now be good no more.
func (d *Directory) RevokeJWTs(by core.Identity, name core.UserName) error {
	u, ok := d.t.users[name]
	if !by.Admin && name != by.User || !ok {
		return core.Errorf(core.NotFound, "there is no user %.80q whose JWTs you may revoke", name).Because("invalid_user")
	}
	c := *u
	c.NoJWTs = d.log.Now()
	d.putUser(&c)
	return nil
}
