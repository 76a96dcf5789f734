package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Forecast is when the jobs of a queue will start, about, if nothing more arrives and all lasts as long as it may. The
// plan knows that of the few jobs it reserved for; a forecast lets the whole queue run off on a rough picture of the
// cluster (see outlook). It is worked out in slices, Step by Step, between passes: it reads the planner as it is at
// each slice, so what comes and goes meanwhile may be in it or not. Once done it is never changed, and any number of
// readers may have it.
type Forecast struct {
	Now core.Time // it was begun

	base  core.JobID     // keys are relative to it
	table []forecastSlot // a hash table of 9/8 of the jobs there were
	used  int
	work  *forecastBuild // nil once it is done
}

// forecastSlot is what a forecast knows of a job, in 8 bytes: there may be 100,000 of them.
type forecastSlot struct {
	key uint32 // of the job; 0: nobody's
	at  uint32 // seconds from Now
}

// forecastBuild is a forecast being worked out.
type forecastBuild struct {
	p              *Planner
	model          *forecastModel
	phase          uint8
	node           int // the next to be looked at
	version        int
	resumed        bool            // something of the list gone through in this phase has been met, last
	lastEnd        ledger.AllocEnd // this
	lastIneligible queueEntry      // or this
	queues         []forecastQueue
	classIndex     map[*classInfo]int32 // their place in the outlook
}

// forecastQueue is a partition's queue and how far it has been gone through.
type forecastQueue struct {
	part    *partition
	last    queueEntry
	started bool
	done    bool
}

const (
	phaseNodes      uint8 = iota // what there is
	phasePending                 // what waits, in order
	phaseIneligible              // what may not start yet
	phaseRunning                 // what runs, and until when
	phaseRun                     // all of that runs off
)

// Forecast begins a forecast beside a plan of this planner.
func (p *Planner) Forecast(plan *Plan) *Forecast {
	f := &Forecast{Now: plan.Now, table: make([]forecastSlot, len(p.pending)*9/8+8)}
	f.work = &forecastBuild{
		p: p, model: newForecastModel(plan.Now, p), version: p.ledger.Version,
		classIndex: map[*classInfo]int32{},
	}
	for _, part := range p.partitions {
		f.work.queues = append(f.work.queues, forecastQueue{part: part})
	}
	return f
}

// Done reports whether the forecast is ready to be read.
func (f *Forecast) Done() bool { return f.work == nil }

// Step does so much more of the work, counted in small operations of a few nanoseconds each, and reports whether all of
// it is done.
func (f *Forecast) Step(n int) (done bool) {
	w := f.work
	for w != nil && n > 0 {
		switch w.phase {
		case phaseNodes:
			n -= w.addNode()
		case phaseRunning:
			n -= w.addEnding()
		case phasePending:
			n -= w.addPending()
		case phaseIneligible:
			n -= w.addIneligible()
		case phaseRun:
			cost, over := w.model.run(f)
			if n -= cost; over {
				f.work = nil
			}
		}
		w = f.work
	}
	return w == nil
}

// At is when a job will start, about; false if the forecast does not know it.
func (f *Forecast) At(id core.JobID) (core.Time, bool) {
	if f == nil || f.work != nil || f.used == 0 {
		return 0, false
	}
	s, _ := f.find(id)
	if s == nil || s.key == 0 {
		return 0, false
	}
	return f.Now + core.Time(s.at)*1e6, true
}

// find gives a job's key and its place in the table: its own, or the free one it would take; nil for an id out of
// range.
func (f *Forecast) find(id core.JobID) (*forecastSlot, uint32) {
	off := int64(id-f.base) + 1<<31
	if off <= 0 || off >= 1<<32 {
		return nil, 0
	}
	key, n := uint32(off), uint64(len(f.table))
	for i := uint64(key) * 0x9E3779B97F4A7C15 >> 32 * n >> 32; ; i++ {
		if i == n {
			i = 0
		}
		if s := &f.table[i]; s.key == key || s.key == 0 {
			return s, key
		}
	}
}

// record notes when a job will start.
func (f *Forecast) record(id core.JobID, at core.Time) {
	if f.used == 0 {
		f.base = id
	}
	s, key := f.find(id)
	switch {
	case s == nil, at == alloc.Never:
		return
	case s.key == 0 && f.used == len(f.table)-1: // one place stays free: searches end there
		return
	case s.key == 0:
		s.key = key
		f.used++
	}
	s.at = uint32(min((max(0, int64(at-f.Now))+999_999)/1e6, 1<<32-1))
}

