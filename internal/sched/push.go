package sched

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// pushing is what a pass does to jobs that run, so that others can start. All of it is taken back when the pass ends.
type pushing struct {
	moved  []moved
	dooms  []*account // nodes that somebody is to leave, which leaves more to others who may push
	pushed int        // jobs, or tasks of arrays, that others make room for
	hungry bool       // some job may push others aside and found nobody
}

// moved is a job as it was before the pass planned to push it aside.
type moved struct {
	h   *holding
	was holding
}

// mostPushed is for how many starts one pass pushes others aside; more come with the passes that follow.
const mostPushed = 32

// hunted is what is known from the last time jobs of a class looked for somebody to preempt.
type hunted struct {
	pass     int64     // the pass in which they found nobody,
	dooms    int       // when so many nodes were to be left
	end      core.Time // that goes for jobs that end then or later
	priority uint32    // and have this priority or less
	stuck    int64     // if not 0, nobody could be found whatever is reserved, as of the gains before this one,
	until    core.Time // until this moment; 0: for ever
}

// exemption is a moment from which on a job may be preempted.
type exemption struct {
	at core.Time
	id core.JobID
}

func (e *exemption) compare(f *exemption) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.id, f.id))
}

// rule sets who may push whom aside.
func (p *Planner) rule(t *Preemption) {
	if t != nil && t.cfg.Type == core.PreemptNobody {
		t = nil
	}
	p.push = t
	p.key = p.keyFunc()
}

// setPreemption changes who may push whom aside: every job is looked at anew.
func (p *Planner) setPreemption(t *Preemption) {
	waiting := make([]*core.Job, 0, len(p.pending))
	for _, w := range p.pending {
		waiting = append(waiting, w.job)
	}
	for _, j := range waiting {
		p.forget(p.pending[j.ID])
	}
	for _, h := range p.holding {
		p.strike(h)
	}
	p.rule(t)
	p.unsettle()
	p.stale, p.exempts = true, list[exemption, *exemption]{}
	for _, h := range p.holding {
		p.enrol(h, h.job)
	}
	for _, j := range waiting {
		p.setJob(j)
	}
}

// alone tells whether there is one queue only. In several, whom those preempt who come first in another one may leave
// room for more than themselves, so what is known of those behind does not last.
func (p *Planner) alone() bool { return len(p.parts) == 1 }

// over tells whether nothing of a job goes on: its nodes come free.
func over(j *core.Job) bool { return j.State.Final() || j.Flags.Has(core.Requeueing) }

// backOf is when a job gives its nodes back that is suspended while others use its CPUs.
func backOf(j *core.Job) core.Time {
	back := core.Time(0)
	for i := range j.Pushed.Lent {
		l := &j.Pushed.Lent[i]
		if l.Until == 0 {
			return never
		}
		back = max(back, l.Until)
	}
	n := length(j.Spec)
	if n == never {
		return never
	}
	ran := core.Time(j.Elapsed(j.Paused).Microseconds())
	return after(back, max(0, n-ran))
}

// enrol notes what a job that holds nodes is to those who may push it aside.
func (p *Planner) enrol(h *holding, j *core.Job) {
	h.id, h.owes = j.ID, p.borrowed[j.ID]
	if h.dying = over(j); j.Parked() && !h.dying {
		h.lent = j.Pushed.Lent
		p.lend(h.lent)
	}
	if p.push == nil {
		return
	}
	if h.victim = p.push.victim(j); h.victim != nil && h.victim.from > 0 {
		p.exempts.insert(exemption{h.victim.from, h.id})
	}
	for i := range h.alloc.Nodes {
		if !h.alloc.Nodes[i].Done {
			p.station(h, i)
		}
	}
}

// strike is the other way round.
func (p *Planner) strike(h *holding) {
	p.unlend(h.lent)
	h.lent = nil
	if h.victim != nil && h.victim.from > 0 {
		p.exempts.remove(exemption{h.victim.from, h.id})
	}
	h.victim = nil
	if p.push == nil {
		return
	}
	for i := range h.alloc.Nodes {
		if a := p.ledger.nodes[h.alloc.Nodes[i].Node]; a != nil {
			a.jobs = slices.DeleteFunc(a.jobs, func(st stay) bool { return st.h == h })
		}
	}
}

func (p *Planner) station(h *holding, i int) {
	if a := p.ledger.nodes[h.alloc.Nodes[i].Node]; p.push != nil && a != nil {
		a.jobs = append(a.jobs, stay{h, i})
	}
}

