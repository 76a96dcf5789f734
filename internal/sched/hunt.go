package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// hunt is the search for those whom a job preempts: which nodes it could have, and who must leave them.
//
// Every node is given a price: who must go there, of what rank, how many, and what they lose. The choice of nodes goes by
// price, and at last everybody stays whom the job does not need to go after all. What is on its way out already counts
// as free, so nobody is preempted twice for the same job, and no more than it needs.
type hunt struct {
	p     *Planner
	s     *slot
	need  *need
	push  *pusher
	j     *core.Job
	now   core.Time
	end   core.Time // when the job would end
	soon  bool      // what is on its way out counts as free, and any way of pushing aside will do; else only to suspend
	bare  bool      // reservations do not count
	want  int32     // tasks a node should take
	sweep int64
	order core.PreemptOrder

	a      *account // that is being looked at
	prices []price
	nodes  []*account
	sets   []stay // of prices
	cands  []stay
	out    []stay // whose parts are in b
	b, lim balance
	tmp    balance
	part   core.NodeAlloc
}

// stay is a job on a node; i is the node's place among the job's.
type stay struct {
	h *holding
	i int
}

// price is what a node costs.
type price struct {
	a      *account
	class  int64 // the highest of those who must go; -1: nobody must
	count  int
	cost   int64
	at     int // place in the order nodes are tried
	lo, hi int // who, in sets
}

func (a *price) compare(b *price) int {
	return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.count, b.count), cmp.Compare(a.cost, b.cost), cmp.Compare(a.at, b.at))
}

// found is what a node has free: the one that is being looked at, with those in out gone; the others as was worked out.
// Those that were not looked at have nothing.
func (hu *hunt) found(a *account) *balance {
	switch {
	case hu.a == a:
		return hu.balance(a)
	case a.swept == hu.sweep:
		return &a.then
	}
	return &nothing
}

var nothing balance

func (hu *hunt) look() look {
	return look{hunt: hu, then: hu.now, end: hu.end, own: hu.s.own, reach: hu.s.reach, tmp: &hu.tmp}
}

// run finds nodes for the job and who must leave them; nil if it could not start there either. Who must go is in sets.
func (hu *hunt) run(s *slot) []pick {
	p := hu.p
	if hu.soon { // it may do to wait for what is on its way out
		if picks := hu.choose(s, false, true); picks != nil {
			hu.sets = hu.sets[:0]
			return picks
		}
	}
	picks := hu.choose(s, true, true)
	if picks == nil {
		if picks = hu.choose(s, true, false); picks == nil {
			return nil
		}
	}
	p.buf = picks
	hu.prune(picks)
	return picks
}

// choose prices all nodes of a partition and chooses among them; with victims, and as few on each node as will do.
func (hu *hunt) choose(s *slot, victims, few bool) []pick {
	p := hu.p
	p.sweeps++
	hu.sweep = p.sweeps
	hu.prices, hu.sets, hu.nodes = hu.prices[:0], hu.sets[:0], hu.nodes[:0]
	at := hu.look()
	for i, a := range p.nodesOf(s) {
		if len(a.jobs) > 0 || a.now.cpus > 0 {
			if hu.need.suits(a, &at) {
				hu.price(a, i, victims, few)
			}
		}
	}
	hu.a = nil
	slices.SortFunc(hu.prices, func(a, b price) int { return a.compare(&b) })
	for i := range hu.prices {
		hu.nodes = append(hu.nodes, hu.prices[i].a)
	}
	at.nodes = hu.nodes
	return hu.need.choose(at, p.buf)
}

// price works out what it takes to get room on a node, and leaves what is free then in its balance.
func (hu *hunt) price(a *account, at int, victims, few bool) {
	hu.weigh(a)
	pr := price{a: a, class: -1, at: at, lo: len(hu.sets)}
	room := hu.room(a)
	if victims && (room < hu.want || !few) {
		hu.candidates(a)
		for _, c := range hu.cands {
			hu.put(a, c)
		}
		if all := hu.room(a); all > room {
			if few {
				hu.fewest(a, min(all, hu.want))
			}
			room = hu.room(a)
			for _, c := range hu.out {
				v := c.h.victim
				pr.class = max(pr.class, v.class)
				if !v.parked {
					pr.count++
					pr.cost += v.cost(hu.order, hu.now)
				}
			}
			hu.sets = append(hu.sets, hu.out...)
		} else {
			hu.weigh(a)
		}
	}
	if room == 0 {
		hu.sets = hu.sets[:pr.lo]
		return
	}
	pr.hi = len(hu.sets)
	hu.prices = append(hu.prices, pr)
	a.swept = hu.sweep
	a.then.copy(hu.balance(a))
	hu.a = nil
}

