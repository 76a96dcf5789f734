package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/fit"
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

// refusals knows which classes cannot start. It lasts as long as its planner.
type refusals struct {
	nodes      *cluster.Nodes
	reserved   *cluster.Reservations
	advance    *cluster.Advances
	preempting bool  // jobs may be preempted, so nodes may get more free during a pass
	epoch      int64 // grows with each pass, and when a pass drops a reservation

	started *[]ledger.AllocEnd // of the pass
	free    ledger.Resources   // scratch
	buffer  *fit.Buffer
}

// beginPass begins a new epoch. The starts of the pass are appended to a list.
func (rf *refusals) beginPass(started *[]ledger.AllocEnd) {
	rf.epoch++
	rf.started = started
}

// isRefused reports whether a job of the class that would end at end is known not to start: it was refused in this
// pass, or in an earlier one and too little came free since.
func (rf *refusals) isRefused(s *partitionClass, end core.Time) bool {
	if s.refusedEpoch == rf.epoch && alloc.Overlaps(s.refusedFrom, end) {
		return true
	}
	if !rf.applies(s, end) || !rf.stillHolds(s) {
		return false
	}
	rf.closeClass(s, s.refusal.from)
	return true
}

// applies reports whether an earlier refusal holds for a job that ends at end, but for what came free since.
func (rf *refusals) applies(s *partitionClass, end core.Time) bool {
	s.catchUp()
	r := &s.refusal
	return r.freedSeq >= rf.nodes.Freed.First && r.freedSeq > 0 && r.reservations <= rf.reserved.Known &&
		alloc.Overlaps(r.from, end)
}

// stillHolds reports whether what came free since is too little. It checks for the shortest job that was refused, so
// the answer holds for all of them.
func (rf *refusals) stillHolds(s *partitionClass) bool {
	r, req := &s.refusal, &s.req
	view := ledger.View{Scratch: &rf.free, JoinShared: true, Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
	if r.from != 0 {
		view.End = alloc.AddTime(r.from, 1)
	}
	var nodes, nodesOld int32
	var tasks, tasksOld int64
	promised := false
	freed, from := &rf.nodes.Freed, r.freedSeq
	if rf.nodes.MaxFreedIn(s.Set, len(*rf.started)).IsBelow(req) {
		from = freed.Next()
	}
	for i := from; i < freed.Next(); i++ {
		node := freed.At(i)
		if node.FreedSeq != i || !s.Set.Has(node) {
			continue
		}
		room := req.TasksAt(&view, node)
		promised = promised || view.End != 0 && len(node.Reserved) > 0
		if room <= 0 || req.NodesMax == 1 && room < req.Tasks || !req.Accepts(node, &view) {
			continue
		}
		nodes++
		tasks += int64(room)
		if nodes >= r.nodes && tasks >= r.tasks {
			return false
		}
		if i < rf.nodes.Settled {
			nodesOld, tasksOld = nodes, tasks
		}
	}
	r.improved = nodes > 0
	if promised { // it may be too little because of any of these
		r.reservations = max(r.reservations, int32(len(rf.reserved.List)))
	}
	// what came free before the last pass and is still free stays: it lacks that much less
	if rf.nodes.Settled > r.freedSeq {
		r.freedSeq, r.nodes, r.tasks = rf.nodes.Settled, r.nodes-nodesOld, r.tasks-tasksOld
	}
	return true
}

// lastReservationBefore returns the latest start of a reservation that a job of the class ending at end would overlap;
// 0: none.
func (rf *refusals) lastReservationBefore(s *partitionClass, end core.Time) (beyond core.Time) {
	if len(rf.advance.List) > 0 {
		view := ledger.View{Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
		beyond = rf.advance.LastBefore(&view, end)
	}
	return max(beyond, rf.reserved.LastBefore(end))
}

// record records that no job of the class can start that still runs at the latest reservation which was in the way of
// this one. Without reservations in the way no job of the class can. It holds until enough comes free.
func (rf *refusals) record(s *partitionClass, end core.Time) {
	req := &s.req
	r := refusal{
		freedSeq: rf.nodes.Freed.Next(), from: rf.lastReservationBefore(s, end), nodes: 1,
		tasks: int64(req.Tasks),
	}
	if r.from != 0 || len(rf.advance.List) > 0 {
		switch {
		case rf.noNodeHasRoom(s) || !rf.fitsUnreserved(s):
			r.from = 0
		case r.from == 0: // its own advance reservation has no room for it
			s.refusal = refusal{}
			return
		}
	}
	view := ledger.View{Scratch: &rf.free, JoinShared: true, Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
	if r.from != 0 {
		r.reservations, view.End = int32(len(rf.reserved.List)), alloc.AddTime(r.from, 1)
	}
	if req.NodesMax > 1 {
		r.nodes, r.tasks = req.NodesMin, int64(req.Tasks)
		for _, node := range rf.nodes.OpenOf(&s.Candidates, &s.req) {
			if room := req.TasksAt(&view, node); room > 0 && req.Accepts(node, &view) {
				r.nodes--
				r.tasks -= int64(room)
			}
		}
	}
	if s.refusal = r; s.licenses != nil { // it may lack licenses
		s.refusal = refusal{}
	}
	rf.closeClass(s, r.from)
}

// fitsUnreserved reports whether a job of the class would fit now if nothing were reserved.
func (rf *refusals) fitsUnreserved(s *partitionClass) bool {
	view := ledger.View{Nodes: rf.nodes.OpenOf(&s.Candidates, &s.req), JoinShared: true}
	return s.req.Choose(view, rf.buffer.Choices) != nil
}

// recordNoRoom is record for a class of which no node has room for a single task.
func (rf *refusals) recordNoRoom(s *partitionClass) {
	req := &s.req
	s.refusal = refusal{freedSeq: rf.nodes.Freed.Next(), nodes: 1, tasks: int64(req.Tasks)}
	if req.NodesMax > 1 {
		s.refusal.nodes = req.NodesMin
	}
	rf.closeClass(s, 0)
}

// recordOnFreed is record for a job that was tried only on nodes that came free since its class was refused.
func (rf *refusals) recordOnFreed(s *partitionClass, end core.Time) {
	r := refusal{
		freedSeq: rf.nodes.Freed.Next(), from: rf.lastReservationBefore(s, end),
		reservations: int32(len(rf.reserved.List)), nodes: 1, tasks: 1,
	}
	if was := s.refusal.from; was != 0 {
		r.from = max(r.from, was)
	}
	s.refusal = r
	rf.closeClass(s, r.from)
}

// closeClass records that no job of the class that still runs at until can start in this pass; 0: no job at all.
func (rf *refusals) closeClass(s *partitionClass, until core.Time) {
	s.refusedEpoch, s.refusedFrom = rf.epoch, until
	// a class that may preempt can still find victims
	if until == 0 && !s.isOption && s.preemptor == nil && s.members.Len > 0 {
		s.part.deadClasses++
	}
}

// fitsOnlyFreed reports whether a job of the class can start only on nodes in cluster.Nodes.Freed: no other node has
// room.
func (rf *refusals) fitsOnlyFreed(s *partitionClass, end core.Time) bool {
	return s.req.NodesMax == 1 && s.req.Tasks == 1 && s.Advance == nil && rf.applies(s, end)
}

// noNodeHasRoom reports whether no node has enough free for one task of a class, ignoring reservations. With preemption
// nodes may get more during a pass, so it reports false then.
func (rf *refusals) noNodeHasRoom(s *partitionClass) bool {
	return !rf.preempting && rf.nodes.NoneHasRoom(&s.Candidates, &s.req, rf.epoch)
}
