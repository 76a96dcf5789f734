package engine

import (
	"context"
	"errors"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/store"
)

// batch is a run of commands that commit together.
type batch struct {
	waiting  []*request
	changes  *core.Changes
	snapshot *state.Snapshot
	config   *state.Config // that holds from this batch on; nil: as before
}

// startBatch is the outcome of a pass: its starts, and the planner waiting for them to be applied (not committed).
type startBatch struct {
	starts   []sched.Start
	preempts []sched.Preempt
	wakes    []core.NodeName // that sleep, and that somebody needs
	now      core.Time       // of the pass
	seenSeq  int64           // the last news the pass knew of
	refused  int
	applied  chan struct{}
}

// planWait is how long a batch waits for the planner to have seen it. A job that can start does so in the transaction
// that submits it, and the place of one that ended is given away in the transaction that records its end.
const planWait = 2 * time.Millisecond

// errReload says that the private state is of no use any more.
var errReload = errors.New("engine: commit failed")

// write loads and runs the writer, again and again while commits fail. Commits are made under writing.
func (e *Engine) write(ctx, writing context.Context) error {
	reloaded := false
	committed := int64(-1) // batches at the last reload
	for {
		st, err := e.load(ctx)
		if err != nil {
			return err
		}
		err = e.serve(ctx, writing, st, reloaded)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errReload):
			reloaded = true
			e.mu.Lock()
			e.stats.Reloads++
			stuck := e.stats.Batches == committed
			committed = e.stats.Batches
			e.mu.Unlock()
			// A store that takes probes but no batch would have us load again and again.
			if stuck && !e.refuseFor(ctx, e.cfg.Probe, "the last write failed") {
				return nil
			}
		default:
			return err
		}
	}
}

// load reads the live part, waiting for a store that is away or full. Callers get `unavailable` meanwhile.
func (e *Engine) load(ctx context.Context) (*state.State, error) {
	for {
		began := time.Now()
		err := e.store.Probe(ctx, e.epoch.Load())
		if err == nil {
			var img *store.Image
			if img, err = e.store.Load(ctx); err == nil {
				err = e.raiseNextJob(ctx, img)
			}
			if err == nil {
				e.rec.load(*e.config.Load(), (*state.Image)(img))
				var st *state.State
				if st, err = e.build((*state.Image)(img)); err == nil {
					e.readOnly.Store(nil)
					e.log.Info("loaded", "jobs", len(img.Jobs), "nodes", len(img.Nodes), "seq", img.Seq, "took", time.Since(began))
					return st, nil
				}
			}
		}
		if errors.Is(err, store.ErrStale) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		why := "the store cannot be written: " + err.Error()
		if e.ReadOnly() == "" {
			e.log.Error("read-only", "err", err)
		}
		e.readOnly.Store(&why)
		if !e.refuseFor(ctx, e.cfg.Probe, why) {
			return nil, nil
		}
	}
}

