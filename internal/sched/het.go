package sched

import (
	"cmp"
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// hetSet is the components of a het job that wait. They wait as one: when all of them may start, the first stands in its
// queues for all, by its own priority, and all are given places at the same moment or none is.
type hetSet struct {
	jobs    []*core.Job // by place; nil: it does not wait, or something keeps it from starting
	have    int
	classes []*class  // by place; nil while the set does not stand
	order   []int     // in which they are given places: those with the least choice first
	later   core.Time // if not 0, the set waits for this moment
	queued  bool
	why     *Why // why it is in no queue though all are there
}

// sound tells whether a component has a place in a set of so many; what admission did not number has none, and waits for
// ever.
func (set *hetSet) sound(ref *core.HetRef) bool {
	return int(ref.Count) == len(set.jobs) && ref.Offset >= 0 && ref.Offset < ref.Count
}

// maxHetParts is more components than a het job may have.
const maxHetParts = 1 << 10

// hetOf tells which het job a job is a component of; nil: none.
func hetOf(j *core.Job) *core.HetRef {
	if x := j.Spec.Extra; x != nil {
		return x.Het
	}
	return nil
}

// hetAdd lets a component wait.
func (p *Planner) hetAdd(j *core.Job, ref *core.HetRef) {
	p.pending[j.ID] = waiter{job: j}
	set := p.hets[ref.Lead]
	if set == nil {
		if ref.Count < 1 || ref.Count > maxHetParts || ref.Offset < 0 || ref.Offset >= ref.Count {
			return
		}
		set = &hetSet{jobs: make([]*core.Job, ref.Count)}
		if p.hets == nil {
			p.hets = map[core.JobID]*hetSet{}
		}
		p.hets[ref.Lead] = set
	}
	if !set.sound(ref) || set.jobs[ref.Offset] != nil || ref.Offset == 0 && j.ID != ref.Lead {
		return
	}
	set.jobs[ref.Offset] = j
	if set.have++; set.have == len(set.jobs) {
		p.hetStand(set)
	}
}

// hetDrop is the other way round.
func (p *Planner) hetDrop(j *core.Job, ref *core.HetRef) {
	set := p.hets[ref.Lead]
	delete(p.pending, j.ID)
	if set == nil || !set.sound(ref) || set.jobs[ref.Offset] == nil || set.jobs[ref.Offset].ID != j.ID {
		return
	}
	p.hetSit(set)
	delete(p.pending, j.ID)
	set.jobs[ref.Offset] = nil
	if set.have--; set.have == 0 {
		delete(p.hets, ref.Lead)
	}
}

// hetStand lets a set wait for its moment, or its turn, if all of it is there.
func (p *Planner) hetStand(set *hetSet) {
	if set.have < len(set.jobs) || set.later != 0 || set.classes != nil {
		return
	}
	for _, j := range set.jobs {
		if j.Eligible > j.Submit {
			set.later = max(set.later, j.Eligible)
		}
	}
	if set.later != 0 {
		p.later.insert(entry{job: set.jobs[0], at: set.later})
		return
	}
	p.hetRipe(set)
}

// hetRipe puts a set whose moment has come into the queues of its first component, if the nodes that are up could hold it.
func (p *Planner) hetRipe(set *hetSet) {
	set.later, set.why = 0, nil
	for k, j := range set.jobs {
		c := p.join(j, 0)
		set.classes = append(set.classes, c)
		p.pending[j.ID] = waiter{job: j, class: c}
		if w := c.why(); w != nil && set.why == nil {
			set.why = &Why{Reason: w.Reason, Text: fmt.Sprintf("component %d+%d: %s", set.jobs[0].ID, k, w.Text)}
		}
	}
	if set.why == nil {
		p.hetOrder(set)
		if !p.hetFits(set) {
			set.why = &Why{Reason: core.ReasonBadConstraints, Text: "the nodes that are up could hold each of its components, but not all at once"}
		}
	}
	if set.why != nil {
		return
	}
	set.queued = true
	lead := set.classes[0]
	for i := range lead.slots {
		if s := &lead.slots[i]; s.why == nil {
			p.enqueue(s, set.jobs[0])
		}
	}
}

// hetSit takes a set out of the queues.
func (p *Planner) hetSit(set *hetSet) {
	if set.later != 0 {
		p.later.remove(entry{job: set.jobs[0], at: set.later})
		set.later = 0
	}
	if set.queued {
		lead := set.classes[0]
		for i := range lead.slots {
			if s := &lead.slots[i]; s.why == nil {
				p.dequeue(s, set.jobs[0])
			}
		}
		set.queued = false
	}
	for k, c := range set.classes {
		p.leave(c, set.jobs[k])
		p.pending[set.jobs[k].ID] = waiter{job: set.jobs[k]}
	}
	set.classes, set.why = nil, nil
}

// hetAll does something with all sets, in order.
func (p *Planner) hetAll(do func(*hetSet)) {
	leads := make([]core.JobID, 0, len(p.hets))
	for id := range p.hets {
		leads = append(leads, id)
	}
	slices.Sort(leads)
	for _, id := range leads {
		do(p.hets[id])
	}
}

// hetOrder puts the components with the least choice of nodes first, and among equals the largest.
func (p *Planner) hetOrder(set *hetSet) {
	choice, size := make([]int, len(set.jobs)), make([]int64, len(set.jobs))
	set.order = set.order[:0]
	for k, c := range set.classes {
		set.order = append(set.order, k)
		for i := range c.slots {
			s := &c.slots[i]
			if s.why != nil {
				continue
			}
			size[k] = max(size[k], int64(s.need.tasks)*int64(s.need.cpusPerTask))
			for _, a := range p.nodesOf(s) {
				if s.need.suits(a, &look{}) && s.need.room(a, &a.full) > 0 {
					choice[k]++
				}
			}
		}
	}
	slices.SortStableFunc(set.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(choice[a], choice[b]), cmp.Compare(size[b], size[a]))
	})
}

