package sched

import (
	"bireme.dev/bireme/internal/core"
)

// Pass plans at now.
func (p *Planner) Pass(now core.Time) *Plan {
	plan := &Plan{Now: now, keyOf: p.key, heads: p.fresher.heads, expected: p.fresher.expected, on: p.fresher.on}
	p.ripen(now, plan)
	p.loosen(now, plan)
	p.index()
	p.passes++
	p.opened++
	p.gains.cut(p.settled) // classes are up to date with those
	p.settled, p.begun = p.begun, p.gains.next()
	ps := &p.walking
	*ps = pass{p: p, plan: plan, taken: ps.taken[:0], reserved: ps.reserved[:0]}
	if len(p.books) > 0 {
		ps.overlay()
	}
	ps.run()
	p.looking = 0
	ps.limitsNow()
	if p.asking > 0 {
		ps.shortages()
	}
	ps.throttledNow()
	ps.grow()
	ps.unreserve()
	for i := len(ps.taken) - 1; i >= 0; i-- { // leave the ledger as it was found
		p.ends.remove(ps.taken[i])
		p.release(ps.taken[i].h)
	}
	ps.unpush()
	for i := range ps.taken {
		p.spare.give(ps.taken[i].h)
	}
	clear(ps.taken)
	clear(ps.reserved)
	p.share(plan)
	p.looking = 0
	plan.verdicts, plan.hets = p.verdictsNow(), p.hetWhys()
	return plan
}

// ripen moves jobs whose time has come into their queues and finds the next one's.
func (p *Planner) ripen(now core.Time, plan *Plan) {
	for {
		c := cursor{q: &p.later}
		e := c.head()
		if e == nil {
			return
		}
		if e.at > now {
			plan.WakeAt = e.at
			return
		}
		j := e.job
		p.later.remove(*e)
		p.look(j)
		p.ripe(j)
	}
}

// pass is one walk through the queues.
type pass struct {
	p        *Planner
	plan     *Plan
	taken    []ending
	reserved []*reservation
	made     int32 // of the reservations that the last pass made, those of which it is known what became of them
	redeemed bool  // a reservation was dropped: what was refused because of it may start
	steps    int
	over     bool // what was placed last was more than a limit allows
	trying   *entry
	// Jobs that stand in several queues: how many of their tasks (or they themselves) have been given a place.
	placed map[core.JobID]int

	seated map[string][]tenant // see seats
	within map[string]int      // promised starts in each advance reservation
	self   core.JobID          // the job that is looked at, for licences
	pushing

	joint     bool      // components of a het job are being placed: what is reserved for them stays until all are
	notBefore core.Time // reservations begin then at the earliest; 0: when they can
}

// lane is a partition's queue in a pass.
type lane struct {
	part    *partition
	at      cursor
	blocked bool // its first job that cannot start has been met
	closed  bool // there is nothing more in it
	barred  bool // nothing more in it may start, by the rule
	deep    bool // it goes on by classes
	lacking bool // that job waits for something else than nodes; see lacks
	more    int  // jobs behind that one that are promised a start too
	runners runners
}

// headed tells whether its reservations are made.
func (l *lane) headed() bool { return l.blocked && !l.lacking && l.more == 0 }

// head is the lane's next job.
func (l *lane) head() *entry {
	if !l.deep {
		return l.at.head()
	}
	if len(l.runners) == 0 {
		return nil
	}
	return &l.runners[0].head
}

func (ps *pass) run() {
	rule := ps.p.cfg.Rule
	if ps.p.tabled() {
		ps.conservative(ps.p.parts[0])
		return
	}
	if ps.p.insiders > 0 {
		ps.inside()
	}
	lanes := ps.p.lanes[:0]
	for _, part := range ps.p.parts {
		part.dead = 0
		l := lane{part: part, at: cursor{q: &part.queue}, more: ps.p.cfg.depth() - 1}
		if k := len(lanes); k < cap(lanes) {
			l.runners = lanes[:k+1][k].runners
		}
		lanes = append(lanes, l)
	}
	ps.p.lanes = lanes
	ps.walk(lanes)
	ps.allHeads()
	if rule == RuleEASYSJBF {
		for i := range lanes {
			l := &lanes[i]
			l.at, l.closed, l.barred, l.more = cursor{q: &l.part.short}, !l.blocked, !l.blocked, 0
		}
		ps.walk(lanes)
	}
	ps.p.last = append(ps.p.last[:0], ps.reserved...)
}

