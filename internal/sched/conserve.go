package sched

import (
	"slices"
	"sort"

	"bireme.dev/bireme/internal/core"
)

// timetable is the plan of RuleConservative on a machine that is one node and one partition, as traces describe them:
// every job has a place in time from its arrival on, and moves only forward, in the order of the queue, when something
// ends before its time. Unlike all else it remembers: what was promised at arrival cannot be worked out again later.
// On other machines the rule makes all reservations anew in each pass.
type timetable struct {
	steps []step // free CPUs from each moment on; the last lasts forever
	jobs  map[core.JobID]*booking
}

type step struct {
	at   core.Time
	free int64
}

type booking struct {
	at, length core.Time
	cpus       int64
	runs       bool
}

// conservative is a pass by RuleConservative over the timetable.
func (ps *pass) conservative(part *partition) {
	p, now := ps.p, ps.plan.Now
	t := p.table
	t.cut(now, int64(p.ledger.order[0].node.Hardware.CPUs))
	early := t.settle(p, now)
	for c := (cursor{q: &part.queue}); c.head() != nil; c.next() {
		e := c.head()
		b := t.jobs[e.job.ID]
		if b != nil && (early || b.at < now) {
			t.add(max(b.at, now), after(b.at, b.length), b.cpus)
			t.book(b, now)
		}
	}
	for c := (cursor{q: &part.queue}); c.head() != nil; c.next() {
		e := c.head()
		b := t.jobs[e.job.ID]
		if b == nil {
			n := &e.slot.need
			b = &booking{length: length(e.job.Spec), cpus: int64(max(n.tasks*n.cpusPerTask, n.minCPUs))}
			t.book(b, now)
			t.jobs[e.job.ID] = b
		}
		if b.at == now && ps.try(e.slot, e.job) {
			continue
		}
		if len(ps.plan.heads) == 0 {
			ps.plan.heads = map[core.PartitionName]core.JobID{part.Name: e.job.ID}
			ps.plan.expected = map[core.JobID]core.Time{}
		}
		ps.plan.expected[e.job.ID] = b.at
		if w := ps.plan.WakeAt; b.at > now && b.at < never && (w == 0 || b.at < w) { // nothing else need happen then
			ps.plan.WakeAt = b.at
		}
	}
}

// tabled tells whether the timetable is for this machine and queue.
func (p *Planner) tabled() bool {
	return p.cfg.Rule == RuleConservative && p.cfg.Reservations == 0 && len(p.parts) == 1 && len(p.ledger.order) == 1 && len(p.hets) == 0 && len(p.books) == 0 && p.asking == 0
}

// settle takes out what is gone and tells whether any of it went before its time.
func (t *timetable) settle(p *Planner, now core.Time) (early bool) {
	for id, b := range t.jobs {
		switch {
		case p.holding[id] != nil:
			b.runs = true
			continue
		case !b.runs && p.pending[id].class != nil:
			continue
		}
		if end := after(b.at, b.length); end > now {
			t.add(max(b.at, now), end, b.cpus)
			early = true
		}
		delete(t.jobs, id)
	}
	if len(t.jobs) == len(p.holding)+len(p.pending) {
		return early
	}
	for id, h := range p.holding {
		if t.jobs[id] == nil {
			b := &booking{at: now, length: h.end, runs: true}
			if h.end < never {
				b.length = max(0, h.end-now)
			}
			for i := range h.alloc.Nodes {
				b.cpus += int64(h.alloc.Nodes[i].CPUs)
			}
			t.add(now, after(now, b.length), -b.cpus)
			t.jobs[id] = b
		}
	}
	return early
}

// cut forgets what is past.
func (t *timetable) cut(now core.Time, cpus int64) {
	if len(t.steps) == 0 {
		t.steps = append(t.steps, step{free: cpus})
	}
	i := t.find(now)
	t.steps = slices.Delete(t.steps, 0, i)
	t.steps[0].at = now
}

// find gives the step that a moment falls into.
func (t *timetable) find(at core.Time) int {
	return sort.Search(len(t.steps), func(i int) bool { return t.steps[i].at > at }) - 1
}

// split makes a step begin at a moment and returns its position.
func (t *timetable) split(at core.Time) int {
	i := t.find(at)
	if t.steps[i].at == at {
		return i
	}
	t.steps = slices.Insert(t.steps, i+1, step{at, t.steps[i].free})
	return i + 1
}

// add gives CPUs back, or takes them, for a time.
func (t *timetable) add(from, to core.Time, cpus int64) {
	if from >= to {
		return
	}
	i, end := t.split(from), len(t.steps)
	if to < never {
		end = t.split(to)
	}
	for k := i; k < end; k++ {
		t.steps[k].free += cpus
	}
	for _, k := range [...]int{end, i} { // steps that no longer differ become one
		if k > 0 && k < len(t.steps) && t.steps[k].free == t.steps[k-1].free {
			t.steps = slices.Delete(t.steps, k, k+1)
		}
	}
}

// book finds the first place for a job and takes it.
func (t *timetable) book(b *booking, now core.Time) {
	at := now
	for i := 0; i < len(t.steps); i++ {
		if s := &t.steps[i]; s.free < b.cpus {
			if i+1 < len(t.steps) {
				at = t.steps[i+1].at
				continue
			}
			at = never
		} else if i+1 < len(t.steps) && t.steps[i+1].at < after(at, b.length) {
			continue
		}
		break
	}
	b.at = at
	t.add(at, after(at, b.length), -b.cpus)
}
