package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/forecast"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Forecast estimates when pending jobs will start if no more jobs arrive and all use their time limit. A plan knows
// that only of the few jobs with a reservation; a forecast lets the whole queue run off on a model of the cluster
// (package forecast). It is computed in slices (Step) between passes. Each slice reads the planner as it is then, so
// changes meanwhile may be in it or not. Once done it is never changed, and any number of readers may have it.
type Forecast struct {
	Now   core.Time // when it was begun
	table forecast.Table
	work  *forecastBuild // nil once it is done
}

// forecastBuild is a forecast being computed: it reads the planner and fills the model.
type forecastBuild struct {
	p              *Planner
	now            core.Time
	model          *forecast.Model
	phase          uint8
	node           int // index of the next node
	version        int
	resumed        bool            // in this phase an element of its list was read; the last one was
	lastEnd        ledger.AllocEnd // this
	lastIneligible queueEntry      // or this
	queues         []forecastQueue
	classIndex     map[*classInfo]int32 // their numbers in the model
}

// forecastQueue is a partition's queue and how far it has been read.
type forecastQueue struct {
	part    *partition
	last    queueEntry
	started bool
	done    bool
}

const (
	phaseNodes      uint8 = iota // nodes are added to the model,
	phasePending                 // pending jobs in order,
	phaseIneligible              // jobs whose begin time lies ahead,
	phaseRunning                 // running jobs with their ends,
	phaseRun                     // and the model runs
)

// Forecast begins a forecast that belongs to a plan of this planner.
func (p *Planner) Forecast(plan *Plan) *Forecast {
	f := &Forecast{Now: plan.Now, table: forecast.NewTable(plan.Now, len(p.pending))}
	f.work = &forecastBuild{
		p: p, now: plan.Now, version: p.ledger.Version, classIndex: map[*classInfo]int32{},
	}
	f.work.model = f.work.newModel()
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
			n -= w.addRunning()
		case phasePending:
			n -= w.addPending()
		case phaseIneligible:
			n -= w.addIneligible()
		case phaseRun:
			cost, over := w.model.Run(&f.table)
			if n -= cost; over {
				f.work = nil
			}
		}
		w = f.work
	}
	return w == nil
}

// At returns when a job will start, about, and false if the forecast does not know it.
func (f *Forecast) At(id core.JobID) (core.Time, bool) {
	if f == nil || f.work != nil {
		return 0, false
	}
	return f.table.At(id)
}

func (w *forecastBuild) newModel() *forecast.Model {
	p := w.p
	c := forecast.Config{FCFS: p.cfg.Rule == core.RuleFCFS, Advances: p.advance.List, Licenses: p.licenses.Totals()}
	for _, part := range p.partitions {
		c.Partitions = append(c.Partitions, forecast.Partition{Name: part.Name, QOS: part.QOS, Nodes: part.nodes.Names})
	}
	if p.limits != nil {
		c.Rules, c.Shares = p.limits.rules, p.limits.shares
	}
	return forecast.NewModel(w.now, c)
}

func (w *forecastBuild) nextPhase() int {
	w.phase, w.resumed = w.phase+1, false
	return 1
}

// addNode adds the next node.
func (w *forecastBuild) addNode() int {
	if w.version != w.p.ledger.Version { // nodes came or went: start over
		w.version, w.node, w.model = w.p.ledger.Version, 0, w.newModel()
	}
	if w.node == len(w.p.ledger.Order) {
		return w.nextPhase()
	}
	node := w.p.ledger.Order[w.node]
	w.node++
	if node.Record.Usable() {
		w.model.AddNode(node)
	}
	return 50 + 20*len(w.p.partitions)
}

// addRunning adds the next running job.
func (w *forecastBuild) addRunning() int {
	at := ledger.EndCursor{List: &w.p.jobs.Ends}
	if w.resumed {
		at = at.List.After(&w.lastEnd)
	}
	e := at.Current()
	if e == nil {
		return w.nextPhase()
	}
	w.resumed, w.lastEnd = true, *e
	w.model.AddRunning(e.Alloc, w.p.ledger.NodesOf(e.Alloc), e.At)
	return 50 * (1 + len(e.Alloc.Alloc.Nodes))
}

// addPending adds the next job of the queues, in the order of a pass.
func (w *forecastBuild) addPending() int {
	best, head := w.nextPending()
	if best == nil {
		return w.nextPhase()
	}
	best.started, best.last = true, *head
	c := w.p.pending[head.job.ID].class
	cost := 50 * len(w.queues)
	if c == nil || head.class != c.firstUsable() || !w.mayOpen(head) {
		// It is in several queues and counts in one; or a limit keeps it, and nobody knows for how long.
		return cost
	}
	number, ok := w.classIndex[c]
	if !ok {
		number = w.model.AddClass(c.forecastClass(head.job.Spec))
		w.classIndex[c] = number
		cost += 20 * w.model.PoolCount()
	}
	w.model.AddPending(head.job, number, head.gate)
	return cost
}

// nextPending returns the next job of all queues, and its queue; nil: there is none.
func (w *forecastBuild) nextPending() (best *forecastQueue, head *queueEntry) {
	for i := range w.queues {
		q := &w.queues[i]
		if q.done {
			continue
		}
		c := queueCursor{List: &q.part.queue}
		if q.started {
			c = q.part.queue.After(&q.last)
		}
		e := c.Current()
		if e == nil {
			q.done = true
			continue
		}
		if best == nil || comesBefore(q.part, e, best.part, head) {
			best, head = q, e
		}
	}
	return best, head
}

// mayOpen reports whether a limit may let a job start when something ends.
func (w *forecastBuild) mayOpen(e *queueEntry) bool {
	l := w.p.limits
	if e.gate == nil || l == nil {
		return true
	}
	return l.tally.CouldStart(e.gate, l.requestOf(e.class, e.job.Spec), e.minTime, w.now, l.shares)
}

// addIneligible adds the next of the jobs whose begin time lies ahead.
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
	c := w.p.classes.join(e.job, 0) // its class, as if its time had come
	if c.firstUsable() != nil {
		w.model.AddPending(e.job, w.model.AddClass(c.forecastClass(e.job.Spec)), nil)
	}
	w.p.classes.leave(c, e.job)
	return 50 + 20*w.model.PoolCount()
}

// forecastClass returns the class as the model needs it.
func (c *classInfo) forecastClass(spec *core.Spec) forecast.Class {
	first := c.firstUsable()
	out := forecast.Class{Spec: spec, Licenses: first.licenses, Confined: len(first.options) > 0}
	for i := range first.options {
		own := first.options[i].Advance
		if own == nil || !own.ConfinesNodes() {
			out.Confined = false
		}
		if own != nil {
			out.Advances = append(out.Advances, own)
		}
	}
	for i := range c.partitions {
		if s := &c.partitions[i]; s.reason == nil {
			out.Partitions = append(out.Partitions, forecast.ClassPartition{Index: s.part.index, Fit: &s.req})
		}
	}
	return out
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

// PendingCount returns how many jobs may start, now or from their begin time on.
func (p *Planner) PendingCount() int { return len(p.pending) }

// WithForecast returns the plan with a forecast that is done.
func (p *Plan) WithForecast(f *Forecast) *Plan {
	if p == nil || f == nil || !f.Done() {
		return p
	}
	q := *p
	q.forecast = f
	return &q
}