func (p *Planner) lend(lent []core.Lent) {
	for _, l := range lent {
		if p.borrowed == nil {
			p.borrowed = map[core.JobID][]core.Lent{}
		}
		p.owe(l.To, append(slices.Clip(p.borrowed[l.To]), l))
	}
}

// owe sets what a job uses of others.
func (p *Planner) owe(id core.JobID, list []core.Lent) {
	if p.borrowed[id] = list; len(list) == 0 {
		delete(p.borrowed, id)
		list = nil
	}
	if h := p.holding[id]; h != nil {
		h.owes = list
	}
}

func (p *Planner) unlend(lent []core.Lent) {
	for _, l := range lent {
		same := func(o core.Lent) bool { return o.Node == l.Node && o.CPUs == l.CPUs && slices.Equal(o.Cores, l.Cores) }
		list := slices.Clone(p.borrowed[l.To])
		if i := slices.IndexFunc(list, same); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		p.owe(l.To, list)
	}
}

// vain tells whether a job of a class is known to find nobody to preempt.
func (ps *pass) vain(s *slot, priority uint32, end core.Time) bool {
	p, k := ps.p, &s.hunted
	if k.pass == p.passes && k.end != 0 {
		return priority <= k.priority && end >= k.end && k.dooms == len(ps.dooms)
	}
	if k.stuck < p.gains.from || k.stuck == 0 || priority > k.priority || k.until != 0 && ps.plan.Now >= k.until || ps.stirred(s) {
		return false
	}
	k.stuck, k.pass, k.dooms, k.end = p.gains.next(), p.passes, len(ps.dooms), 0
	k.until = p.nextChance(ps.plan.Now)
	ps.hungry = true
	return true
}

// stirred tells whether anything came free since a hunt that could change its outcome: on such a node a job of the class
// would find room if everybody left whom it may preempt.
func (ps *pass) stirred(s *slot) bool {
	p, now := ps.p, ps.plan.Now
	from := 0
	if s.hunted.pass == p.passes {
		from = s.hunted.dooms
	}
	for _, a := range ps.dooms[from:] {
		if s.part.has(a) && p.hunt.potential(p, s, a, now) > 0 {
			return true
		}
	}
	for i := s.hunted.stuck; i < p.gains.next(); i++ {
		if a := p.gains.at(i); a.gained == i && s.part.has(a) && p.hunt.potential(p, s, a, now) > 0 {
			return true
		}
	}
	return false
}

// potential is the room a node would have without anybody whom jobs of a class may ever preempt: at least what a hunt
// finds.
func (hu *hunt) potential(p *Planner, s *slot, a *account, now core.Time) int32 {
	hu.p, hu.s, hu.need, hu.a, hu.now, hu.end, hu.bare = p, s, &s.need, a, now, never, true
	hu.b.copy(&a.now)
	any := core.Job{Priority: math.MaxUint32}
	for _, st := range a.jobs {
		if st.h.leaves(now) || st.h.doomed || s.push.may(&any, st.h.victim) {
			a.add(&hu.b, nil, &st.h.alloc.Nodes[st.i], st.h.terms, 1)
		}
	}
	room := hu.room(a)
	hu.a = nil
	return room
}

