package sched

import (
	"slices"
	"sort"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// timetable is the plan of RuleConservative on a machine that is one node and one partition, as traces describe them:
// every job has a place in time from its arrival on, and moves only forward, in the order of the queue, when something
// ends before its time. Unlike all else it remembers: what was promised at arrival cannot be worked out again later.
// On other machines the rule makes all reservations anew in each pass.
type timetable struct {
	steps []timetableStep // free CPUs from each moment on; the last lasts forever
	jobs  map[core.JobID]*timetableJob
}

type timetableStep struct {
	at   core.Time
	free int64
}

type timetableJob struct {
	at, length core.Time
	cpus       int64
	running    bool
}

// runTimetable is a pass by RuleConservative over the timetable.
func (ps *pass) runTimetable(part *partition) {
	p, now := ps.p, ps.plan.Now
	t := p.timetable
	t.startAt(now, int64(p.ledger.Order[0].Record.Hardware.CPUs))
	early := t.removeEnded(p, now)
	for c := (queueCursor{List: &part.queue}); c.Current() != nil; c.Next() {
		e := c.Current()
		b := t.jobs[e.job.ID]
		if b != nil && (early || b.at < now) {
			t.add(max(b.at, now), alloc.AddTime(b.at, b.length), b.cpus)
			t.place(b, now)
		}
	}
	for c := (queueCursor{List: &part.queue}); c.Current() != nil; c.Next() {
		e := c.Current()
		b := t.jobs[e.job.ID]
		if b == nil {
			n := &e.class.req
			b = &timetableJob{length: alloc.TimeLimit(e.job.Spec), cpus: int64(max(n.Tasks*n.CpusPerTask, n.MinCPUs))}
			t.place(b, now)
			t.jobs[e.job.ID] = b
		}
		if b.at == now && ps.tryStart(e.class, e.job) {
			continue
		}
		if len(ps.plan.heads) == 0 {
			ps.plan.heads = map[core.PartitionName]core.JobID{part.Name: e.job.ID}
			ps.plan.expected = map[core.JobID]core.Time{}
		}
		ps.plan.expected[e.job.ID] = b.at
		if w := ps.plan.WakeAt; b.at > now && b.at < alloc.Never && (w == 0 || b.at < w) { // nothing else need happen then
			ps.plan.WakeAt = b.at
		}
	}
}

// usesTimetable reports whether the timetable applies to this cluster and rule.
func (p *Planner) usesTimetable() bool {
	return p.cfg.Rule == RuleConservative && p.cfg.Reservations == 0 && len(p.partitions) == 1 &&
		len(p.ledger.Order) == 1 && len(p.hets.byLead) == 0 && len(p.advances) == 0 && p.licenseClasses == 0
}

// removeEnded removes jobs that ended and reports whether any ended before its time limit.
func (t *timetable) removeEnded(p *Planner, now core.Time) (early bool) {
	for id, b := range t.jobs {
		switch {
		case p.allocations[id] != nil:
			b.running = true
			continue
		case !b.running && p.pending[id].class != nil:
			continue
		}
		if end := alloc.AddTime(b.at, b.length); end > now {
			t.add(max(b.at, now), end, b.cpus)
			early = true
		}
		delete(t.jobs, id)
	}
	if len(t.jobs) == len(p.allocations)+len(p.pending) {
		return early
	}
	for id, h := range p.allocations {
		if t.jobs[id] == nil {
			b := &timetableJob{at: now, length: h.End, running: true}
			if h.End < alloc.Never {
				b.length = max(0, h.End-now)
			}
			for i := range h.Alloc.Nodes {
				b.cpus += int64(h.Alloc.Nodes[i].CPUs)
			}
			t.add(now, alloc.AddTime(now, b.length), -b.cpus)
			t.jobs[id] = b
		}
	}
	return early
}

// startAt forgets what is past.
func (t *timetable) startAt(now core.Time, cpus int64) {
	if len(t.steps) == 0 {
		t.steps = append(t.steps, timetableStep{free: cpus})
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
	t.steps = slices.Insert(t.steps, i+1, timetableStep{at, t.steps[i].free})
	return i + 1
}

// add gives CPUs back, or takes them, for a time.
func (t *timetable) add(from, to core.Time, cpus int64) {
	if from >= to {
		return
	}
	i, end := t.split(from), len(t.steps)
	if to < alloc.Never {
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

// place finds the first place for a job and takes it.
func (t *timetable) place(b *timetableJob, now core.Time) {
	at := now
	for i := 0; i < len(t.steps); i++ {
		if s := &t.steps[i]; s.free < b.cpus {
			if i+1 < len(t.steps) {
				at = t.steps[i+1].at
				continue
			}
			at = alloc.Never
		} else if i+1 < len(t.steps) && t.steps[i+1].at < alloc.AddTime(at, b.length) {
			continue
		}
		break
	}
	b.at = at
	t.add(at, alloc.AddTime(at, b.length), -b.cpus)
}
