// Package runs answers dstack's calls on runs, their output and what they use, and on what nodes there are for them. It
// holds no policy: package convert turns descriptions and records into each other, and the engine takes, changes and
// stops jobs as those of every other front end.
package runs

import (
	"context"
	"net"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/jobs"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/server/uploads"
	"bireme.dev/bireme/internal/store"
)

// Runs answers calls on runs.
type Runs struct {
	*call.Base
	Jobs        *jobs.Jobs
	Submissions *jobs.Submissions
	Logs        *logstore.Store
	Samples     *samples.Store
	SSH         func(host string) attach.Listener // nil: there is none
	// UserKey gives the caller's public key, which opens the jobs of the caller's runs.
	UserKey func(c *front.Call) (string, error)
	Uploads *uploads.Store
	// Streaks gives the successes in a row of the probes of a service's replica; nil: nobody probes.
	Streaks func(j *core.Job) []int32

	specs specCache
}

// Rows lists the routes.
func (a *Runs) Rows() []front.Row {
	const project = "/api/project/{project}/"
	return []front.Row{
		{Path: "/api/runs/list", Level: front.Auth, Everywhere: true, Handle: front.OptionalBody(a.list)},
		{Path: project + "runs/get", Level: front.Member, Handle: front.Body(a.get)},
		{
			Path: project + "runs/get_plan", Level: front.Member, Scope: core.ScopeSubmit, Handle: front.Body(a.plan),
		},
		{
			Path: project + "runs/apply", Level: front.Member, Scope: core.ScopeSubmit, Action: "run.apply", Quiet: true,
			Handle: front.Body(a.apply),
		},
		{
			Path: project + "runs/stop", Level: front.Member, Scope: core.ScopeSubmit, Action: "run.stop", Quiet: true,
			Handle: front.Body(a.stop),
		},
		{
			Path: project + "runs/delete", Level: front.Member, Scope: core.ScopeSubmit, Action: "run.delete", Quiet: true,
			Handle: front.Body(a.remove),
		},
		{Path: project + "logs/poll", Level: front.Member, Handle: front.Body(a.poll)},
		{Method: "GET", Path: project + "metrics/job/{run}", Level: front.Member, Handle: front.NoBody(a.metrics)},
		{Path: project + "gpus/list", Level: front.Member, Handle: front.Body(a.gpus)},
	}
}

// errNoRun is the answer to a name or id that no run has.
func errNoRun() error { return core.Errorf(core.NotFound, "Run not found").Because("invalid_run") }

// look is one call's look at the cluster.
type look struct {
	a *Runs
	c *front.Call
	v *view.Viewer
	convert.View
}

func (a *Runs) look(c *front.Call) *look {
	l := &look{a: a, c: c, v: a.ViewOf(c.Caller, c.Snap)}
	site := &a.Settings().Dstack
	l.View = convert.View{
		Images: convert.Images{Base: site.BaseImage, Devel: site.DevelImage, Docker: site.DockerImage},
		Now:    a.Now(c.Snap), WithJobs: true, Submissions: -1, Listener: a.listener(c),
		Node: func(name core.NodeName) *core.Node {
			n, ok := c.Snap.Node(name)
			if !ok {
				return nil
			}
			return n
		},
		FleetOf: func(n *core.Node, part core.PartitionName) wire.NamedID {
			name := n.Fleet
			if name == "" {
				name = string(part)
			}
			return wire.NamedID{ID: wire.UUID(wire.KindFleet, name), Name: name}
		},
	}
	return l
}

// runtime is what the caller's runs of the project run in that do not say it: the project's word, but containers for
// who has no account on the nodes.
func (l *look) runtime() string {
	if !l.c.HasGID {
		return core.RuntimeContainer
	}
	return core.RuntimeIn(l.c.Project.Name, l.c.Snap.Project)
}

// listener is where clients of the call reach jobs by SSH.
func (a *Runs) listener(c *front.Call) attach.Listener {
	if a.SSH == nil {
		return attach.Listener{}
	}
	host, _, err := net.SplitHostPort(c.R.Host)
	if err != nil {
		host = c.R.Host
	}
	return a.SSH(host)
}

// find gives the run of a name: the open one, or the newest that was not deleted.
func (l *look) find(ctx context.Context, project core.ProjectName, name string) (*core.Run, error) {
	if r, ok := l.v.Run(project, name); ok {
		return r, nil
	}
	r, err := l.newest(ctx, project, name)
	if err != nil || r != nil && r.Deleted == 0 && l.v.SeesRun(r) {
		return r, err
	}
	if r, ok := l.slurmRun(ctx, project, name); ok {
		return r, nil
	}
	return nil, errNoRun()
}

// newest is the last run of a name, deleted or not; nil: there was none.
func (l *look) newest(ctx context.Context, project core.ProjectName, name string) (*core.Run, error) {
	list, err := l.a.Store.Runs(ctx, store.RunQuery{Project: project, Name: name, Limit: 1})
	if err != nil {
		return nil, call.StoreError(err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list[0], nil
}

// findID gives the run of an id, deleted ones too.
func (l *look) findID(ctx context.Context, project core.ProjectName, id string) (*core.Run, error) {
	list, err := l.a.Store.Runs(ctx, store.RunQuery{ID: wire.RunKey(id), Project: project, Limit: 1})
	if err != nil {
		return nil, call.StoreError(err)
	}
	for _, r := range append(list, l.c.Snap.Runs()...) { // ids of an older form are derived: only open runs are found
		if r.Project == project && wire.RunID(r.ID) == id && l.v.SeesRun(r) {
			return r, nil
		}
	}
	return nil, errNoRun()
}

type getBody struct {
	RunName *string `json:"run_name"`
	ID      *string `json:"id" in:"uuid"`
}

func (a *Runs) get(c *front.Call, in *getBody) (any, error) {
	l := a.look(c)
	var r *core.Run
	var err error
	switch {
	case in.RunName != nil:
		r, err = l.find(c.Context(), c.Project.Name, *in.RunName)
	case in.ID != nil:
		r, err = l.findID(c.Context(), c.Project.Name, *in.ID)
	default:
		return nil, front.Errorf("run_name or id must be specified")
	}
	if err != nil {
		return nil, err
	}
	return l.show(c.Context(), r)
}