// recordFirst is tell for a job that may be told of again: the first time counts.
func (f *Forecast) recordFirst(id core.JobID, at core.Time) {
	if s, _ := f.find(id); f.used == 0 || s != nil && s.key == 0 {
		f.record(id, at)
	}
}

func (w *forecastBuild) nextPhase() int {
	w.phase, w.resumed = w.phase+1, false
	return 1
}

// addNode counts one node.
func (w *forecastBuild) addNode() int {
	if w.version != w.p.ledger.Version { // nodes came or went: those counted so far say nothing any more
		w.version, w.node, w.model = w.p.ledger.Version, 0, newForecastModel(w.model.now, w.p)
	}
	if w.node == len(w.p.ledger.Order) {
		return w.nextPhase()
	}
	a := w.p.ledger.Order[w.node]
	w.node++
	a.ForecastIndex = -1
	if a.Record.Usable() {
		w.model.addNode(a, w.p.partitions)
	}
	return 50 + 20*len(w.p.partitions)
}

// addEnding counts one job that runs.
func (w *forecastBuild) addEnding() int {
	at := sorted.Cursor[ledger.AllocEnd, *ledger.AllocEnd]{List: &w.p.ends}
	if w.resumed {
		at = at.List.After(&w.lastEnd)
	}
	e := at.Current()
	if e == nil {
		return w.nextPhase()
	}
	w.resumed, w.lastEnd = true, *e
	for i, a := range w.p.ledger.NodesOf(e.Alloc) {
		if na := &e.Alloc.Alloc.Nodes[i]; a != nil && !na.Done {
			w.model.addRunning(a, na, e.Alloc, e.At, i == 0)
		}
	}
	return 50 * (1 + len(e.Alloc.Alloc.Nodes))
}

// addPending puts down the next job of the queues, in the order of a pass.
func (w *forecastBuild) addPending() int {
	var best *forecastQueue
	var head *queueEntry
	for i := range w.queues {
		l := &w.queues[i]
		if l.done {
			continue
		}
		c := queueCursor{List: &l.part.queue}
		if l.started {
			c = l.part.queue.After(&l.last)
		}
		e := c.Current()
		if e == nil {
			l.done = true
			continue
		}
		if best == nil || comesBefore(l.part, e, best.part, head) {
			best, head = l, e
		}
	}
	if best == nil {
		return w.nextPhase()
	}
	best.started, best.last = true, *head
	c := w.p.pending[head.job.ID].class
	cost := 50 * len(w.queues)
	if c == nil || head.class != c.firstUsable() || !w.mayOpen(head) {
		// It stands in several queues and counts in one; or a limit keeps it, and nobody knows how long.
		return cost
	}
	row, ok := w.classIndex[c]
	if !ok {
		row = w.model.addClass(c, head.job.Spec)
		w.classIndex[c] = row
		cost += 20 * len(w.model.pools)
	}
	w.model.addWaiting(head.job, row, w.model.gate(head.gate))
	return cost
}

// addIneligible puts down the next of the jobs that may not start yet.
func (w *forecastBuild) addIneligible() int {
	at := queueCursor{List: &w.p.ineligible}
	if w.resumed {
		at = at.List.After(&w.lastIneligible)
	}
	e := at.Current()
	if e == nil {
		return w.nextPhase()
	}
	w.resumed, w.lastIneligible = true, *e
	c := w.p.joinClass(e.job, 0) // its class, as if its time had come
	if c.firstUsable() != nil {
		w.model.addWaiting(e.job, w.model.addClass(c, e.job.Spec), 0)
	}
	w.p.leaveClass(c, e.job)
	return 50 + 20*len(w.model.pools)
}

// firstUsable returns the first partition of a class that could hold it, or nil.
func (c *classInfo) firstUsable() *partitionClass {
	for i := range c.partitions {
		if c.partitions[i].reason == nil {
			return &c.partitions[i]
		}
	}
	return nil
}

// PendingCount tells how many jobs wait for their turn or their time.
func (p *Planner) PendingCount() int { return len(p.pending) }

// WithForecast gives a plan that also knows a forecast.
func (p *Plan) WithForecast(f *Forecast) *Plan {
	if p == nil || f == nil || !f.Done() {
		return p
	}
	q := *p
	q.forecast = f
	return &q
}
