package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
)

// victimSearch finds the cheapest set of running jobs whose preemption lets a pending job start. Cost order per node:
// highest victim rank, number of victims, lost work, order of nodes (nodeCost.compare). Nodes are chosen by cost; then
// every victim that is not needed is dropped. Jobs that are leaving already count as gone, so no job is preempted twice
// for the same start.
type victimSearch struct {
	planner   *Planner
	class     *partitionClass
	req       *fit.Request
	preemptor *preempt.Preemptor
	job       *core.Job
	now       core.Time
	end       core.Time // end of the job if it started now
	// leaving jobs count as gone and all modes of preemption are allowed; if false, only suspension
	countLeaving       bool
	ignoreReservations bool  // ignore reservations
	tasksPerNode       int32 // tasks wanted on each node
	scan               int64
	order              core.PreemptOrder

	node          *ledger.Node // being searched
	costs         []nodeCost
	nodes         []*ledger.Node
	victims       []ledger.JobOnNode // of costs, by nodeCost.lo and hi
	candidates    []ledger.JobOnNode
	leaving       []ledger.JobOnNode // jobs counted as gone in free
	free, limited ledger.Resources
	freeFunc      func(*ledger.Node) *ledger.Resources // freeOn, bound once
	scratch       ledger.Resources
	cpusOnly      core.NodeAlloc
}

// nodeCost is the cost of freeing a node.
type nodeCost struct {
	node     *ledger.Node
	rank     int64 // highest rank of the victims; -1: none
	count    int
	cost     int64
	position int // index in the order nodes are tried
	lo, hi   int // its victims are victims[lo:hi]
}

func (a *nodeCost) compare(b *nodeCost) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.count, b.count), cmp.Compare(a.cost, b.cost),
		cmp.Compare(a.position, b.position))
}

// freeOn returns what a node has free: without hu.leaving for the node being searched, as computed for the others, and
// nothing for nodes that were not searched.
func (hu *victimSearch) freeOn(a *ledger.Node) *ledger.Resources {
	switch {
	case hu.node == a:
		return hu.freeNow(a)
	case a.Scanned == hu.scan:
		return &a.FreeThen
	}
	return &ledger.NoResources
}

func (hu *victimSearch) view() ledger.View {
	return ledger.View{
		FreeFunc: hu.freeFunc, At: hu.now, End: hu.end, Advance: hu.class.advance,
		MayDelayAdvance: hu.class.mayDelayAdvance, Scratch: &hu.scratch,
	}
}

// run returns nodes for the job, or nil, and sets hu.victims to the jobs that must leave them.
func (hu *victimSearch) run(s *partitionClass) []fit.Choice {
	p := hu.planner
	if hu.countLeaving { // waiting for leaving jobs may be enough
		if picks := hu.choose(s, false, true); picks != nil {
			hu.victims = hu.victims[:0]
			return picks
		}
	}
	picks := hu.choose(s, true, true)
	if picks == nil {
		if picks = hu.choose(s, true, false); picks == nil {
			return nil
		}
	}
	p.choices = picks
	hu.dropNeedless(picks)
	return picks
}

// choose computes the cost of all nodes of the partition and chooses among them. victims allows preemption, few keeps
// the victims of each node few.
func (hu *victimSearch) choose(s *partitionClass, victims, few bool) []fit.Choice {
	p := hu.planner
	p.scans++
	hu.scan = p.scans
	hu.costs, hu.victims, hu.nodes = hu.costs[:0], hu.victims[:0], hu.nodes[:0]
	at := hu.view()
	for i, a := range p.nodesFor(s) {
		if len(a.Preemptable) > 0 || a.Free.Cpus > 0 {
			if hu.req.Accepts(a, &at) {
				hu.costNode(a, i, victims, few)
			}
		}
	}
	hu.node = nil
	slices.SortFunc(hu.costs, func(a, b nodeCost) int { return a.compare(&b) })
	for i := range hu.costs {
		hu.nodes = append(hu.nodes, hu.costs[i].node)
	}
	at.Nodes = hu.nodes
	return hu.req.Choose(at, p.choices)
}