// candidates lists who could be preempted on a node, the cheapest first.
func (hu *hunt) candidates(a *account) {
	hu.cands = hu.cands[:0]
	for _, st := range a.jobs {
		v := st.h.victim
		if v == nil || st.h.doomed || st.h.leaves(hu.now) || v.from > hu.now || !hu.push.may(hu.j, v) || !hu.soon && v.how != core.PreemptSuspend {
			continue
		}
		if v.how == core.PreemptSuspend && (st.h.alloc.Nodes[st.i].CPUs == 0 || !hu.bare && hu.delays(st.h)) {
			continue
		}
		hu.cands = append(hu.cands, st)
	}
	slices.SortFunc(hu.cands, func(a, b stay) int { return hu.cheaper(a.h, b.h) })
}

// cheaper orders who goes first.
func (hu *hunt) cheaper(a, b *holding) int {
	x, y := a.victim, b.victim
	return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.cost(hu.order, hu.now), y.cost(hu.order, hu.now)), cmp.Compare(y.began, x.began), cmp.Compare(y.id, x.id))
}

// delays tells whether a reservation counts on a job's being gone that would still be there if it were suspended.
func (hu *hunt) delays(h *holding) bool {
	later := never
	if h.end < never && hu.end < never {
		later = after(h.end, hu.end-hu.now)
	}
	for _, a := range hu.p.on(h) {
		if a == nil {
			continue
		}
		for i := range a.claims {
			if c := a.claims[i]; !hits(c.from, h.end) && hits(c.from, later) {
				return true
			}
		}
	}
	return false
}

// fewest leaves on a node as few of those in out as give room for so many tasks: none of a higher class than it takes,
// one alone if one will do, the cheapest one then; else the smallest stay first.
func (hu *hunt) fewest(a *account, want int32) {
	cands := hu.cands
	hu.weigh(a)
	k := 0
	for ; hu.room(a) < want; k++ {
		hu.put(a, cands[k])
	}
	for k < len(cands) && cands[k].h.victim.class == cands[k-1].h.victim.class {
		k++
	}
	cands = cands[:k]
	for _, c := range cands {
		hu.weigh(a)
		hu.put(a, c)
		if hu.room(a) >= want {
			return
		}
	}
	hu.weigh(a)
	slices.SortStableFunc(cands, func(x, y stay) int {
		return cmp.Or(cmp.Compare(y.h.victim.class, x.h.victim.class), cmp.Compare(x.h.alloc.Nodes[x.i].CPUs, y.h.alloc.Nodes[y.i].CPUs), hu.cheaper(y.h, x.h))
	})
	for _, c := range cands {
		hu.put(a, c)
	}
	for _, c := range cands {
		hu.drop(a, c)
		if hu.room(a) < want {
			hu.put(a, c)
		}
	}
}

// prune keeps of the sets on the nodes that were picked whom the job needs to go.
func (hu *hunt) prune(picks []pick) {
	var who []*holding
	for _, pk := range picks {
		at := slices.IndexFunc(hu.prices, func(p price) bool { return p.a == pk.a })
		for _, st := range hu.sets[hu.prices[at].lo:hu.prices[at].hi] {
			if !slices.Contains(who, st.h) {
				who = append(who, st.h)
			}
		}
	}
	slices.SortFunc(who, func(x, y *holding) int {
		a, b := x.victim, y.victim
		return cmp.Or(cmp.Compare(b.class, a.class), cmp.Compare(a.cpus, b.cpus), hu.cheaper(y, x))
	})
	for i := 0; i < len(who); {
		rest := slices.Delete(slices.Clone(who), i, i+1)
		if hu.enough(picks, rest) {
			who = rest
		} else {
			i++
		}
	}
	slices.SortFunc(who, hu.cheaper)
	hu.sets = hu.sets[:0]
	for _, h := range who {
		hu.sets = append(hu.sets, stay{h: h})
	}
	for _, pk := range picks { // what the job really finds
		hu.without(pk.a, who)
		pk.a.then.copy(hu.balance(pk.a))
	}
	hu.a = nil
}

