package api

import (
	"context"
	"net/http"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/hub"
)

// ReloadFunc has the settings read again; dry: only compared.
type ReloadFunc func(ctx context.Context, by core.Identity, dry bool) (*client.Reconfigured, error)

// SealsFunc returns the state of the sealing key; with begin its rotation starts.
type SealsFunc func(ctx context.Context, by core.Identity, begin bool) (*client.Seals, error)

// Cluster shows the cluster and its settings, and is where administrators change what is neither a job nor a node.
type Cluster struct {
	*Base
	Version   string
	host      string
	started   core.Time
	Hub       *hub.Hub
	Authority *ca.Authority
	Reload    ReloadFunc
	CAChanged func() error
	Seals     SealsFunc
}

type pingBody struct {
	Version  string `json:"version"`
	Leading  bool   `json:"leading"`
	ReadOnly string `json:"read_only,omitempty"`
}

func (a *Cluster) ping(http.ResponseWriter, *http.Request, *caller) (any, error) {
	out := &pingBody{Version: a.Version, Leading: a.Engine.Snapshot() != nil}
	if a.Engine.ReadOnly() != "" {
		out.ReadOnly = "nothing can be written now" // why is for callers with a name: it may hold paths and hosts
	}
	return out, nil
}

func (a *Cluster) whoami(_ http.ResponseWriter, _ *http.Request, who *caller) (any, error) {
	project := who.user.Default
	if project == "" {
		project = core.ProjectName(a.conf().Accounting.DefaultProject)
	}
	out := &client.Whoami{User: who.User, UID: who.UID, Admin: who.Admin, Project: project}
	if t := who.token; t != nil {
		out.Token, out.Scopes = tokenName(t), t.Scopes
		if t.Project != "" {
			out.Project = t.Project
		}
	}
	return out, nil
}

func (a *Cluster) cluster(_ http.ResponseWriter, _ *http.Request, who *caller) (any, error) {
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	snap := v.snap
	kind, _, _ := strings.Cut(a.conf().Store(), ":")
	if kind == "postgresql" {
		kind = "postgres"
	}
	out := &client.Cluster{
		Name: a.conf().Cluster, Version: a.Version, SlurmVersion: a.conf().SlurmVersion, Server: a.host, Started: a.started,
		Now: a.now(snap), Seq: snap.Seq(), Epoch: a.Engine.Epoch(), Store: kind, ReadOnly: a.Engine.ReadOnly(),
		Partitions: v.partitions(), Topology: a.conf().CoreTopology(), Settings: a.settings(snap), Jobs: map[string]int{},
		Hidden: v.hidden(),
	}
	if !v.seesNodes() {
		out.Topology = nil
		delete(out.Settings, "SuspendExcNodes")
	}
	if !v.seesPartitions() {
		delete(out.Settings, "SuspendExcParts")
	}
	for j := range v.jobs() {
		out.Jobs[j.State.String()] += j.Count()
	}
	return out, nil
}

// enforced is what of the policy is enforced; the settings have been checked.
func (a *Base) enforced() config.Enforced {
	e, _ := a.conf().Accounting.Enforced()
	return e
}

func (a *Cluster) reconfigure(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var in client.Reconfigure
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return a.Reload(r.Context(), who.Identity, in.DryRun)
}
