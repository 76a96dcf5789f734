package trigger

import (
	"context"
	"slices"
	"strconv"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
)

// interval is how often triggers are looked at. Nodes that have an event in one interval are told together.
const interval = time.Second

// status is what of a node fires triggers.
type status struct{ down, drained, fail, idle bool }

// statusOf finds it out. A node that is not heard is down, unless that is expected of it.
func statusOf(n *core.Node, snap *state.Snapshot) status {
	f := n.Flags
	silent := f.Has(core.NodeSilent) && !f.Any(core.Asleep) && !f.Has(core.NodeRebooting)
	s := status{down: f.Has(core.NodeDown) || silent, fail: f.Has(core.NodeFailFlag)}
	if used := len(snap.OnNode(n.Name)) > 0; !used && !s.down {
		s.drained = f.Has(core.NodeDrain)
		s.idle = f == 0 && n.Roles&core.Compute != 0
	}
	return s
}

// Publish takes what a commit changed. It does not block.
func (w *Watcher) Publish(p *engine.Published) {
	if !w.some.Load() || len(p.Changes.Nodes) == 0 && !p.Reloaded {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Reloaded {
		w.observeAll(p.Snapshot)
		return
	}
	for _, n := range p.Changes.Nodes {
		w.observe(n, p.Snapshot)
	}
}

func (w *Watcher) observeAll(snap *state.Snapshot) {
	for n := range snap.Nodes() {
		w.observe(n, snap)
	}
}

// observe fires what waits for a change of a node.
func (w *Watcher) observe(n *core.Node, snap *state.Snapshot) {
	was, known := w.seen[n.Name]
	is := statusOf(n, snap)
	if w.seen[n.Name] = is; !known {
		return
	}
	for _, x := range []struct {
		event string
		now   bool
	}{
		{client.EventDown, is.down && !was.down},
		{client.EventUp, was.down && !is.down},
		{client.EventDrained, is.drained && !was.drained},
		{client.EventFail, is.fail && !was.fail},
	} {
		if !x.now {
			continue
		}
		for _, e := range w.list {
			if e.waits(x.event) && e.about(n.Name, snap) {
				e.fire(string(n.Name))
			}
		}
	}
}

// about reports whether a node is one of a trigger's.
func (e *entry) about(name core.NodeName, snap *state.Snapshot) bool {
	switch e.Resource {
	case client.TriggerNode:
		return e.hosts == nil || e.hosts[string(name)]
	case client.TriggerJob:
		return slices.ContainsFunc(snap.OnNode(name), func(j *core.Job) bool { return j.ID == e.Job })
	}
	return false
}

// fire notes that a node fires a trigger. Those that come before its program runs are told with it.
func (e *entry) fire(node string) {
	if !slices.Contains(e.hit, node) {
		e.hit = append(e.hit, node)
	}
}

// pull makes the program of a trigger run, some time after now.
func (e *entry) pull(arg string, now core.Time) {
	e.Arg, e.Due = arg, now.Add(time.Duration(max(0, e.Offset))*time.Second)
	e.hit = nil
}

// raise fires the triggers of a resource that wait for an event. w.mu is held.
func (w *Watcher) raise(event, resource, arg string) {
	now := core.At(time.Now())
	for _, e := range w.list {
		if e.Resource == resource && e.waits(event) {
			e.pull(arg, now)
		}
	}
}

// Reconfigured tells that other settings hold.
func (w *Watcher) Reconfigured() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.raise(client.EventReconfig, client.TriggerNode, "reconfig")
}

// tick fires what time alone fires. It returns the triggers whose records are to be written, those whose programs run
// now, and those whose jobs are gone.
func (w *Watcher) tick(snap *state.Snapshot, now core.Time, readOnly bool) (save, run, drop []*entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if readOnly != w.readOnly {
		w.readOnly = readOnly
		event := client.EventDatabaseResumed
		if readOnly {
			event = client.EventDatabaseFailed
		}
		w.raise(event, client.TriggerDatabase, "database")
	}
	if len(w.list) == 0 {
		return nil, nil, nil
	}
	w.observeAll(snap)
	w.seeIdle(snap, now)
	for _, e := range w.list {
		if e.Due == 0 && !e.gone {
			if e.due(w, snap, now); e.Due > now {
				save = append(save, e) // a server that begins again knows of it
			}
		}
		switch {
		case e.gone:
			drop = append(drop, e)
		case e.Due != 0 && e.Due <= now:
			run = append(run, e)
		case e.Due == 0 && e.Resource == client.TriggerJob && jobGone(snap, e.Job):
			drop = append(drop, e)
		}
	}
	return save, run, drop
}

