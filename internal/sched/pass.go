package sched

import (
	"bireme.dev/bireme/internal/core"
)

// Pass plans at now.
func (p *Planner) Pass(now core.Time) *Plan {
	plan := &Plan{Now: now, keyOf: p.keyOf, heads: map[core.PartitionName]core.JobID{}}
	p.ripen(now, plan)
	ps := pass{p: p, plan: plan}
	ps.run()
	for i := len(ps.taken) - 1; i >= 0; i-- { // leave the ledger as it was found
		p.release(ps.taken[i])
	}
	plan.verdicts = p.verdictsNow()
	return plan
}

// ripen moves jobs whose time has come into their queues and finds the next one's.
func (p *Planner) ripen(now core.Time, plan *Plan) {
	for {
		c := cursor{q: &p.later}
		e := c.head()
		if e == nil {
			return
		}
		if e.at > now {
			plan.WakeAt = e.at
			return
		}
		j := e.job
		p.later.remove(*e)
		p.ripe(j)
	}
}

// pass is one walk through the queues.
type pass struct {
	p     *Planner
	plan  *Plan
	taken []holding
	// Jobs that stand in several queues: how many of their tasks (or they themselves) have been given a place.
	placed map[core.JobID]int
}

func (ps *pass) run() {
	cursors := make([]cursor, len(ps.p.parts))
	open := make([]bool, len(ps.p.parts))
	for i, part := range ps.p.parts {
		cursors[i] = cursor{q: &part.queue}
		open[i] = true
	}
	for {
		best := -1
		var head *entry
		for i := range cursors {
			if !open[i] {
				continue
			}
			e := cursors[i].head()
			if e == nil {
				open[i] = false
				continue
			}
			if best < 0 || higher(ps.p.parts[i], e, ps.p.parts[best], head) {
				best, head = i, e
			}
		}
		if best < 0 {
			return
		}
		if ps.try(head.slot, head.job) {
			cursors[best].next()
		} else {
			ps.plan.heads[ps.p.parts[best].Name] = head.job.ID
			open[best] = false
		}
	}
}

// higher orders jobs of different partitions: the partition's tier first.
func higher(a *partition, e *entry, b *partition, f *entry) bool {
	if a.PriorityTier != b.PriorityTier {
		return a.PriorityTier > b.PriorityTier
	}
	return e.compare(f) < 0
}

func down(state string) bool { return state != "" && state != "UP" && state != "DRAIN" }

// try starts a job, or as many tasks of an array as fit. It returns false if the queue behind must wait for it.
func (ps *pass) try(s *slot, j *core.Job) bool {
	done := ps.placed[j.ID]
	if !j.IsArray() {
		return done > 0 || ps.throttled(j) || ps.place(s, j, 0)
	}
	skip := done
	for task := range j.Array.Tasks.All() {
		if skip > 0 { // placed in another of its partitions
			skip--
			continue
		}
		if ps.throttled(j) {
			return true
		}
		if !ps.place(s, j, int32(task)) {
			return false
		}
	}
	return true
}

// throttled tells whether as many tasks of a job's array run as its limit allows, and notes it.
func (ps *pass) throttled(j *core.Job) bool {
	if j.Array == nil || j.Spec.Throttle <= 0 || ps.p.running[j.Array.Base] < j.Spec.Throttle {
		return false
	}
	if ps.plan.throttled == nil {
		ps.plan.throttled = map[core.JobID]bool{}
	}
	ps.plan.throttled[j.ID] = true
	return true
}

func (ps *pass) place(s *slot, j *core.Job, task int32) bool {
	picks := s.need.choose(look{nodes: ps.p.accounts(s.part)}, ps.p.buf)
	if picks == nil {
		return false
	}
	ps.p.buf = picks
	h := holding{alloc: s.need.alloc(s.part.Name, picks), exclusive: s.need.exclusive}
	for i := range h.alloc.Nodes {
		ok := ps.p.ledger.Take(&h.alloc.Nodes[i], h.exclusive)
		core.Assert(ok, "placement of job %d takes what is not free on %s", j.ID, h.alloc.Nodes[i].Node)
	}
	if j.Array != nil {
		h.base = j.Array.Base
		ps.p.running[h.base]++
	}
	if len(ps.p.parts) > 1 {
		if ps.placed == nil {
			ps.placed = map[core.JobID]int{}
		}
		ps.placed[j.ID]++
	}
	ps.taken = append(ps.taken, h)
	ps.plan.Starts = append(ps.plan.Starts, Start{Job: j.ID, Task: task, Array: j.IsArray(), Alloc: h.alloc})
	return true
}