// enough tells whether a choice stands if only these go.
func (hu *hunt) enough(picks []pick, who []*holding) bool {
	for _, pk := range picks {
		hu.without(pk.a, who)
		if hu.room(pk.a) < pk.tasks {
			return false
		}
	}
	return true
}

func (hu *hunt) without(a *account, who []*holding) {
	hu.weigh(a)
	for _, st := range a.jobs {
		if slices.Contains(who, st.h) {
			hu.put(a, st)
		}
	}
}

// leaves tells whether a job is on its way out: it has ended, or its time is up.
func (h *holding) leaves(now core.Time) bool { return h.dying || h.end <= now+overdue }

// weigh begins with a node as it is.
func (hu *hunt) weigh(a *account) {
	hu.a, hu.out = a, hu.out[:0]
	hu.b.copy(&a.now)
	if !hu.soon {
		return
	}
	for _, st := range a.jobs {
		switch {
		case st.h.terms.Share > 1: // others may be on the same CPUs
		case st.h.leaves(hu.now):
			hu.count(&hu.b, a, st, &st.h.alloc.Nodes[st.i], 1)
		case st.h.doomed:
			hu.count(&hu.b, a, st, hu.gives(st), 1)
		}
	}
}

// put counts somebody's part of the node as free; drop takes that back.
func (hu *hunt) put(a *account, st stay) {
	hu.count(&hu.b, a, st, hu.gives(st), 1)
	hu.out = append(hu.out, st)
}

func (hu *hunt) drop(a *account, st stay) {
	hu.count(&hu.b, a, st, hu.gives(st), -1)
	hu.out = slices.DeleteFunc(hu.out, func(o stay) bool { return o.h == st.h })
}

// count books what a job leaves when it goes. CPUs that it had borrowed go back to the one who lent them; one that is
// suspended lends them further.
func (hu *hunt) count(b *balance, a *account, st stay, na *core.NodeAlloc, sign int32) {
	a.add(b, nil, na, st.h.terms, sign)
	if na == &hu.part {
		return
	}
	for k := range st.h.owes {
		if l := &st.h.owes[k]; l.Node == a.node.Name {
			b.cpus -= sign * l.CPUs
		}
	}
}

// gives is what a job leaves when it goes: all it has, or its CPUs alone.
func (hu *hunt) gives(st stay) *core.NodeAlloc {
	na := &st.h.alloc.Nodes[st.i]
	if st.h.victim.how != core.PreemptSuspend {
		return na
	}
	hu.part = core.NodeAlloc{Node: na.Node, CPUs: na.CPUs, Cores: na.Cores}
	return &hu.part
}

func (hu *hunt) room(a *account) int32 {
	at := hu.look()
	return at.room(hu.need, a)
}

// balance is what the job may use of the node with those in out gone: no more than reservations leave, and those leave
// more where somebody goes who would have been there.
func (hu *hunt) balance(a *account) *balance {
	if len(a.claims)+len(a.asides) == 0 || hu.bare {
		return &hu.b
	}
	hu.lim.copy(&hu.b)
	for i := range a.claims {
		c := a.claims[i]
		if !hits(c.from, hu.end) {
			continue
		}
		left := &hu.p.tmp
		left.copy(&c.left)
		for _, st := range hu.out {
			// One that is suspended comes back: it only makes room for what it lends.
			if hits(c.from, st.h.end) && st.h.victim.how != core.PreemptSuspend {
				hu.count(left, a, st, hu.gives(st), 1)
			}
		}
		hu.lim.least(left)
	}
	if len(a.asides) > 0 {
		at := hu.look()
		return a.beside(&at, 0, hu.end, &hu.lim)
	}
	return &hu.lim
}

// would is what the job would get, as far as limits count it.
func (hu *hunt) would(s *slot, picks []pick) *core.Alloc {
	al := &core.Alloc{Partition: s.part.Name, Nodes: make([]core.NodeAlloc, len(picks))}
	for i, pk := range picks {
		u := hu.need.use(pk.a, pk.tasks, hu.found(pk.a))
		na := &al.Nodes[i]
		na.Node, na.CPUs, na.Mem = pk.a.node.Name, u.cpus, u.mem
		for k, n := range u.gres {
			if g := &pk.a.gres[k]; n > 0 && g.name != "" {
				na.Gres = append(na.Gres, core.GresAlloc{Name: g.name, Type: g.typ, Units: make([]int32, n)})
			}
		}
	}
	return al
}
