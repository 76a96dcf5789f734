package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/timetable"
)

// usesTimetable reports whether the timetable applies to this cluster and rule. On other clusters
// core.RuleConservative makes all reservations again in each pass.
func (p *Planner) usesTimetable() bool {
	return p.cfg.Rule == core.RuleConservative && p.cfg.Reservations == 0 && len(p.partitions) == 1 &&
		len(p.ledger.Order) == 1 && len(p.hets.byLead) == 0 && len(p.advance.List) == 0 && p.classes.licensed == 0
}

// runTimetable is a pass by core.RuleConservative over the timetable.
func (ps *pass) runTimetable(part *partition) {
	p, now := ps.p, ps.plan.Now
	t := p.timetable
	t.Forget(now, int64(p.ledger.Order[0].Record.Hardware.CPUs))
	early := p.updateTimetable(now)
	for c := (queueCursor{List: &part.queue}); c.Current() != nil; c.Next() {
		if b := t.Jobs[c.Current().job.ID]; b != nil && (early || b.At < now) {
			t.Move(b, now)
		}
	}
	for c := (queueCursor{List: &part.queue}); c.Current() != nil; c.Next() {
		e := c.Current()
		b := t.Jobs[e.job.ID]
		if b == nil {
			req := &e.class.req
			b = &timetable.Job{
				Length: alloc.TimeLimit(e.job.Spec), CPUs: int64(max(req.Tasks*req.CpusPerTask, req.MinCPUs)),
			}
			t.Place(b, now)
			t.Jobs[e.job.ID] = b
		}
		if b.At == now && ps.tryStart(e.class, e.job) {
			continue
		}
		if len(ps.plan.heads) == 0 {
			ps.plan.heads = map[core.PartitionName]core.JobID{part.Name: e.job.ID}
			ps.plan.expected = map[core.JobID]core.Time{}
		}
		ps.plan.expected[e.job.ID] = b.At
		if b.At > now && b.At < alloc.Never { // nothing else need happen then
			ps.plan.wakeAt(b.At)
		}
	}
}

// updateTimetable removes jobs that ended from the timetable, adds running jobs that it does not have, and reports
// whether any job ended before its time limit.
func (p *Planner) updateTimetable(now core.Time) (early bool) {
	t := p.timetable
	for id, b := range t.Jobs {
		switch {
		case p.jobs.Allocs[id] != nil:
			b.Running = true
		case b.Running || p.pending[id].class == nil:
			early = t.Remove(id, now) || early
		}
	}
	if len(t.Jobs) == len(p.jobs.Allocs)+len(p.pending) {
		return early
	}
	for id, h := range p.jobs.Allocs {
		if t.Jobs[id] == nil {
			b := &timetable.Job{Length: h.End}
			if h.End < alloc.Never {
				b.Length = max(0, h.End-now)
			}
			for i := range h.Alloc.Nodes {
				b.CPUs += int64(h.Alloc.Nodes[i].CPUs)
			}
			t.AddRunning(id, b, now)
		}
	}
	return early
}
