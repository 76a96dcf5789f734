package api

import (
	"net/http"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

type pingBody struct {
	Version  string `json:"version"`
	Leading  bool   `json:"leading"`
	ReadOnly string `json:"read_only,omitempty"`
}

func (a *API) ping(http.ResponseWriter, *http.Request, *caller) (any, error) {
	out := &pingBody{Version: a.Version, Leading: a.Engine.Snapshot() != nil}
	if a.Engine.ReadOnly() != "" {
		out.ReadOnly = "nothing can be written now" // why is for callers with a name: it may hold paths and hosts
	}
	return out, nil
}

func (a *API) whoami(_ http.ResponseWriter, _ *http.Request, who *caller) (any, error) {
	project := who.user.Default
	if project == "" {
		project = core.ProjectName(a.conf().Accounting.DefaultProject)
	}
	return &client.Whoami{User: who.User, UID: who.UID, Admin: who.Admin, Project: project}, nil
}

func (a *API) cluster(http.ResponseWriter, *http.Request, *caller) (any, error) {
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(a.conf().Store(), ":")
	if kind == "postgresql" {
		kind = "postgres"
	}
	out := &client.Cluster{
		Name: a.conf().Cluster, Version: a.Version, SlurmVersion: a.conf().SlurmVersion, Server: a.host, Started: a.started,
		Now: a.now(snap), Seq: snap.Seq(), Epoch: a.Engine.Epoch(), Store: kind, ReadOnly: a.Engine.ReadOnly(),
		Partitions: snap.Partitions(), Topology: a.conf().CoreTopology(), Settings: a.settings(), Jobs: map[string]int{},
	}
	for j := range snap.Jobs() {
		out.Jobs[j.State.String()] += j.Count()
	}
	return out, nil
}

// settings are the effective ones under the names the Slurm tongue shows them by.
func (a *API) settings() map[string]string {
	c := a.conf()
	seconds := func(d interface{ Seconds() float64 }) string { return strconv.Itoa(int(d.Seconds())) }
	return map[string]string{
		"ClusterName":           c.Cluster,
		"DefMemPerCPU":          strconv.FormatInt(int64(c.Jobs.DefMemPerCPU)>>20, 10),
		"MaxArraySize":          strconv.FormatInt(c.Jobs.MaxArray, 10),
		"MaxJobCount":           strconv.FormatInt(c.Jobs.MaxJobs, 10),
		"MaxScriptSize":         strconv.FormatInt(int64(c.Jobs.MaxScript), 10),
		"KillWait":              seconds(c.Timers.KillWait.D()),
		"UnkillableStepTimeout": seconds(c.Timers.UnkillableAfter.D()),
		"SlurmdTimeout":         seconds(c.Timers.SilentAfter.D()),
		"Prolog":                strings.Join(c.Step.Prolog, ","),
		"Epilog":                strings.Join(c.Step.Epilog, ","),
		"AccountingStoreFlags":  strings.Join(c.Accounting.Store, ","),
		"StateSaveLocation":     c.Dir,
		"SlurmctldHost":         a.host,
		"strict_submit":         strconv.FormatBool(c.Jobs.StrictSubmit),
		"enforce_accounts":      strconv.FormatBool(a.enforced().Associations),
		"default_project":       c.Accounting.DefaultProject,
		"fence":                 c.Timers.Fence.String(),
	}
}

// enforced is what of the policy is enforced; the settings have been checked.
func (a *API) enforced() config.Enforced {
	e, _ := a.conf().Accounting.Enforced()
	return e
}

func (a *API) reconfigure(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var in client.Reconfigure
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return a.Reload(r.Context(), who.Identity, in.DryRun)
}