// walk tries the jobs of all open lanes in order.
func (ps *pass) walk(lanes []lane) {
	for {
		var best *lane
		var head *entry
		headless := 0 // lanes
		for i := range lanes {
			l := &lanes[i]
			if l.closed {
				continue
			}
			e := l.head()
			if e == nil {
				l.closed = true
				continue
			}
			if !l.headed() {
				headless++
			}
			if best == nil || higher(l.part, e, best.part, head) {
				best, head = l, e
			}
		}
		if best == nil {
			return
		}
		if headless == 0 {
			ps.allHeads()
		}
		if ps.steps++; best.headed() && !best.deep && ps.deepens(best, headless) {
			ps.dive(best)
			continue
		}
		if best.deep && ps.refused(head) { // something started since
			ps.nextRunner(best)
			continue
		}
		ps.trying = head
		if !ps.try(head.slot, head.job) {
			ps.wait(best, head)
		}
		if ps.redeemed {
			ps.redeemed = false
			ps.rewind(lanes, best.part, *head)
			continue
		}
		ps.next(best)
	}
}

// next goes past a lane's first job and those behind it that are known not to start, without weighing them against other
// lanes.
func (ps *pass) next(l *lane) {
	if l.deep {
		ps.nextRunner(l)
		return
	}
	l.at.next()
	k := 0
	for e := l.at.head(); e != nil && (l.headed() && ps.refused(e) || ps.limited(e)); e = l.at.head() {
		if k++; k > passedOver && ps.mayDeepen(l) {
			return
		}
		l.at.next()
	}
}

// rewind puts all lanes behind a job: those that were passed over may start now.
func (ps *pass) rewind(lanes []lane, part *partition, last entry) {
	for i := range lanes {
		if l := &lanes[i]; !l.barred {
			l.deep, l.closed = false, false
			l.at = l.at.q.first(func(e *entry) bool { return higher(part, &last, l.part, e) })
		}
	}
}

// refused tells whether a job is known not to start in this pass. It does not look at the job itself: that would cost
// more than all the rest.
func (ps *pass) refused(e *entry) bool {
	if len(e.slot.ways) > 0 {
		return false
	}
	end := after(ps.plan.Now, e.length)
	return ps.known(e.slot, end) && (e.slot.push == nil || ps.p.alone() && !e.array && ps.vain(e.slot, e.priority, end))
}

// wait deals with a job that cannot start now: the first of a lane get reservations, and those behind may start if they
// do not delay them.
func (ps *pass) wait(l *lane, e *entry) {
	if e.gate != nil && (e.gate.NoPlace || e.priority < e.gate.Place) { // as Slurm's NoReserve: it waits, and nobody for it
		ps.noPlace(l, e)
		return
	}
	promised := !l.blocked || l.more > 0
	switch {
	case !l.blocked:
		l.blocked = true
		if ps.plan.heads == nil {
			ps.plan.heads = map[core.PartitionName]core.JobID{}
		}
		ps.plan.heads[l.part.Name] = e.job.ID
		if ps.p.cfg.Rule != RuleFCFS {
			ps.reserve(e.slot, e.job)
		}
		l.lacking = ps.lacks(e)
		if len(ps.p.books) > 0 {
			ps.away(e.slot, e.job)
		}
	case l.more > 0:
		l.more--
		if ps.plan.expected[e.job.ID] == 0 || ps.p.cfg.Rule != RuleConservative {
			ps.reserve(e.slot, e.job)
		}
		l.lacking = l.lacking && ps.lacks(e)
	case l.lacking && !ps.lacks(e):
		l.lacking = false
		ps.hold(e.slot, e.job)
	}
	if rule := ps.p.cfg.Rule; rule == RuleFCFS || rule == RuleEASYSJBF && promised && l.more == 0 {
		l.closed, l.barred = true, true
	}
	if l.more == 0 && l.part.dead >= l.part.live { // no class in the queue can start anything any more
		l.closed = true
	}
}

// higher orders jobs of different partitions: those who may push others aside first, then by the partition's tier.
func higher(a *partition, e *entry, b *partition, f *entry) bool {
	if e.level != f.level {
		return e.level > f.level
	}
	if a.PriorityTier != b.PriorityTier && e.level != roomMade {
		return a.PriorityTier > b.PriorityTier
	}
	return e.compare(f) < 0
}

func down(state string) bool { return state != "" && state != "UP" && state != "DRAIN" }

