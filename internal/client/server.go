package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// Server is one of a cluster's servers.
type Server struct {
	Name    string    `json:"name"`              // of its host, or server.id
	Role    string    `json:"role"`              // "leads", "follows", or "silent": it said nothing for a while
	Address string    `json:"address,omitempty"` // where other servers and agents reach it
	Version string    `json:"version,omitempty"`
	Started core.Time `json:"started,omitempty"`
	Seq     int64     `json:"seq"`              // of the last event in its copy of the state
	Behind  float64   `json:"behind"`           // seconds that its copy may be old
	Silent  float64   `json:"silent,omitempty"` // seconds since it was heard of
	Self    bool      `json:"self,omitempty"`   // it answers this call
}

// ServerList answers GET /api/v1/servers.
type ServerList struct {
	Servers []Server `json:"servers"`
}

// Servers lists the servers of the cluster.
func (c *ClusterClient) Servers(ctx context.Context) (*ServerList, error) {
	return get[ServerList](ctx, c, api+"/servers", nil)
}

// StepDown has the server that leads let another one lead.
func (c *ClusterClient) StepDown(ctx context.Context) error {
	return c.do(ctx, call{method: "POST", path: api + "/servers/stepdown"}, nil)
}
