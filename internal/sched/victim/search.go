package victim

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
)

// Request is the job for which a search finds victims, and where it may run.
type Request struct {
	Job             *core.Job
	Fit             *fit.Request
	Preemptor       *preempt.Preemptor
	Partition       core.PartitionName
	Nodes           []*ledger.Node       // in the order they are tried
	Advance         *advance.Reservation // the advance reservation the job would run in
	MayDelayAdvance bool                 // it may overlap advance reservations that allow a delay
}

// Search finds the cheapest set of running jobs whose preemption lets a pending job start. Cost order per node: highest
// victim rank, number of victims, lost work, order of nodes (nodeCost.compare). Nodes are chosen by cost; then every
// victim that is not needed is dropped. Jobs that are leaving already count as gone, so no job is preempted twice for
// the same start. A Search is made once (New) and used for one request after the other (Prepare).
type Search struct {
	jobs   *cluster.Jobs
	ledger *ledger.Ledger
	Request
	now core.Time
	// End is the end of the job if it started now.
	End core.Time
	// CountLeaving says that leaving jobs count as gone and all modes of preemption are allowed; without it only
	// suspension is.
	CountLeaving       bool
	IgnoreReservations bool
	// Victims is the result of Run: the jobs that must leave the nodes.
	Victims []ledger.JobOnNode

	tasksPerNode int32 // tasks wanted on each node
	order        core.PreemptOrder

	node          *ledger.Node // being searched
	costs         []nodeCost
	nodes         []*ledger.Node
	candidates    []ledger.JobOnNode
	leaving       []ledger.JobOnNode // jobs counted as gone in free
	free, limited ledger.Resources
	freeFunc      func(*ledger.Node) *ledger.Resources // freeOn, bound once
	scan          int64
	then          []nodeThen // by the nodes' numbers
	buffer        *fit.Buffer
	scratch, left ledger.Resources
	cpusOnly      core.NodeAlloc
}

// nodeThen is what a node has free when its victims are gone.
type nodeThen struct {
	scan int64 // the scan that computed it
	free ledger.Resources
}

// New returns a search among the running jobs of a ledger.
func New(jobs *cluster.Jobs, l *ledger.Ledger, buffer *fit.Buffer) *Search {
	v := &Search{jobs: jobs, ledger: l, buffer: buffer}
	v.freeFunc = v.freeOn
	return v
}

// Prepare sets the job to search victims for: at first, jobs to suspend. The job would end at end if it started now.
func (v *Search) Prepare(r Request, now, end core.Time) {
	v.Request, v.now, v.End, v.CountLeaving, v.IgnoreReservations = r, now, end, false, false
	v.tasksPerNode = (r.Fit.Tasks + r.Fit.NodesMin - 1) / r.Fit.NodesMin
	v.order = r.Preemptor.Rules.Cfg.Order
}

