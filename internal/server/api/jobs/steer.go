package jobs

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"syscall"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/wire"
)

// Control changes, signals and ends jobs.
type Control struct {
	*call.Base
	Jobs        *Jobs
	Submissions *Submissions
	Hub         *hub.Hub
}

// CancelJobs ends, or signals, all jobs that match. Named jobs each get an answer; of those found by a filter the
// ones the caller may not touch are left out in silence, as scancel does.
func (a *Control) CancelJobs(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.Cancel
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	sel, err := cancelSelection(&in)
	if err != nil {
		return nil, err
	}
	ids := selection.SplitRefs(in.IDs)
	if len(ids) == 0 && !sel.Restricts() {
		return nil, core.Errorf(core.Invalid, "no jobs given: give ids or a filter").Because("no_jobs")
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.Cancelled{Results: []client.CancelResult{}}
	var todo []cancelTodo
	if len(ids) > 0 {
		if todo, err = a.named(r.Context(), v, ids, sel, out); err != nil {
			return nil, err
		}
	} else {
		for _, j := range a.Jobs.selectLive(v, sel) {
			if !j.State.Final() && a.Jobs.May(who, j) == nil {
				todo = append(todo, cancelTodo{label: strconv.FormatInt(int64(j.ID), 10), job: j.ID, states: stateFilter(sel)})
			}
		}
	}
	if !in.Cron && in.Step == "" {
		todo = a.keepCron(todo, out)
	}
	before := a.Engine.Snapshot()
	if in.Signal != 0 || in.Step != "" {
		a.signalAll(who, &in, todo, out)
	} else {
		a.cancelAll(r.Context(), who, in.Abort, todo, out)
		a.cancelled(who, before, todo, out)
	}
	who.Denied(out)
	a.HidJobs(r.Context(), who, call.NotFound(out))
	return out, nil
}

// keepCron leaves out what comes again by the clock: to end that for good one has to say so.
func (a *Control) keepCron(todo []cancelTodo, out *client.Cancelled) []cancelTodo {
	return slices.DeleteFunc(todo, func(c cancelTodo) bool {
		j, live := a.Engine.Snapshot().Job(c.job)
		if !live || j.Spec.Schedule() == "" {
			return false
		}
		err := core.Errorf(core.Conflict, "Cannot cancel scrontab jobs without --cron flag.") // as Slurm 22.05
		out.Results = append(out.Results, client.CancelResult{ID: c.label, Error: err})
		return true
	})
}

// cancelTodo is one job, array, or some tasks of an array to end.
type cancelTodo struct {
	label  string
	job    core.JobID
	tasks  taskset.Set
	part   bool // just this component of a het job
	states []core.JobState
}

func cancelSelection(in *client.Cancel) (*selection.Selection, error) {
	err := selection.CheckWords(in.Users, in.Projects, in.Partitions, in.Names, in.Runs, in.QOS, in.Reservations,
		in.WCKeys, in.States)
	if err == nil {
		err = selection.CheckFilled(in.Users, in.Projects, in.Partitions, in.Names, in.Runs, in.QOS, in.Reservations,
			in.WCKeys, in.States, in.Nodes)
	}
	if err == nil {
		err = selection.CheckRefs(in.IDs)
	}
	if err != nil {
		return nil, err
	}
	sel := &selection.Selection{
		Users: selection.WordFilter[core.UserName](in.Users), Projects: selection.WordFilter[core.ProjectName](in.Projects),
		Partitions: selection.WordFilter[core.PartitionName](in.Partitions), Names: selection.WordFilter[string](in.Names),
		Runs: selection.WordFilter[string](in.Runs),
		QOS:  selection.WordFilter[core.QOSName](in.QOS), Resvs: selection.WordFilter[string](in.Reservations),
		Wckeys: selection.WordFilter[string](in.WCKeys),
	}
	if err := sel.ParseStates(selection.SplitWords(in.States)); err != nil {
		return nil, err
	}
	return sel, sel.ParseNodes(in.Nodes)
}

func stateFilter(s *selection.Selection) []core.JobState {
	if len(s.States) == 0 {
		return nil
	}
	return s.States
}

// cancelWindow is how many cancels of one request are under way at once: they share commits and leave room for others'.
const cancelWindow = 512

// cancelAll cancels window by window.
func (a *Control) cancelAll(
	ctx context.Context, who *call.Caller, abort bool, todo []cancelTodo, out *client.Cancelled,
) {
	for some := range slices.Chunk(todo, cancelWindow) {
		a.cancelSome(ctx, who, abort, some, out)
	}
}

// cancelSome sends all cancels at once, then collects the answers.
func (a *Control) cancelSome(
	ctx context.Context, who *call.Caller, abort bool, todo []cancelTodo, out *client.Cancelled,
) {
	sent := make([]*engine.Pending[state.None], len(todo))
	errs := make([]error, len(todo))
	for i, t := range todo {
		sent[i], errs[i] = engine.Send(ctx, a.Engine,
			&state.Cancel{By: who.Identity, Job: t.job, Tasks: t.tasks, States: t.states, Abort: abort})
	}
	for i, t := range todo {
		if errs[i] == nil {
			_, errs[i] = sent[i].Wait(ctx)
		}
		out.Results = append(out.Results, client.CancelResult{ID: t.label, Error: asCoreError(errs[i])})
	}
}

// signalAll sends signals (or the end of one step) past the engine: they change no record.
func (a *Control) signalAll(who *call.Caller, in *client.Cancel, todo []cancelTodo, out *client.Cancelled) {
	refs := make([]selection.JobRef, len(todo))
	for i, t := range todo {
		refs[i] = selection.JobRef{Id: t.job, Tasks: t.tasks, Part: t.part}
	}
	runs := make([][]*core.Job, len(todo))
	selection.EachLive(a.ViewOf(who, a.Engine.Snapshot()), refs, func(i int, j *core.Job) {
		sel := &selection.Selection{States: todo[i].states}
		if (j.State == core.Running || j.State == core.Suspended) && sel.MatchState(j) {
			runs[i] = append(runs[i], j)
		}
	})
	for i, t := range todo {
		var last error = core.Errorf(core.Conflict, "job %s does not run", t.label).Because(slurm.ReasonNotRunning)
		for _, j := range runs[i] {
			if last = a.Jobs.May(who, j); last == nil {
				last = a.signal(j, in)
				who.Changed(j)
			}
			if last != nil {
				break
			}
		}
		out.Results = append(out.Results, client.CancelResult{ID: t.label, Error: asCoreError(last)})
	}
}

func (a *Control) signal(j *core.Job, in *client.Cancel) error {
	if id, err := strconv.ParseInt(in.Step, 10, 32); err == nil && !slices.ContainsFunc(
		a.Engine.Snapshot().LiveSteps(j.ID), func(st *core.Step) bool { return st.ID == int32(id) }) {
		return core.Errorf(core.Conflict, "job %d has no step %s that runs", j.ID, in.Step).Because(slurm.ReasonNoStep)
	}
	switch {
	case in.Signal == 0:
		return a.Hub.KillStep(j, wire.Kill{Step: in.Step})
	case in.Signal == int32(syscall.SIGKILL) && in.Step != "" && in.Step != wire.BatchStep:
		return a.Hub.KillStep(j, wire.Kill{Step: in.Step, Grace: -1})
	}
	return a.Hub.Signal(j, wire.Signal{Number: int(in.Signal), Step: in.Step, Batch: in.Batch, Full: in.Full})
}

func asCoreError(err error) *core.Error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*core.Error); ok { //nolint:errorlint // a wrapped one would lose what wraps it
		return e
	}
	return core.Errorf(core.CodeOf(err), "%v", err)
}

