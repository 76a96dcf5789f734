package steps

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/jobs"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/stream"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/wire"
)

// Steps makes and lists the steps of jobs.
type Steps struct {
	*call.Base
	Jobs    *jobs.Jobs
	Hub     *hub.Hub
	Streams *stream.Exchange
}

func (a *Steps) List(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	list, _, err := a.Jobs.Find(r.Context(), v, r.PathValue("id"), 0)
	if err != nil {
		return nil, err
	}
	steps, err := a.Jobs.StepsOf(r.Context(), v.Snap, list)
	return &client.StepList{Steps: steps, Now: a.Now(v.Snap)}, err
}

// Update changes the time limit of a step that runs, or of all steps of a job.
func (a *Steps) Update(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.UpdateStep
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	up := &state.UpdateStep{By: who.Identity, Step: -1, TimeLimit: in.TimeLimit}
	if word := r.PathValue("step"); word != "all" {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil || n < 0 {
			return nil, core.Errorf(core.Invalid, "step %.40q: expected a number, or all", word).Because("invalid_job_id")
		}
		up.Step = int32(n)
	}
	ref, err := selection.ParseRef(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	live := a.Jobs.Live(v, ref)
	if len(live) != 1 {
		return nil, core.Errorf(core.NotFound, "there is no live job %s", r.PathValue("id")).Because("invalid_job_id")
	}
	up.Job = live[0].ID
	if _, err := engine.Do(r.Context(), a.Engine, up); err != nil {
		return nil, err
	}
	who.Changed(live[0])
	return call.OK{}, nil
}

// part is a step in one job on its way: a step over components of a het job has several.
type part struct {
	ask   *client.NewStep
	job   *core.Job
	ranks [][]int32 // of its tasks, on each node
}

// Create makes a numbered step in a running job and launches it on its nodes. Its streams wait for srun under a
// one-time key.
func (a *Steps) Create(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	ask, err := readStep(r)
	if err != nil {
		return nil, err
	}
	ref, err := selection.ParseRef(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if c := ask.Container; c != nil {
		c.Submitter, c.Privileged, c.Ports = true, false, nil // a step is its user's, as the job is
		if err := speccheck.Container(c, nil); err != nil {
			return nil, err
		}
	}
	if len(ask.Het) >= jobs.MaxStepParts {
		return nil, core.Errorf(core.Invalid, "%d components are too many; the maximum is %d", len(ask.Het)+1,
			jobs.MaxStepParts).Because("invalid_het")
	}
	parts := []*part{{ask: ask}}
	for i := range ask.Het {
		h := &ask.Het[i]
		h.Pty, h.MPI, h.OwnsJob, h.Het, h.Container = ask.Pty, ask.MPI, false, nil, ask.Container
		parts = append(parts, &part{ask: h})
	}
	for _, p := range parts {
		if err := a.CheckEnvList(p.ask.Env); err != nil {
			return nil, err
		}
	}
	// A caller that leaves after the commit must not leave a step behind that nobody launches and nobody ends: from here
	// on all is done without them. A launched step whose srun does not come is ended by its streams.
	ctx := context.WithoutCancel(r.Context())
	all, err := a.makeParts(ctx, parts, ref.Id, who)
	if err != nil {
		return nil, err
	}
	made := make([]client.StepMade, len(parts))
	for i, p := range parts {
		who.Changed(p.job)
		if made[i], err = a.launchPart(ctx, all, i, p); err != nil {
			a.unmake(ctx, all[i:])
			for _, p := range all[:i] {
				// otherwise it ends because nobody opens its streams
				_ = a.Hub.KillStep(p.Job, wire.Kill{Step: stepName(p.Step.ID)})
			}
			return nil, err
		}
	}
	made[0].Het = made[1:]
	return &made[0], nil
}

// makeParts makes all parts of a step, or none. Where its tasks run is decided by the command that makes it.
func (a *Steps) makeParts(ctx context.Context, parts []*part, id core.JobID, who *call.Caller) (
	[]slurm.StepPart, error,
) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	list := make([]state.CreateStep, len(parts))
	for i, p := range parts {
		if len(p.ask.Argv) == 0 || p.ask.Argv[0] == "" {
			return nil, core.Errorf(core.Invalid, "a step needs a command").Because("no_command")
		}
		if err := checkStep(p.ask); err != nil {
			return nil, err
		}
		if p.job, err = stepJob(v, id, p.ask.Component); err != nil {
			return nil, err
		}
		request, err := stepRequest(p.ask, a.Settings().Jobs.MaxTasks)
		if err != nil {
			return nil, err
		}
		list[i] = state.CreateStep{By: who.Identity, Step: &core.Step{
			Job: p.job.ID, Name: p.ask.Name, Options: core.StepOptions{
				TimeLimit: p.ask.TimeLimit, Distribution: p.ask.Distribution, Host: p.ask.Host, PID: p.ask.PID,
			},
		}, Request: request}
	}
	list[0].Rest = list[1:]
	if err := a.Keep(who, 0); err != nil {
		return nil, err
	}
	reply, err := engine.Do(ctx, a.Engine, &list[0])
	if err != nil {
		a.Unkeep(who, 0)
		return nil, err
	}
	all := make([]slurm.StepPart, len(parts))
	rank := int32(0)
	for i, p := range parts {
		st := reply.Steps[i]
		p.job = reply.Jobs[i] // it may have started, or started again, since the snapshot
		p.ranks = ranksOf(list[i].Request, p.ask.Distribution, st)
		for _, list := range p.ranks {
			for k := range list {
				list[k] += rank
			}
		}
		for _, n := range st.Tasks {
			rank += n
		}
		all[i] = slurm.StepPart{Job: p.job, Step: st, Ranks: p.ranks, Ask: p.ask}
	}
	return all, nil
}

// stepJob finds the job, or the component of a het job, in which a step is asked for.
func stepJob(v *view.Viewer, id core.JobID, component int32) (*core.Job, error) {
	j, ok := v.Job(id)
	if ok && component > 0 {
		het := j.Spec.More().Het
		if het == nil || component >= het.Count {
			return nil, core.Errorf(core.Invalid, "job %d has no component %d", id, component).Because("invalid_het")
		}
		j, ok = v.Job(het.Lead + core.JobID(component))
	}
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no live job %d", id).Because("invalid_job_id")
	}
	return j, nil
}

