package people

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

func (a *People) projectRows() []front.Row {
	const project = "/api/projects/{project}"
	return []front.Row{
		{Path: "/api/projects/list", Level: front.Auth, Everywhere: true, Handle: front.OptionalBody(a.listProjects)},
		{
			Path: "/api/projects/list_only_no_fleets", Level: front.Auth, Everywhere: true,
			Handle: front.NoBody(a.listWithoutFleets),
		},
		{
			Path: "/api/projects/create", Level: front.Auth, Scope: core.ScopeAdmin,
			Action: "project.create", Object: "project", Handle: front.Body(a.createProject),
		},
		{
			Path: "/api/projects/delete", Level: front.Auth, Scope: core.ScopeAdmin,
			Action: "project.delete", Object: "project", Handle: front.Body(a.deleteProjects),
		},
		{Path: project + "/get", Level: front.MemberOrPublic, Handle: front.NoBody(a.getProject)},
		{
			Path: project + "/set_members", Level: front.Manager, Scope: core.ScopeAdmin,
			Action: "project.member", Object: "project {project}", Handle: front.Body(a.setMembers),
		},
		{
			Path: project + "/add_members", Level: front.MemberOrPublic, Scope: core.ScopeAdmin,
			Action: "project.member", Object: "project {project}", Handle: front.Body(a.addMembers),
		},
		{
			Path: project + "/remove_members", Level: front.Member, Scope: core.ScopeAdmin,
			Action: "project.member", Object: "project {project}", Handle: front.Body(a.removeMembers),
		},
		{
			Path: project + "/update", Level: front.ProjectAdmin, Scope: core.ScopeAdmin,
			Action: "project.update", Object: "project {project}", Handle: front.Body(a.updateProject),
		},
	}
}

type listProjectsBody struct {
	IncludeNotJoined bool    `json:"include_not_joined"`
	Username         *string `json:"username"`
	page
}

// Defaults are those of a client that sends nothing.
func (b *listProjectsBody) Defaults() {
	b.IncludeNotJoined = true
	b.page.Defaults()
}

func (a *People) listProjects(c *front.Call, in *listProjectsBody) (any, error) {
	user := core.UserName("")
	if in.Username != nil {
		user = core.UserName(*in.Username)
	}
	all := slices.DeleteFunc(c.Snap.Projects(), func(p *core.Project) bool {
		joined := p.Member(c.User).Role != core.RoleNone
		return !sees(c, p) || !joined && !in.IncludeNotJoined ||
			user != "" && p.Member(user).Role == core.RoleNone && p.Owner != user
	})
	list, total := cut(&in.page, all, func(p *core.Project) string { return string(p.Name) },
		func(p *core.Project) core.Time { return p.Created }, wire.KindProject)
	out := make([]wire.Project, 0, len(list))
	for _, p := range list {
		w := seenBy(c, p, a.Project(c.Snap, p, user != ""))
		w.Members = slices.DeleteFunc(w.Members, func(m wire.Member) bool { return m.User.Username != string(user) })
		out = append(out, w)
	}
	if in.ReturnTotalCount {
		return wire.Projects{TotalCount: &total, Projects: out}, nil
	}
	return out, nil
}

// listWithoutFleets lists the caller's projects that have no nodes to run on.
func (a *People) listWithoutFleets(c *front.Call) (any, error) {
	out := []wire.Project{}
	if len(c.Snap.Partitions()) > 0 { // each is a fleet of every project that may use it
		return out, nil
	}
	for _, p := range c.Snap.Projects() {
		of := func(f *core.Fleet) bool { return f.Project == p.Name || f.Project == "" }
		if sees(c, p) && !slices.ContainsFunc(c.Snap.Fleets(), of) {
			out = append(out, seenBy(c, p, a.Project(c.Snap, p, false)))
		}
	}
	return out, nil
}

func (a *People) getProject(c *front.Call) (any, error) {
	return seenBy(c, c.Project, a.Project(c.Snap, c.Project, true)), nil
}

// current is the project of a call as it is now.
func (a *People) current(c *front.Call, name core.ProjectName) (any, error) {
	snap := a.Engine.Snapshot()
	p, ok := snap.Project(name)
	if !ok {
		return nil, front.ErrNotExists()
	}
	return seenBy(c, p, a.Project(snap, p, true)), nil
}

// changeTries bounds how often a change of a project is made again because somebody else's came between.
const changeTries = 100

// change changes the project of a call as it is at that moment: what others change at the same time stays.
func change(a *People, c *front.Call, edit func(p *core.Project) error) (any, error) {
	for try := 1; ; try++ {
		old, ok := a.Engine.Snapshot().Project(c.Project.Name)
		if !ok {
			return nil, front.ErrNotExists()
		}
		p := *old
		p.Members = slices.Clone(p.Members)
		if err := edit(&p); err != nil {
			return nil, err
		}
		_, err := engine.Do(c.Context(), a.Engine, &state.PutProject{By: c.Identity, Project: &p, Was: old})
		switch {
		case core.ReasonOf(err) == state.ProjectChanged && try < changeTries:
			continue
		case err != nil:
			return nil, denied(err)
		}
		return a.current(c, p.Name)
	}
}

