package sched

import (
	"cmp"
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// hetJob is the components of a het job that wait. They wait as one: when all of them may start, the first stands in
// its
// queues for all, by its own priority, and all are given places at the same moment or none is.
type hetJob struct {
	components []*core.Job // by place; nil: it does not wait, or something keeps it from starting
	present    int
	classes    []*classInfo // by place; nil while the set does not stand
	order      []int        // in which they are given places: those with the least choice first
	eligible   core.Time    // if not 0, the set waits for this moment
	queued     bool
	reason     *Reason // why it is in no queue though all are there
}

// hasComponent tells whether a component has a place in a set of so many; what admission did not number has none, and
// waits for
// ever.
func (set *hetJob) hasComponent(ref *core.HetRef) bool {
	return int(ref.Count) == len(set.components) && ref.Offset >= 0 && ref.Offset < ref.Count
}

// maxHetComponents is more components than a het job may have.
const maxHetComponents = 1 << 10

// hetRefOf tells which het job a job is a component of; nil: none.
func hetRefOf(j *core.Job) *core.HetRef {
	if x := j.Spec.Extra; x != nil {
		return x.Het
	}
	return nil
}

// addHetComponent lets a component wait.
func (p *Planner) addHetComponent(j *core.Job, ref *core.HetRef) {
	p.pending[j.ID] = pendingJob{job: j}
	set := p.hets[ref.Lead]
	if set == nil {
		if ref.Count < 1 || ref.Count > maxHetComponents || ref.Offset < 0 || ref.Offset >= ref.Count {
			return
		}
		set = &hetJob{components: make([]*core.Job, ref.Count)}
		if p.hets == nil {
			p.hets = map[core.JobID]*hetJob{}
		}
		p.hets[ref.Lead] = set
	}
	if !set.hasComponent(ref) || set.components[ref.Offset] != nil || ref.Offset == 0 && j.ID != ref.Lead {
		return
	}
	set.components[ref.Offset] = j
	if set.present++; set.present == len(set.components) {
		p.enqueueHetWhenComplete(set)
	}
}

// removeHetComponent is the other way round.
func (p *Planner) removeHetComponent(j *core.Job, ref *core.HetRef) {
	set := p.hets[ref.Lead]
	delete(p.pending, j.ID)
	if set == nil || !set.hasComponent(ref) || set.components[ref.Offset] == nil || set.components[ref.Offset].ID != j.ID {
		return
	}
	p.dequeueHet(set)
	delete(p.pending, j.ID)
	set.components[ref.Offset] = nil
	if set.present--; set.present == 0 {
		delete(p.hets, ref.Lead)
	}
}

// enqueueHetWhenComplete lets a set wait for its moment, or its turn, if all of it is there.
func (p *Planner) enqueueHetWhenComplete(set *hetJob) {
	if set.present < len(set.components) || set.eligible != 0 || set.classes != nil {
		return
	}
	for _, j := range set.components {
		if j.Eligible > j.Submit {
			set.eligible = max(set.eligible, j.Eligible)
		}
	}
	if set.eligible != 0 {
		p.ineligible.insert(queueEntry{job: set.components[0], since: set.eligible})
		return
	}
	p.enqueueHet(set)
}

// enqueueHet puts a set whose moment has come into the queues of its first component, if the nodes that are up could
// hold it.
func (p *Planner) enqueueHet(set *hetJob) {
	set.eligible, set.reason = 0, nil
	for k, j := range set.components {
		c := p.joinClass(j, 0)
		set.classes = append(set.classes, c)
		p.pending[j.ID] = pendingJob{job: j, class: c}
		if w := c.reason(); w != nil && set.reason == nil {
			set.reason = &Reason{Code: w.Code, Text: fmt.Sprintf("component %d+%d: %s", set.components[0].ID, k, w.Text)}
		}
	}
	if set.reason == nil {
		p.orderHetComponents(set)
		if !p.hetFitsIdle(set) {
			set.reason = &Reason{Code: core.ReasonBadConstraints,
				Text: "the nodes that are up could hold each of its components, but not all at once"}
		}
	}
	if set.reason != nil {
		return
	}
	set.queued = true
	lead := set.classes[0]
	for i := range lead.partitions {
		if s := &lead.partitions[i]; s.reason == nil {
			p.enqueue(s, set.components[0])
		}
	}
}

// dequeueHet takes a set out of the queues.
func (p *Planner) dequeueHet(set *hetJob) {
	if set.eligible != 0 {
		p.ineligible.remove(queueEntry{job: set.components[0], since: set.eligible})
		set.eligible = 0
	}
	if set.queued {
		lead := set.classes[0]
		for i := range lead.partitions {
			if s := &lead.partitions[i]; s.reason == nil {
				p.dequeue(s, set.components[0])
			}
		}
		set.queued = false
	}
	for k, c := range set.classes {
		p.leaveClass(c, set.components[k])
		p.pending[set.components[k].ID] = pendingJob{job: set.components[k]}
	}
	set.classes, set.reason = nil, nil
}

// eachHet does something with all sets, in order.
func (p *Planner) eachHet(do func(*hetJob)) {
	leads := make([]core.JobID, 0, len(p.hets))
	for id := range p.hets {
		leads = append(leads, id)
	}
	slices.Sort(leads)
	for _, id := range leads {
		do(p.hets[id])
	}
}

// orderHetComponents puts the components with the least choice of nodes first, and among equals the largest.
func (p *Planner) orderHetComponents(set *hetJob) {
	choice, size := make([]int, len(set.components)), make([]int64, len(set.components))
	set.order = set.order[:0]
	for k, c := range set.classes {
		set.order = append(set.order, k)
		for i := range c.partitions {
			s := &c.partitions[i]
			if s.reason != nil {
				continue
			}
			size[k] = max(size[k], int64(s.req.tasks)*int64(s.req.cpusPerTask))
			for _, a := range p.nodesFor(s) {
				if s.req.accepts(a, &nodeView{}) && s.req.tasksIn(a, &a.capacity) > 0 {
					choice[k]++
				}
			}
		}
	}
	slices.SortStableFunc(set.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(choice[a], choice[b]), cmp.Compare(size[b], size[a]))
	})
}

