package client

import (
	"context"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// UpdateUser is the body of PATCH /api/v1/users/{name}. Nil fields stay.
type UpdateUser struct {
	UnixName *string           `json:"unix_name,omitempty"`
	Role     *core.Role        `json:"role,omitempty"`
	Default  *core.ProjectName `json:"default_project,omitempty"`
	Disabled *bool             `json:"disabled,omitempty"`

	WCKeys       *[]string `json:"wckeys,omitempty"`
	DefaultWCKey *string   `json:"default_wckey,omitempty"`
}

// PutMember is the body of PUT /api/v1/projects/{project}/members/{user}; the empty role takes the user out.
type PutMember struct {
	Role core.Role `json:"role"`
}

// UpdateProject is the body of PATCH /api/v1/projects/{project}. Nil fields stay.
type UpdateProject struct {
	Runtime *string `json:"runtime,omitempty"`
	Trusted *bool   `json:"trusted,omitempty"` // administrators only
}

// UpdateProject changes a project.
func (c *PeopleClient) UpdateProject(ctx context.Context, name core.ProjectName, p *UpdateProject) error {
	return c.do(ctx, call{
		method: "PATCH", path: api + "/projects/" + url.PathEscape(string(name)), body: p,
		again: always,
	}, nil)
}

// NewUser adds a user.
func (c *PeopleClient) NewUser(ctx context.Context, u *core.User) error {
	_, err := c.AddUser(ctx, u)
	return err
}

// AddUser is NewUser that also gives what the server made of it.
func (c *PeopleClient) AddUser(ctx context.Context, u *core.User) (*UserPut, error) {
	out := new(UserPut)
	if err := c.do(ctx, call{method: "POST", path: api + "/users", body: u}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateUser changes a user.
func (c *PeopleClient) UpdateUser(ctx context.Context, name core.UserName, u *UpdateUser) error {
	return c.do(ctx, call{method: "PATCH", path: api + "/users/" + url.PathEscape(string(name)), body: u, again: always},
		nil)
}

// NewProject adds a project.
func (c *PeopleClient) NewProject(ctx context.Context, p *core.Project) error {
	return c.do(ctx, call{method: "POST", path: api + "/projects", body: p}, nil)
}

// PutMember sets the role of a user in a project; the empty role takes the user out.
func (c *PeopleClient) PutMember(ctx context.Context, project core.ProjectName, user core.UserName,
	role core.Role,
) error {
	path := api + "/projects/" + url.PathEscape(string(project)) + "/members/" + url.PathEscape(string(user))
	return c.do(ctx, call{method: "PUT", path: path, body: PutMember{Role: role}, again: always}, nil)
}