// hetFits tells whether nodes on which nothing runs could hold all components at once.
func (p *Planner) hetFits(set *hetSet) bool {
	type part struct {
		a   *account
		use balance
	}
	var taken []part
	defer func() {
		for i := range taken {
			taken[i].a.full.sub(taken[i].use.negated())
		}
	}()
	for _, k := range set.order {
		fits := false
		for i := range set.classes[k].slots {
			s := &set.classes[k].slots[i]
			if s.why != nil {
				continue
			}
			if s.named || len(s.ways) > 0 { // what reservations leave is not looked at here
				fits = true
				break
			}
			picks := s.need.choose(look{nodes: p.nodesOf(s), empty: true}, p.buf)
			if picks == nil {
				continue
			}
			p.buf, fits = picks, true
			for _, pk := range picks {
				use := s.need.use(pk.a, pk.tasks, &pk.a.full)
				pk.a.full.sub(&use)
				taken = append(taken, part{pk.a, use})
			}
			break
		}
		if !fits {
			return false
		}
	}
	return true
}

// negated is what a balance takes, given.
func (b *balance) negated() *balance {
	n := balance{cpus: -b.cpus, mem: -b.mem, held: -b.held, whole: -b.whole, gres: make([]int64, len(b.gres))}
	for i, g := range b.gres {
		n.gres[i] = -g
	}
	return &n
}

// hetSlots are the places a component may have; the first component's is that of the queue it is met in.
func (set *hetSet) hetSlots(k int, lane *slot) []*slot {
	if k == 0 {
		return []*slot{lane}
	}
	var out []*slot
	for i := range set.classes[k].slots {
		if s := &set.classes[k].slots[i]; s.why == nil {
			out = append(out, s)
		}
	}
	return out
}

