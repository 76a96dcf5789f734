package people

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/policyset"
)

// WithMember returns a project in which a user is a member; a project that does not exist is new.
func (d *Directory) WithMember(name core.ProjectName, user core.UserName, role core.Role) *core.Project {
	p := core.Project{Name: name, Created: d.log.Now()}
	if old, ok := d.t.projects[name]; ok {
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
	return &p
}

// IsManager reports whether a caller has a manager's rights in a project: by role, and by the caller's token.
func (t *Tables) IsManager(by core.Identity, project core.ProjectName) bool {
	return !by.Plain && t.Role(by.User, project).Rank() >= core.RoleManager.Rank()
}

// CheckProject checks a change of a project, or a new one, against the policy and returns the record to store.
func (d *Directory) CheckProject(by core.Identity, project *core.Project, create bool, b *policyset.Set) (
	*core.Project, error,
) {
	old, ok := d.t.projects[project.Name]
	manager := ok && d.t.IsManager(by, project.Name)
	if !by.Admin && !manager {
		return nil, core.Errorf(core.Denied,
			"only an administrator, or a manager of the project, changes it").Because("access_denied")
	}
	if ok && create {
		return nil, core.Errorf(core.Conflict, "project %s already exists", project.Name).Because("project_exists")
	}
	p := *project
	p.Created = d.log.Now()
	if ok {
		p.Created = old.Created
	}
	p.Members = slices.Clone(p.Members)
	if !by.Admin { // a manager's project exists
		p.Shares, p.Parent, p.Assoc, p.Trusted = old.Shares, old.Parent, old.Assoc, old.Trusted
		for i := range p.Members {
			m := &p.Members[i]
			m.Assoc = old.Member(m.User).Assoc
		}
	}
	b.Projects = maps.Clone(b.Projects)
	b.Projects[p.Name] = &p
	if b.CheckProject(&p); b.Err() != nil {
		return nil, b.Err()
	}
	for _, m := range p.Members {
		if !by.Admin && m.Role.Rank() > d.t.Role(by.User, p.Name).Rank() {
			return nil, core.Errorf(core.Denied, "you cannot give a role above your own").Because("access_denied")
		}
	}
	if !by.Admin && takesFromAbove(old, &p, d.t.Role(by.User, p.Name)) {
		return nil, core.Errorf(core.Denied, "you cannot take a role above your own").Because("access_denied")
	}
	slices.SortFunc(p.Members, func(a, b core.Member) int {
		if a.User < b.User {
			return -1
		}
		return 1
	})
	return &p, nil
}

// ProjectChanged is the reason of CheckUnchanged.
const ProjectChanged = "project_changed"

// CheckUnchanged refuses a change that was made from an earlier record of a project. A nil record is any.
func (d *Directory) CheckUnchanged(was *core.Project) error {
	if was == nil {
		return nil
	}
	if now, ok := d.t.projects[was.Name]; ok {
		a, errA := json.Marshal(was)
		b, errB := json.Marshal(now)
		if errA == nil && errB == nil && bytes.Equal(a, b) {
			return nil
		}
	}
	return core.Errorf(core.Conflict, "project %s was changed meanwhile; try again", was.Name).Because(ProjectChanged)
}

// takesFromAbove reports whether a change of a project takes a role from a member that is above one's own.
func takesFromAbove(old, next *core.Project, mine core.Role) bool {
	return slices.ContainsFunc(old.Members, func(m core.Member) bool {
		return m.Role.Rank() > mine.Rank() && next.Member(m.User).Role != m.Role
	})
}

// MemberChange is a change of one member of a project.
type MemberChange struct {
	By      core.Identity
	Project core.ProjectName
	User    core.UserName
	Role    core.Role // RoleNone: the user leaves
	Shares  *int32
	Assoc   *core.Association
}

// ChangeMember checks a change of a member against the policy and returns the project to store, nil if it stays the
// same. A manager may give and take roles up to the manager's own. Shares and limits are not in it, see WithShares.
func (d *Directory) ChangeMember(in *MemberChange, b *policyset.Set) (*core.Project, error) {
	p, ok := d.t.projects[in.Project]
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no project %q", in.Project).Because("invalid_project")
	}
	mine := d.t.Role(in.By.User, in.Project).Rank()
	if in.By.Plain {
		mine = core.RoleNone.Rank()
	}
	if !in.By.Admin && mine < core.RoleManager.Rank() && !in.isOwnPart(p) {
		return nil, core.Errorf(core.Denied,
			"only an administrator, or a manager of the project, changes it").Because("access_denied")
	}
	if _, there := d.t.users[in.User]; !there {
		return nil, core.Errorf(core.Invalid, "there is no user %q", in.User).Because("invalid_user")
	}
	if in.Role != core.RoleNone && in.Role.Rank() == 0 {
		return nil, core.Errorf(core.Invalid, "role %q: expected user, manager or admin", in.Role)
	}
	old := core.RoleNone
	at := slices.IndexFunc(p.Members, func(m core.Member) bool { return m.User == in.User })
	if at >= 0 {
		old = p.Members[at].Role
	}
	if !in.By.Admin && max(old.Rank(), in.Role.Rank()) > mine && !in.isOwnPart(p) {
		return nil, core.Errorf(core.Denied, "you cannot give or take a role above your own").Because("access_denied")
	}
	if in.Shares != nil || in.Assoc != nil {
		if err := in.checkShares(b); err != nil {
			return nil, err
		}
	}
	switch {
	case in.Role == core.RoleNone && at >= 0:
		less := *p
		less.Members = slices.Delete(slices.Clone(p.Members), at, at+1)
		return &less, nil
	case in.Role != core.RoleNone && (in.Role != old || in.Shares != nil || in.Assoc != nil):
		return d.WithMember(in.Project, in.User, in.Role), nil
	}
	return nil, nil
}

// isOwnPart reports whether a user joins a public project, or leaves a project: nobody has to allow it.
func (in *MemberChange) isOwnPart(p *core.Project) bool {
	if in.User != in.By.User || in.Shares != nil || in.Assoc != nil {
		return false
	}
	return in.Role == core.RoleNone || p.Public && in.Role == core.RoleUser && p.Member(in.User).Role == core.RoleNone
}

// checkShares checks shares and limits of the member.
func (in *MemberChange) checkShares(b *policyset.Set) error {
	if err := AdminOnly(in.By, "may change shares, limits and QOS"); err != nil {
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
	b.CheckAssoc("", fmt.Sprintf("%s in project %s", in.User, in.Project), in.Assoc)
	return b.Err()
}

// WithShares returns the project with the shares and limits of a changed member, nil if the change has none.
func (d *Directory) WithShares(in *MemberChange) *core.Project {
	if in.Shares == nil && in.Assoc == nil {
		return nil
	}
	p := *d.t.projects[in.Project]
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
	return &p
}

// AuthorizeJob refuses to let somebody steer a job who is not its owner, an administrator or a manager of its project.
func (t *Tables) AuthorizeJob(by core.Identity, j *core.Job) error {
	if err := CheckTokenProject(by, j.Spec.Project); err != nil {
		return err
	}
	if by.Admin || by.User == j.Spec.User || t.IsManager(by, j.Spec.Project) {
		return nil
	}
	return core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
}
