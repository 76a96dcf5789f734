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
	waiting []*request
	changes *core.Changes
	snap    *state.Snapshot
	config  *state.Config // that holds from this batch on; nil: as before
}

// startBatch is the outcome of a pass: its starts, and the planner waiting for them to be applied (not committed).
type startBatch struct {
	starts   []sched.Start
	preempts []sched.Preempt
	wakes    []core.NodeName // that sleep, and that somebody needs
	now      core.Time       // of the pass
	seen     int64           // the last news the pass knew of
	refused  int
	applied  chan struct{}
}

// planWait is how long a batch waits for the planner to have seen it. A job that can start does so in the transaction
// that submits it, and the place of one that ended is given away in the transaction that records its end.
const planWait = 2 * time.Millisecond

// errReload says that the private state is of no use any more.
var errReload = errors.New("engine: commit failed")

// write loads and runs the writer, again and again while commits fail.
func (e *Engine) write(ctx context.Context) error {
	reloaded := false
	committed := int64(-1) // batches at the last reload
	for {
		st, err := e.load(ctx)
		if err != nil {
			return err
		}
		err = e.serve(ctx, st, reloaded)
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
			if stuck && !e.refuse(ctx, e.cfg.Probe, "the last write failed") {
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
				err = e.raise(ctx, img)
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
		if !e.refuse(ctx, e.cfg.Probe, why) {
			return nil, nil
		}
	}
}

// refuse answers what waits with `unavailable` for d. Exits and cancels stay in their lane, where their senders wait.
func (e *Engine) refuse(ctx context.Context, d time.Duration, why string) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case r := <-e.inbox:
			e.leave(r.user)
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
func (e *Engine) serve(ctx context.Context, st *state.State, reloaded bool) error {
	if st == nil {
		return nil
	}
	snap := st.Snapshot()
	e.snap.Store(snap)
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
	idle := make(chan done, 1) // the committer's word that it has nothing to do
	idle <- done{}
	committed := make(chan error, 1)
	go func() { committed <- e.commit(commits, idle) }()
	feed := newFeed(st.All())
	e.feed.Store(feed)
	defer close(feed.over)
	planned := make(chan struct{})
	go func() { defer close(planned); e.planLoop(ctx, feed) }()

	w := &writer{e: e, st: st, feed: feed}
	w.holdFaulty()
	err := w.loop(ctx, commits, idle, committed)
	cancel()
	close(commits)
	if fault := (*errPanicked)(nil); err == nil {
		err = <-committed
	} else if errors.As(err, &fault) { // what was handed over before is written first: loading must see it
		if bad := <-committed; bad != nil {
			err = bad
		}
	}
	w.drop(err)
	<-planned
	return err
}

// writer owns the private state.
type writer struct {
	e    *Engine
	st   *state.State
	feed *feed
	open batch
	n    int       // inputs in the open batch
	news int64     // what the planner should see before the open batch is sealed
	seen int64     // what it has seen
	late time.Time // when the open batch waits no longer for it

	broken error // a command made the state fail: nothing is applied to it any more

	free   bool      // the committer has nothing to do
	expect int       // inputs the open batch should have when those just answered have come back
	until  time.Time // when it waits no longer for them
}

// done is what the committer tells of a batch that is written.
type done struct {
	took     time.Duration
	answered int // callers; a job that ended does not come back
}

// Callers come back: those of a batch just written send their next command while the next batch, which has waited for
// the disk all the time, could go already. On a slow disk it pays to let them on board: a batch twice the size for half
// the time of a write. gatherFrom is the write that is worth it, gatherMost the longest wait.
const (
	gatherFrom = 2 * time.Millisecond
	gatherMost = 5 * time.Millisecond
)

// freed notes that the committer has nothing to do.
func (w *writer) freed(d done) {
	w.free = true
	w.until = time.Time{}
	if d.took >= gatherFrom && d.answered > 4 {
		w.expect = w.n + d.answered
		w.until = time.Now().Add(min(d.took/2, gatherMost))
	}
}

// ready tells whether the open batch should go now: it has something, the planner has seen it and those who were
// expected are on board, or they were waited for long enough.
func (w *writer) ready() bool {
	if !w.free || w.n == 0 {
		return false
	}
	if w.n >= w.e.cfg.MaxBatch {
		return true
	}
	now := time.Now()
	return (w.seen >= w.news || !now.Before(w.late)) && (w.n >= w.expect || !now.Before(w.until))
}

// loop takes commands until ctx ends (what was applied is still handed over) or the committer gives up.
func (w *writer) loop(ctx context.Context, commits chan<- *batch, idle <-chan done, committed <-chan error) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if w.broken != nil {
			return w.broken
		}
		if w.ready() {
			w.free = false
			commits <- w.seal()
		}
		inbox, urgent, starts := w.e.inbox, w.e.urgent, w.e.starts
		if w.n >= w.e.cfg.MaxBatch {
			inbox, urgent, starts = nil, nil, nil
		}
		w.arm(timer)
		select {
		case r := <-urgent:
			w.apply(r)
			w.drain()
			w.tell()
		case r := <-inbox:
			w.apply(r)
			w.drain()
			w.tell()
		case s := <-starts:
			w.start(s)
		case r := <-w.e.replans:
			w.replan(r)
		case d := <-idle:
			w.freed(d)
		case <-timer.C:
			w.timer()
		case err := <-committed:
			return err
		case <-ctx.Done():
			return w.last(commits, idle, committed)
		}
	}
}