// hetFitsIdle tells whether nodes on which nothing runs could hold all components at once.
func (p *Planner) hetFitsIdle(set *hetJob) bool {
	type part struct {
		a   *nodeState
		use resources
	}
	var taken []part
	defer func() {
		for i := range taken {
			taken[i].a.capacity.subtract(taken[i].use.negated())
		}
	}()
	for _, k := range set.order {
		fits := false
		for i := range set.classes[k].partitions {
			s := &set.classes[k].partitions[i]
			if s.reason != nil {
				continue
			}
			if s.namesAdvance || len(s.options) > 0 { // what reservations leave is not looked at here
				fits = true
				break
			}
			picks := s.req.choose(nodeView{nodes: p.nodesFor(s), ifIdle: true}, p.choices)
			if picks == nil {
				continue
			}
			p.choices, fits = picks, true
			for _, pk := range picks {
				use := s.req.usage(pk.node, pk.tasks, &pk.node.capacity)
				pk.node.capacity.subtract(&use)
				taken = append(taken, part{pk.node, use})
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
func (b *resources) negated() *resources {
	n := resources{cpus: -b.cpus, mem: -b.mem, allocs: -b.allocs, exclusive: -b.exclusive, gres: make([]int64,
		len(b.gres))}
	for i, g := range b.gres {
		n.gres[i] = -g
	}
	return &n
}

// classesOf are the places a component may have; the first component's is that of the queue it is met in.
func (set *hetJob) classesOf(k int, lane *partitionClass) []*partitionClass {
	if k == 0 {
		return []*partitionClass{lane}
	}
	var out []*partitionClass
	for i := range set.classes[k].partitions {
		if s := &set.classes[k].partitions[i]; s.reason == nil {
			out = append(out, s)
		}
	}
	return out
}

// tryHet starts all components of a het job, or none. Like try it returns false if the queue behind must wait for it.
func (ps *pass) tryHet(lane *partitionClass, lead *core.Job) bool {
	set := ps.p.hets[lead.ID]
	if ps.startedTasks[lead.ID] > 0 {
		return true
	}
	slots := make([][]*partitionClass, len(set.components))
	for k, j := range set.components {
		slots[k] = set.classesOf(k, lane)
		if ps.isLimitedNow(slots[k][0], j) {
			return true
		}
	}
	for _, k := range set.order { // nothing need be taken and given back for what cannot be anyhow
		if !ps.couldStartAlone(slots[k], set.components[k]) {
			return false
		}
	}
	var found []savedRefusal
	for _, list := range slots {
		for _, s := range list {
			if slices.ContainsFunc(found, func(v savedRefusal) bool { return v.class == s }) {
				continue
			}
			found = append(found, savedRefusal{s, s.refusedEpoch, s.refusedFrom, s.refusal})
			for i := range s.options {
				w := &s.options[i]
				found = append(found, savedRefusal{w, w.refusedEpoch, w.refusedFrom, w.refusal})
			}
		}
	}
	taken, starts := len(ps.started), len(ps.plan.Starts)
	ps.placingHet = true
	defer func() { ps.placingHet = false }()
	for _, k := range set.order {
		ok, over := false, false
		for _, s := range slots[k] {
			if ok = ps.place(s, set.components[k], 0); ok {
				break
			}
			over = over || ps.overLimit
		}
		if !ok {
			ps.rollback(taken)
			for i := range found {
				ps.restoreRefusal(&found[i])
			}
			ps.plan.Starts, ps.overLimit = ps.plan.Starts[:starts], over
			return over
		}
	}
	ps.plan.Starts = append(ps.plan.Starts[:starts], joinStarts(ps.plan.Starts[starts:], lead.ID))
	if len(ps.p.partitions) > 1 || ps.p.cfg.Rule == RuleEASYSJBF {
		for _, j := range set.components {
			ps.dropReservationsOf(j.ID)
		}
	}
	return true
}

// joinStarts makes one start of those of the components, the first with the rest in order.
func joinStarts(parts []Start, lead core.JobID) Start {
	rest := slices.SortedFunc(slices.Values(parts), func(a, b Start) int { return cmp.Compare(a.Job, b.Job) })
	at := slices.IndexFunc(rest, func(s Start) bool { return s.Job == lead })
	first := rest[at]
	first.Rest = slices.Delete(rest, at, at+1)
	return first
}

// couldStartAlone tells whether a component could start if the others took nothing.
func (ps *pass) couldStartAlone(slots []*partitionClass, j *core.Job) bool {
	for _, s := range slots {
		if len(s.options) > 0 {
			return true // it is looked at when it is given a place
		}
		end, least, ok := endTimes(j.Spec, s.advance, ps.plan.Now)
		if !ok || ps.isClassRefused(s, least) || s.licenses != nil && ps.licensesFor(s, ps.plan.Now, least) == nil {
			continue
		}
		picks, _, few := ps.chooseNow(s, end, least)
		switch {
		case picks != nil:
			ps.p.choices = picks
			return true
		case few:
			ps.recordRefusalOnFreed(s, least)
		default:
			ps.recordRefusal(s, least)
		}
	}
	return false
}

// rollback takes back what was placed last: all but the first n of what the pass has taken.
func (ps *pass) rollback(n int) {
	p := ps.p
	if len(ps.started) == n {
		return
	}
	for i := len(ps.started) - 1; i >= n; i-- {
		e := ps.started[i]
		ps.changeReservations(e.alloc, e.at, 1)
		for k := range e.alloc.alloc.Nodes {
			if a := p.ledger.nodes[e.alloc.alloc.Nodes[k].Node]; a != nil && a.partlyReserved {
				a.advanceJobs = a.advanceJobs[:len(a.advanceJobs)-1]
			}
		}
		p.ends.remove(e)
		p.release(e.alloc)
		delete(ps.startedTasks, e.id)
	}
	ps.started, ps.licenseHolders = ps.started[:n], nil
}

// savedRefusal is what a pass has found of a slot so far.
type savedRefusal struct {
	class   *partitionClass
	epoch   int64
	from    core.Time
	refusal refusal
}

// restoreRefusal makes a slot as it was when it was last looked at with nothing of the set taken.
func (ps *pass) restoreRefusal(v *savedRefusal) {
	s, now := v.class, ps.p.refusalEpoch
	if s.refusedEpoch == now && s.refusedFrom == 0 && (v.epoch != now || v.from != 0) && s.members.len > 0 {
		s.part.deadClasses--
	}
	s.refusedEpoch, s.refusedFrom, s.refusal = v.epoch, v.from, v.refusal
}

// maxHetTries is how many moments are tried for a het job before the one when all that runs is over.
const maxHetTries = 100

// reserveHet finds a moment at which all components could start, and keeps their nodes from then on. It is the earliest
// at
// which each, given its place after those before it, finds one.
func (ps *pass) reserveHet(lane *partitionClass, lead *core.Job, promise bool) {
	set := ps.p.hets[lead.ID]
	n, from := len(ps.reserved), ps.plan.Now
	defer func() { ps.notBefore = 0 }()
	for try := 0; ; try++ {
		at, all := from, true
		for i, k := range set.order {
			ps.notBefore = at
			r := ps.reserveComponent(set.classesOf(k, lane), set.components[k])
			if r == nil {
				ps.dropReservations(n)
				return
			}
			if all = i == 0 || r.start == at; !all {
				from = r.start
				break
			}
			at = r.start
		}
		if all {
			break
		}
		ps.dropReservations(n)
		switch {
		case try == maxHetTries:
			from = max(from, ps.lastEnd())
		case try > maxHetTries:
			return
		}
	}
	if promise {
		for i := n; i < len(ps.reserved); i++ {
			ps.plan.addReservation(ps.reserved[i])
		}
	}
}

// reserveComponent is hold for a component, in that of its partitions where it could start first.
func (ps *pass) reserveComponent(slots []*partitionClass, j *core.Job) *reservation {
	best := slots[0]
	if len(slots) > 1 {
		first := never
		for _, s := range slots {
			if len(s.options) > 0 {
				if s = ps.earliestOption(s, j); s == nil {
					continue
				}
			}
			sw := ps.newStartSearch(s, j)
			if sw.earliest() != nil && sw.view.at < first {
				best, first = s, sw.view.at
			}
		}
	}
	return ps.reserveOne(best, j)
}

// lastEnd is when all that runs and is reserved has ended, as far as it ever does.
func (ps *pass) lastEnd() (t core.Time) {
	for w := (listCursor[allocEnd, *allocEnd]{list: &ps.p.ends}); w.current() != nil; w.next() {
		if e := w.current(); e.at < never {
			t = max(t, e.at)
		}
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.end < never {
			t = max(t, r.end)
		}
	}
	return max(t, ps.plan.Now+overdueDelay)
}

// dropReservations takes back the reservations made last: all but the first n.
func (ps *pass) dropReservations(n int) {
	for i := len(ps.reserved) - 1; i >= n; i-- {
		r := ps.reserved[i]
		for _, a := range r.nodes {
			last := len(a.reserved) - 1
			c := a.reserved[last]
			a.reserved = a.reserved[:last]
			for _, o := range a.reserved {
				if !o.isActive(r.start) && overlaps(o.start, r.end) && o.start >= r.start {
					o.leaves.subtract(c.uses.negated())
				}
			}
		}
	}
	ps.reserved = ps.reserved[:n]
	if ps.reservationsKnown != allReservations {
		ps.reservationsKnown = min(ps.reservationsKnown, int32(n))
	}
}

// hetReasons tells of sets that are in no queue.
func (p *Planner) hetReasons() (whys map[core.JobID]Reason) {
	for lead, set := range p.hets {
		w := set.reason
		if w == nil && set.present < len(set.components) {
			w = &Reason{Text: "it waits for its other components, which may not start"}
		}
		if w != nil {
			if whys == nil {
				whys = map[core.JobID]Reason{}
			}
			whys[lead] = *w
		}
	}
	return whys
}

// hetReason tells why a component waits: for the first one's turn, or for others.
func (p *Plan) hetReason(j *core.Job, ref *core.HetRef) (Reason, bool) {
	if w, ok := p.hetReasons[ref.Lead]; ok {
		return w, true
	}
	if ref.Offset == 0 {
		return Reason{}, false
	}
	w := Reason{Code: core.ReasonPriority, Text: fmt.Sprintf("it starts with component %d+0, for whose turn it waits",
		ref.Lead)}
	for _, head := range p.heads {
		if head == ref.Lead {
			w = Reason{Code: core.ReasonResources,
				Text: fmt.Sprintf("it starts with component %d+0, which is first in its partition: they wait for resources that other jobs hold", ref.Lead)}
		}
	}
	w.Expected, w.Estimate, _ = p.Expected(ref.Lead)
	return w, true
}