// costNode computes the cost of a node and stores in FreeThen what is free there then.
func (hu *victimSearch) costNode(a *ledger.Node, at int, victims, few bool) {
	hu.resetNode(a)
	pr := nodeCost{node: a, rank: -1, position: at, lo: len(hu.victims)}
	room := hu.tasksOn(a)
	if victims && (room < hu.tasksPerNode || !few) {
		hu.listCandidates(a)
		for _, c := range hu.candidates {
			hu.addVictim(a, c)
		}
		if all := hu.tasksOn(a); all > room {
			if few {
				hu.fewestVictims(a, min(all, hu.tasksPerNode))
			}
			room = hu.tasksOn(a)
			for _, c := range hu.leaving {
				v := c.Alloc.Victim
				pr.rank = max(pr.rank, v.Rank)
				if !v.Suspended {
					pr.count++
					pr.cost += v.Cost(hu.order, hu.now)
				}
			}
			hu.victims = append(hu.victims, hu.leaving...)
		} else {
			hu.resetNode(a)
		}
	}
	if room == 0 {
		hu.victims = hu.victims[:pr.lo]
		return
	}
	pr.hi = len(hu.victims)
	hu.costs = append(hu.costs, pr)
	a.Scanned = hu.scan
	a.FreeThen.CopyFrom(hu.freeNow(a))
	hu.node = nil
}

// listCandidates lists the jobs on a node that could be preempted, the cheapest first.
func (hu *victimSearch) listCandidates(a *ledger.Node) {
	hu.candidates = hu.candidates[:0]
	for _, st := range a.Preemptable {
		v := st.Alloc.Victim
		if v == nil || st.Alloc.Preempted || st.Alloc.IsLeaving(hu.now) || v.ExemptUntil > hu.now ||
			!hu.preemptor.MayPreempt(hu.job, v) || !hu.countLeaving && v.Mode != core.PreemptSuspend {
			continue
		}
		if v.Mode == core.PreemptSuspend && (st.Alloc.Alloc.Nodes[st.Index].CPUs == 0 || !hu.ignoreReservations &&
			hu.wouldDelay(st.Alloc)) {
			continue
		}
		hu.candidates = append(hu.candidates, st)
	}
	slices.SortFunc(hu.candidates, func(a, b ledger.JobOnNode) int { return hu.compareVictims(a.Alloc, b.Alloc) })
}

// compareVictims orders candidates, the first to be preempted first.
func (hu *victimSearch) compareVictims(a, b *ledger.Allocation) int {
	x, y := a.Victim, b.Victim
	return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Cost(hu.order, hu.now), y.Cost(hu.order, hu.now)),
		cmp.Compare(y.Started, x.Started), cmp.Compare(y.Id, x.Id))
}

// wouldDelay reports whether suspending a job would delay a reservation that counts on its end.
func (hu *victimSearch) wouldDelay(h *ledger.Allocation) bool {
	later := alloc.Never
	if h.End < alloc.Never && hu.end < alloc.Never {
		later = alloc.AddTime(h.End, hu.end-hu.now)
	}
	for _, a := range hu.planner.nodesOf(h) {
		if a == nil {
			continue
		}
		for i := range a.Reserved {
			if c := a.Reserved[i]; !alloc.Overlaps(c.Start, h.End) && alloc.Overlaps(c.Start, later) {
				return true
			}
		}
	}
	return false
}