// Potential returns how many tasks a node could take without any job that the request could ever preempt, whatever the
// job's priority: an upper bound of what a search finds.
func (v *Search) Potential(r *Request, node *ledger.Node, now core.Time) int32 {
	v.Request, v.node, v.now, v.End, v.IgnoreReservations = *r, node, now, alloc.Never, true
	v.free.CopyFrom(&node.Free)
	any := core.Job{Priority: math.MaxUint32}
	for _, st := range v.jobs.On(node) {
		if st.Alloc.IsLeaving(now) || st.Alloc.Preempted || r.Preemptor.MayPreempt(&any, st.Alloc.Victim) {
			node.Book(&v.free, nil, &st.Alloc.Alloc.Nodes[st.Index], st.Alloc.Terms, 1)
		}
	}
	room := v.tasksOn(node)
	v.node = nil
	return room
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

// freeOn returns what a node has free: without v.leaving for the node being searched, as computed for the others, and
// nothing for nodes that were not searched.
func (v *Search) freeOn(node *ledger.Node) *ledger.Resources {
	switch {
	case v.node == node:
		return v.freeNow(node)
	case int(node.Index) < len(v.then) && v.then[node.Index].scan == v.scan:
		return &v.then[node.Index].free
	}
	return &ledger.NoResources
}

// View is how the request looks at nodes without the victims.
func (v *Search) View() ledger.View {
	return ledger.View{
		FreeFunc: v.freeFunc, At: v.now, End: v.End, Advance: v.Advance,
		MayDelayAdvance: v.MayDelayAdvance, Scratch: &v.scratch,
	}
}

// Run returns nodes for the job, or nil, and sets Victims to the jobs that must leave them. The nodes are valid until
// the next call.
func (v *Search) Run() []fit.Choice {
	if v.CountLeaving { // waiting for leaving jobs may be enough
		if picks := v.choose(false, true); picks != nil {
			v.Victims = v.Victims[:0]
			return picks
		}
	}
	picks := v.choose(true, true)
	if picks == nil {
		if picks = v.choose(true, false); picks == nil {
			return nil
		}
	}
	v.buffer.Choices = picks
	v.dropNeedless(picks)
	return picks
}

// choose computes the cost of all nodes and chooses among them. victims allows preemption, few keeps the victims of
// each node few.
func (v *Search) choose(victims, few bool) []fit.Choice {
	if len(v.then) < len(v.ledger.Order) {
		v.then = make([]nodeThen, len(v.ledger.Order))
	}
	v.scan++
	v.costs, v.Victims, v.nodes = v.costs[:0], v.Victims[:0], v.nodes[:0]
	view := v.View()
	for i, node := range v.Nodes {
		if node.Free.Cpus > 0 || len(v.jobs.On(node)) > 0 {
			if v.Fit.Accepts(node, &view) {
				v.costNode(node, i, victims, few)
			}
		}
	}
	v.node = nil
	slices.SortFunc(v.costs, func(a, b nodeCost) int { return a.compare(&b) })
	for i := range v.costs {
		v.nodes = append(v.nodes, v.costs[i].node)
	}
	view.Nodes = v.nodes
	return v.Fit.Choose(view, v.buffer.Choices)
}

// costNode computes the cost of a node and stores in FreeThen what is free there then.
func (v *Search) costNode(node *ledger.Node, at int, victims, few bool) {
	v.resetNode(node)
	pr := nodeCost{node: node, rank: -1, position: at, lo: len(v.Victims)}
	room := v.tasksOn(node)
	if victims && (room < v.tasksPerNode || !few) {
		v.listCandidates(node)
		for _, c := range v.candidates {
			v.addVictim(node, c)
		}
		if all := v.tasksOn(node); all > room {
			if few {
				v.fewestVictims(node, min(all, v.tasksPerNode))
			}
			room = v.tasksOn(node)
			for _, c := range v.leaving {
				who := c.Alloc.Victim
				pr.rank = max(pr.rank, who.Rank)
				if !who.Suspended {
					pr.count++
					pr.cost += who.Cost(v.order, v.now)
				}
			}
			v.Victims = append(v.Victims, v.leaving...)
		} else {
			v.resetNode(node)
		}
	}
	if room == 0 {
		v.Victims = v.Victims[:pr.lo]
		return
	}
	pr.hi = len(v.Victims)
	v.costs = append(v.costs, pr)
	v.then[node.Index].scan = v.scan
	v.then[node.Index].free.CopyFrom(v.freeNow(node))
	v.node = nil
}

// listCandidates lists the jobs on a node that could be preempted, the cheapest first.
func (v *Search) listCandidates(node *ledger.Node) {
	v.candidates = v.candidates[:0]
	for _, st := range v.jobs.On(node) {
		who := st.Alloc.Victim
		if who == nil || st.Alloc.Preempted || st.Alloc.IsLeaving(v.now) || who.ExemptUntil > v.now ||
			!v.Preemptor.MayPreempt(v.Job, who) || !v.CountLeaving && who.Mode != core.PreemptSuspend {
			continue
		}
		if who.Mode == core.PreemptSuspend && (st.Alloc.Alloc.Nodes[st.Index].CPUs == 0 || !v.IgnoreReservations &&
			v.wouldDelay(st.Alloc)) {
			continue
		}
		v.candidates = append(v.candidates, st)
	}
	slices.SortFunc(v.candidates, func(a, b ledger.JobOnNode) int { return v.compareVictims(a.Alloc, b.Alloc) })
}

// compareVictims orders candidates, the first to be preempted first.
func (v *Search) compareVictims(a, b *ledger.Allocation) int {
	x, y := a.Victim, b.Victim
	return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Cost(v.order, v.now), y.Cost(v.order, v.now)),
		cmp.Compare(y.Started, x.Started), cmp.Compare(y.Id, x.Id))
}