// tryHet starts all components of a het job, or none. Like try it returns false if the queue behind must wait for it.
func (ps *pass) tryHet(lane *slot, lead *core.Job) bool {
	set := ps.p.hets[lead.ID]
	if ps.placed[lead.ID] > 0 {
		return true
	}
	slots := make([][]*slot, len(set.jobs))
	for k, j := range set.jobs {
		slots[k] = set.hetSlots(k, lane)
		if ps.barred(slots[k][0], j) {
			return true
		}
	}
	for _, k := range set.order { // nothing need be taken and given back for what cannot be anyhow
		if !ps.couldAlone(slots[k], set.jobs[k]) {
			return false
		}
	}
	var found []verdict
	for _, list := range slots {
		for _, s := range list {
			if slices.ContainsFunc(found, func(v verdict) bool { return v.s == s }) {
				continue
			}
			found = append(found, verdict{s, s.pass, s.until, s.refusal})
			for i := range s.ways {
				w := &s.ways[i]
				found = append(found, verdict{w, w.pass, w.until, w.refusal})
			}
		}
	}
	taken, starts := len(ps.taken), len(ps.plan.Starts)
	ps.joint = true
	defer func() { ps.joint = false }()
	for _, k := range set.order {
		ok, over := false, false
		for _, s := range slots[k] {
			if ok = ps.place(s, set.jobs[k], 0); ok {
				break
			}
			over = over || ps.over
		}
		if !ok {
			ps.undo(taken)
			for i := range found {
				ps.restore(&found[i])
			}
			ps.plan.Starts, ps.over = ps.plan.Starts[:starts], over
			return over
		}
	}
	ps.plan.Starts = append(ps.plan.Starts[:starts], together(ps.plan.Starts[starts:], lead.ID))
	if len(ps.p.parts) > 1 || ps.p.cfg.Rule == RuleEASYSJBF {
		for _, j := range set.jobs {
			ps.redeem(j.ID)
		}
	}
	return true
}

// together makes one start of those of the components, the first with the rest in order.
func together(parts []Start, lead core.JobID) Start {
	rest := slices.SortedFunc(slices.Values(parts), func(a, b Start) int { return cmp.Compare(a.Job, b.Job) })
	at := slices.IndexFunc(rest, func(s Start) bool { return s.Job == lead })
	first := rest[at]
	first.Rest = slices.Delete(rest, at, at+1)
	return first
}

// couldAlone tells whether a component could start if the others took nothing.
func (ps *pass) couldAlone(slots []*slot, j *core.Job) bool {
	for _, s := range slots {
		if len(s.ways) > 0 {
			return true // it is looked at when it is given a place
		}
		end, least, ok := spanOf(j.Spec, s.own, ps.plan.Now)
		if !ok || ps.known(s, least) || s.lic != nil && ps.grant(s, ps.plan.Now, least) == nil {
			continue
		}
		picks, _, few := ps.choose(s, end, least)
		switch {
		case picks != nil:
			ps.p.buf = picks
			return true
		case few:
			ps.refuseStill(s, least)
		default:
			ps.refuse(s, least)
		}
	}
	return false
}

// undo takes back what was placed last: all but the first n of what the pass has taken.
func (ps *pass) undo(n int) {
	p := ps.p
	if len(ps.taken) == n {
		return
	}
	for i := len(ps.taken) - 1; i >= n; i-- {
		e := ps.taken[i]
		ps.outlives(e.h, e.at, 1)
		for k := range e.h.alloc.Nodes {
			if a := p.ledger.nodes[e.h.alloc.Nodes[k].Node]; a != nil && a.parted {
				a.tenants = a.tenants[:len(a.tenants)-1]
			}
		}
		p.ends.remove(e)
		p.release(e.h)
		delete(ps.placed, e.id)
	}
	ps.taken, ps.seated = ps.taken[:n], nil
}

// verdict is what a pass has found of a slot so far.
type verdict struct {
	s       *slot
	pass    int64
	until   core.Time
	refusal refusal
}

// restore makes a slot as it was when it was last looked at with nothing of the set taken.
func (ps *pass) restore(v *verdict) {
	s, now := v.s, ps.p.passes
	if s.pass == now && s.until == 0 && (v.pass != now || v.until != 0) && s.members.len > 0 {
		s.part.dead--
	}
	s.pass, s.until, s.refusal = v.pass, v.until, v.refusal
}