// fewestVictims reduces the victims on a node to as few as make room for want tasks: none of a higher rank than
// necessary, a single one if that is enough (the cheapest), else the smallest are kept first.
func (hu *victimSearch) fewestVictims(a *ledger.Node, want int32) {
	cands := hu.candidates
	hu.resetNode(a)
	k := 0
	for ; hu.tasksOn(a) < want; k++ {
		hu.addVictim(a, cands[k])
	}
	for k < len(cands) && cands[k].Alloc.Victim.Rank == cands[k-1].Alloc.Victim.Rank {
		k++
	}
	cands = cands[:k]
	for _, c := range cands {
		hu.resetNode(a)
		hu.addVictim(a, c)
		if hu.tasksOn(a) >= want {
			return
		}
	}
	hu.resetNode(a)
	slices.SortStableFunc(cands, func(x, y ledger.JobOnNode) int {
		return cmp.Or(cmp.Compare(y.Alloc.Victim.Rank, x.Alloc.Victim.Rank), cmp.Compare(x.Alloc.Alloc.Nodes[x.Index].CPUs,
			y.Alloc.Alloc.Nodes[y.Index].CPUs), hu.compareVictims(y.Alloc, x.Alloc))
	})
	for _, c := range cands {
		hu.addVictim(a, c)
	}
	for _, c := range cands {
		hu.removeVictim(a, c)
		if hu.tasksOn(a) < want {
			hu.addVictim(a, c)
		}
	}
}

// dropNeedless reduces hu.victims to the jobs on the chosen nodes that the job needs gone.
func (hu *victimSearch) dropNeedless(picks []fit.Choice) {
	var who []*ledger.Allocation
	for _, pk := range picks {
		at := slices.IndexFunc(hu.costs, func(p nodeCost) bool { return p.node == pk.Node })
		for _, st := range hu.victims[hu.costs[at].lo:hu.costs[at].hi] {
			if !slices.Contains(who, st.Alloc) {
				who = append(who, st.Alloc)
			}
		}
	}
	slices.SortFunc(who, func(x, y *ledger.Allocation) int {
		a, b := x.Victim, y.Victim
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Cpus, b.Cpus), hu.compareVictims(y, x))
	})
	for i := 0; i < len(who); {
		rest := slices.Delete(slices.Clone(who), i, i+1)
		if hu.suffices(picks, rest) {
			who = rest
		} else {
			i++
		}
	}
	slices.SortFunc(who, hu.compareVictims)
	hu.victims = hu.victims[:0]
	for _, h := range who {
		hu.victims = append(hu.victims, ledger.JobOnNode{Alloc: h})
	}
	for _, pk := range picks { // what is free without exactly these
		hu.removeAll(pk.Node, who)
		pk.Node.FreeThen.CopyFrom(hu.freeNow(pk.Node))
	}
	hu.node = nil
}

// suffices reports whether a placement is possible if only these jobs go.
func (hu *victimSearch) suffices(picks []fit.Choice, who []*ledger.Allocation) bool {
	for _, pk := range picks {
		hu.removeAll(pk.Node, who)
		if hu.tasksOn(pk.Node) < pk.Tasks {
			return false
		}
	}
	return true
}

func (hu *victimSearch) removeAll(a *ledger.Node, who []*ledger.Allocation) {
	hu.resetNode(a)
	for _, st := range a.Preemptable {
		if slices.Contains(who, st.Alloc) {
			hu.addVictim(a, st)
		}
	}
}

// resetNode starts the search of a node with what it has free.
func (hu *victimSearch) resetNode(a *ledger.Node) {
	hu.node, hu.leaving = a, hu.leaving[:0]
	hu.free.CopyFrom(&a.Free)
	if !hu.countLeaving {
		return
	}
	for _, st := range a.Preemptable {
		switch {
		case st.Alloc.Terms.MaxSharing > 1: // other jobs may use the same CPUs
		case st.Alloc.IsLeaving(hu.now):
			hu.bookVictim(&hu.free, a, st, &st.Alloc.Alloc.Nodes[st.Index], 1)
		case st.Alloc.Preempted:
			hu.bookVictim(&hu.free, a, st, hu.freedBy(st), 1)
		}
	}
}