// wouldDelay reports whether suspending a job would delay a reservation that counts on its end.
func (v *Search) wouldDelay(h *ledger.Allocation) bool {
	later := alloc.Never
	if h.End < alloc.Never && v.End < alloc.Never {
		later = alloc.AddTime(h.End, v.End-v.now)
	}
	for _, node := range v.ledger.NodesOf(h) {
		if node == nil {
			continue
		}
		for i := range node.Reserved {
			if c := node.Reserved[i]; !alloc.Overlaps(c.Start, h.End) && alloc.Overlaps(c.Start, later) {
				return true
			}
		}
	}
	return false
}

// fewestVictims reduces the victims on a node to as few as make room for want tasks: none of a higher rank than
// necessary, a single one if that is enough (the cheapest), else the smallest are kept first.
func (v *Search) fewestVictims(node *ledger.Node, want int32) {
	cands := v.candidates
	v.resetNode(node)
	k := 0
	for ; v.tasksOn(node) < want; k++ {
		v.addVictim(node, cands[k])
	}
	for k < len(cands) && cands[k].Alloc.Victim.Rank == cands[k-1].Alloc.Victim.Rank {
		k++
	}
	cands = cands[:k]
	for _, c := range cands {
		v.resetNode(node)
		v.addVictim(node, c)
		if v.tasksOn(node) >= want {
			return
		}
	}
	v.resetNode(node)
	slices.SortStableFunc(cands, func(x, y ledger.JobOnNode) int {
		return cmp.Or(cmp.Compare(y.Alloc.Victim.Rank, x.Alloc.Victim.Rank), cmp.Compare(x.Alloc.Alloc.Nodes[x.Index].CPUs,
			y.Alloc.Alloc.Nodes[y.Index].CPUs), v.compareVictims(y.Alloc, x.Alloc))
	})
	for _, c := range cands {
		v.addVictim(node, c)
	}
	for _, c := range cands {
		v.removeVictim(node, c)
		if v.tasksOn(node) < want {
			v.addVictim(node, c)
		}
	}
}

// dropNeedless reduces v.Victims to the jobs on the chosen nodes that the job needs gone.
func (v *Search) dropNeedless(picks []fit.Choice) {
	var who []*ledger.Allocation
	for _, choice := range picks {
		at := slices.IndexFunc(v.costs, func(p nodeCost) bool { return p.node == choice.Node })
		for _, st := range v.Victims[v.costs[at].lo:v.costs[at].hi] {
			if !slices.Contains(who, st.Alloc) {
				who = append(who, st.Alloc)
			}
		}
	}
	slices.SortFunc(who, func(x, y *ledger.Allocation) int {
		a, b := x.Victim, y.Victim
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Cpus, b.Cpus), v.compareVictims(y, x))
	})
	for i := 0; i < len(who); {
		rest := slices.Delete(slices.Clone(who), i, i+1)
		if v.suffices(picks, rest) {
			who = rest
		} else {
			i++
		}
	}
	slices.SortFunc(who, v.compareVictims)
	v.Victims = v.Victims[:0]
	for _, h := range who {
		v.Victims = append(v.Victims, ledger.JobOnNode{Alloc: h})
	}
	for _, choice := range picks { // what is free without exactly these
		v.removeAll(choice.Node, who)
		v.then[choice.Node.Index].free.CopyFrom(v.freeNow(choice.Node))
	}
	v.node = nil
}

// suffices reports whether a placement is possible if only these jobs go.
func (v *Search) suffices(picks []fit.Choice, who []*ledger.Allocation) bool {
	for _, choice := range picks {
		v.removeAll(choice.Node, who)
		if v.tasksOn(choice.Node) < choice.Tasks {
			return false
		}
	}
	return true
}

func (v *Search) removeAll(node *ledger.Node, who []*ledger.Allocation) {
	v.resetNode(node)
	for _, st := range v.jobs.On(node) {
		if slices.Contains(who, st.Alloc) {
			v.addVictim(node, st)
		}
	}
}

