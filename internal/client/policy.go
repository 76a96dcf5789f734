package client

import (
	"context"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// ApplyPolicy is the body of PUT /api/v1/policy.
type ApplyPolicy struct {
	Policy core.Policy `json:"policy"`
	Prune  bool        `json:"prune,omitempty"`   // what it does not name goes
	Force  bool        `json:"force,omitempty"`   // also with limits below what already runs
	DryRun bool        `json:"dry_run,omitempty"` // tell what would change, change nothing
}

// QOSList answers GET /api/v1/qos.
type QOSList struct {
	QOS []core.QOS `json:"qos"`
	Page
}

// PolicyList answers GET /api/v1/policy.
type PolicyList struct {
	core.Policy
	Page
}

// Policy returns every QOS and the tree of projects.
func (c *PolicyClient) Policy(ctx context.Context) (*core.Policy, error) {
	read := func(q url.Values) (*PolicyList, error) { return get[PolicyList](ctx, c, api+"/policy", q) }
	list, err := everyPage(read, func(to, from *PolicyList) {
		to.QOS, to.Projects = append(to.QOS, from.QOS...), append(to.Projects, from.Projects...)
	})
	if err != nil {
		return nil, err
	}
	return &list.Policy, nil
}

// ApplyPolicy replaces what a policy names, all or nothing.
func (c *PolicyClient) ApplyPolicy(ctx context.Context, p *ApplyPolicy) (*core.PolicyDiff, error) {
	out := new(core.PolicyDiff)
	if err := c.do(ctx, call{method: "PUT", path: api + "/policy", body: p}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// QOS lists qualities of service.
func (c *PolicyClient) QOS(ctx context.Context) (*QOSList, error) {
	read := func(q url.Values) (*QOSList, error) { return get[QOSList](ctx, c, api+"/qos", q) }
	return everyPage(read, func(to, from *QOSList) { to.QOS = append(to.QOS, from.QOS...) })
}

// PutQOS makes or replaces a QOS.
func (c *PolicyClient) PutQOS(ctx context.Context, q *core.QOS) error {
	return c.do(ctx, call{method: "PUT", path: api + "/qos/" + url.PathEscape(string(q.Name)), body: q, again: always},
		nil)
}

// What Drop deletes. A QOS leaves the lists that name it; it must be nobody's default. Users whose default project goes
// get another of their projects, or none. A user leaves all projects, and tokens and keys go.
const (
	DropQOS     = "qos"
	DropProject = "projects"
	DropUser    = "users"
)

// Drop deletes a QOS, a project or a user for whom no job runs or waits.
func (c *PolicyClient) Drop(ctx context.Context, what, name string) error {
	query := map[string]url.Values{DropQOS: {"unlist": {"1"}}, DropProject: {"members": {"1"}}}[what]
	return c.do(ctx, call{method: "DELETE", path: api + "/" + what + "/" + url.PathEscape(name), query: query}, nil)
}