// push makes others leave room for a job that cannot start now, if it may and that helps: it starts on CPUs of jobs that
// are suspended for it, or it has a reservation for when the others are gone. Of an array, so many tasks are left to start.
func (ps *pass) push(s *slot, j *core.Job, task int32, left int) (started bool) {
	ps.self = j.ID
	if s.push == nil {
		return false
	}
	for i := range s.ways {
		if ps.push(&s.ways[i], j, task, left) {
			return true
		}
	}
	end, _, ok := spanOf(j.Spec, s.own, ps.plan.Now)
	if len(s.ways) > 0 || !ok || s.lic != nil && ps.grant(s, ps.plan.Now, end) == nil {
		return false
	}
	left -= ps.plan.pushes[j.ID]
	if j.Array != nil && j.Spec.Throttle > 0 {
		left = min(left, int(j.Spec.Throttle-ps.p.running[j.Array.Base])-ps.plan.pushes[j.ID])
	}
	for ; left > 0 && ps.pushed < mostPushed; left-- {
		if ps.kept(s, j) {
			continue
		}
		if !j.IsArray() && ps.elsewhere(s, j) { // also if nobody was found the last time: what is free there is another matter
			return true
		}
		if ps.vain(s, j.Priority, end) {
			return false
		}
		hu := ps.hunt(s, j, end)
		if s.push.t.suspends {
			if picks := hu.run(s); picks != nil && len(hu.sets) > 0 {
				return ps.borrow(hu, s, j, task, picks, end)
			}
		}
		// It does not start before they are gone, and must not be in the way of a reservation then.
		hu.soon, hu.end = true, after(after(ps.plan.Now+overdue, core.Time(s.push.t.longest)*1e6), length(j.Spec))
		picks := hu.run(s)
		if picks == nil {
			ps.missed(hu, s, j, end)
			return false
		}
		if ps.over = ps.p.limits != nil && ps.exceeds(s, j, hu.would(s, picks)); ps.over {
			return false
		}
		ps.waits(j)
		on, done := namesOf(picks), len(ps.plan.Preempts)
		if len(hu.sets) > 0 && !ps.inTime(s, j, hu.sets) {
			for _, st := range hu.sets {
				ps.doom(st.h, s, j)
			}
		}
		for i := done; i < len(ps.plan.Preempts); i++ {
			ps.plan.Preempts[i].Nodes = on
		}
		ps.promise(s, j)
	}
	return false
}

// waits notes that others make room for a job.
func (ps *pass) waits(j *core.Job) {
	ps.pushed++
	if ps.plan.pushes == nil {
		ps.plan.pushes = map[core.JobID]int{}
	}
	ps.plan.pushes[j.ID]++
}

// kept gives a job for which others left, or are about to, what they leave.
func (ps *pass) kept(s *slot, j *core.Job) bool {
	if j.Room == nil || ps.plan.pushes[j.ID] >= int(j.Room.Starts) {
		return false
	}
	sw := ps.sweepOf(s, j)
	picks := sw.own(j)
	if picks == nil {
		return false
	}
	ps.waits(j)
	r := sw.reservation(j.ID, picks)
	ps.lay(r)
	ps.plan.planned(r)
	return true
}

func namesOf(picks []pick) []core.NodeName {
	names := make([]core.NodeName, len(picks))
	for i := range picks {
		names[i] = picks[i].a.node.Name
	}
	slices.Sort(names)
	return names
}

// own lists the nodes that others left to a job; nil: none did.
func (p *Planner) own(j *core.Job, nodes []*account) []*account {
	if j.Room == nil {
		return nil
	}
	var out []*account
	for _, a := range nodes {
		if slices.Contains(j.Room.Nodes, a.node.Name) {
			out = append(out, a)
		}
	}
	return out
}

// inTime tells whether a job starts as soon if nobody is preempted.
func (ps *pass) inTime(s *slot, j *core.Job, sets []stay) bool {
	last := ps.plan.Now + overdue
	if j.Room != nil { // others left for it, and what started there since will be gone in time
		last = max(last, j.Room.By)
	}
	for _, st := range sets {
		last = max(last, ps.goneBy(st.h))
	}
	sw := ps.sweepOf(s, j)
	sw.last = last
	return sw.earliest() != nil
}

// goneBy is when a job is gone at the latest if it is preempted now.
func (ps *pass) goneBy(h *holding) core.Time {
	return max(after(ps.plan.Now, core.Time(h.victim.grace)*1e6), ps.plan.Now+overdue)
}

// hunt makes ready to look for somebody to suspend.
func (ps *pass) hunt(s *slot, j *core.Job, end core.Time) *hunt {
	hu := &ps.p.hunt
	hu.p, hu.s, hu.need, hu.push, hu.j, hu.now, hu.end, hu.soon, hu.bare = ps.p, s, &s.need, s.push, j, ps.plan.Now, end, false, false
	hu.want = (s.need.tasks + s.need.nodesMin - 1) / s.need.nodesMin
	hu.order = s.push.t.cfg.Order
	return hu
}

// elsewhere starts a job in another of its partitions, before anybody is preempted for it.
func (ps *pass) elsewhere(s *slot, j *core.Job) bool {
	c := ps.p.pending[j.ID].class
	if c == nil || len(c.slots) == 1 {
		return false
	}
	for i := range c.slots {
		if o := &c.slots[i]; o != s && o.why == nil && ps.place(o, j, 0) {
			return true
		}
	}
	return false
}

