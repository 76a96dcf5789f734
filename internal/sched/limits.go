package sched

import (
	"maps"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Policy holds the limits of jobs. It comes whole when it changes.
type Policy struct {
	Rules  *policy.Rules
	Shares *policy.Tree // fair shares, if a QOS asks for them; never changed
}

// limitState counts usage against the limits. A job over a limit is skipped: it is not the head of its queue, gets no
// reservation and blocks nobody.
type limitState struct {
	rules      *policy.Rules
	shares     *policy.Tree
	tally      *policy.Tally
	partitions map[core.PartitionName]*partition
	timed      int // queued jobs whose limits may open with time alone
}

// setPolicy sets new limits and recounts everything, unless only the shares are new.
func (p *Planner) setPolicy(pol *Policy) {
	if p.limits != nil && p.limits.rules == pol.Rules {
		p.limits.shares = pol.Shares
		return
	}
	p.setQOSExemptions(pol.Rules)
	if p.limits == nil && !pol.Rules.Any() {
		return
	}
	p.limits = nil
	if pol.Rules.Any() {
		p.limits = &limitState{
			rules: pol.Rules, shares: pol.Shares, tally: policy.NewTally(pol.Rules), partitions: p.classes.partitions,
		}
		for _, m := range p.meters {
			p.limits.tally.SetMeter(m)
		}
	}
	for _, h := range p.jobs.Allocs {
		h.LimitUse = nil
		p.limits.start(h, h.End)
	}
	for _, c := range p.classes.byKey {
		for i := range c.partitions {
			c.partitions[i].limitRequest = nil
			for w := range c.partitions[i].options {
				c.partitions[i].options[w].limitRequest = nil
			}
		}
	}
	for _, w := range p.pending {
		if w.class != nil {
			for i := range w.class.partitions {
				if s := &w.class.partitions[i]; s.reason != nil {
					p.limits.gate(w.job.Spec, s.part)
				}
			}
		}
	}
	for _, part := range p.partitions {
		for _, s := range part.classes {
			for _, chunk := range s.members.Chunks {
				for i := range chunk {
					chunk[i].gate = p.limits.gate(chunk[i].job.Spec, part)
				}
			}
		}
		for _, q := range []*queue{&part.queue, &part.shortest, &part.advanceQueue} {
			for _, chunk := range q.Chunks {
				for i := range chunk {
					e := &chunk[i]
					if e.gate = p.limits.gate(e.job.Spec, part); q != &part.shortest {
						p.limits.countTimed(e.gate, 1)
					}
				}
			}
		}
	}
}

// setQOSExemptions sets which QOS lift bounds of partitions. Jobs of a QOS for which that changed move to another
// class.
func (p *Planner) setQOSExemptions(rules *policy.Rules) {
	next := qosExemptions{}
	for q := range rules.AllQOS() {
		if f := q.Flags & exemptingFlags; f != 0 {
			next[q.Name] = f
		}
	}
	if maps.Equal(next, p.classes.exempted) {
		return
	}
	var moved []*core.Job
	for _, w := range p.pending {
		if name := w.job.Spec.QOS; next[name] != p.classes.exempted[name] {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.removePending(p.pending[j.ID])
	}
	p.classes.setRules(func(r *classRules) { r.exempted = next })
	for _, j := range moved {
		p.setJob(j)
	}
}

// setMeter sets the recorded usage of a user in a project.
func (p *Planner) setMeter(m *policy.Meter) {
	k := meterKey{m.Project, m.User}
	if p.meters == nil {
		p.meters = map[meterKey]*policy.Meter{}
	}
	p.meters[k] = m
	if p.limits != nil {
		p.limits.tally.SetMeter(m)
	}
}

type meterKey struct {
	project core.ProjectName
	user    core.UserName
}

// gate returns the limits of a job in a partition; nil: none. l may be nil.
func (l *limitState) gate(s *core.Spec, part *partition) *policy.Gate {
	if l == nil {
		return nil
	}
	return l.tally.Gate(whoOf(s, part))
}

func whoOf(s *core.Spec, part *partition) policy.Who {
	return policy.Who{Project: s.Project, User: s.User, QOS: s.QOS, PartitionQOS: part.QOS}
}

// countTimed counts queued jobs whose limits may open with time alone.
func (l *limitState) countTimed(g *policy.Gate, k int) {
	if g != nil && g.Timed {
		l.timed += k
	}
}

// start counts an allocation against its job's limits. Jobs that have ended do not count, although their nodes may not
// be clean yet. l may be nil.
func (l *limitState) start(h *ledger.Allocation, end core.Time) {
	if l == nil || h.Job == nil || h.Job.End != 0 {
		return
	}
	part := l.partitions[h.Alloc.Partition]
	if part == nil { // it is gone
		part = &partition{}
	}
	g := l.gate(h.Job.Spec, part)
	if g == nil {
		return
	}
	if end == alloc.Never {
		end = 0
	}
	al := h.Alloc
	if h.Job.Lends() { // lent CPUs count too
		al = h.Job.Alloc
	}
	h.LimitUse = l.tally.Start(g, l.usageOf(al), end)
}

// end undoes start.
func (l *limitState) end(h *ledger.Allocation) {
	if h.LimitUse != nil {
		l.tally.End(h.LimitUse)
		h.LimitUse = nil
	}
}

func (l *limitState) usageOf(al *core.Alloc) *policy.Request {
	all, node := alloc.AllocatedTRES(al)
	return l.rules.Request(all, node, al.Partition)
}

// askOf returns what the jobs of a class ask for, in terms of limits.
func (l *limitState) requestOf(s *partitionClass, spec *core.Spec) *policy.Request {
	if s.limitRequest == nil {
		all, node := alloc.RequestedTRES(spec)
		s.limitRequest = l.rules.Request(all, node, s.part.Name)
	}
	return s.limitRequest
}

// isLimited reports whether a limit keeps a job from starting. During a pass limits only close.
func (ps *pass) isLimited(e *queueEntry) bool {
	return e.gate != nil && ps.p.limits.isBlocked(e.gate, e.class, e.job, e.minTime, ps.plan.Now, ps.p.refusals.epoch)
}

// isBlocked reports whether the limits g keep a job of the class from starting.
func (l *limitState) isBlocked(g *policy.Gate, s *partitionClass, j *core.Job, length, now core.Time, epoch int64,
) bool {
	request := s.limitRequest
	if request == nil {
		request = l.requestOf(s, j.Spec)
	}
	return l.tally.Blocks(g, request, length, now, l.shares, epoch)
}

// isLimitedNow is isLimited for a job that is being tried: another of its tasks may have started since.
func (ps *pass) isLimitedNow(s *partitionClass, j *core.Job) bool {
	l := ps.p.limits
	if l == nil {
		return false
	}
	g := ps.gateOf(s, j)
	return g != nil && l.tally.Blocks(g, l.requestOf(s, j.Spec), alloc.TimeLimit(j.Spec), ps.plan.Now, l.shares,
		ps.p.refusals.epoch)
}

// gateOf returns the limits of a job that is being tried.
func (ps *pass) gateOf(s *partitionClass, j *core.Job) *policy.Gate {
	if e := ps.trying; e != nil && e.job == j && e.class.part == s.part {
		return e.gate
	}
	return ps.p.limits.gate(j.Spec, s.part)
}

// exceedsLimit reports whether a placement exceeds a limit: whole nodes may be more than the job asked for. It records
// the reason.
func (ps *pass) exceedsLimit(s *partitionClass, j *core.Job, al *core.Alloc) bool {
	l := ps.p.limits
	if l == nil {
		return false
	}
	g := ps.gateOf(s, j)
	if g == nil {
		return false
	}
	reason, text := l.tally.Why(g, l.usageOf(al), alloc.TimeLimit(j.Spec), ps.plan.Now, l.shares)
	if reason == "" {
		return false
	}
	if ps.plan.overLimit == nil {
		ps.plan.overLimit = map[core.JobID]Reason{}
	}
	if _, ok := ps.plan.overLimit[j.ID]; !ok {
		ps.plan.overLimit[j.ID] = Reason{Code: reason, Text: text + " on the nodes it would get"}
	}
	return true
}

// finishLimits stores in the plan what Plan.Reason needs to know of limits, and the next time at which time alone may
// open one.
func (ps *pass) finishLimits() {
	l := ps.p.limits
	if l == nil {
		return
	}
	now := ps.plan.Now
	ps.plan.limits, ps.plan.whoFunc = l.tally.View(now, l.shares), ps.p.whoFunc
	if l.timed > 0 {
		if at := policy.NextMinute(now); ps.plan.WakeAt == 0 || at < ps.plan.WakeAt {
			ps.plan.WakeAt = at
		}
	}
}

// whoFuncOf returns a function that says whose limits a job has in a partition. It reads only what never changes: plans
// keep it.
func whoFuncOf(partitions map[core.PartitionName]*partition) func(*core.Spec, core.PartitionName) (policy.Who, bool) {
	return func(s *core.Spec, name core.PartitionName) (policy.Who, bool) {
		part := partitions[name]
		if part == nil {
			return policy.Who{}, false
		}
		return whoOf(s, part), true
	}
}

// limitReason returns which limit keeps a job from starting, if one does in all its partitions: that of the first.
func (p *Plan) limitReason(j *core.Job) (w Reason, blocked bool) {
	if p.limits == nil {
		return Reason{}, false
	}
	all, node := alloc.RequestedTRES(j.Spec)
	open := false
	for part := range j.Spec.Partition.All() {
		who, ok := p.whoFunc(j.Spec, part)
		if !ok || open {
			continue
		}
		reason, text, known := p.limits.Check(who, p.limits.Rules().Request(all, node, part), alloc.TimeLimit(j.Spec))
		switch {
		case !known: // the job was submitted after the plan was made
		case reason == "":
			open = true
		case !blocked:
			blocked, w = true, Reason{Code: reason, Text: text}
		}
	}
	if blocked = blocked && !open; !blocked {
		if w, blocked = p.overLimit[j.ID]; !blocked {
			return Reason{}, false
		}
	}
	for i := range p.Starts { // the view counts starts of this plan as running
		if s := &p.Starts[i]; s.Job == j.ID && !s.Array {
			return Reason{Text: "it starts now"}, true
		}
	}
	return w, true
}
