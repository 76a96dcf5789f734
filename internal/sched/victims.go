package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
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

	node          *nodeState // that is being looked at
	costs         []nodeCost
	nodes         []*nodeState
	victims       []jobOnNode // of prices
	candidates    []jobOnNode
	leaving       []jobOnNode // whose parts are in b
	free, limited resources
	scratch       resources
	cpusOnly      core.NodeAlloc
}

// addEnds is a job on a node; i is the node's place among the job's.
type jobOnNode struct {
	alloc *allocation
	index int
}

// nodeCost is what a node costs.
type nodeCost struct {
	node     *nodeState
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
func (hu *victimSearch) freeOn(a *nodeState) *resources {
	switch {
	case hu.node == a:
		return hu.freeNow(a)
	case a.scanned == hu.scan:
		return &a.freeThen
	}
	return &noResources
}

var noResources resources

func (hu *victimSearch) view() nodeView {
	return nodeView{victims: hu, at: hu.now, end: hu.end, advance: hu.class.advance,
		mayDelayAdvance: hu.class.mayDelayAdvance, scratch: &hu.scratch}
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
		if len(a.preemptable) > 0 || a.free.cpus > 0 {
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
	at.nodes = hu.nodes
	return hu.req.choose(at, p.choices)
}

// nodeCost works out what it takes to get room on a node, and leaves what is free then in its balance.
func (hu *victimSearch) costNode(a *nodeState, at int, victims, few bool) {
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
				v := c.alloc.victim
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
	a.scanned = hu.scan
	a.freeThen.copyFrom(hu.freeNow(a))
	hu.node = nil
}

// listCandidates lists who could be preempted on a node, the cheapest first.
func (hu *victimSearch) listCandidates(a *nodeState) {
	hu.candidates = hu.candidates[:0]
	for _, st := range a.preemptable {
		v := st.alloc.victim
		if v == nil || st.alloc.preempted || st.alloc.isLeaving(hu.now) || v.ExemptUntil > hu.now ||
			!hu.preemptor.MayPreempt(hu.job, v) || !hu.countLeaving && v.Mode != core.PreemptSuspend {
			continue
		}
		if v.Mode == core.PreemptSuspend && (st.alloc.alloc.Nodes[st.index].CPUs == 0 || !hu.ignoreReservations &&
			hu.wouldDelay(st.alloc)) {
			continue
		}
		hu.candidates = append(hu.candidates, st)
	}
	slices.SortFunc(hu.candidates, func(a, b jobOnNode) int { return hu.compareVictims(a.alloc, b.alloc) })
}

// compareVictims orders who goes first.
func (hu *victimSearch) compareVictims(a, b *allocation) int {
	x, y := a.victim, b.victim
	return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Cost(hu.order, hu.now), y.Cost(hu.order, hu.now)),
		cmp.Compare(y.Started, x.Started), cmp.Compare(y.Id, x.Id))
}

// wouldDelay tells whether a reservation counts on a job's being gone that would still be there if it were suspended.
func (hu *victimSearch) wouldDelay(h *allocation) bool {
	later := alloc.Never
	if h.end < alloc.Never && hu.end < alloc.Never {
		later = alloc.AddTime(h.end, hu.end-hu.now)
	}
	for _, a := range hu.planner.nodesOf(h) {
		if a == nil {
			continue
		}
		for i := range a.reserved {
			if c := a.reserved[i]; !alloc.Overlaps(c.start, h.end) && alloc.Overlaps(c.start, later) {
				return true
			}
		}
	}
	return false
}

