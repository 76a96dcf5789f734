package sched

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// refusal records that a class could not start and what it lacked. It holds over passes until nodes that the class can
// use got that much free. All that comes free is in Planner.freed: resources of jobs that ended, nodes that came up,
// and reservations that a pass did not repeat.
type refusal struct {
	freedSeq     int64     // Planner.freed was read up to this entry; 0: nothing is known
	from         core.Time // jobs that still run at this time were refused; 0: all
	reservations int32     // it depends on the first so many reservations of the pass
	nodes        int32     // it lacked so many nodes with any room
	tasks        int64     // and room for so many tasks; both 0: not known
	improved     bool      // something came free since, but too little
}

// allReservations stands for every reservation that a pass will make.
const allReservations = math.MaxInt32

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
	return r.freedSeq >= ps.p.freed.first && r.freedSeq > 0 && r.reservations <= ps.reservationsKnown &&
		alloc.Overlaps(r.from,
			end)
}

// stillRefused reports whether what came free since is too little. It checks for the shortest job that was refused, so
// the answer holds for all of them.
func (ps *pass) stillRefused(s *partitionClass) bool {
	p, r, n := ps.p, &s.refusal, &s.req
	at := ledger.View{Scratch: &p.free, JoinShared: true, Advance: s.advance, MayDelayAdvance: s.mayDelayAdvance}
	if r.from != 0 {
		at.End = alloc.AddTime(r.from, 1)
	}
	var nodes, nodesOld int32
	var tasks, tasksOld int64
	promised := false
	from := r.freedSeq
	if ps.maxFreedIn(s.part).isBelow(s) {
		from = p.freed.next()
	}
	for i := from; i < p.freed.next(); i++ {
		a := p.freed.at(i)
		if a.FreedSeq != i || !s.part.has(a) {
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
		if i < p.freedSettled {
			nodesOld, tasksOld = nodes, tasks
		}
	}
	r.improved = nodes > 0
	if promised { // it may be too little because of any of these
		r.reservations = max(r.reservations, int32(len(ps.reserved)))
	}
	// what came free before the last pass and is still free stays: it lacks that much less
	if p.freedSettled > r.freedSeq {
		r.freedSeq, r.nodes, r.tasks = p.freedSettled, r.nodes-nodesOld, r.tasks-tasksOld
	}
	return true
}

// maxFreed is the maximum of each resource over the nodes in Planner.freed. A class that needs more need not look at
// each node.
type maxFreed struct {
	freedSeq int64 // computed for these entries of Planner.freed,
	starts   int   // after so many starts,
	pass     int64 // in this pass
	nodes    int32
	cpus     int32
	mem      core.Bytes
}

func (ps *pass) maxFreedIn(part *partition) *maxFreed {
	p, b := ps.p, &part.maxFreed
	if b.freedSeq == p.freed.next() && b.starts == len(ps.started) && b.pass == p.passCount {
		return b
	}
	*b = maxFreed{freedSeq: p.freed.next(), starts: len(ps.started), pass: p.passCount}
	for i, a := range p.freed.nodes {
		if a.FreedSeq == p.freed.first+int64(i) && part.has(a) && a.HasFree() {
			b.add(a)
		}
	}
	return b
}

func (b *maxFreed) add(a *ledger.Node) {
	b.nodes++
	b.cpus, b.mem = max(b.cpus, a.Free.Cpus), max(b.mem, a.Free.Mem)
}

// isBelow reports whether no node that came free has room for a task of the class.
func (b *maxFreed) isBelow(s *partitionClass) bool {
	n := &s.req
	return b.nodes == 0 || n.Detail == nil && (n.CpusPerTask > b.cpus || n.MinCPUs > b.cpus || n.MemPerNode > b.mem)
}

// lastReservationBefore returns the latest start of a reservation that a job of the class ending at end would overlap;
// 0: none.
func (ps *pass) lastReservationBefore(s *partitionClass, end core.Time) (beyond core.Time) {
	if len(ps.p.advances) > 0 {
		beyond = ps.lastAdvanceBefore(s, end)
	}
	for _, r := range ps.reserved {
		if r.Nodes != nil && alloc.Overlaps(r.Start, end) {
			beyond = max(beyond, r.Start)
		}
	}
	return beyond
}

// recordRefusal records that no job of the class can start that still runs at the latest reservation which was in the
// way of this one. Without reservations in the way no job of the class can. It holds until enough comes free.
func (ps *pass) recordRefusal(s *partitionClass, end core.Time) {
	p, n := ps.p, &s.req
	r := refusal{freedSeq: p.freed.next(), from: ps.lastReservationBefore(s, end), nodes: 1, tasks: int64(n.Tasks)}
	if r.from != 0 || len(p.advances) > 0 {
		switch {
		case ps.noNodeHasRoom(s) || n.Choose(ledger.View{Nodes: p.openNodesFor(s), JoinShared: true}, p.choices) == nil:
			r.from = 0
		case r.from == 0: // its own advance reservation has no room for it
			s.refusal = refusal{}
			return
		}
	}
	at := ledger.View{Scratch: &p.free, JoinShared: true, Advance: s.advance, MayDelayAdvance: s.mayDelayAdvance}
	if r.from != 0 {
		r.reservations, at.End = int32(len(ps.reserved)), alloc.AddTime(r.from, 1)
	}
	if n.NodesMax > 1 {
		r.nodes, r.tasks = n.NodesMin, int64(n.Tasks)
		for _, a := range p.openNodesFor(s) {
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

// recordNoRoom is recordRefusal for a class of which no node has room for a single task.
func (ps *pass) recordNoRoom(s *partitionClass) {
	n := &s.req
	s.refusal = refusal{freedSeq: ps.p.freed.next(), nodes: 1, tasks: int64(n.Tasks)}
	if n.NodesMax > 1 {
		s.refusal.nodes = n.NodesMin
	}
	ps.closeClass(s, 0)
}

// recordRefusalOnFreed is recordRefusal for a job that was tried only on nodes that came free since its class was
// refused.
func (ps *pass) recordRefusalOnFreed(s *partitionClass, end core.Time) {
	r := refusal{
		freedSeq: ps.p.freed.next(), from: ps.lastReservationBefore(s, end),
		reservations: int32(len(ps.reserved)), nodes: 1, tasks: 1,
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

// fitsOnlyFreed reports whether a job of the class can start only on nodes in Planner.freed: no other node has room.
func (ps *pass) fitsOnlyFreed(s *partitionClass, end core.Time) bool {
	return s.req.NodesMax == 1 && s.req.Tasks == 1 && s.advance == nil && ps.refusalApplies(s, end)
}

// freedNodes lists the nodes of a partition in Planner.freed that have anything free, in the order they are tried.
func (p *Planner) freedNodes(part *partition) []*ledger.Node {
	if part.freedAt != p.freed.next() {
		part.freedAt = p.freed.next()
		part.freedNodes = part.freedNodes[:0]
		for i, a := range p.freed.nodes {
			if a.FreedSeq == p.freed.first+int64(i) && part.has(a) && a.HasFree() {
				part.freedNodes = append(part.freedNodes, a)
			}
		}
		slices.SortFunc(part.freedNodes, func(a, b *ledger.Node) int { return cmp.Compare(a.Index, b.Index) })
	}
	return part.freedNodes
}

// noteUnreserved records that a node's resources are not reserved any more.
func (p *Planner) noteUnreserved(a *ledger.Node) {
	if a.Index >= 0 && a.HasFree() {
		a.FreedSeq = p.freed.next()
		p.freed.nodes = append(p.freed.nodes, a)
	}
}

// compareWithLast compares the reservation just made with the one that the last pass made in its place, and records
// nodes that are not reserved any more.
func (ps *pass) compareWithLast(r *ledger.Reservation) {
	p, i := ps.p, len(ps.reserved)-1
	if ps.reservationsKnown != allReservations {
		ps.reservationsKnown = int32(len(ps.reserved))
	}
	if i >= len(p.lastReservations) || p.lastReservations[i] == r {
		return
	}
	for k := range p.lastReservations[i].OnNodes {
		if c := &p.lastReservations[i].OnNodes[k]; !r.ReservesSame(c) {
			p.noteUnreserved(c.Node)
		}
	}
}

// endReservations is called when the pass will make no more reservations. Those of the last pass that were not repeated
// are gone.
func (ps *pass) endReservations() {
	if ps.reservationsKnown == allReservations {
		return
	}
	p := ps.p
	for i := len(ps.reserved); i < len(p.lastReservations); i++ {
		for k := range p.lastReservations[i].OnNodes {
			p.noteUnreserved(p.lastReservations[i].OnNodes[k].Node)
		}
	}
	ps.reservationsKnown = allReservations
}

// forgetRefusals invalidates all refusals, for changes that are not in Planner.freed.
func (p *Planner) forgetRefusals() {
	p.freed.cut(p.freed.next())
	p.freed.first++
}