// missed notes that nobody was found.
func (ps *pass) missed(hu *hunt, s *slot, j *core.Job, end core.Time) {
	p := ps.p
	ps.hungry = true
	if j.Pushed != nil { // there is somebody whom only this one may not preempt
		any := *j
		any.Pushed = nil
		if hu.j = &any; hu.run(s) != nil {
			return
		}
	}
	k := &s.hunted
	*k = hunted{pass: p.passes, dooms: len(ps.dooms), end: end, priority: math.MaxUint32}
	if s.push.picky() {
		k.priority = j.Priority
	}
	if hu.bare = true; len(ps.reserved) == 0 || hu.run(s) == nil {
		k.stuck, k.end = p.gains.next(), 0
		k.until = p.nextChance(ps.plan.Now)
	}
}

// nextChance is when time alone may let a job find somebody; 0: never.
func (p *Planner) nextChance(now core.Time) core.Time {
	at := p.nextExemption(now)
	if chunk, i, _ := p.ends.find(&ending{at: now + overdue + 1}); chunk < len(p.ends.chunks) {
		if end := p.ends.chunks[chunk][i].at; end < never && (at == 0 || end-overdue < at) {
			at = end - overdue
		}
	}
	return at
}

// nextExemption is when the next job that is exempt may be preempted; 0: there is none.
func (p *Planner) nextExemption(now core.Time) core.Time {
	chunk, at, _ := p.exempts.find(&exemption{at: now + 1})
	if chunk == len(p.exempts.chunks) {
		return 0
	}
	return p.exempts.chunks[chunk][at].at
}

// doom plans to push a job aside. From here on it counts as gone when its time is up.
func (ps *pass) doom(h *holding, s *slot, j *core.Job) {
	p := ps.p
	ps.moved = append(ps.moved, moved{h, *h})
	p.ends.remove(ending{at: h.end, id: h.id})
	for _, a := range p.on(h) {
		if a != nil {
			a.quit(h)
			p.touch(a)
			ps.dooms = append(ps.dooms, a)
		}
	}
	h.end, h.doomed = min(h.end, ps.goneBy(h)), true
	p.stay(h, h.end)
	p.ends.insert(ending{at: h.end, id: h.id, h: h})
	if h.victim.how != core.PreemptSuspend { // such a one is suspended when the job can start
		ps.plan.Preempts = append(ps.plan.Preempts, Preempt{Job: h.id, For: j.ID, Partition: s.part.Name})
	}
}

// borrow starts a job now, on what is free and on CPUs of jobs that are suspended for it. It returns false if that is more
// than a limit allows.
func (ps *pass) borrow(hu *hunt, s *slot, j *core.Job, task int32, picks []pick, end core.Time) bool {
	p := ps.p
	who := make([]*holding, len(hu.sets))
	for i, st := range hu.sets {
		who[i] = st.h
	}
	free := make([]int32, len(picks)) // without them, where CPUs have no names
	for i := range picks {
		free[i] = picks[i].a.now.cpus
	}
	for _, h := range who {
		p.cpus(h, true)
	}
	al := s.need.alloc(s.part.Name, picks, hu.look())
	terms := TermsOf(j.Spec, al)
	ps.aside(s, al, end)
	if ps.over = ps.exceeds(s, j, al); ps.over {
		for _, h := range who {
			p.cpus(h, false)
		}
		return false
	}
	for _, h := range who {
		ps.moved = append(ps.moved, moved{h, *h})
		p.ends.remove(ending{at: h.end, id: h.id})
		p.unstay(h)
	}
	var asides []Aside
	var owes []core.Lent
	for _, h := range who {
		x := Aside{Job: h.id}
		booked := *h.alloc
		booked.Nodes = slices.Clone(booked.Nodes)
		for i := range booked.Nodes {
			at := slices.IndexFunc(al.Nodes, func(na core.NodeAlloc) bool { return na.Node == booked.Nodes[i].Node })
			if at < 0 || booked.Nodes[i].Done {
				continue
			}
			if l := lentOf(&booked.Nodes[i], &al.Nodes[at], &free[at]); l.CPUs > 0 {
				l.To = j.ID
				if end < never {
					l.Until = end
				}
				booked.Nodes[i].Lend(l.CPUs, l.Cores)
				x.Lent = append(x.Lent, l)
			}
		}
		core.Assert(len(x.Lent) > 0, "job %d is suspended for job %d and gives nothing", h.id, j.ID)
		ps.reclaim(h, x.Lent, end)
		h.alloc, h.terms.Whole = &booked, false
		h.lent = append(slices.Clip(h.lent), x.Lent...)
		owes = append(owes, x.Lent...)
		v := *h.victim
		v.parked, v.how = true, core.PreemptSuspend
		h.victim = &v
		if h.end < never {
			h.end = never
			if end < never {
				h.end = after(ps.was(h).end, end-ps.plan.Now)
			}
		}
		p.cpus(h, false)
		p.stay(h, h.end)
		p.ends.insert(ending{at: h.end, id: h.id, h: h})
		asides = append(asides, x)
	}
	ps.begin(j, task, al, terms, end)
	ps.plan.Starts[len(ps.plan.Starts)-1].Aside = asides
	ps.taken[len(ps.taken)-1].h.owes = owes
	return true
}