func jobGone(snap *state.Snapshot, id core.JobID) bool {
	j, ok := snap.Job(id)
	return !ok || j.State.Final()
}

// seeIdle notes since when nodes are idle.
func (w *Watcher) seeIdle(snap *state.Snapshot, now core.Time) {
	for name, s := range w.seen {
		n, ok := snap.Node(name)
		_, was := w.idle[name]
		if ok && s.idle && !was {
			if w.idle[name] = n.LastBusy; n.LastBusy == 0 { // it is not kept everywhere
				w.idle[name] = now
			}
		} else if was && (!ok || !s.idle) {
			delete(w.idle, name)
		}
		if !ok {
			delete(w.seen, name)
		}
	}
}

// due fires a trigger whose time has come. w.mu is held.
func (e *entry) due(w *Watcher, snap *state.Snapshot, now core.Time) {
	if e.waits(client.EventIdle) {
		e.fireIdle(w, snap, now)
	}
	if len(e.hit) > 0 {
		slices.SortFunc(e.hit, hostlist.Compare)
		arg, offset := hostlist.FoldSorted(e.hit), e.Offset
		if e.Resource == client.TriggerJob {
			arg = jobText(e.Job)
		}
		e.pull(arg, now)
		if offset > 0 && slices.Equal(e.Events, []string{client.EventIdle}) {
			e.Due = now // the offset has passed already
		}
		return
	}
	if e.Resource != client.TriggerJob {
		return
	}
	j, ok := snap.Job(e.Job)
	switch over := !ok || j.State.Final(); {
	case over && e.waits(client.EventFini):
		e.pull(jobText(e.Job), now)
	case !over && e.waits(client.EventTime) && j.Start != 0:
		limit := j.Spec.TimeLimit
		if limit <= 0 || limit >= core.Forever {
			return
		}
		end := j.Start.Add(limit.Duration() + time.Duration(j.PausedFor)*time.Microsecond)
		if at := end.Add(time.Duration(e.Offset) * time.Second); at <= now {
			e.Arg, e.Due = jobText(e.Job), now
		}
	}
}

func (e *entry) fireIdle(w *Watcher, snap *state.Snapshot, now core.Time) {
	limit := now.Add(-time.Duration(max(0, e.Offset)) * time.Second)
	for name, since := range w.idle {
		if since > limit || e.told[name] == since || e.Resource == client.TriggerJob || !e.about(name, snap) {
			continue
		}
		e.fire(string(name))
		if e.Perm {
			if e.told == nil {
				e.told = map[core.NodeName]core.Time{}
			}
			e.told[name] = since
		}
	}
}

func jobText(id core.JobID) string { return strconv.FormatInt(int64(id), 10) }

// Run fires triggers until ctx ends, and ends their programs then.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.await()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		snap := w.engine.Snapshot()
		if !w.some.Load() || snap == nil {
			continue
		}
		w.step(ctx, snap)
	}
}

func (w *Watcher) step(ctx context.Context, snap *state.Snapshot) {
	w.writing.Lock()
	defer w.writing.Unlock()
	save, run, drop := w.tick(snap, core.At(time.Now()), w.engine.ReadOnly() != "")
	for _, e := range save {
		if err := w.save(ctx, e); err != nil {
			w.log.Warn("a trigger that has fired is not recorded as such", "id", e.ID, "err", err)
		}
	}
	for _, e := range run {
		w.start(ctx, e)
	}
	for _, e := range append(run, drop...) {
		if w.stays(e) {
			continue
		}
		if err := w.forget(ctx, e); err != nil {
			w.log.Warn("a trigger is not removed yet", "id", e.ID, "err", err) // the next round tries again
		}
	}
}