// hetTries is how many moments are tried for a het job before the one when all that runs is over.
const hetTries = 100

// holdHet finds a moment at which all components could start, and keeps their nodes from then on. It is the earliest at
// which each, given its place after those before it, finds one.
func (ps *pass) holdHet(lane *slot, lead *core.Job, promise bool) {
	set := ps.p.hets[lead.ID]
	n, from := len(ps.reserved), ps.plan.Now
	defer func() { ps.notBefore = 0 }()
	for try := 0; ; try++ {
		at, all := from, true
		for i, k := range set.order {
			ps.notBefore = at
			r := ps.holdPart(set.hetSlots(k, lane), set.jobs[k])
			if r == nil {
				ps.dropSince(n)
				return
			}
			if all = i == 0 || r.at == at; !all {
				from = r.at
				break
			}
			at = r.at
		}
		if all {
			break
		}
		ps.dropSince(n)
		switch {
		case try == hetTries:
			from = max(from, ps.allOver())
		case try > hetTries:
			return
		}
	}
	if promise {
		for i := n; i < len(ps.reserved); i++ {
			ps.plan.planned(ps.reserved[i])
		}
	}
}

// holdPart is hold for a component, in that of its partitions where it could start first.
func (ps *pass) holdPart(slots []*slot, j *core.Job) *reservation {
	best := slots[0]
	if len(slots) > 1 {
		first := never
		for _, s := range slots {
			if len(s.ways) > 0 {
				if s = ps.soonest(s, j); s == nil {
					continue
				}
			}
			sw := ps.sweepOf(s, j)
			if sw.earliest() != nil && sw.look.then < first {
				best, first = s, sw.look.then
			}
		}
	}
	return ps.keep(best, j)
}

// allOver is when all that runs and is reserved has ended, as far as it ever does.
func (ps *pass) allOver() (t core.Time) {
	for w := (walk[ending, *ending]{q: &ps.p.ends}); w.head() != nil; w.next() {
		if e := w.head(); e.at < never {
			t = max(t, e.at)
		}
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.to < never {
			t = max(t, r.to)
		}
	}
	return max(t, ps.plan.Now+overdue)
}

// dropSince takes back the reservations made last: all but the first n.
func (ps *pass) dropSince(n int) {
	for i := len(ps.reserved) - 1; i >= n; i-- {
		r := ps.reserved[i]
		for _, a := range r.nodes {
			last := len(a.claims) - 1
			c := a.claims[last]
			a.claims = a.claims[:last]
			for _, o := range a.claims {
				if !o.holds(r.at) && hits(o.from, r.to) && o.from >= r.at {
					o.left.sub(c.use.negated())
				}
			}
		}
	}
	ps.reserved = ps.reserved[:n]
	if ps.made != allMade {
		ps.made = min(ps.made, int32(n))
	}
}

// hetWhys tells of sets that are in no queue.
func (p *Planner) hetWhys() (whys map[core.JobID]Why) {
	for lead, set := range p.hets {
		w := set.why
		if w == nil && set.have < len(set.jobs) {
			w = &Why{Text: "it waits for its other components, which may not start"}
		}
		if w != nil {
			if whys == nil {
				whys = map[core.JobID]Why{}
			}
			whys[lead] = *w
		}
	}
	return whys
}

// whyHet tells why a component waits: for the first one's turn, or for others.
func (p *Plan) whyHet(j *core.Job, ref *core.HetRef) (Why, bool) {
	if w, ok := p.hets[ref.Lead]; ok {
		return w, true
	}
	if ref.Offset == 0 {
		return Why{}, false
	}
	w := Why{Reason: core.ReasonPriority, Text: fmt.Sprintf("it starts with component %d+0, for whose turn it waits", ref.Lead)}
	for _, head := range p.heads {
		if head == ref.Lead {
			w = Why{Reason: core.ReasonResources, Text: fmt.Sprintf("it starts with component %d+0, which is first in its partition: they wait for resources that other jobs hold", ref.Lead)}
		}
	}
	w.Expected, w.Estimate, _ = p.Expected(ref.Lead)
	return w, true
}