// launchPart sends a part of a step to its nodes.
func (a *Steps) launchPart(ctx context.Context, all []slurm.StepPart, at int, p *part) (client.StepMade, error) {
	j, st := all[at].Job, all[at].Step
	made := client.StepMade{Step: *st, Key: call.NewID() + call.NewID(), Ranks: p.ranks}
	a.Streams.Expect(made.Key, st, j.Spec.User, a.whenForsaken(j, st, p.ask.OwnsJob))
	away, err := a.Hub.LaunchStep(all, at, made.Key)
	for _, n := range away { // what was not sent has failed; what was sent runs
		why := "node " + string(n) + " is not connected"
		if err != nil {
			why = err.Error()
		}
		if eerr := a.notLaunched(ctx, st, n, why); eerr != nil {
			return made, eerr
		}
	}
	if err == nil && len(away) == len(st.Nodes) {
		err = core.Errorf(core.Unavailable, "node %s is not connected", away[0]).Because("node_silent")
	}
	return made, err
}

// unmake ends parts of a step that will not be launched because another could not be.
func (a *Steps) unmake(ctx context.Context, all []slurm.StepPart) {
	for _, p := range all {
		for _, n := range p.Step.Nodes {
			const why = "another component's part of the step could not start"
			if err := a.notLaunched(ctx, p.Step, n, why); err != nil {
				a.Hub.Abandoned.Add(p.Step, why)
				break
			}
		}
	}
}

func (a *Steps) notLaunched(ctx context.Context, st *core.Step, n core.NodeName, why string) error {
	_, err := engine.Urgent(ctx, a.Engine, &state.Exited{
		Node: n, Job: st.Job, Attempt: st.Attempt, Step: stepName(st.ID),
		Cause: state.CauseLaunch, Message: why,
	})
	return err
}

// whenForsaken is what happens when the srun of a step, that may own the job, is gone.
func (a *Steps) whenForsaken(j *core.Job, st *core.Step, owns bool) func() {
	return func() {
		if err := a.forsaken(j, stepName(st.ID), owns && j.Spec.Kind == core.Interactive); err != nil {
			a.Log.Info("step without srun not ended", "job", j.ID, "step", st.ID, "err", err)
		}
	}
}

// forsaken ends a step whose srun is gone, and with it the allocation that srun made for itself: nobody else would.
func (a *Steps) forsaken(j *core.Job, step string, whole bool) error {
	if !whole {
		return a.Hub.KillStep(j, wire.Kill{Step: step, Reason: wire.ReasonForsaken})
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	_, err := engine.Urgent(ctx, a.Engine, &state.Cancel{By: core.Identity{User: j.Spec.User, UID: j.Spec.UID}, Job: j.ID})
	if core.CodeOf(err) == core.NotFound { // it was given back
		return nil
	}
	return err
}
