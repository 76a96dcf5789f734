package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
)

// victimSearch is the search for those whom a job preempts: which nodes it could have, and who must leave them.
//
// Every node is given a price: who must go there, of what rank, how many, and what they lose. The choice of nodes goes
// by
// price, and at last everybody stays whom the job does not need to go after all. What is on its way out already counts
// as free, so nobody is preempted twice for the same job, and no more than it needs.
type victimSearch struct {
	planner   *Planner
	class     *partitionClass
	req       *request
	preemptor *preempt.Preemptor
	job       *core.Job
	now       core.Time
	end       core.Time // when the job would end
	// what is on its way out counts as free, and any way of pushing aside will do; else only to suspend
	countLeaving       bool
	ignoreReservations bool  // reservations do not count
	tasksPerNode       int32 // tasks a node should take
	scan               int64
	order              core.PreemptOrder

	node          *ledger.Node // that is being looked at
	costs         []nodeCost
	nodes         []*ledger.Node
	victims       []ledger.JobOnNode // of prices
	candidates    []ledger.JobOnNode
	leaving       []ledger.JobOnNode // whose parts are in b
	free, limited ledger.Resources
	freeFunc      func(*ledger.Node) *ledger.Resources // freeOn, made once
	scratch       ledger.Resources
	cpusOnly      core.NodeAlloc
}

// nodeCost is what a node costs.
type nodeCost struct {
	node     *ledger.Node
	rank     int64 // the highest of those who must go; -1: nobody must
	count    int
	cost     int64
	position int // place in the order nodes are tried
	lo, hi   int // who, in sets
}

func (a *nodeCost) compare(b *nodeCost) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.count, b.count), cmp.Compare(a.cost, b.cost),
		cmp.Compare(a.position, b.position))
}

// freeOn is what a node has free: the one that is being looked at, with those in out gone; the others as was worked
// out.
// Those that were not looked at have nothing.
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

// run finds nodes for the job and who must leave them; nil if it could not start there either. Who must go is in sets.
func (hu *victimSearch) run(s *partitionClass) []nodeChoice {
	p := hu.planner
	if hu.countLeaving { // it may do to wait for what is on its way out
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

// choose prices all nodes of a partition and chooses among them; with victims, and as few on each node as will do.
func (hu *victimSearch) choose(s *partitionClass, victims, few bool) []nodeChoice {
	p := hu.planner
	p.scans++
	hu.scan = p.scans
	hu.costs, hu.victims, hu.nodes = hu.costs[:0], hu.victims[:0], hu.nodes[:0]
	at := hu.view()
	for i, a := range p.nodesFor(s) {
		if len(a.Preemptable) > 0 || a.Free.Cpus > 0 {
			if hu.req.accepts(a, &at) {
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
	return hu.req.choose(at, p.choices)
}

// nodeCost works out what it takes to get room on a node, and leaves what is free then in its balance.
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

// listCandidates lists who could be preempted on a node, the cheapest first.
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

// compareVictims orders who goes first.
func (hu *victimSearch) compareVictims(a, b *ledger.Allocation) int {
	x, y := a.Victim, b.Victim
	return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Cost(hu.order, hu.now), y.Cost(hu.order, hu.now)),
		cmp.Compare(y.Started, x.Started), cmp.Compare(y.Id, x.Id))
}

// wouldDelay tells whether a reservation counts on a job's being gone that would still be there if it were suspended.
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

// fewestVictims leaves on a node as few of those in out as give room for so many tasks: none of a higher class than it
// takes,
// one alone if one will do, the cheapest one then; else the smallest stay first.
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

// dropNeedless keeps of the sets on the nodes that were picked whom the job needs to go.
func (hu *victimSearch) dropNeedless(picks []nodeChoice) {
	var who []*ledger.Allocation
	for _, pk := range picks {
		at := slices.IndexFunc(hu.costs, func(p nodeCost) bool { return p.node == pk.node })
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
	for _, pk := range picks { // what the job really finds
		hu.removeAll(pk.node, who)
		pk.node.FreeThen.CopyFrom(hu.freeNow(pk.node))
	}
	hu.node = nil
}

// suffices tells whether a choice stands if only these go.
func (hu *victimSearch) suffices(picks []nodeChoice, who []*ledger.Allocation) bool {
	for _, pk := range picks {
		hu.removeAll(pk.node, who)
		if hu.tasksOn(pk.node) < pk.tasks {
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

// byPriority begins with a node as it is.
func (hu *victimSearch) resetNode(a *ledger.Node) {
	hu.node, hu.leaving = a, hu.leaving[:0]
	hu.free.CopyFrom(&a.Free)
	if !hu.countLeaving {
		return
	}
	for _, st := range a.Preemptable {
		switch {
		case st.Alloc.Terms.MaxSharing > 1: // others may be on the same CPUs
		case st.Alloc.IsLeaving(hu.now):
			hu.bookVictim(&hu.free, a, st, &st.Alloc.Alloc.Nodes[st.Index], 1)
		case st.Alloc.Preempted:
			hu.bookVictim(&hu.free, a, st, hu.freedBy(st), 1)
		}
	}
}

// addVictim counts somebody's part of the node as free; drop takes that back.
func (hu *victimSearch) addVictim(a *ledger.Node, st ledger.JobOnNode) {
	hu.bookVictim(&hu.free, a, st, hu.freedBy(st), 1)
	hu.leaving = append(hu.leaving, st)
}

func (hu *victimSearch) removeVictim(a *ledger.Node, st ledger.JobOnNode) {
	hu.bookVictim(&hu.free, a, st, hu.freedBy(st), -1)
	hu.leaving = slices.DeleteFunc(hu.leaving, func(o ledger.JobOnNode) bool { return o.Alloc == st.Alloc })
}

// bookVictim books what a job leaves when it goes. CPUs that it had borrowed go back to the one who lent them; one that
// is
// suspended lends them further.
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

// freedBy is what a job leaves when it goes: all it has, or its CPUs alone.
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
	return hu.req.tasksAt(&at, a)
}

// freeNow is what the job may use of the node with those in out gone: no more than reservations leave, and those leave
// more where somebody goes who would have been there.
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
			// One that is suspended comes back: it only makes room for what it lends.
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

// allocFor is what the job would get, as far as limits count it.
func (hu *victimSearch) allocFor(s *partitionClass, picks []nodeChoice) *core.Alloc {
	al := &core.Alloc{Partition: s.part.Name, Nodes: make([]core.NodeAlloc, len(picks))}
	for i, pk := range picks {
		u := hu.req.usage(pk.node, pk.tasks, hu.freeOn(pk.node))
		na := &al.Nodes[i]
		na.Node, na.CPUs, na.Mem = pk.node.Record.Name, u.Cpus, u.Mem
		for k, n := range u.Gres {
			if g := &pk.node.Gres[k]; n > 0 && g.Name != "" {
				na.Gres = append(na.Gres, core.GresAlloc{Name: g.Name, Type: g.Typ, Units: make([]int32, n)})
			}
		}
	}
	return al
}