// resetNode starts the search of a node with what it has free.
func (v *Search) resetNode(node *ledger.Node) {
	v.node, v.leaving = node, v.leaving[:0]
	v.free.CopyFrom(&node.Free)
	if !v.CountLeaving {
		return
	}
	for _, st := range v.jobs.On(node) {
		switch {
		case st.Alloc.Terms.MaxSharing > 1: // other jobs may use the same CPUs
		case st.Alloc.IsLeaving(v.now):
			v.bookVictim(&v.free, node, st, &st.Alloc.Alloc.Nodes[st.Index], 1)
		case st.Alloc.Preempted:
			v.bookVictim(&v.free, node, st, v.freedBy(st), 1)
		}
	}
}

// addVictim counts a job's part of the node as free. removeVictim undoes that.
func (v *Search) addVictim(node *ledger.Node, st ledger.JobOnNode) {
	v.bookVictim(&v.free, node, st, v.freedBy(st), 1)
	v.leaving = append(v.leaving, st)
}

func (v *Search) removeVictim(node *ledger.Node, st ledger.JobOnNode) {
	v.bookVictim(&v.free, node, st, v.freedBy(st), -1)
	v.leaving = slices.DeleteFunc(v.leaving, func(o ledger.JobOnNode) bool { return o.Alloc == st.Alloc })
}

// bookVictim books what a job leaves when it goes. CPUs that it borrowed return to their lender; a suspended job lends
// them on.
func (v *Search) bookVictim(b *ledger.Resources, node *ledger.Node, st ledger.JobOnNode, na *core.NodeAlloc,
	sign int32,
) {
	node.Book(b, nil, na, st.Alloc.Terms, sign)
	if na == &v.cpusOnly {
		return
	}
	for k := range st.Alloc.Borrowed {
		if l := &st.Alloc.Borrowed[k]; l.Node == node.Record.Name {
			b.Cpus -= sign * l.CPUs
		}
	}
}

// freedBy returns what a job leaves when it goes: all it has, or only its CPUs if it is suspended.
func (v *Search) freedBy(st ledger.JobOnNode) *core.NodeAlloc {
	na := &st.Alloc.Alloc.Nodes[st.Index]
	if st.Alloc.Victim.Mode != core.PreemptSuspend {
		return na
	}
	v.cpusOnly = core.NodeAlloc{Node: na.Node, CPUs: na.CPUs, Cores: na.Cores}
	return &v.cpusOnly
}

func (v *Search) tasksOn(node *ledger.Node) int32 {
	view := v.View()
	return v.Fit.TasksAt(&view, node)
}

// freeNow returns what the job may use of the node without v.leaving: at most what reservations leave, plus what
// victims leave that the reservations had counted as present.
func (v *Search) freeNow(node *ledger.Node) *ledger.Resources {
	if len(node.Reserved)+len(node.AdvanceParts) == 0 || v.IgnoreReservations {
		return &v.free
	}
	v.limited.CopyFrom(&v.free)
	for i := range node.Reserved {
		c := node.Reserved[i]
		if !alloc.Overlaps(c.Start, v.End) {
			continue
		}
		left := &v.left
		left.CopyFrom(&c.Leaves)
		for _, st := range v.leaving {
			// A suspended job comes back, so it leaves nothing to the reservation.
			if alloc.Overlaps(c.Start, st.Alloc.End) && st.Alloc.Victim.Mode != core.PreemptSuspend {
				v.bookVictim(left, node, st, v.freedBy(st), 1)
			}
		}
		v.limited.LowerTo(left)
	}
	if len(node.AdvanceParts) > 0 {
		view := v.View()
		return node.FreeBesideAdvance(&view, 0, v.End, &v.limited)
	}
	return &v.limited
}

// AllocFor returns what the job would get, as far as limits count it.
func (v *Search) AllocFor(picks []fit.Choice) *core.Alloc {
	al := &core.Alloc{Partition: v.Partition, Nodes: make([]core.NodeAlloc, len(picks))}
	for i, choice := range picks {
		u := v.Fit.Usage(choice.Node, choice.Tasks, v.freeOn(choice.Node))
		na := &al.Nodes[i]
		na.Node, na.CPUs, na.Mem = choice.Node.Record.Name, u.Cpus, u.Mem
		for k, n := range u.Gres {
			if g := &choice.Node.Gres[k]; n > 0 && g.Name != "" {
				na.Gres = append(na.Gres, core.GresAlloc{Name: g.Name, Type: g.Typ, Units: make([]int32, n)})
			}
		}
	}
	return al
}
