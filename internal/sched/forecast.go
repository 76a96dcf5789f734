package sched

import (
	"bireme.dev/bireme/internal/core"
)

// Forecast is when the jobs of a queue will start, about, if nothing more arrives and all lasts as long as it may. The
// plan knows that of the few jobs it reserved for; a forecast lets the whole queue run off on a rough picture of the
// cluster (see outlook). It is worked out in slices, Step by Step, between passes: it reads the planner as it is at each
// slice, so what comes and goes meanwhile may be in it or not. Once done it is never changed, and any number of readers
// may have it.
type Forecast struct {
	Now core.Time // it was begun

	base  core.JobID // keys are relative to it
	slots []told     // a hash table of 9/8 of the jobs there were
	used  int
	work  *forecasting // nil once it is done
}

// told is what a forecast knows of a job, in 8 bytes: there may be 100,000 of them.
type told struct {
	key uint32 // of the job; 0: nobody's
	at  uint32 // seconds from Now
}

// forecasting is a forecast being worked out.
type forecasting struct {
	p     *Planner
	out   *outlook
	phase uint8
	node  int // the next to be looked at
	shape int
	begun bool   // something of the list gone through in this phase has been met, last
	end   ending // this
	later entry  // or this
	lanes []forecastLane
	rows  map[*class]int32 // their place in the outlook
}

// forecastLane is a partition's queue and how far it has been gone through.
type forecastLane struct {
	part *partition
	last entry
	met  bool
	done bool
}

const (
	phaseNodes uint8 = iota // what there is
	phaseQueue              // what waits, in order
	phaseLater              // what may not start yet
	phaseEnds               // what runs, and until when
	phaseRun                // all of that runs off
)

// Forecast begins a forecast beside a plan of this planner.
func (p *Planner) Forecast(plan *Plan) *Forecast {
	f := &Forecast{Now: plan.Now, slots: make([]told, len(p.pending)*9/8+8)}
	f.work = &forecasting{p: p, out: newOutlook(plan.Now, p), shape: p.ledger.shape, rows: map[*class]int32{}}
	for _, part := range p.parts {
		f.work.lanes = append(f.work.lanes, forecastLane{part: part})
	}
	return f
}

// Done tells whether the forecast is ready to be read.
func (f *Forecast) Done() bool { return f.work == nil }

