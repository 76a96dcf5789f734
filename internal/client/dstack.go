package client

import (
	"context"
	"net/url"
)

// Dstack makes calls of dstack's API in a project. Errors are those of the native API. A call may be sent twice: only
// those whose effect happens once are made so.
type Dstack struct {
	Client  *Client
	Project string
}

// Post makes a call of the project, such as runs/get, and decodes its answer into out (nil: thrown away).
func (d Dstack) Post(ctx context.Context, path string, in, out any) error {
	return d.All(ctx, "project/"+url.PathEscape(d.Project)+"/"+path, in, out)
}

// All makes a call that is not of a project, such as runs/list.
func (d Dstack) All(ctx context.Context, path string, in, out any) error {
	if in == nil {
		in = struct{}{}
	}
	return d.Client.do(ctx, call{method: "POST", path: api + "/dstack/" + path, body: in, again: always}, out)
}

// Get makes a call of the project by GET.
func (d Dstack) Get(ctx context.Context, path string, query url.Values, out any) error {
	path = api + "/dstack/project/" + url.PathEscape(d.Project) + "/" + path
	return d.Client.do(ctx, call{method: "GET", path: path, query: query, again: always}, out)
}
