package hub

import (
	"context"
	"log/slog"
	"strconv"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/wire"
)

// noteStep notes a step that was made or changed. A step that the hub did not know is to be launched by whoever made
// it, if made is true; otherwise it was made in another life of the server. The job may be nil, and the hub's mu is
// held. It reports whether the hub knew the step.
func (t *tracked) noteStep(st *core.Step, made bool) (known bool) {
	if t == nil || t.job.Attempt != st.Attempt {
		return false
	}
	if _, known = t.steps[st.ID]; known || st.State.Final() {
		if st.State.Final() {
			delete(t.steps, st.ID)
			delete(t.kills, st.ID)
		}
		return known
	}
	if t.steps == nil {
		t.steps = map[int32]bool{}
	}
	t.steps[st.ID] = made
	return false
}

// reloadSteps follows the steps of a job in a state that was loaded again, and gives those that nobody launches. A step
// that the hub did not know was made by a commit whose outcome nobody learned: who asked for it was told that it
// failed. If first, it was made in another life of the server. The job may be nil, and the hub's mu is held.
func (t *tracked) reloadSteps(snap *state.Snapshot, first bool) (orphans []orphan) {
	if t == nil {
		return nil
	}
	old := t.steps
	t.steps = nil
	for _, st := range snap.LiveSteps(t.job.ID) {
		unlaunched, known := old[st.ID]
		if !first && !known && st.Attempt == t.job.Attempt && !st.State.Final() {
			orphans = append(orphans, orphan{st, "the write that recorded the step was reported as failed"})
		}
		t.noteStep(st, unlaunched)
	}
	return orphans
}

// Abandoned are steps that were made and that nobody launches.
type Abandoned struct {
	mu   sync.Mutex
	list []orphan
}

// orphan is a step that nobody launches, and why.
type orphan struct {
	step *core.Step
	why  string
}

// Add has a step ended that was made and is not launched, as soon as that can be recorded.
func (a *Abandoned) Add(st *core.Step, why string) { a.add([]orphan{{st, why}}) }

func (a *Abandoned) add(list []orphan) {
	if len(list) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, list...)
}

// end ends the steps. What cannot be recorded now is tried again: a report that comes twice changes nothing.
func (a *Abandoned) end(ctx context.Context, e *engine.Engine, log *slog.Logger) {
	a.mu.Lock()
	list := a.list
	a.list = nil
	a.mu.Unlock()
	for _, o := range list {
		for _, n := range o.step.Nodes {
			if _, err := engine.Urgent(ctx, e, lostStep(o.step, n, o.why)); err != nil && ctx.Err() == nil {
				log.Warn("step that nobody launches not ended", "job", o.step.Job, "step", o.step.ID, "err", err)
				a.Add(o.step, o.why)
				break
			}
		}
	}
}

// lostStep is the end on a node of a step that was never launched there.
func lostStep(st *core.Step, node core.NodeName, why string) *state.Exited {
	return &state.Exited{
		Node: node, Job: st.Job, Attempt: st.Attempt, Step: strconv.Itoa(int(st.ID)),
		Cause: state.CauseLaunch, Message: why,
	}
}

// stepKey is a step's key without its node.
func stepKey(st *core.Step) wire.Key {
	return wire.Key{Job: st.Job, Attempt: st.Attempt, Step: strconv.Itoa(int(st.ID))}
}

// LaunchStep sends a part of a step that the engine has made to its nodes and asks them to open its stream under
// token. It gives the nodes that could not be told.
func (h *Hub) LaunchStep(all []slurm.StepPart, part int, token string) (away []core.NodeName, err error) {
	j, st, ask := all[part].Job, all[part].Step, all[part].Ask
	now := h.engine.Snapshot().Now()
	launches := make([]*wire.Launch, len(st.Nodes))
	for i := range st.Nodes {
		if launches[i], err = h.launches.stepLaunch(all, part, i, now); err != nil {
			return st.Nodes, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// The kill of a job that ended meanwhile has been queued, and must not be followed by a launch.
	if !h.takeStep(st) {
		if t := h.jobs[j.ID]; t != nil && t.job.Attempt == st.Attempt && !over(t.job) {
			return st.Nodes, core.Errorf(core.Conflict, "step %d.%d has ended", j.ID, st.ID).Because("job_finished")
		}
		return st.Nodes, core.Errorf(core.Conflict, "job %d has ended", j.ID).Because("job_finished")
	}
	for i, name := range st.Nodes {
		n := h.nodes[name]
		if n == nil || n.conn == nil {
			away = append(away, name)
			continue
		}
		l := launches[i]
		n.conn.queue(order{typ: wire.TypeLaunch, header: l, payload: l.Payload()})
		n.conn.queue(order{typ: wire.TypeOpenStream, header: wire.OpenStream{
			Key: l.Key, Token: token,
			Direct: (*wire.Direct)(ask.Direct),
		}})
	}
	return away, nil
}

// takeStep reports whether a step may still be launched, and notes that it is. Who made the step is answered before the
// hub is told of it, and perhaps of its job's start: takeStep waits for that. h.mu is held.
func (h *Hub) takeStep(st *core.Step) bool {
	for {
		if t := h.jobs[st.Job]; t != nil && t.job.Attempt == st.Attempt {
			if unlaunched, known := t.steps[st.ID]; known {
				t.steps[st.ID] = false
				return unlaunched && !over(t.job)
			}
		}
		if !isLive(h.engine.Snapshot(), st) {
			return false
		}
		h.told.Wait()
	}
}

// isLive reports whether a step has not ended by a snapshot.
func isLive(snap *state.Snapshot, st *core.Step) bool {
	j, live := snap.Job(st.Job)
	if !live || j.Alloc == nil || j.Attempt != st.Attempt {
		return false
	}
	for _, s := range snap.LiveSteps(st.Job) {
		if s.ID == st.ID && s.Attempt == st.Attempt {
			return !s.State.Final()
		}
	}
	return false
}

// OpenStreams has the nodes of a step dial the server for its streams: those of agents that were started since they
// were told, or whose srun is back at a server that was.
func (h *Hub) OpenStreams(st *core.Step, token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range st.Nodes {
		if n := h.nodes[name]; n != nil && n.conn != nil {
			key := stepKey(st)
			key.Node = name
			n.conn.queue(order{typ: wire.TypeOpenStream, header: wire.OpenStream{Key: key, Token: token}})
		}
	}
}
