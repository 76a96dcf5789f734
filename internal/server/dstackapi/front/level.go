package front

import (
	"bireme.dev/bireme/internal/core"
)

// Level is who may make a call. Administrators of the cluster may make all.
type Level int

// The levels.
const (
	Public         Level = iota // anybody, without a token
	Auth                        // every user
	MemberOrPublic              // members of the project, and every user if the project is public
	Member                      // members of the project
	Manager                     // its managers and administrators
	ProjectAdmin                // its administrators
	GlobalAdmin                 // administrators of the cluster
)

// least is the lowest role in the project that a level takes.
var least = map[Level]core.Role{
	MemberOrPublic: core.RoleUser, Member: core.RoleUser, Manager: core.RoleManager, ProjectAdmin: core.RoleAdmin,
}

// admit checks that the caller may make a call, and finds the project in its path.
func (c *Call) admit(level Level) error {
	if level == GlobalAdmin && !c.Admin {
		return ErrForbidden()
	}
	role, ofProject := least[level]
	if !ofProject {
		return nil
	}
	p, ok := c.Snap.Project(core.ProjectName(c.R.PathValue("project")))
	if !ok {
		return errNoPath()
	}
	c.Project, c.Role = p, c.RoleIn(p)
	if c.Role.Rank() < role.Rank() && (level != MemberOrPublic || !p.Public) {
		return ErrForbidden()
	}
	return nil
}

// RoleIn is what the caller may do in a project: an administrator of the cluster everything, a token without scope
// admin no more than a user.
func (c *Call) RoleIn(p *core.Project) core.Role {
	switch role := p.Member(c.User).Role; {
	case c.Admin:
		return core.RoleAdmin
	case c.Plain && role != core.RoleNone:
		return core.RoleUser
	default:
		return role
	}
}