// Step does so much more of the work, counted in small operations of a few nanoseconds each, and tells whether all of it
// is done.
func (f *Forecast) Step(n int) (done bool) {
	w := f.work
	for w != nil && n > 0 {
		switch w.phase {
		case phaseNodes:
			n -= w.addNode()
		case phaseEnds:
			n -= w.addEnding()
		case phaseQueue:
			n -= w.addNext()
		case phaseLater:
			n -= w.addLater()
		case phaseRun:
			cost, over := w.out.run(f)
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

// find gives a job's key and its place in the table: its own, or the free one it would take; nil for an id out of range.
func (f *Forecast) find(id core.JobID) (*told, uint32) {
	off := int64(id-f.base) + 1<<31
	if off <= 0 || off >= 1<<32 {
		return nil, 0
	}
	key, n := uint32(off), uint64(len(f.slots))
	for i := uint64(key) * 0x9E3779B97F4A7C15 >> 32 * n >> 32; ; i++ {
		if i == n {
			i = 0
		}
		if s := &f.slots[i]; s.key == key || s.key == 0 {
			return s, key
		}
	}
}

// tell notes when a job will start.
func (f *Forecast) tell(id core.JobID, at core.Time) {
	if f.used == 0 {
		f.base = id
	}
	s, key := f.find(id)
	switch {
	case s == nil, at == never:
		return
	case s.key == 0 && f.used == len(f.slots)-1: // one place stays free: searches end there
		return
	case s.key == 0:
		s.key = key
		f.used++
	}
	s.at = uint32(min((max(0, int64(at-f.Now))+999_999)/1e6, 1<<32-1))
}

// tellFirst is tell for a job that may be told of again: the first time counts.
func (f *Forecast) tellFirst(id core.JobID, at core.Time) {
	if s, _ := f.find(id); f.used == 0 || s != nil && s.key == 0 {
		f.tell(id, at)
	}
}

// next moves to the next phase.
func (w *forecasting) next() int {
	w.phase, w.begun = w.phase+1, false
	return 1
}

// addNode counts one node.
func (w *forecasting) addNode() int {
	if w.shape != w.p.ledger.shape { // nodes came or went: those counted so far say nothing any more
		w.shape, w.node, w.out = w.p.ledger.shape, 0, newOutlook(w.out.now, w.p)
	}
	if w.node == len(w.p.ledger.order) {
		return w.next()
	}
	a := w.p.ledger.order[w.node]
	w.node++
	a.pool = -1
	if a.node.Usable() {
		w.out.addNode(a, w.p.parts)
	}
	return 50 + 20*len(w.p.parts)
}

// addEnding counts one job that runs.
func (w *forecasting) addEnding() int {
	at := walk[ending, *ending]{q: &w.p.ends}
	if w.begun {
		at = at.q.after(&w.end)
	}
	e := at.head()
	if e == nil {
		return w.next()
	}
	w.begun, w.end = true, *e
	for i, a := range w.p.on(e.h) {
		if na := &e.h.alloc.Nodes[i]; a != nil && !na.Done {
			w.out.addRunning(a, na, e.h, e.at, i == 0)
		}
	}
	return 50 * (1 + len(e.h.alloc.Nodes))
}

// addNext puts down the next job of the queues, in the order of a pass.
func (w *forecasting) addNext() int {
	var best *forecastLane
	var head *entry
	for i := range w.lanes {
		l := &w.lanes[i]
		if l.done {
			continue
		}
		c := cursor{q: &l.part.queue}
		if l.met {
			c = l.part.queue.after(&l.last)
		}
		e := c.head()
		if e == nil {
			l.done = true
			continue
		}
		if best == nil || higher(l.part, e, best.part, head) {
			best, head = l, e
		}
	}
	if best == nil {
		return w.next()
	}
	best.met, best.last = true, *head
	c := w.p.pending[head.job.ID].class
	cost := 50 * len(w.lanes)
	if c == nil || head.slot != c.first() || !w.opens(head) {
		// It stands in several queues and counts in one; or a limit keeps it, and nobody knows how long.
		return cost
	}
	row, ok := w.rows[c]
	if !ok {
		row = w.out.addClass(c, head.job.Spec)
		w.rows[c] = row
		cost += 20 * len(w.out.pools)
	}
	w.out.addWaiting(head.job, row, w.out.gate(head.gate))
	return cost
}

// addLater puts down the next of the jobs that may not start yet.
func (w *forecasting) addLater() int {
	at := cursor{q: &w.p.later}
	if w.begun {
		at = at.q.after(&w.later)
	}
	e := at.head()
	if e == nil {
		return w.next()
	}
	w.begun, w.later = true, *e
	c := w.p.join(e.job, 0) // its class, as if its time had come
	if c.first() != nil {
		w.out.addWaiting(e.job, w.out.addClass(c, e.job.Spec), 0)
	}
	w.p.leave(c, e.job)
	return 50 + 20*len(w.out.pools)
}

// first is the first place of a class that could hold it, nil if none could.
func (c *class) first() *slot {
	for i := range c.slots {
		if c.slots[i].why == nil {
			return &c.slots[i]
		}
	}
	return nil
}

// after walks a list from behind a member on, or from where it would be.
func (q *list[E, P]) after(e *E) walk[E, P] {
	w := walk[E, P]{q: q}
	var ok bool
	if w.chunk, w.at, ok = q.find(e); ok {
		w.next()
	}
	return w
}

// Waiting tells how many jobs wait for their turn or their time.
func (p *Planner) Waiting() int { return len(p.pending) }

// With gives a plan that also knows a forecast.
func (p *Plan) With(f *Forecast) *Plan {
	if p == nil || f == nil || !f.Done() {
		return p
	}
	q := *p
	q.forecast = f
	return &q
}