// last hands over what was applied when the engine stops.
func (w *writer) last(commits chan<- *batch, idle <-chan done, committed <-chan error) error {
	if w.n == 0 {
		return nil
	}
	if !w.free {
		select {
		case <-idle:
		case err := <-committed:
			return err
		}
	}
	commits <- w.seal()
	return nil
}

// drain takes what else waits, exits first, up to a full batch.
func (w *writer) drain() {
	for w.n < w.e.cfg.MaxBatch && w.broken == nil {
		select {
		case r := <-w.e.urgent:
			w.apply(r)
			continue
		default:
		}
		select {
		case r := <-w.e.urgent:
			w.apply(r)
		case r := <-w.e.inbox:
			w.apply(r)
		default:
			return
		}
	}
}

func (w *writer) apply(r *request) {
	w.e.leave(r.user)
	w.e.rec.input(r.in, w.st.Advance(core.At(w.e.cfg.Now())))
	r.reply, r.err = w.safely(r.in)
	if core.ReasonOf(r.err) == "fault" { // its answer does not wait for a commit
		close(r.done)
		return
	}
	if in, ok := r.in.(*state.Reconfigure); ok && r.err == nil && !in.Dry {
		w.open.config = &in.Config
	}
	w.open.waiting = append(w.open.waiting, r)
	w.n++
}

func (w *writer) start(s *startBatch) {
	w.e.rec.pass(s, w.st.Advance(core.At(w.e.cfg.Now())))
	for i := range s.preempts {
		x := &s.preempts[i]
		if _, err := w.safely(state.PreemptOf(x)); err != nil {
			s.refused++
			w.e.log.Debug("preemption refused", "job", x.Job, "for", x.For, "err", err)
		}
	}
	for i := range s.starts {
		if _, err := w.safely(state.StartOf(&s.starts[i])); err != nil {
			s.refused++
			w.e.log.Debug("start refused", "job", s.starts[i].Job, "err", err)
		}
	}
	w.seen = max(w.seen, s.seen)
	if len(s.starts)+len(s.preempts) > 0 {
		w.n++
		w.feed.add(w.st.Fresh())
	}
	w.wakeNodes(s.wakes)
	close(s.applied)
}

// wakeNodes wakes nodes that the plan wants; who does so is the settings' matter.
func (w *writer) wakeNodes(names []core.NodeName) {
	for _, name := range names {
		in := &state.UpdateNode{Node: name, State: "power_up", System: true}
		w.e.rec.input(in, w.st.Advance(core.At(w.e.cfg.Now())))
		if _, err := w.safely(in); err != nil {
			w.e.log.Debug("node not woken", "node", name, "err", err)
		}
		w.n++
	}
	if len(names) > 0 {
		w.tell()
	}
}

// replan gives the planner all there is, after it failed, and holds the job it failed on.
func (w *writer) replan(r replan) {
	in := &state.PlannerFailed{Job: r.job, Why: r.why}
	w.e.rec.input(in, w.st.Advance(core.At(w.e.cfg.Now())))
	if _, err := w.safely(in); err != nil {
		return
	}
	if r.job != 0 {
		w.n++
	}
	w.tell()
}

// tell gives the planner what was just applied; the open batch waits a little for what it makes of it.
func (w *writer) tell() {
	c := w.st.Fresh()
	if c.Empty() {
		return
	}
	if w.seen >= w.news {
		w.late = time.Now().Add(planWait)
	}
	w.news = w.feed.add(c)
	w.e.rec.told()
}

// timer is called when the timer rang: something may be due by the engine's time, or a batch has waited long enough.
func (w *writer) timer() {
	if at := w.st.NextWake(); at == 0 || at > core.At(w.e.cfg.Now()) || w.e.cfg.Now().Before(w.e.faults.tickFrom) {
		return
	}
	w.e.rec.input(&state.Tick{}, w.st.Advance(core.At(w.e.cfg.Now())))
	if _, err := w.safely(&state.Tick{}); err == nil {
		w.e.faults.ticks = 0
	}
	w.n++
	w.tell()
}

// arm sets the timer to the next moment at which time alone changes something.
func (w *writer) arm(t *time.Timer) {
	d := time.Hour
	if at := w.st.NextWake(); at != 0 {
		d = min(d, max(0, at.Sub(core.At(w.e.cfg.Now())), w.e.faults.tickFrom.Sub(w.e.cfg.Now())))
	}
	if w.free && w.n > 0 { // once these are over, ready says so
		for _, at := range []time.Time{w.late, w.until} {
			if left := time.Until(at); left > 0 {
				d = min(d, left)
			}
		}
	}
	t.Reset(d)
}

// seal closes the open batch: its changes are fixed, the planner is told, the next batch begins.
func (w *writer) seal() *batch {
	b := w.open
	w.e.rec.seal()
	flushed := w.st.Flush()
	b.changes, b.snap = flushed.Changes, w.st.Snapshot()
	w.open, w.n = batch{}, 0
	return &b
}

// drop answers everybody whose command was applied to a state that is gone.
func (w *writer) drop(err error) {
	for _, r := range w.open.waiting {
		r.reply, r.err = nil, unavailable(reasonOf(err))
		close(r.done)
	}
}

func reasonOf(err error) string {
	if err == nil {
		return "the server is stopping"
	}
	if fault := (*errPanicked)(nil); errors.As(err, &fault) {
		return "the state is being loaded anew"
	}
	return "the last write failed"
}
