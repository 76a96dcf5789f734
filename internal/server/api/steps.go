package api

import (
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state"
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
	nodes, tasks, err := layout(j, &ask)
	if err != nil {
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
	made := &client.StepMade{Step: *st, Key: newID() + newID(), Ranks: blockRanks(tasks)}
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

// layout decides how many tasks of a step run on which of the job's nodes.
func layout(j *core.Job, ask *client.NewStep) (nodes []core.NodeName, tasks []int32, err error) {
	pool, err := stepNodes(j, ask.NodeList)
	if err != nil {
		return nil, nil, err
	}
	count := int(ask.Nodes)
	if count == 0 {
		count = len(pool)
		if ask.Tasks > 0 && ask.NodeList == "" {
			count = min(count, int(ask.Tasks))
		}
	}
	if count > len(pool) {
		return nil, nil, core.Errorf(core.Invalid, "the step asks for %d nodes; it may use %d of job %d", count, len(pool), j.ID).Because("too_many_nodes")
	}
	pool = pool[:count]
	want := ask.Tasks
	if want == 0 {
		want = int32(min(int64(count)*int64(max(1, ask.TasksPerNode)), math.MaxInt32)) // more than fits is told below
	}
	if want < int32(count) {
		pool = pool[:want]
	}
	tasks, left := share(pool, want, max(1, ask.CPUsPerTask), ask.TasksPerNode)
	if left > 0 {
		return nil, nil, core.Errorf(core.Invalid, "%d tasks of %d CPUs do not fit into what job %d has there", want, max(1, ask.CPUsPerTask), j.ID).Because("too_many_cpus")
	}
	for i := range pool {
		nodes = append(nodes, pool[i].Node)
	}
	return nodes, tasks, nil
}

// stepNodes gives the parts of the job's allocation a step may use, in the job's order.
func stepNodes(j *core.Job, list string) ([]core.NodeAlloc, error) {
	if list == "" {
		return j.Alloc.Nodes, nil
	}
	names, err := hostlist.Expand(list, 1<<20)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "node list %q: %v", list, err).Because("invalid_node")
	}
	var out []core.NodeAlloc
	for _, na := range j.Alloc.Nodes {
		if slices.Contains(names, string(na.Node)) {
			out = append(out, na)
		}
	}
	if len(out) < len(names) {
		return nil, core.Errorf(core.Invalid, "not all of %s are nodes of job %d", list, j.ID).Because("invalid_node")
	}
	return out, nil
}

// share deals tasks out one by one over the nodes, as Slurm counts its block distribution, within each node's CPUs.
func share(pool []core.NodeAlloc, want, perTask, perNode int32) (tasks []int32, left int32) {
	tasks = make([]int32, len(pool))
	room := func(i int) bool {
		return int64(tasks[i]+1)*int64(perTask) <= int64(pool[i].CPUs) && (perNode == 0 || tasks[i] < perNode)
	}
	for left = want; left > 0; {
		dealt := false
		for i := 0; i < len(pool) && left > 0; i++ {
			if room(i) {
				tasks[i]++
				left--
				dealt = true
			}
		}
		if !dealt {
			return tasks, left
		}
	}
	return tasks, 0
}

// blockRanks numbers tasks node by node.
func blockRanks(tasks []int32) [][]int32 {
	ranks, next := make([][]int32, len(tasks)), int32(0)
	for i, n := range tasks {
		for range n {
			ranks[i] = append(ranks[i], next)
			next++
		}
	}
	return ranks
}
