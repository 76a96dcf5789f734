package cluster

import (
	"context"
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

// MembersFunc lists the servers of the cluster.
type MembersFunc func(ctx context.Context) ([]client.Server, error)

// Servers shows who leads and who follows.
func (a *Cluster) Servers(_ http.ResponseWriter, r *http.Request, _ *call.Caller) (any, error) {
	list, err := a.Members(r.Context())
	if err != nil {
		return nil, err
	}
	return &client.ServerList{Servers: list}, nil
}

// StepDownNow has this server, which leads, let another one lead.
func (a *Cluster) StepDownNow(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator has a server step down").Because("access_denied")
	}
	return call.OK{}, a.StepDown()
}