// UpdateJob changes a job. The id of an array means its record and its started tasks.
func (a *Control) UpdateJob(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.Update
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	text := r.PathValue("id")
	ref, err := selection.ParseRef(text)
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	live := a.Jobs.Live(v, ref)
	if len(live) == 0 {
		ended, _, err := a.Jobs.Find(r.Context(), v, text, 0)
		if err != nil {
			return nil, err
		}
		if in.Requeue {
			return a.requeueEnded(r.Context(), who, ended, &in)
		}
		return nil, core.Errorf(core.Conflict, "job %s has ended already", text).Because("job_finished")
	}
	if !ref.Tasks.Empty() && in.Throttle != nil {
		return nil, core.Errorf(core.Invalid, "the task limit belongs to the whole array: change %d, not %s", ref.Id, text).
			Because("array_task")
	}
	done := false
	for _, j := range live {
		if len(live) > 1 && !applies(&in, j) {
			continue
		}
		if err := a.askAndUpdate(r, who, j, ref.Tasks, &in); err != nil {
			return nil, err
		}
		who.Changed(j)
		done = true
	}
	if in.Requeue && live[0].Array != nil && ref.Tasks.Empty() { // tasks that have ended already
		ended, _, err := a.Jobs.Find(r.Context(), v, text, 0)
		if err != nil {
			return nil, err
		}
		ended = slices.DeleteFunc(ended, func(j *core.Job) bool {
			return slices.ContainsFunc(live, func(l *core.Job) bool { return l.ID == j.ID })
		})
		if len(ended) > 0 {
			_, err := a.requeueEnded(r.Context(), who, ended, &in)
			if err != nil && core.ReasonOf(err) != "job_finished" {
				return nil, err
			}
			done = done || err == nil
		}
	}
	if !done {
		return nil, core.Errorf(core.Conflict, "job %s is not in a state that allows this", text).Because("job_state")
	}
	return call.OK{}, nil
}

// requeueEnded puts jobs that have ended back into the queue.
func (a *Control) requeueEnded(ctx context.Context, who *call.Caller, list []*core.Job, in *client.Update) (
	any, error,
) {
	now, done, age := a.Engine.Snapshot().Now(), false, a.Settings().Jobs.MinAge.D()
	for _, j := range list {
		if !j.State.Final() || age > 0 && now.Sub(j.End) > age {
			continue
		}
		if in.Incomplete && j.State == core.Completed {
			done = true
			continue
		}
		if _, err := engine.Do(ctx, a.Engine, requeueOf(who, j, in, j)); err != nil {
			return nil, err
		}
		who.Changed(j)
		done = true
	}
	if !done {
		return nil, core.Errorf(core.Conflict, "job %d has ended more than %v ago", list[0].ID, age).
			Because("job_finished")
	}
	return call.OK{}, nil
}