// refuseFor answers what waits with `unavailable` for d. Exits and cancels stay in their lane, where their senders
// wait.
func (e *Engine) refuseFor(ctx context.Context, d time.Duration, why string) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case r := <-e.inbox:
			e.senders.dequeued(r.user)
			r.err = unavailable(why)
			close(r.done)
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// serve runs writer, committer and planner over one loaded state until ctx ends or a commit fails.
func (e *Engine) serve(ctx, writing context.Context, st *state.State, reloaded bool) error {
	if st == nil {
		return nil
	}
	snap := st.Snapshot()
	e.Copy.show(snap, false)
	select {
	case <-e.leading:
	default:
		close(e.leading)
	}
	if reloaded {
		e.publish(&Published{Changes: &core.Changes{}, Snapshot: snap, Reloaded: true})
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	commits := make(chan *batch, 1)
	idle := make(chan commitReport, 1) // the committer's word that it has nothing to do
	idle <- commitReport{}
	committed := make(chan error, 1)
	go func() { committed <- e.commit(writing, commits, idle) }()
	feed := newPlannerFeed(st.All())
	e.feed.Store(feed)
	defer close(feed.closed)
	planned := make(chan struct{})
	go func() { defer close(planned); e.runPlanLoop(ctx, feed) }()

	w := &writer{engine: e, state: st, feed: feed}
	w.holdFaulty()
	err := w.loop(ctx, commits, idle, committed)
	cancel()
	close(commits)
	if fault := (*stateFailed)(nil); err == nil {
		err = <-committed
	} else if errors.As(err, &fault) { // what was handed over before is written first: loading must see it
		if bad := <-committed; bad != nil {
			err = bad
		}
	}
	w.failWaiting(err)
	<-planned
	return err
}

// writer owns the private state.
type writer struct {
	engine       *Engine
	state        *state.State
	feed         *plannerFeed
	batch        batch
	inputs       int       // inputs in the open batch
	sentSeq      int64     // what the planner should see before the open batch is sealed
	seenSeq      int64     // what it has seen
	planDeadline time.Time // when the open batch waits no longer for it

	broken error // a command made the state fail: nothing is applied to it any more

	committerIdle bool      // the committer has nothing to do
	expected      int       // inputs the open batch should have when those just answered have come back
	gatherUntil   time.Time // when it waits no longer for them
}

// commitReport is what the committer tells of a batch that is written.
type commitReport struct {
	took     time.Duration
	answered int // callers; a job that ended does not come back
}

// Callers come back: those of a batch just written send their next command while the next batch, which has waited for
// the disk all the time, could go already. On a slow disk it pays to let them on board: a batch twice the size for half
// the time of a write. minGatherWrite is the write that is worth it, maxGatherWait the longest wait.
const (
	minGatherWrite = 2 * time.Millisecond
	maxGatherWait  = 5 * time.Millisecond
)

// commitDone notes that the committer has nothing to do.
func (w *writer) commitDone(d commitReport) {
	w.committerIdle = true
	w.gatherUntil = time.Time{}
	if d.took >= minGatherWrite && d.answered > 4 {
		w.expected = w.inputs + d.answered
		w.gatherUntil = time.Now().Add(min(d.took/2, maxGatherWait))
	}
}

// readyToCommit reports whether the open batch should go now: it has something, the planner has seen it and those who
// were expected are on board, or they were waited for long enough.
func (w *writer) readyToCommit() bool {
	if !w.committerIdle || w.inputs == 0 {
		return false
	}
	if w.inputs >= w.engine.cfg.MaxBatch {
		return true
	}
	now := time.Now()
	return (w.seenSeq >= w.sentSeq || !now.Before(w.planDeadline)) &&
		(w.inputs >= w.expected || !now.Before(w.gatherUntil))
}

// loop takes commands until ctx ends (what was applied is still handed over) or the committer gives up.
func (w *writer) loop(ctx context.Context, commits chan<- *batch, idle <-chan commitReport,
	committed <-chan error,
) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if w.broken != nil {
			return w.broken
		}
		if w.readyToCommit() {
			w.committerIdle = false
			commits <- w.seal()
		}
		inbox, urgent, starts := w.engine.inbox, w.engine.urgent, w.engine.starts
		if w.inputs >= w.engine.cfg.MaxBatch {
			inbox, urgent, starts = nil, nil, nil
		}
		w.armTimer(timer)
		select {
		case r := <-urgent:
			w.apply(r)
			w.applyWaiting()
			w.feedPlanner()
		case r := <-inbox:
			w.apply(r)
			w.applyWaiting()
			w.feedPlanner()
		case s := <-starts:
			w.applyPlan(s)
		case r := <-w.engine.replans:
			w.resendAll(r)
		case d := <-idle:
			w.commitDone(d)
		case <-timer.C:
			w.timerExpired()
		case err := <-committed:
			return err
		case <-ctx.Done():
			return w.finish(commits, idle, committed)
		}
	}
}

// finish hands over what was applied when the engine stops.
func (w *writer) finish(commits chan<- *batch, idle <-chan commitReport, committed <-chan error) error {
	if w.inputs == 0 {
		return nil
	}
	if !w.committerIdle {
		select {
		case <-idle:
		case err := <-committed:
			return err
		}
	}
	commits <- w.seal()
	return nil
}

// applyWaiting takes what else waits, exits first, up to a full batch.
func (w *writer) applyWaiting() {
	for w.inputs < w.engine.cfg.MaxBatch && w.broken == nil {
		select {
		case r := <-w.engine.urgent:
			w.apply(r)
			continue
		default:
		}
		select {
		case r := <-w.engine.urgent:
			w.apply(r)
		case r := <-w.engine.inbox:
			w.apply(r)
		default:
			return
		}
	}
}

func (w *writer) apply(r *request) {
	w.engine.senders.dequeued(r.user)
	if check := w.engine.cfg.Check; check != nil {
		if r.err = check(r.input); r.err != nil {
			close(r.done)
			return
		}
	}
	w.engine.rec.input(r.input, w.state.Advance(core.At(w.engine.cfg.Now())))
	r.err = w.applyGuarded(r.input, r.command)
	if core.ReasonOf(r.err) == "fault" { // its answer does not wait for a commit
		close(r.done)
		return
	}
	if in, ok := r.input.(*state.Reconfigure); ok && r.err == nil && !in.Dry {
		w.batch.config = &in.Config
	}
	w.batch.waiting = append(w.batch.waiting, r)
	w.inputs++
}