// fewestVictims leaves on a node as few of those in out as give room for so many tasks: none of a higher class than it
// takes,
// one alone if one will do, the cheapest one then; else the smallest stay first.
func (hu *victimSearch) fewestVictims(a *nodeState, want int32) {
	cands := hu.candidates
	hu.resetNode(a)
	k := 0
	for ; hu.tasksOn(a) < want; k++ {
		hu.addVictim(a, cands[k])
	}
	for k < len(cands) && cands[k].alloc.victim.Rank == cands[k-1].alloc.victim.Rank {
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
	slices.SortStableFunc(cands, func(x, y jobOnNode) int {
		return cmp.Or(cmp.Compare(y.alloc.victim.Rank, x.alloc.victim.Rank), cmp.Compare(x.alloc.alloc.Nodes[x.index].CPUs,
			y.alloc.alloc.Nodes[y.index].CPUs), hu.compareVictims(y.alloc, x.alloc))
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
	var who []*allocation
	for _, pk := range picks {
		at := slices.IndexFunc(hu.costs, func(p nodeCost) bool { return p.node == pk.node })
		for _, st := range hu.victims[hu.costs[at].lo:hu.costs[at].hi] {
			if !slices.Contains(who, st.alloc) {
				who = append(who, st.alloc)
			}
		}
	}
	slices.SortFunc(who, func(x, y *allocation) int {
		a, b := x.victim, y.victim
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
		hu.victims = append(hu.victims, jobOnNode{alloc: h})
	}
	for _, pk := range picks { // what the job really finds
		hu.removeAll(pk.node, who)
		pk.node.freeThen.copyFrom(hu.freeNow(pk.node))
	}
	hu.node = nil
}

// suffices tells whether a choice stands if only these go.
func (hu *victimSearch) suffices(picks []nodeChoice, who []*allocation) bool {
	for _, pk := range picks {
		hu.removeAll(pk.node, who)
		if hu.tasksOn(pk.node) < pk.tasks {
			return false
		}
	}
	return true
}

func (hu *victimSearch) removeAll(a *nodeState, who []*allocation) {
	hu.resetNode(a)
	for _, st := range a.preemptable {
		if slices.Contains(who, st.alloc) {
			hu.addVictim(a, st)
		}
	}
}

// isLeaving tells whether a job is on its way out: it has ended, or its time is up.
func (h *allocation) isLeaving(now core.Time) bool { return h.ended || h.end <= now+alloc.OverdueDelay }

// byPriority begins with a node as it is.
func (hu *victimSearch) resetNode(a *nodeState) {
	hu.node, hu.leaving = a, hu.leaving[:0]
	hu.free.copyFrom(&a.free)
	if !hu.countLeaving {
		return
	}
	for _, st := range a.preemptable {
		switch {
		case st.alloc.terms.MaxSharing > 1: // others may be on the same CPUs
		case st.alloc.isLeaving(hu.now):
			hu.bookVictim(&hu.free, a, st, &st.alloc.alloc.Nodes[st.index], 1)
		case st.alloc.preempted:
			hu.bookVictim(&hu.free, a, st, hu.freedBy(st), 1)
		}
	}
}

// addVictim counts somebody's part of the node as free; drop takes that back.
func (hu *victimSearch) addVictim(a *nodeState, st jobOnNode) {
	hu.bookVictim(&hu.free, a, st, hu.freedBy(st), 1)
	hu.leaving = append(hu.leaving, st)
}

func (hu *victimSearch) removeVictim(a *nodeState, st jobOnNode) {
	hu.bookVictim(&hu.free, a, st, hu.freedBy(st), -1)
	hu.leaving = slices.DeleteFunc(hu.leaving, func(o jobOnNode) bool { return o.alloc == st.alloc })
}

// bookVictim books what a job leaves when it goes. CPUs that it had borrowed go back to the one who lent them; one that
// is
// suspended lends them further.
func (hu *victimSearch) bookVictim(b *resources, a *nodeState, st jobOnNode, na *core.NodeAlloc, sign int32) {
	a.book(b, nil, na, st.alloc.terms, sign)
	if na == &hu.cpusOnly {
		return
	}
	for k := range st.alloc.borrowed {
		if l := &st.alloc.borrowed[k]; l.Node == a.record.Name {
			b.cpus -= sign * l.CPUs
		}
	}
}

// freedBy is what a job leaves when it goes: all it has, or its CPUs alone.
func (hu *victimSearch) freedBy(st jobOnNode) *core.NodeAlloc {
	na := &st.alloc.alloc.Nodes[st.index]
	if st.alloc.victim.Mode != core.PreemptSuspend {
		return na
	}
	hu.cpusOnly = core.NodeAlloc{Node: na.Node, CPUs: na.CPUs, Cores: na.Cores}
	return &hu.cpusOnly
}

func (hu *victimSearch) tasksOn(a *nodeState) int32 {
	at := hu.view()
	return at.tasksOn(hu.req, a)
}

// freeNow is what the job may use of the node with those in out gone: no more than reservations leave, and those leave
// more where somebody goes who would have been there.
func (hu *victimSearch) freeNow(a *nodeState) *resources {
	if len(a.reserved)+len(a.advanceParts) == 0 || hu.ignoreReservations {
		return &hu.free
	}
	hu.limited.copyFrom(&hu.free)
	for i := range a.reserved {
		c := a.reserved[i]
		if !alloc.Overlaps(c.start, hu.end) {
			continue
		}
		left := &hu.planner.free
		left.copyFrom(&c.leaves)
		for _, st := range hu.leaving {
			// One that is suspended comes back: it only makes room for what it lends.
			if alloc.Overlaps(c.start, st.alloc.end) && st.alloc.victim.Mode != core.PreemptSuspend {
				hu.bookVictim(left, a, st, hu.freedBy(st), 1)
			}
		}
		hu.limited.lowerTo(left)
	}
	if len(a.advanceParts) > 0 {
		at := hu.view()
		return a.freeBesideAdvance(&at, 0, hu.end, &hu.limited)
	}
	return &hu.limited
}

// allocFor is what the job would get, as far as limits count it.
func (hu *victimSearch) allocFor(s *partitionClass, picks []nodeChoice) *core.Alloc {
	al := &core.Alloc{Partition: s.part.Name, Nodes: make([]core.NodeAlloc, len(picks))}
	for i, pk := range picks {
		u := hu.req.usage(pk.node, pk.tasks, hu.freeOn(pk.node))
		na := &al.Nodes[i]
		na.Node, na.CPUs, na.Mem = pk.node.record.Name, u.cpus, u.mem
		for k, n := range u.gres {
			if g := &pk.node.gres[k]; n > 0 && g.name != "" {
				na.Gres = append(na.Gres, core.GresAlloc{Name: g.name, Type: g.typ, Units: make([]int32, n)})
			}
		}
	}
	return al
}