// requeueOf is the input that requeues a job.
func requeueOf(who *call.Caller, j *core.Job, in *client.Update, ended *core.Job) *state.Requeue {
	out := &state.Requeue{By: who.Identity, Job: j.ID, Hold: in.Hold != nil && *in.Hold || in.Special, Ended: ended}
	if out.Special = in.Special; out.Hold {
		out.Reason = core.ReasonRequeuedHeld
	}
	return out
}

// applies leaves out those tasks of an array for which a change has no meaning.
func applies(in *client.Update, j *core.Job) bool {
	switch {
	case j.State.Final(), goesWithFirst(in, j):
		return false
	case in.Hold != nil || in.Partition != nil || in.Dependency != nil || in.QOS != nil || in.AskChange.Any():
		return j.State == core.Pending
	case in.Requeue || in.Suspend != nil || in.Checkpoint != nil:
		return j.State != core.Pending
	}
	return true
}

// update changes one record; tasks are those of it that are meant, if it is an array's and not all are.
func (a *Control) update(ctx context.Context, who *call.Caller, j *core.Job, tasks taskset.Set,
	in *client.Update,
) error {
	var inputs []state.Command[state.None]
	hold := in.Hold
	if in.Requeue {
		hold = nil // it says how the job comes back
	}
	if hold != nil || in.TimeLimit != nil || in.Priority != nil || in.Nice != nil || in.Name != nil ||
		in.Partition != nil || in.Comment != nil || in.Dependency != nil ||
		in.QOS != nil || in.Site != nil || in.Run != nil || in.WishChange.Any() || in.SpecChange.Any() ||
		in.Checkpoint != nil || in.ResetAge {
		up := &state.UpdateJob{
			By: who.Identity, Job: j.ID, Hold: hold, AdminHold: who.Admin && !in.UserHold, TimeLimit: in.TimeLimit,
			Priority: in.Priority, Nice: in.Nice, Name: in.Name, Partition: in.Partition, Comment: in.Comment,
			Dependency: in.Dependency, Strict: in.Strict, ResetAge: in.ResetAge,
			QOS: in.QOS, Site: in.Site, Run: in.Run, Wish: in.WishChange, Spec: in.SpecChange, Checkpoint: in.Checkpoint,
			Groups: a.Submissions.groupsOf(j.Spec.UID, in.Partition != nil || in.QOS != nil || in.Reservation != nil ||
				in.AskChange.Any()),
		}
		if j.IsArray() {
			up.Tasks = tasks
		}
		if in.Dependency != nil {
			x, err := a.Submissions.ended(ctx, who, *in.Dependency)
			if err != nil {
				return err
			}
			up.Ended, up.Seen, up.Hidden = x.jobs, x.seen, x.hidden
		}
		inputs = append(inputs, up)
	}
	if in.Suspend != nil {
		inputs = append(inputs, &state.Suspend{By: who.Identity, Job: j.ID, Resume: !*in.Suspend})
	}
	if in.Requeue {
		inputs = append(inputs, requeueOf(who, j, in, nil))
	}
	if len(inputs) == 0 {
		return core.Errorf(core.Invalid, "there is nothing to change")
	}
	for _, i := range inputs {
		if _, err := engine.Do(ctx, a.Engine, i); err != nil {
			return err
		}
	}
	return nil
}

// askAndUpdate is update, with what the site's plug-ins make of the change of this job.
func (a *Control) askAndUpdate(r *http.Request, who *call.Caller, j *core.Job, tasks taskset.Set,
	in *client.Update,
) error {
	own := *in
	if err := a.askChange(r, who, j, &own); err != nil {
		return err
	}
	return a.update(r.Context(), who, j, tasks, &own)
}

// Release ends an interactive allocation.
func (a *Control) Release(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.Release
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	ref, err := selection.ParseRef(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	if _, ok := v.Job(ref.Id); !ok {
		return nil, core.Errorf(core.NotFound, "there is no live job %d", ref.Id).Because("invalid_job_id")
	}
	before := a.Engine.Snapshot()
	if _, err := engine.Urgent(r.Context(), a.Engine,
		&state.AllocDone{By: who.Identity, Job: ref.Id, Exit: in.Exit}); err != nil {
		return nil, err
	}
	if j, ok := before.Job(ref.Id); ok {
		who.Changed(j)
	}
	return call.OK{}, nil
}

// canceled notes which jobs of others were ended.
func (a *Control) cancelled(who *call.Caller, before *state.Snapshot, todo []cancelTodo, out *client.Cancelled) {
	failed := map[string]bool{}
	for i := range out.Results {
		if out.Results[i].Error != nil {
			failed[out.Results[i].ID] = true
		}
	}
	for _, t := range todo {
		if j, ok := before.Job(t.job); ok && !failed[t.label] {
			who.Changed(j)
		}
	}
}
