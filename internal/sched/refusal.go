package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// refusal records that a class could not start and what it lacked. It holds over passes until nodes that the class can
// use got that much free. All that comes free is in cluster.Nodes.Freed: resources of jobs that ended, nodes that came
// up, and reservations that a pass did not repeat.
type refusal struct {
	freedSeq     int64     // cluster.Nodes.Freed was read up to this entry; 0: nothing is known
	from         core.Time // jobs that still run at this time were refused; 0: all
	reservations int32     // it depends on the first so many reservations of the pass
	nodes        int32     // it lacked so many nodes with any room
	tasks        int64     // and room for so many tasks; both 0: not known
	improved     bool      // something came free since, but too little
}

// isClassRefused reports whether a job of the class that would end at end is known not to start: it was refused in this
// pass, or in an earlier one and too little came free since.
func (ps *pass) isClassRefused(s *partitionClass, end core.Time) bool {
	if s.refusedEpoch == ps.p.refusalEpoch && alloc.Overlaps(s.refusedFrom, end) {
		return true
	}
	if !ps.refusalApplies(s, end) || !ps.stillRefused(s) {
		return false
	}
	ps.closeClass(s, s.refusal.from)
	return true
}

// refusalApplies reports whether an earlier refusal holds for a job that ends at end, but for what came free since.
func (ps *pass) refusalApplies(s *partitionClass, end core.Time) bool {
	s.catchUp()
	r := &s.refusal
	return r.freedSeq >= ps.p.nodes.Freed.First && r.freedSeq > 0 && r.reservations <= ps.p.reserved.Known &&
		alloc.Overlaps(r.from,
			end)
}

// stillRefused reports whether what came free since is too little. It checks for the shortest job that was refused, so
// the answer holds for all of them.
func (ps *pass) stillRefused(s *partitionClass) bool {
	p, r, n := ps.p, &s.refusal, &s.req
	at := ledger.View{Scratch: &p.free, JoinShared: true, Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
	if r.from != 0 {
		at.End = alloc.AddTime(r.from, 1)
	}
	var nodes, nodesOld int32
	var tasks, tasksOld int64
	promised := false
	from := r.freedSeq
	if p.nodes.MaxFreedIn(s.Set, len(ps.started)).IsBelow(n) {
		from = p.nodes.Freed.Next()
	}
	for i := from; i < p.nodes.Freed.Next(); i++ {
		a := p.nodes.Freed.At(i)
		if a.FreedSeq != i || !s.Set.Has(a) {
			continue
		}
		room := n.TasksAt(&at, a)
		promised = promised || at.End != 0 && len(a.Reserved) > 0
		if room <= 0 || n.NodesMax == 1 && room < n.Tasks || !n.Accepts(a, &at) {
			continue
		}
		nodes++
		tasks += int64(room)
		if nodes >= r.nodes && tasks >= r.tasks {
			return false
		}
		if i < p.nodes.Settled {
			nodesOld, tasksOld = nodes, tasks
		}
	}
	r.improved = nodes > 0
	if promised { // it may be too little because of any of these
		r.reservations = max(r.reservations, int32(len(ps.p.reserved.List)))
	}
	// what came free before the last pass and is still free stays: it lacks that much less
	if p.nodes.Settled > r.freedSeq {
		r.freedSeq, r.nodes, r.tasks = p.nodes.Settled, r.nodes-nodesOld, r.tasks-tasksOld
	}
	return true
}

// lastReservationBefore returns the latest start of a reservation that a job of the class ending at end would overlap;
// 0: none.
func (ps *pass) lastReservationBefore(s *partitionClass, end core.Time) (beyond core.Time) {
	if len(ps.p.advances) > 0 {
		at := ledger.View{Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
		beyond = ps.p.advance.LastBefore(&at, end)
	}
	return max(beyond, ps.p.reserved.LastBefore(end))
}

// recordRefusal records that no job of the class can start that still runs at the latest reservation which was in the
// way of this one. Without reservations in the way no job of the class can. It holds until enough comes free.
func (ps *pass) recordRefusal(s *partitionClass, end core.Time) {
	p, n := ps.p, &s.req
	r := refusal{freedSeq: p.nodes.Freed.Next(), from: ps.lastReservationBefore(s, end), nodes: 1, tasks: int64(n.Tasks)}
	if r.from != 0 || len(p.advances) > 0 {
		switch {
		case ps.noNodeHasRoom(s) || !ps.fitsUnreserved(s):
			r.from = 0
		case r.from == 0: // its own advance reservation has no room for it
			s.refusal = refusal{}
			return
		}
	}
	at := ledger.View{Scratch: &p.free, JoinShared: true, Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
	if r.from != 0 {
		r.reservations, at.End = int32(len(ps.p.reserved.List)), alloc.AddTime(r.from, 1)
	}
	if n.NodesMax > 1 {
		r.nodes, r.tasks = n.NodesMin, int64(n.Tasks)
		for _, a := range p.nodes.OpenOf(&s.Candidates, &s.req) {
			if room := n.TasksAt(&at, a); room > 0 && n.Accepts(a, &at) {
				r.nodes--
				r.tasks -= int64(room)
			}
		}
	}
	if s.refusal = r; s.licenses != nil { // it may lack licenses
		s.refusal = refusal{}
	}
	ps.closeClass(s, r.from)
}

// fitsUnreserved reports whether a job of the class would fit now if nothing were reserved.
func (ps *pass) fitsUnreserved(s *partitionClass) bool {
	view := ledger.View{Nodes: ps.p.nodes.OpenOf(&s.Candidates, &s.req), JoinShared: true}
	return s.req.Choose(view, ps.p.choices) != nil
}

// recordNoRoom is recordRefusal for a class of which no node has room for a single task.
func (ps *pass) recordNoRoom(s *partitionClass) {
	n := &s.req
	s.refusal = refusal{freedSeq: ps.p.nodes.Freed.Next(), nodes: 1, tasks: int64(n.Tasks)}
	if n.NodesMax > 1 {
		s.refusal.nodes = n.NodesMin
	}
	ps.closeClass(s, 0)
}

// recordRefusalOnFreed is recordRefusal for a job that was tried only on nodes that came free since its class was
// refused.
func (ps *pass) recordRefusalOnFreed(s *partitionClass, end core.Time) {
	r := refusal{
		freedSeq: ps.p.nodes.Freed.Next(), from: ps.lastReservationBefore(s, end),
		reservations: int32(len(ps.p.reserved.List)), nodes: 1, tasks: 1,
	}
	if was := s.refusal.from; was != 0 {
		r.from = max(r.from, was)
	}
	s.refusal = r
	ps.closeClass(s, r.from)
}

// closeClass records that no job of the class that still runs at until can start in this pass; 0: no job at all.
func (ps *pass) closeClass(s *partitionClass, until core.Time) {
	s.refusedEpoch, s.refusedFrom = ps.p.refusalEpoch, until
	// a class that may preempt can still find victims
	if until == 0 && !s.isOption && s.preemptor == nil && s.members.Len > 0 {
		s.part.deadClasses++
	}
}

// fitsOnlyFreed reports whether a job of the class can start only on nodes in cluster.Nodes.Freed: no other node has
// room.
func (ps *pass) fitsOnlyFreed(s *partitionClass, end core.Time) bool {
	return s.req.NodesMax == 1 && s.req.Tasks == 1 && s.Advance == nil && ps.refusalApplies(s, end)
}