func (w *writer) applyPlan(s *startBatch) {
	w.engine.rec.pass(s, w.state.Advance(core.At(w.engine.cfg.Now())))
	for i := range s.preempts {
		x := &s.preempts[i]
		if err := applyOwn(w, state.PreemptOf(x)); err != nil {
			s.refused++
			w.engine.log.Debug("preemption refused", "job", x.Job, "for", x.For, "err", err)
		}
	}
	for i := range s.starts {
		if err := applyOwn(w, state.StartOf(&s.starts[i])); err != nil {
			s.refused++
			w.engine.log.Debug("start refused", "job", s.starts[i].Job, "err", err)
		}
	}
	w.seenSeq = max(w.seenSeq, s.seenSeq)
	if len(s.starts)+len(s.preempts) > 0 {
		w.inputs++
		w.feed.add(w.state.PlannerChanges())
	}
	w.wakeNodes(s.wakes)
	close(s.applied)
}

// wakeNodes wakes nodes that the plan wants; who does so is the settings' matter.
func (w *writer) wakeNodes(names []core.NodeName) {
	for _, name := range names {
		in := &state.UpdateNode{Node: name, State: core.VerbPowerUp, System: true}
		w.engine.rec.input(in, w.state.Advance(core.At(w.engine.cfg.Now())))
		if err := applyOwn(w, in); err != nil {
			w.engine.log.Debug("node not woken", "node", name, "err", err)
		}
		w.inputs++
	}
	if len(names) > 0 {
		w.feedPlanner()
	}
}

// resendAll gives the planner all there is, after it failed, and holds the job it failed on.
func (w *writer) resendAll(r replanRequest) {
	in := &state.PlannerFailed{Job: r.job, Why: r.why}
	w.engine.rec.input(in, w.state.Advance(core.At(w.engine.cfg.Now())))
	if err := applyOwn(w, in); err != nil {
		return
	}
	if r.job != 0 {
		w.inputs++
	}
	w.feedPlanner()
}

// feedPlanner gives the planner what was just applied; the open batch waits a little for what it makes of it.
func (w *writer) feedPlanner() {
	c := w.state.PlannerChanges()
	if c.IsEmpty() {
		return
	}
	if w.seenSeq >= w.sentSeq {
		w.planDeadline = time.Now().Add(planWait)
	}
	w.sentSeq = w.feed.add(c)
	w.engine.rec.plannerFed()
}

// timerExpired is called when the timer rang: something may be due by the engine's time, or a batch has waited long
// enough.
func (w *writer) timerExpired() {
	if at := w.state.NextWake(); at == 0 || at > core.At(w.engine.cfg.Now()) ||
		w.engine.cfg.Now().Before(w.engine.faults.tickFrom) {
		return
	}
	w.engine.rec.input(&state.Tick{}, w.state.Advance(core.At(w.engine.cfg.Now())))
	if err := applyOwn(w, &state.Tick{}); err == nil {
		w.engine.faults.ticks = 0
	}
	w.inputs++
	w.feedPlanner()
}

// armTimer sets the timer to the next moment at which time alone changes something.
func (w *writer) armTimer(t *time.Timer) {
	d := time.Hour
	if at := w.state.NextWake(); at != 0 {
		d = min(d, max(0, at.Sub(core.At(w.engine.cfg.Now())), w.engine.faults.tickFrom.Sub(w.engine.cfg.Now())))
	}
	if w.committerIdle && w.inputs > 0 { // once these are over, ready says so
		for _, at := range []time.Time{w.planDeadline, w.gatherUntil} {
			if left := time.Until(at); left > 0 {
				d = min(d, left)
			}
		}
	}
	t.Reset(d)
}

// seal closes the open batch: its changes are fixed, the planner is told, the next batch begins.
func (w *writer) seal() *batch {
	b := w.batch
	w.engine.rec.seal()
	b.changes, b.snapshot = w.state.Flush(), w.state.Snapshot()
	w.batch, w.inputs = batch{}, 0
	return &b
}

// failWaiting answers everybody whose command was applied to a state that is gone.
func (w *writer) failWaiting(err error) {
	for _, r := range w.batch.waiting {
		r.err = unavailable(reasonOf(err))
		close(r.done)
	}
}

func reasonOf(err error) string {
	if err == nil {
		return "the server is stopping"
	}
	if fault := (*stateFailed)(nil); errors.As(err, &fault) {
		return "the state is being loaded anew"
	}
	return "the last write failed"
}