// addVictim counts a job's part of the node as free. removeVictim undoes that.
func (hu *victimSearch) addVictim(a *ledger.Node, st ledger.JobOnNode) {
	hu.bookVictim(&hu.free, a, st, hu.freedBy(st), 1)
	hu.leaving = append(hu.leaving, st)
}

func (hu *victimSearch) removeVictim(a *ledger.Node, st ledger.JobOnNode) {
	hu.bookVictim(&hu.free, a, st, hu.freedBy(st), -1)
	hu.leaving = slices.DeleteFunc(hu.leaving, func(o ledger.JobOnNode) bool { return o.Alloc == st.Alloc })
}

// bookVictim books what a job leaves when it goes. CPUs that it borrowed return to their lender; a suspended job lends
// them on.
func (hu *victimSearch) bookVictim(b *ledger.Resources, a *ledger.Node, st ledger.JobOnNode, na *core.NodeAlloc,
	sign int32,
) {
	a.Book(b, nil, na, st.Alloc.Terms, sign)
	if na == &hu.cpusOnly {
		return
	}
	for k := range st.Alloc.Borrowed {
		if l := &st.Alloc.Borrowed[k]; l.Node == a.Record.Name {
			b.Cpus -= sign * l.CPUs
		}
	}
}

// freedBy returns what a job leaves when it goes: all it has, or only its CPUs if it is suspended.
func (hu *victimSearch) freedBy(st ledger.JobOnNode) *core.NodeAlloc {
	na := &st.Alloc.Alloc.Nodes[st.Index]
	if st.Alloc.Victim.Mode != core.PreemptSuspend {
		return na
	}
	hu.cpusOnly = core.NodeAlloc{Node: na.Node, CPUs: na.CPUs, Cores: na.Cores}
	return &hu.cpusOnly
}

func (hu *victimSearch) tasksOn(a *ledger.Node) int32 {
	at := hu.view()
	return hu.req.TasksAt(&at, a)
}

// freeNow returns what the job may use of the node without hu.leaving: at most what reservations leave, plus what
// victims leave that the reservations had counted as present.
func (hu *victimSearch) freeNow(a *ledger.Node) *ledger.Resources {
	if len(a.Reserved)+len(a.AdvanceParts) == 0 || hu.ignoreReservations {
		return &hu.free
	}
	hu.limited.CopyFrom(&hu.free)
	for i := range a.Reserved {
		c := a.Reserved[i]
		if !alloc.Overlaps(c.Start, hu.end) {
			continue
		}
		left := &hu.planner.free
		left.CopyFrom(&c.Leaves)
		for _, st := range hu.leaving {
			// A suspended job comes back, so it leaves nothing to the reservation.
			if alloc.Overlaps(c.Start, st.Alloc.End) && st.Alloc.Victim.Mode != core.PreemptSuspend {
				hu.bookVictim(left, a, st, hu.freedBy(st), 1)
			}
		}
		hu.limited.LowerTo(left)
	}
	if len(a.AdvanceParts) > 0 {
		at := hu.view()
		return a.FreeBesideAdvance(&at, 0, hu.end, &hu.limited)
	}
	return &hu.limited
}

// allocFor returns what the job would get, as far as limits count it.
func (hu *victimSearch) allocFor(s *partitionClass, picks []fit.Choice) *core.Alloc {
	al := &core.Alloc{Partition: s.part.Name, Nodes: make([]core.NodeAlloc, len(picks))}
	for i, pk := range picks {
		u := hu.req.Usage(pk.Node, pk.Tasks, hu.freeOn(pk.Node))
		na := &al.Nodes[i]
		na.Node, na.CPUs, na.Mem = pk.Node.Record.Name, u.Cpus, u.Mem
		for k, n := range u.Gres {
			if g := &pk.Node.Gres[k]; n > 0 && g.Name != "" {
				na.Gres = append(na.Gres, core.GresAlloc{Name: g.Name, Type: g.Typ, Units: make([]int32, n)})
			}
		}
	}
	return al
}
