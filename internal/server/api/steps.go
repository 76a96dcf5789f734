package api

import (
	"context"
	"net/http"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/slurm"
)

func (a *API) steps(_ http.ResponseWriter, r *http.Request, _ *caller) (any, error) {
	list, _, snap, err := a.find(r.Context(), r.PathValue("id"), 0)
	if err != nil {
		return nil, err
	}
	steps, err := a.stepsOf(r.Context(), snap, list)
	return &client.StepList{Steps: steps, Now: a.now(snap)}, err
}

// maxStepName bounds what stays of a step for the life of its job.
const maxStepName = 1024

// newStep makes a numbered step in a running job and launches it on its nodes. Its streams wait for srun under a one-time
// key.
func (a *API) newStep(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var ask client.NewStep
	if err := decode(r, &ask); err != nil {
		return nil, err
	}
	if len(ask.Argv) == 0 || ask.Argv[0] == "" {
		return nil, core.Errorf(core.Invalid, "a step needs a command").Because("no_command")
	}
	if len(ask.Name) > maxStepName {
		return nil, core.Errorf(core.Invalid, "a step's name has at most %d bytes", maxStepName).Because("invalid_name")
	}
	if min(ask.Nodes, ask.Tasks, ask.TasksPerNode, ask.CPUsPerTask) < 0 {
		return nil, core.Errorf(core.Invalid, "a step's counts are not below zero").Because("invalid_shape")
	}
	ref, err := parseRef(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	j, ok := snap.Job(ref.id)
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no live job %d", ref.id).Because("invalid_job_id")
	}
	if !who.Admin && who.User != j.Spec.User { // a step runs as the job's owner: more than steering it
		return nil, core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
	}
	if j.State != core.Running || j.Alloc == nil {
		return nil, core.Errorf(core.Conflict, "job %d is %s", j.ID, j.State).Because("job_not_running")
	}
	nodes, tasks, ranks, err := layout(j, &ask)
	if err != nil {
		return nil, err
	}
	if err := programs(&ask, ranks); err != nil {
		return nil, err
	}
	want := &core.Step{Job: j.ID, Name: ask.Name, Nodes: nodes, Tasks: tasks}
	for _, t := range tasks {
		want.CPUs += t * max(1, ask.CPUsPerTask)
	}
	reply, err := a.Engine.Do(r.Context(), &state.CreateStep{By: who.Identity, Step: want})
	if err != nil {
		return nil, err
	}
	st := reply.(*core.Step)
	made := &client.StepMade{Step: *st, Key: newID() + newID(), Ranks: ranks}
	step := stepName(st.ID)
	a.Streams.Expect(made.Key, st, j.Spec.User, func() {
		if err := a.forsaken(j, step, ask.OwnsJob && j.Spec.Kind == core.Interactive); err != nil {
			a.Log.Info("step without srun not ended", "job", j.ID, "step", st.ID, "err", err)
		}
	})
	away, err := a.Hub.LaunchStep(j, st, &ask, made.Ranks, made.Key)
	for _, n := range away { // what was not sent has failed; what was sent runs
		_, eerr := a.Engine.Urgent(r.Context(), &state.Exited{Node: n, Job: j.ID, Attempt: st.Attempt, Step: step,
			Cause: state.CauseLaunch, Message: "node " + string(n) + " is not connected"})
		if eerr != nil {
			return nil, eerr
		}
	}
	if err == nil && len(away) == len(st.Nodes) {
		err = core.Errorf(core.Unavailable, "node %s is not connected", away[0]).Because("node_silent")
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

// programs checks that every task of a step with several programs has one.
func programs(ask *client.NewStep, ranks [][]int32) error {
	for _, list := range ranks {
		for _, r := range list {
			if len(ask.Programs) > 0 && slurm.ProgramOf(ask.Programs, r) == nil {
				return core.Errorf(core.Invalid, "No executable program specified for task %d", r).Because("no_program")
			}
		}
	}
	return nil
}

// forsaken ends a step whose srun is gone, and with it the allocation that srun made for itself: nobody else would.
func (a *API) forsaken(j *core.Job, step string, whole bool) error {
	if !whole {
		return a.Hub.KillStep(j, step)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	_, err := a.Engine.Urgent(ctx, &state.Cancel{By: core.Identity{User: j.Spec.User, UID: j.Spec.UID}, Job: j.ID})
	if core.CodeOf(err) == core.NotFound { // it was given back
		return nil
	}
	return err
}