// lentOf is what a job that starts uses of another's part of a node. Where CPUs have no names it uses free ones first.
func lentOf(of, by *core.NodeAlloc, free *int32) core.Lent {
	l := core.Lent{Node: of.Node}
	if len(of.Cores) == 0 {
		l.CPUs = max(0, min(of.CPUs, by.CPUs-*free))
		*free += l.CPUs
		return l
	}
	for _, c := range by.Cores {
		if slices.Contains(of.Cores, c) {
			l.Cores = append(l.Cores, c)
		}
	}
	l.CPUs = int32(len(l.Cores))
	return l
}

// reclaim lets reservations count on what a job lends for as long as it is lent: the one who uses it is counted on its own.
func (ps *pass) reclaim(h *holding, lent []core.Lent, end core.Time) {
	for i := range lent {
		a := ps.p.ledger.nodes[lent[i].Node]
		for _, c := range a.claims {
			if hits(c.from, h.end) && hits(c.from, end) {
				c.left.cpus += lent[i].CPUs
			}
		}
	}
}

// cpus gives a job's CPUs back to the ledger, or takes them again; its memory and all else it keeps.
func (p *Planner) cpus(h *holding, back bool) {
	for i := range h.alloc.Nodes {
		na := &h.alloc.Nodes[i]
		if na.Done {
			continue
		}
		part := core.NodeAlloc{Node: na.Node, CPUs: na.CPUs, Cores: na.Cores}
		if back {
			p.ledger.Give(&part, h.terms)
		} else {
			p.ledger.Force(&part, h.terms)
		}
		if a := p.ledger.nodes[na.Node]; a != nil {
			p.touch(a)
		}
	}
}

// unstay is stay the other way round.
func (p *Planner) unstay(h *holding) {
	for _, a := range p.on(h) {
		if a != nil {
			a.quit(h)
			p.touch(a)
		}
	}
}

// back counts what a job has of a node as free when it ends. What it had borrowed goes back to the one who lent it, and
// what it has lent itself is its own again by then.
func (h *holding) back(a *account, i int, b *balance, users []uint8) {
	na := &h.alloc.Nodes[i]
	a.add(b, users, na, h.terms, 1)
	for k := range h.owes {
		if h.owes[k].Node == na.Node {
			b.cpus -= h.owes[k].CPUs
		}
	}
	for k := range h.lent {
		if h.lent[k].Node == na.Node {
			b.cpus += h.lent[k].CPUs
		}
	}
}

// was is a job as it was before the last move.
func (ps *pass) was(h *holding) *holding {
	for i := len(ps.moved) - 1; ; i-- {
		if ps.moved[i].h == h {
			return &ps.moved[i].was
		}
	}
}

// unpush takes back what the pass did to jobs that run, and asks to be woken when an exemption ends that matters.
func (ps *pass) unpush() {
	p := ps.p
	for i := range ps.plan.Preempts {
		pr := &ps.plan.Preempts[i]
		pr.Room = int32(ps.plan.pushes[pr.For])
	}
	for i := len(ps.moved) - 1; i >= 0; i-- {
		m := &ps.moved[i]
		p.ends.remove(ending{at: m.h.end, id: m.h.id})
		p.unstay(m.h)
		if m.h.alloc != m.was.alloc {
			p.cpus(m.h, true)
			p.cpus(&m.was, false)
		}
		*m.h = m.was
		p.stay(m.h, m.h.end)
		p.ends.insert(ending{at: m.h.end, id: m.h.id, h: m.h})
	}
	if ps.hungry {
		if at := p.nextExemption(ps.plan.Now); at != 0 && (ps.plan.WakeAt == 0 || at < ps.plan.WakeAt) {
			ps.plan.WakeAt = at
		}
	}
}
