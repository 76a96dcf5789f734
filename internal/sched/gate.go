package sched

import (
	"maps"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// Policy is the limits that jobs are under. It comes whole when it changes.
type Policy struct {
	Rules  *policy.Rules
	Shares *policy.Tree // fair shares, if a QOS asks for one; not changed any more
}

// limits is what the planner counts for them. A job that a limit keeps from starting is passed over: it is not the head
// of its queue, gets no reservation and blocks nobody.
type limits struct {
	rules  *policy.Rules
	shares *policy.Tree
	tally  *policy.Tally
	timed  int // jobs in queues whose gate time alone may open
}

// setPolicy takes in new limits, and counts everything anew if they are not just new shares.
func (p *Planner) setPolicy(pol *Policy) {
	if p.limits != nil && p.limits.rules == pol.Rules {
		p.limits.shares = pol.Shares
		return
	}
	p.setExempt(pol.Rules)
	if p.limits == nil && !pol.Rules.Any() {
		return
	}
	p.limits = nil
	if pol.Rules.Any() {
		p.limits = &limits{rules: pol.Rules, shares: pol.Shares, tally: policy.NewTally(pol.Rules)}
		for _, m := range p.meters {
			p.limits.tally.SetMeter(m)
		}
	}
	for _, h := range p.holding {
		h.stake = nil
		p.stake(h, h.end)
	}
	for _, c := range p.classes {
		for i := range c.slots {
			c.slots[i].ask = nil
			for w := range c.slots[i].ways {
				c.slots[i].ways[w].ask = nil
			}
		}
	}
	for _, w := range p.pending {
		if w.class != nil {
			for i := range w.class.slots {
				if s := &w.class.slots[i]; s.why != nil {
					p.gate(w.job.Spec, s.part)
				}
			}
		}
	}
	for _, part := range p.parts {
		for _, s := range part.slots {
			for _, chunk := range s.members.chunks {
				for i := range chunk {
					chunk[i].gate = p.gate(chunk[i].job.Spec, part)
				}
			}
		}
		for _, q := range []*queue{&part.queue, &part.short, &part.inside} {
			for _, chunk := range q.chunks {
				for i := range chunk {
					e := &chunk[i]
					if e.gate = p.gate(e.job.Spec, part); q != &part.short {
						p.await(e.gate, 1)
					}
				}
			}
		}
	}
}

// setExempt takes in which QOS lift bounds of partitions. The jobs of those for which that changed are of another class.
func (p *Planner) setExempt(rules *policy.Rules) {
	next := exempts{}
	for q := range rules.AllQOS() {
		if f := q.Flags & exempting; f != 0 {
			next[q.Name] = f
		}
	}
	if maps.Equal(next, p.exempt) {
		return
	}
	var moved []*core.Job
	for _, w := range p.pending {
		if name := w.job.Spec.QOS; next[name] != p.exempt[name] {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.forget(p.pending[j.ID])
	}
	p.exempt = next
	p.key = p.keyFunc()
	p.stale = true
	for _, j := range moved {
		p.setJob(j)
	}
}

// setMeter takes in what somebody used.
func (p *Planner) setMeter(m *policy.Meter) {
	k := meterKey{m.Account, m.User}
	if p.meters == nil {
		p.meters = map[meterKey]*policy.Meter{}
	}
	p.meters[k] = m
	if p.limits != nil {
		p.limits.tally.SetMeter(m)
	}
}

type meterKey struct {
	account core.ProjectName
	user    core.UserName
}

// gate finds the limits that a job is under in a partition; nil: none.
func (p *Planner) gate(s *core.Spec, part *partition) *policy.Gate {
	if p.limits == nil {
		return nil
	}
	return p.limits.tally.Gate(whoOf(s, part))
}

func whoOf(s *core.Spec, part *partition) policy.Who {
	return policy.Who{Account: s.Project, User: s.User, QOS: s.QOS, Part: part.QOS}
}

// await counts the jobs in queues that time alone may let through.
func (p *Planner) await(g *policy.Gate, k int) {
	if g != nil && g.Timed {
		p.limits.timed += k
	}
}

// stake counts what a job holds against its limits. Jobs that are over count no more, though their nodes are not clean.
func (p *Planner) stake(h *holding, end core.Time) {
	if p.limits == nil || h.job == nil || h.job.End != 0 {
		return
	}
	part := p.byName[h.alloc.Partition]
	if part == nil {
		part = &partition{}
	}
	g := p.gate(h.job.Spec, part)
	if g == nil {
		return
	}
	if end == never {
		end = 0
	}
	al := h.alloc
	if h.job.Lends() { // what it has lent counts too
		al = h.job.Alloc
	}
	h.stake = p.limits.tally.Start(g, p.limits.held(al), end)
}

// held is what an allocation counts for.
func (l *limits) held(al *core.Alloc) *policy.Ask {
	all, node := Allocated(al)
	return l.rules.Ask(all, node, al.Partition)
}

// ask is what the jobs of a class ask for.
func (l *limits) ask(s *slot, spec *core.Spec) *policy.Ask {
	if s.ask == nil {
		all, node := Asked(spec)
		s.ask = l.rules.Ask(all, node, s.part.Name)
	}
	return s.ask
}

// limited tells whether a limit keeps a job from starting. While a pass goes on gates only close.
func (ps *pass) limited(e *entry) bool {
	return e.gate != nil && ps.p.shut(e.gate, e.slot, e.job, e.length, ps.plan.Now)
}

// shut tells whether a gate keeps a job of a class from starting.
func (p *Planner) shut(g *policy.Gate, s *slot, j *core.Job, length, now core.Time) bool {
	l, ask := p.limits, s.ask
	if ask == nil {
		ask = l.ask(s, j.Spec)
	}
	return l.tally.Shut(g, ask, length, now, l.shares, p.passes)
}

// barred is limited for a job that is being tried: another of its tasks may have started since.
func (ps *pass) barred(s *slot, j *core.Job) bool {
	l := ps.p.limits
	if l == nil {
		return false
	}
	g := ps.gate(s, j)
	return g != nil && l.tally.Shut(g, l.ask(s, j.Spec), length(j.Spec), ps.plan.Now, l.shares, ps.p.passes)
}

// gate finds the limits of a job that is being tried.
func (ps *pass) gate(s *slot, j *core.Job) *policy.Gate {
	if e := ps.trying; e != nil && e.job == j && e.slot.part == s.part {
		return e.gate
	}
	return ps.p.gate(j.Spec, s.part)
}

// exceeds is barred for what a job would really get: whole nodes may be more than it asked for. It notes the reason.
func (ps *pass) exceeds(s *slot, j *core.Job, al *core.Alloc) bool {
	l := ps.p.limits
	if l == nil {
		return false
	}
	g := ps.gate(s, j)
	if g == nil {
		return false
	}
	reason, text := l.tally.Why(g, l.held(al), length(j.Spec), ps.plan.Now, l.shares)
	if reason == "" {
		return false
	}
	if ps.plan.over == nil {
		ps.plan.over = map[core.JobID]Why{}
	}
	if _, ok := ps.plan.over[j.ID]; !ok {
		ps.plan.over[j.ID] = Why{Reason: reason, Text: text + " on the nodes it would get"}
	}
	return true
}

// noPlace deals with a job that waits without a place in the plan. If nobody else is first in its queue, it is.
func (ps *pass) noPlace(l *lane, e *entry) {
	if ps.plan.heads == nil {
		ps.plan.heads = map[core.PartitionName]core.JobID{}
	}
	if _, ok := ps.plan.heads[l.part.Name]; !ok {
		ps.plan.heads[l.part.Name] = e.job.ID
	}
	if l.blocked && l.more == 0 && l.part.dead >= l.part.live {
		l.closed = true
	}
}

// limitsNow closes a pass: what its plan can tell of limits, and when time alone may change that.
func (ps *pass) limitsNow() {
	l := ps.p.limits
	if l == nil {
		return
	}
	now := ps.plan.Now
	ps.plan.limits, ps.plan.whoIn = l.tally.View(now, l.shares), ps.p.who
	if l.timed > 0 {
		if at := policy.NextMinute(now); ps.plan.WakeAt == 0 || at < ps.plan.WakeAt {
			ps.plan.WakeAt = at
		}
	}
}

// whoIn tells which limits a job is under in a partition. It reads only what never changes of the planner.
func (p *Planner) whoIn(s *core.Spec, name core.PartitionName) (policy.Who, bool) {
	part := p.byName[name]
	if part == nil {
		return policy.Who{}, false
	}
	return whoOf(s, part), true
}

// limited tells which limit keeps a job from starting, if one does in all its partitions: the first one's.
func (p *Plan) limited(j *core.Job) (w Why, shut bool) {
	if p.limits == nil {
		return Why{}, false
	}
	all, node := Asked(j.Spec)
	open := false
	eachPartition(j.Spec.Partition, func(part core.PartitionName) {
		who, ok := p.whoIn(j.Spec, part)
		if !ok || open {
			return
		}
		reason, text, known := p.limits.Check(who, p.limits.Rules().Ask(all, node, part), length(j.Spec))
		switch {
		case !known: // nobody has asked: it came after the plan
		case reason == "":
			open = true
		case !shut:
			shut, w = true, Why{Reason: reason, Text: text}
		}
	})
	if shut = shut && !open; !shut {
		if w, shut = p.over[j.ID]; !shut {
			return Why{}, false
		}
	}
	for i := range p.Starts { // it counts among those that run already
		if s := &p.Starts[i]; s.Job == j.ID && !s.Array {
			return Why{Text: "it starts now"}, true
		}
	}
	return w, true
}