type createProjectBody struct {
	ProjectName   string  `json:"project_name" in:"required"`
	IsPublic      bool    `json:"is_public"`
	TemplatesRepo *string `json:"templates_repo"`
}

func (a *People) createProject(c *front.Call, in *createProjectBody) (any, error) {
	if !c.Admin {
		return nil, front.ErrForbidden()
	}
	c.About("project", in.ProjectName)
	p := &core.Project{
		Name: core.ProjectName(in.ProjectName), Owner: c.User, Public: in.IsPublic,
		Members: []core.Member{{User: c.User, Role: core.RoleAdmin}},
	}
	if in.TemplatesRepo != nil {
		p.Templates = *in.TemplatesRepo
	}
	_, err := engine.Do(c.Context(), a.Engine, &state.PutProject{By: c.Identity, Project: p, New: true})
	if err != nil {
		return nil, err
	}
	return a.current(c, p.Name)
}

type deleteProjectsBody struct {
	ProjectsNames []string `json:"projects_names" in:"required,max=100"`
}

func (a *People) deleteProjects(c *front.Call, in *deleteProjectsBody) (any, error) {
	if !c.Admin {
		return nil, front.ErrForbidden()
	}
	for _, name := range in.ProjectsNames {
		c.About("project", name)
		_, err := engine.Do(c.Context(), a.Engine, &state.DropProject{By: c.Identity, Name: core.ProjectName(name)})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

type updateProjectBody struct {
	IsPublic           *bool   `json:"is_public"`
	TemplatesRepo      *string `json:"templates_repo"`
	ResetTemplatesRepo bool    `json:"reset_templates_repo"`
}

func (a *People) updateProject(c *front.Call, in *updateProjectBody) (any, error) {
	return change(a, c, func(p *core.Project) error {
		if in.IsPublic != nil {
			p.Public = *in.IsPublic
		}
		if in.TemplatesRepo != nil {
			p.Templates = *in.TemplatesRepo
		}
		if in.ResetTemplatesRepo {
			p.Templates = ""
		}
		return nil
	})
}

type membersBody struct {
	Members []memberBody `json:"members" in:"required,max=1000"`
}

type memberBody struct {
	Username    string `json:"username" in:"required"`
	ProjectRole string `json:"project_role" in:"required,enum=admin|manager|user"`
}

// find gives the users that a request names, by name or by email address.
func (a *People) find(c *front.Call, list []memberBody) ([]core.Member, error) {
	out := make([]core.Member, 0, len(list))
	for _, m := range list {
		u, ok := c.Snap.User(core.UserName(m.Username))
		if !ok && m.Username != "" {
			all := c.Snap.Users()
			if i := slices.IndexFunc(all, func(u *core.User) bool { return u.Email == m.Username }); i >= 0 {
				u, ok = all[i], true
			}
		}
		if !ok {
			return nil, front.Errorf("User not found: %.100s", m.Username)
		}
		out = append(out, core.Member{User: u.Name, Role: core.Role(m.ProjectRole)})
	}
	return out, nil
}

// setMembers makes a list the members of a project. All of it holds or nothing.
func (a *People) setMembers(c *front.Call, in *membersBody) (any, error) {
	members, err := a.find(c, in.Members)
	if err != nil {
		return nil, err
	}
	return change(a, c, func(p *core.Project) error {
		old := *p
		p.Members = nil
		for _, m := range members {
			next := old.Member(m.User) // shares and limits stay
			next.Role = m.Role
			p.Members = append(slices.DeleteFunc(p.Members, func(o core.Member) bool { return o.User == m.User }), next)
		}
		if !c.Admin {
			for _, m := range old.Members {
				if p.Member(m.User).Role != m.Role && m.Role.Rank() > c.Role.Rank() {
					return front.ErrForbidden()
				}
			}
		}
		return nil
	})
}

// addMembers adds members, or gives those who are members another role. Everybody may join a public project as a user.
func (a *People) addMembers(c *front.Call, in *membersBody) (any, error) {
	members, err := a.find(c, in.Members)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		_, err := engine.Do(c.Context(), a.Engine, &state.PutMember{
			By: c.Identity, Project: c.Project.Name, User: m.User, Role: m.Role,
		})
		if err != nil {
			return nil, denied(err)
		}
	}
	return a.current(c, c.Project.Name)
}

type removeMembersBody struct {
	Usernames []string `json:"usernames" in:"required,max=1000"`
}

// removeMembers takes users out of a project. Everybody may leave.
func (a *People) removeMembers(c *front.Call, in *removeMembersBody) (any, error) {
	for _, name := range in.Usernames {
		if c.Project.Member(core.UserName(name)).Role == core.RoleNone {
			return nil, front.Errorf("User is not a project member: %.100s", name)
		}
	}
	for _, name := range in.Usernames {
		_, err := engine.Do(c.Context(), a.Engine, &state.PutMember{
			By: c.Identity, Project: c.Project.Name, User: core.UserName(name), Role: core.RoleNone,
		})
		if err != nil {
			return nil, denied(err)
		}
	}
	return a.current(c, c.Project.Name)
}

// denied has a refusal of the engine answered as one of a role.
func denied(err error) error {
	if core.ReasonOf(err) == "access_denied" {
		return front.ErrForbidden()
	}
	return err
}
