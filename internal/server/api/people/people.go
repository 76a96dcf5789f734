package people

import (
	"fmt"
	"net/http"
	"slices"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

// People shows and changes users, projects, QOS and policy.
type People struct{ *call.Base }

// Users lists users by name.
func (a *People) Users(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.UserList{Users: []core.User{}}
	for _, u := range v.Users() {
		if string(u.Name) > page.After && len(out.Users) <= page.Limit {
			out.Users = append(out.Users, *u)
		}
	}
	out.Users, out.Page = call.Cut(page, out.Users, func(u *core.User) string { return string(u.Name) })
	return out, nil
}

func (a *People) User(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	return v.FindUser(core.UserName(r.PathValue("name")))
}

func (a *People) NewUser(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var u core.User
	if err := call.Decode(r, &u); err != nil {
		return nil, err
	}
	who.About("user", string(u.Name))
	return a.putUser(r, who, &u, true)
}

func (a *People) UpdateUser(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	old, err := v.FindUser(core.UserName(r.PathValue("name")))
	if err != nil {
		return nil, err
	}
	u := *old
	if old.UID != nil { // what is decoded goes through pointers, and the record is everybody's
		uid := *old.UID
		u.UID = &uid
	}
	if err := call.Decode(r, &u); err != nil { // fields that are not named stay
		return nil, err
	}
	u.Name = old.Name
	return a.putUser(r, who, &u, false)
}

// DropUser deletes a user who has no live job.
func (a *People) DropUser(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	in := &state.DropUser{By: who.Identity, Name: core.UserName(r.PathValue("name"))}
	if _, err := engine.Do(r.Context(), a.Engine, in); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

func (a *People) putUser(r *http.Request, who *call.Caller, u *core.User, isNew bool) (any, error) {
	if u.Role != "" && u.Role.Rank() == 0 {
		return nil, core.Errorf(core.Invalid, "role: %q is none of user, manager, admin", u.Role)
	}
	if _, err := engine.Do(r.Context(), a.Engine, &state.PutUser{By: who.Identity, User: u, New: isNew}); err != nil {
		return nil, err
	}
	now, ok := a.Engine.Snapshot().User(u.Name)
	if !ok {
		return nil, core.Errorf(core.NotFound, "user %s is gone", u.Name)
	}
	out := &client.UserPut{User: *now}
	if _, err := account.ByName(now.UnixName); now.UnixName != "" && err != nil {
		out.Warning = fmt.Sprintf("the server's host knows no account %q: while it does not, %s cannot run processes",
			now.UnixName, now.Name)
	}
	return out, nil
}

// Projects lists projects by name.
func (a *People) Projects(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.ProjectList{}
	list := slices.DeleteFunc(v.Projects(), func(p core.Project) bool { return string(p.Name) <= page.After })
	out.Projects, out.Page = call.Cut(page, list, func(p *core.Project) string { return string(p.Name) })
	return out, nil
}

func (a *People) NewProject(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var p core.Project
	if err := call.Decode(r, &p); err != nil {
		return nil, err
	}
	who.About("project", string(p.Name))
	if _, err := engine.Do(r.Context(), a.Engine,
		&state.PutProject{By: who.Identity, Project: &p, New: true}); err != nil {
		return nil, err
	}
	now, ok := a.Engine.Snapshot().Project(p.Name)
	if !ok {
		return nil, core.Errorf(core.NotFound, "project %s is gone", p.Name)
	}
	return now, nil
}

// UpdateProject changes what is named of a project; its members stay.
func (a *People) UpdateProject(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	old, ok := v.Snap.Project(core.ProjectName(r.PathValue("project")))
	if !ok || !v.SeesProject(old.Name) {
		return nil, core.Errorf(core.NotFound, "there is no project %q", r.PathValue("project")).Because("invalid_project")
	}
	in := ProjectBody{Parent: old.Parent, Shares: old.Shares, Runtime: old.Runtime, Trusted: old.Trusted}
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	p := *old
	p.Parent, p.Shares, p.Runtime, p.Trusted = in.Parent, in.Shares, in.Runtime, in.Trusted
	if in.Assoc != nil {
		p.Assoc = *in.Assoc
	}
	if _, err := engine.Do(r.Context(), a.Engine, &state.PutProject{By: who.Identity, Project: &p}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

type ProjectBody struct {
	Parent  core.ProjectName  `json:"parent,omitempty"`
	Shares  int32             `json:"shares,omitempty"`
	Runtime string            `json:"runtime"`
	Trusted bool              `json:"trusted,omitempty"`
	Assoc   *core.Association `json:"assoc,omitempty"` // nil: as it is
}

type MemberBody struct {
	Role   core.Role         `json:"role"`
	Shares *int32            `json:"shares,omitempty"` // nil: as they are
	Assoc  *core.Association `json:"assoc,omitempty"`  // nil: as it is
}

func (a *People) PutMember(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in MemberBody
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	if p := core.ProjectName(r.PathValue("project")); !v.SeesProject(p) { // whether it is there is not told
		return nil, core.Errorf(core.NotFound, "there is no project %q", p).Because("invalid_project")
	}
	_, err = engine.Do(r.Context(), a.Engine, &state.PutMember{
		By: who.Identity, Project: core.ProjectName(r.PathValue("project")), User: core.UserName(r.PathValue("user")),
		Role:   in.Role,
		Shares: in.Shares, Assoc: in.Assoc,
	})
	if err != nil {
		return nil, err
	}
	return call.OK{}, nil
}
