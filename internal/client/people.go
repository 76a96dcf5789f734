package client

import (
	"context"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// TokenList, UserList, ProjectList and RunList answer the listings of their names.
type (
	TokenList struct {
		Tokens []core.Token `json:"tokens"`
		Page
	}
	UserList struct {
		Users []core.User `json:"users"`
		Page
	}
	ProjectList struct {
		Projects []core.Project `json:"projects"`
		Page
	}
	RunList struct {
		Runs []Run `json:"runs"`
	}
)

// Tokens lists tokens: the caller's own, or all for an administrator.
func (c *TokenClient) Tokens(ctx context.Context) (*TokenList, error) {
	read := func(q url.Values) (*TokenList, error) { return get[TokenList](ctx, c, api+"/tokens", q) }
	return everyPage(read, func(to, from *TokenList) { to.Tokens = append(to.Tokens, from.Tokens...) })
}

// NewToken makes a token. It is not sent again once received: a second secret would be lost and valid.
func (c *TokenClient) NewToken(ctx context.Context, t *NewToken) (*NewTokenMade, error) {
	out := new(NewTokenMade)
	if err := c.do(ctx, call{method: "POST", path: api + "/tokens", body: t}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RotateToken replaces the secret of a token. Like NewToken it is not sent again once received.
func (c *TokenClient) RotateToken(ctx context.Context, id string, in *RotateToken) (*NewTokenMade, error) {
	out := new(NewTokenMade)
	if err := c.do(ctx, call{method: "POST", path: api + "/tokens/" + url.PathEscape(id) + "/rotate", body: in},
		out); err != nil {
		return nil, err
	}
	return out, nil
}

// RevokeToken ends a token.
func (c *TokenClient) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, call{method: "DELETE", path: api + "/tokens/" + url.PathEscape(id), again: always}, nil)
}

// AuditList answers GET /api/v1/audit, the newest entries first.
type AuditList struct {
	Entries []core.AuditEntry `json:"entries"`
	More    bool              `json:"more,omitempty"` // ask again with before= the last one's number
}

// Audit asks for entries of the audit log; see the API for the names.
func (c *ClusterClient) Audit(ctx context.Context, query url.Values) (*AuditList, error) {
	return get[AuditList](ctx, c, api+"/audit", query)
}

// Users lists all users.
func (c *PeopleClient) Users(ctx context.Context) (*UserList, error) {
	read := func(q url.Values) (*UserList, error) { return get[UserList](ctx, c, api+"/users", q) }
	return everyPage(read, func(to, from *UserList) { to.Users = append(to.Users, from.Users...) })
}

// User returns one user.
func (c *PeopleClient) User(ctx context.Context, name core.UserName) (*core.User, error) {
	return get[core.User](ctx, c, api+"/users/"+url.PathEscape(string(name)), nil)
}

// Projects lists all projects.
func (c *PeopleClient) Projects(ctx context.Context) (*ProjectList, error) {
	read := func(q url.Values) (*ProjectList, error) {
		return get[ProjectList](ctx, c, api+"/projects", q)
	}
	return everyPage(read, func(to, from *ProjectList) { to.Projects = append(to.Projects, from.Projects...) })
}

// Find returns the project of a name.
func (l *ProjectList) Find(name core.ProjectName) (*core.Project, bool) {
	for i := range l.Projects {
		if l.Projects[i].Name == name {
			return &l.Projects[i], true
		}
	}
	return nil, false
}

// Runs lists runs; empty arguments do not restrict.
func (c *JobClient) Runs(ctx context.Context, project, name string) (*RunList, error) {
	v := url.Values{}
	if project != "" {
		v.Set("project", project)
	}
	if name != "" {
		v.Set("name", name)
	}
	return get[RunList](ctx, c, api+"/runs", v)
}

// StopRun ends a run.
func (c *JobClient) StopRun(ctx context.Context, project, name string) error {
	v := url.Values{}
	if project != "" {
		v.Set("project", project)
	}
	return c.do(ctx, call{method: "POST", path: api + "/runs/" + url.PathEscape(name) + "/stop", query: v, again: always},
		nil)
}

// Join trades a one-time token for a node's certificate.
func (c *NodeClient) Join(ctx context.Context, j *Join) (*Joined, error) {
	out := new(Joined)
	if err := c.do(ctx, call{method: "POST", path: api + "/join", body: j}, out); err != nil {
		return nil, err
	}
	return out, nil
}
