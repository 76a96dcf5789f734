package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/stream"
	"bireme.dev/bireme/internal/slurm"
)

// Steps makes and lists the steps of jobs.
type Steps struct {
	*Base
	jobs    *Jobs
	Hub     *hub.Hub
	Streams *stream.Exchange
}

func (a *Steps) steps(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	list, _, err := a.jobs.find(r.Context(), v, r.PathValue("id"), 0)
	if err != nil {
		return nil, err
	}
	steps, err := a.jobs.stepsOf(r.Context(), v.snap, list)
	return &client.StepList{Steps: steps, Now: a.now(v.snap)}, err
}

// part is a step in one job on its way: a step over components of a het job has several.
type part struct {
	ask   *client.NewStep
	job   *core.Job
	want  *core.Step
	ranks [][]int32
}

// newStep makes a numbered step in a running job and launches it on its nodes. Its streams wait for srun under a one-time
// key.
func (a *Steps) newStep(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	ask, err := readStep(r)
	if err != nil {
		return nil, err
	}
	ref, err := parseRef(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if c := ask.Container; c != nil {
		c.Submitter, c.Privileged, c.Ports = true, false, nil // a step is its user's, as the job is
		if err := state.CheckContainer(c, nil); err != nil {
			return nil, err
		}
	}
	if len(ask.Het) >= maxStepParts {
		return nil, core.Errorf(core.Invalid, "it has %d components; %d are the most there can be", len(ask.Het)+1, maxStepParts).Because("invalid_het")
	}
	parts := []*part{{ask: ask}}
	for i := range ask.Het {
		h := &ask.Het[i]
		h.Pty, h.MPI, h.OwnsJob, h.Het, h.Container = ask.Pty, ask.MPI, false, nil, ask.Container
		parts = append(parts, &part{ask: h})
	}
	for _, p := range parts {
		if err := a.checkEnvList(p.ask.Env); err != nil {
			return nil, err
		}
	}
	all, err := a.makeParts(r.Context(), parts, ref.id, who)
	for range placeTries {
		if core.CodeOf(err) != core.Conflict || parts[len(parts)-1].want == nil {
			break
		}
		all, err = a.makeParts(r.Context(), parts, ref.id, who) // another step came first, and is seen now
	}
	if err != nil {
		return nil, err
	}
	made := make([]client.StepMade, len(parts))
	for i, p := range parts {
		who.changed(p.job)
		if made[i], err = a.launchPart(r.Context(), all, i, p); err != nil {
			a.unmake(r.Context(), all[i:])
			for _, p := range all[:i] {
				_ = a.Hub.KillStep(p.Job, stepName(p.Step.ID)) // otherwise it ends because nobody opens its streams
			}
			return nil, err
		}
	}
	made[0].Het = made[1:]
	return &made[0], nil
}

// placeTries is how often a step is laid out again because another took its place before it was made.
const placeTries = 20

// makeParts lays out all parts of a step and makes them, or none.
func (a *Steps) makeParts(ctx context.Context, parts []*part, id core.JobID, who *caller) ([]slurm.StepPart, error) {
	var rank int32
	for _, p := range parts {
		p.want = nil
	}
	for _, p := range parts {
		if err := a.layPart(p, id, who, rank); err != nil {
			return nil, err
		}
		for _, list := range p.ranks {
			rank += int32(len(list))
		}
	}
	all := make([]slurm.StepPart, 0, len(parts))
	for _, p := range parts {
		reply, err := engine.Do(ctx, a.Engine, &state.CreateStep{By: who.Identity, Step: p.want})
		if err != nil {
			a.unmake(ctx, all)
			return nil, err
		}
		all = append(all, slurm.StepPart{Job: p.job, Step: reply, Ranks: p.ranks, Ask: p.ask})
	}
	return all, nil
}

// layPart checks a part of a step that is asked for in a job, or in a component of it, and lays its tasks out. Their ranks
// begin with first.
func (a *Steps) layPart(p *part, id core.JobID, who *caller, first int32) error {
	ask := p.ask
	if len(ask.Argv) == 0 || ask.Argv[0] == "" {
		return core.Errorf(core.Invalid, "a step needs a command").Because("no_command")
	}
	if err := checkStep(ask); err != nil {
		return err
	}
	v, err := a.viewer(who)
	if err != nil {
		return err
	}
	snap := v.snap
	j, ok := v.job(id)
	if ok && ask.Component > 0 {
		het := j.Spec.More().Het
		if het == nil || ask.Component >= het.Count {
			return core.Errorf(core.Invalid, "job %d has no component %d", id, ask.Component).Because("invalid_het")
		}
		j, ok = v.job(het.Lead + core.JobID(ask.Component))
	}
	if !ok {
		return core.Errorf(core.NotFound, "there is no live job %d", id).Because("invalid_job_id")
	}
	if !who.Admin && who.User != j.Spec.User { // a step runs as the job's owner: more than steering it
		return core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
	}
	if j.State != core.Running || j.Alloc == nil {
		return core.Errorf(core.Conflict, "job %d %s", j.ID, j.State.Phrase()).Because("job_not_running")
	}
	p.job = j
	if p.want, p.ranks, err = place(j, snap.LiveSteps(j.ID), ask, a.conf().Jobs.MaxTasks); err != nil {
		return err
	}
	for _, list := range p.ranks {
		for i := range list {
			list[i] += first
		}
	}
	return programs(ask, p.ranks)
}

// launchPart sends a part of a step to its nodes.
func (a *Steps) launchPart(ctx context.Context, all []slurm.StepPart, at int, p *part) (client.StepMade, error) {
	j, st := all[at].Job, all[at].Step
	made := client.StepMade{Step: *st, Key: newID() + newID(), Ranks: p.ranks}
	a.Streams.Expect(made.Key, st, j.Spec.User, a.whenForsaken(j, st, p.ask.OwnsJob))
	away, err := a.Hub.LaunchStep(all, at, made.Key)
	for _, n := range away { // what was not sent has failed; what was sent runs
		if eerr := a.notLaunched(ctx, st, n, "node "+string(n)+" is not connected"); eerr != nil {
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
			if err := a.notLaunched(ctx, p.Step, n, "another component's part of the step could not start"); err != nil {
				a.Log.Info("step that was not launched not ended", "job", p.Job.ID, "step", p.Step.ID, "err", err)
			}
		}
	}
}

func (a *Steps) notLaunched(ctx context.Context, st *core.Step, n core.NodeName, why string) error {
	_, err := engine.Urgent(ctx, a.Engine, &state.Exited{Node: n, Job: st.Job, Attempt: st.Attempt, Step: stepName(st.ID),
		Cause: state.CauseLaunch, Message: why})
	return err
}

// programs checks that every task of a step with several programs has one.
func programs(ask *client.NewStep, ranks [][]int32) error {
	if len(ask.Programs) == 0 {
		return nil
	}
	for _, list := range ranks {
		for _, r := range list {
			if !slices.ContainsFunc(ask.Programs, func(p client.TaskProgram) bool {
				return slices.ContainsFunc(p.Ranks, func(s client.RankSpan) bool { return s.First <= r && r <= s.Last })
			}) {
				return core.Errorf(core.Invalid, "No executable program specified for task %d", r).Because("no_program")
			}
		}
	}
	return nil
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
		return a.Hub.KillStep(j, step)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	_, err := engine.Urgent(ctx, a.Engine, &state.Cancel{By: core.Identity{User: j.Spec.User, UID: j.Spec.UID}, Job: j.ID})
	if core.CodeOf(err) == core.NotFound { // it was given back
		return nil
	}
	return err
}
