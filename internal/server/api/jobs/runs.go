package jobs

import (
	"context"
	"net/http"
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/store"
)

// Runs lists runs, newest first: open ones from memory, ended ones from the store.
func (a *Jobs) Runs(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	project, name := core.ProjectName(q.Get("project")), q.Get("name")
	limit, err := call.Number(q.Get("limit"), 1000)
	if err != nil {
		return nil, err
	}
	list, err := a.Store.Runs(r.Context(), store.RunQuery{
		Project: project, Name: name, Limit: int(min(limit, call.MaxPage)),
	})
	if err != nil {
		return nil, call.StoreError(err)
	}
	list = slices.DeleteFunc(list, func(run *core.Run) bool { return !v.SeesRun(run) })
	jobs, err := a.jobsOf(r.Context(), v, list)
	if err != nil {
		return nil, err
	}
	out := &client.RunList{Runs: make([]client.Run, 0, len(list))}
	now := a.Now(v.Snap)
	for _, run := range list {
		out.Runs = append(out.Runs, a.showRun(v, run, jobs, now))
	}
	return out, nil
}

// jobsOf finds the jobs by which runs are judged, live or ended, by the id of the run.
func (a *Jobs) jobsOf(ctx context.Context, v *view.Viewer, runs []*core.Run) (map[string]*core.Job, error) {
	out := map[string]*core.Job{}
	var ended []core.JobID
	of := map[core.JobID]string{}
	for _, r := range runs {
		if j := v.LiveRunJob(r); j != nil {
			out[r.ID] = j
		} else if id := r.DecidingJob(); id != 0 {
			ended = append(ended, id)
			of[id] = r.ID
		}
	}
	for chunk := range slices.Chunk(ended, 500) {
		list, err := a.Store.Jobs(ctx, store.JobQuery{IDs: chunk, Exact: true, Limit: len(chunk)})
		if err != nil {
			return nil, call.StoreError(err)
		}
		for _, j := range list {
			out[of[j.ID]] = j
		}
	}
	return out, nil
}

func (a *Jobs) showRun(v *view.Viewer, run *core.Run, jobs map[string]*core.Job, now core.Time) client.Run {
	out := client.Run{Run: v.ShowRun(run), State: "submitted", Views: []client.Brief{}}
	j := jobs[run.ID]
	if j == nil {
		return out // purged
	}
	var shown client.Job
	a.explain(v, &shown, j)
	out.Views = append(out.Views, client.BriefOf(&shown, now))
	out.State, out.Reason, out.Ports = runState(j), v.Sentence(j.Message, j.ID), shown.Ports
	if j.State == core.Pending {
		out.Reason = shown.Why
	}
	if view.Begun(j) && run.Ended == 0 && !j.State.Final() {
		out.State = "running"
	}
	return out
}

// runState words a run's state as dstack does.
func runState(j *core.Job) string {
	switch {
	case j.Flags.Has(core.Completing) && j.Stop != nil:
		return "terminating"
	case j.State == core.Pending:
		return "submitted"
	case j.State == core.Running, j.State == core.Suspended:
		return "running"
	case j.State == core.Completed:
		return "done"
	case j.State == core.Cancelled:
		return "terminated"
	}
	return "failed"
}

// StopRun ends the open run of a name.
func (a *Jobs) StopRun(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	project, name := core.ProjectName(r.URL.Query().Get("project")), r.PathValue("name")
	if project == "" {
		if project = who.UserRecord.Default; project == "" {
			project = core.ProjectName(a.Settings().Accounting.DefaultProject)
		}
	}
	run, ok := v.Run(project, name)
	if hidden, there := v.Snap.Run(project, name); there && !ok {
		who.Hid("run "+name, hidden.User)
	}
	if !ok {
		return nil, core.Errorf(core.NotFound, "no run %q is active in project %s", name, project).Because("invalid_run")
	}
	if run.Service != nil {
		_, err := engine.Do(r.Context(), a.Engine, &state.StopService{By: who.Identity, Project: project, Name: name})
		return call.OK{}, err
	}
	for _, id := range run.Jobs {
		_, err := engine.Urgent(r.Context(), a.Engine, &state.Cancel{By: who.Identity, Job: id})
		if err != nil && core.CodeOf(err) != core.NotFound {
			return nil, err
		}
		if j, ok := v.Job(id); ok {
			who.Changed(j)
		}
	}
	return call.OK{}, nil
}