// try starts a job, or as many tasks of an array as fit. It returns false if the queue behind must wait for it.
func (ps *pass) try(s *slot, j *core.Job) bool {
	ps.p.look(j)
	if hetOf(j) != nil {
		return ps.tryHet(s, j)
	}
	done := ps.placed[j.ID]
	if !j.IsArray() {
		if ps.plan.pushes[j.ID] > 0 { // in another of its partitions
			return false
		}
		return done > 0 || ps.throttled(j) || ps.barred(s, j) || ps.place(s, j, 0) || ps.over || ps.push(s, j, 0, 1) || ps.over
	}
	skip, left := done, j.Array.Tasks.Len()-done
	for task := range j.Array.Tasks.All() {
		if skip > 0 { // placed in another of its partitions
			skip--
			continue
		}
		if ps.throttled(j) || ps.barred(s, j) {
			return true
		}
		if !ps.place(s, j, int32(task)) && (ps.over || !ps.push(s, j, int32(task), left)) {
			return ps.over
		}
		left--
	}
	return true
}

// throttled tells whether as many tasks of a job's array run as its limit allows.
func (ps *pass) throttled(j *core.Job) bool {
	return j.Array != nil && j.Spec.Throttle > 0 && ps.p.running[j.Array.Base] >= j.Spec.Throttle
}

// throttledNow notes for whom that is so at the end of a pass.
func (ps *pass) throttledNow() {
	for id, j := range ps.p.throttles {
		if ps.throttled(j) {
			if ps.plan.throttled == nil {
				ps.plan.throttled = map[core.JobID]bool{}
			}
			ps.plan.throttled[id] = true
		}
	}
}

// throttle keeps a waiting job whose array may run so many tasks at once.
func (p *Planner) throttle(j *core.Job) {
	if p.throttles == nil {
		p.throttles = map[core.JobID]*core.Job{}
	}
	p.throttles[j.ID] = j
}

// place starts a job, or a task of an array, if that delays no reservation. What a class was refused once in a pass it is
// not looked at again for: resources only get fewer while the pass goes on, and a longer job is in the way of more.
func (ps *pass) place(s *slot, j *core.Job, task int32) bool {
	if len(s.ways) > 0 {
		return ps.placeAny(s, j, task)
	}
	p := ps.p
	p.looking = j.ID
	ps.self = j.ID
	ps.over = false
	end, least, ok := spanOf(j.Spec, s.own, ps.plan.Now)
	if !ok || ps.known(s, least) || s.lic != nil && ps.grant(s, ps.plan.Now, least) == nil {
		return false
	}
	var picks []pick
	var at look
	few := false
	if own := p.own(j, p.openTo(s)); own != nil {
		at = p.lookOf(s, end)
		at.nodes = own
		picks = ps.pick(s, &at)
	}
	if picks == nil {
		picks, at, few = ps.choose(s, end, least)
	}
	if picks == nil {
		if few {
			ps.refuseStill(s, least)
		} else {
			ps.refuse(s, least)
		}
		return false
	}
	p.buf, end = picks, at.end
	al := s.need.alloc(s.part.Name, picks, at)
	if ps.over = ps.exceeds(s, j, al); ps.over {
		if al = ps.fewer(s, j, at, len(picks)); al == nil {
			return false
		}
		ps.over = false
	}
	terms := TermsOf(j.Spec, al)
	ps.aside(s, al, end)
	ps.begin(j, task, al, terms, end)
	return true
}

// begin starts a job, or a task of an array, on what is free.
func (ps *pass) begin(j *core.Job, task int32, al *core.Alloc, terms Terms, end core.Time) {
	p := ps.p
	h := p.spare.take()
	*h = holding{alloc: al, terms: terms, job: j}
	p.stake(h, end)
	for i := range h.alloc.Nodes {
		ok := p.ledger.Take(&h.alloc.Nodes[i], h.terms)
		core.Assert(ok, "placement of job %d takes what is not free on %s", j.ID, h.alloc.Nodes[i].Node)
		p.touch(p.ledger.nodes[h.alloc.Nodes[i].Node])
	}
	ps.settle(h.alloc, end)
	p.stay(h, end)
	ps.outlasts(h, end)
	if j.Array != nil {
		h.base = j.Array.Base
		p.running[h.base]++
	}
	if len(p.parts) > 1 || p.cfg.Rule == RuleEASYSJBF {
		if ps.placed == nil {
			ps.placed = map[core.JobID]int{}
		}
		ps.placed[j.ID]++
		if !j.IsArray() && !ps.joint {
			ps.redeem(j.ID)
		}
	}
	limit := limitFor(j.Spec, ps.plan.Now, end)
	e := ending{at: end, id: j.ID, task: task + 1, h: h}
	p.ends.insert(e)
	ps.taken = append(ps.taken, e)
	ps.plan.Starts = append(ps.plan.Starts, Start{Job: j.ID, Task: task, Array: j.IsArray(), Alloc: h.alloc, Limit: limit})
}
