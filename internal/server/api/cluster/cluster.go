package cluster

import (
	"context"
	"net/http"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/hub"
)

// ReloadFunc has the settings read again; dry: only compared.
type ReloadFunc func(ctx context.Context, by core.Identity, dry bool) (*client.Reconfigured, error)

// SealsFunc returns the state of the sealing key; with begin its rotation starts.
type SealsFunc func(ctx context.Context, by core.Identity, begin bool) (*client.Seals, error)

// Cluster shows the cluster and its settings, and is where administrators change what is neither a job nor a node.
type Cluster struct {
	*call.Base
	Version   string
	Host      string
	Started   core.Time
	Hub       *hub.Hub
	Authority *ca.Authority
	Reload    ReloadFunc
	CAChanged func() error
	Seals     SealsFunc
	Dstack    string // URL for dstack's clients; empty: none
	Members   MembersFunc
	StepDown  func() error
}

type PingBody struct {
	Version  string `json:"version"`
	Leading  bool   `json:"leading"`
	ReadOnly string `json:"read_only,omitempty"`
}

func (a *Cluster) Ping(http.ResponseWriter, *http.Request, *call.Caller) (any, error) {
	out := &PingBody{Version: a.Version, Leading: a.Engine.Epoch() != 0 && a.Engine.HoldsLease()}
	if a.Engine.ReadOnly() != "" {
		out.ReadOnly = "nothing can be written now" // why is for callers with a name: it may hold paths and hosts
	}
	return out, nil
}

func (a *Cluster) Whoami(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	project := who.UserRecord.Default
	if project == "" {
		project = core.ProjectName(a.Settings().Accounting.DefaultProject)
	}
	out := &client.Whoami{User: who.User, UID: who.UID, Admin: who.Admin, Project: project}
	if t := who.TokenRecord; t != nil {
		out.Token, out.Scopes = call.TokenName(t), t.Scopes
		if t.Project != "" {
			out.Project = t.Project
		}
	}
	return out, nil
}

func (a *Cluster) Show(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	snap := v.Snap
	kind, _, _ := strings.Cut(a.Settings().Store(), ":")
	if kind == "postgresql" {
		kind = "postgres"
	}
	out := &client.Cluster{
		Name: a.Settings().Cluster, Version: a.Version, SlurmVersion: a.Settings().SlurmVersion, Server: a.Host,
		Started: a.Started,
		Now:     a.Now(snap), Seq: snap.Seq(), Epoch: a.Engine.Epoch(), Store: kind, ReadOnly: a.Engine.ReadOnly(),
		Partitions: v.Partitions(), Topology: a.Settings().CoreTopology(), Settings: a.settings(snap), Jobs: map[string]int{},
		Hidden: v.Hidden(), Dstack: a.Dstack,
	}
	if !v.SeesNodes() {
		out.Topology = nil
		delete(out.Settings, "SuspendExcNodes")
	}
	if !v.SeesPartitions() {
		delete(out.Settings, "SuspendExcParts")
	}
	for j := range v.Jobs() {
		out.Jobs[j.State.String()] += j.Count()
	}
	return out, nil
}

func (a *Cluster) Reconfigure(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.Reconfigure
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	return a.Reload(r.Context(), who.Identity, in.DryRun)
}
