package sched

import (
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
	"bireme.dev/bireme/internal/sched/victim"
)

// preemptions is what a pass does to running jobs so that others can start. It is taken back when the pass ends.
type preemptions struct {
	ps       *pass
	changed  []changedAlloc
	leaving  []*ledger.Node // nodes of victims; more may be free there for other preemptors
	starts   int            // jobs or tasks for which jobs are preempted
	unserved bool           // a job that may preempt found no victims
}

// changedAlloc is an allocation as it was before the pass planned to preempt its job.
type changedAlloc struct {
	alloc  *ledger.Allocation
	before ledger.Allocation
}

// maxPreemptStarts is the maximum number of starts for which one pass preempts jobs. Later passes plan more.
const maxPreemptStarts = 32

// victimMemo remembers that jobs of a class found no victims.
type victimMemo struct {
	epoch    int64     // refusalEpoch of the search
	leaving  int       // len(preemptions.leaving) at that time
	end      core.Time // it holds for jobs that end then or later
	priority uint32    // and have at most this priority
	freedSeq int64     // if not 0, it holds without reservations too, for cluster.Nodes.Freed up to here
	until    core.Time // and until this time; 0: no end
}

func (p *Planner) usePreemption(t *preempt.Rules) {
	if t != nil && t.Cfg.Type == core.PreemptNobody {
		t = nil
	}
	p.classes.setRules(func(r *classRules) { r.preemption = t })
	p.jobs.SetPreemption(t)
	p.refusals.preempting = t != nil
}

// setPreemption changes the preemption rules. Every job is added again.
func (p *Planner) setPreemption(t *preempt.Rules) {
	waiting := make([]*core.Job, 0, len(p.pending))
	for _, w := range p.pending {
		waiting = append(waiting, w.job)
	}
	for _, j := range waiting {
		p.removePending(p.pending[j.ID])
	}
	p.usePreemption(t)
	p.nodes.ForgetFreed()
	for _, j := range waiting {
		p.setJob(j)
	}
}

// hasOneQueue reports whether there is only one queue. With several, preemption for a job of another queue may free
// more than that job needs, so a memo does not hold for the jobs behind it.
func (p *Planner) hasOneQueue() bool { return len(p.partitions) == 1 }

// hasNoVictims reports whether it is known that a job of the class finds no victims.
func (pr *preemptions) hasNoVictims(s *partitionClass, priority uint32, end core.Time) bool {
	p, k := pr.ps.p, &s.victimMemo
	if k.epoch == p.refusals.epoch && k.end != 0 {
		return priority <= k.priority && end >= k.end && k.leaving == len(pr.leaving)
	}
	if k.freedSeq < p.nodes.Freed.First || k.freedSeq == 0 || priority > k.priority ||
		k.until != 0 && pr.ps.plan.Now >= k.until || pr.victimsMayExist(s) {
		return false
	}
	k.freedSeq, k.epoch, k.leaving, k.end = p.nodes.Freed.Next(), p.refusals.epoch, len(pr.leaving), 0
	k.until = p.jobs.NextVictimTime(pr.ps.plan.Now)
	pr.unserved = true
	return true
}

// victimsMayExist reports whether something came free since the last search that could change its result: a node has
// room for the class if all possible victims there were gone.
func (pr *preemptions) victimsMayExist(s *partitionClass) bool {
	p, now := pr.ps.p, pr.ps.plan.Now
	from := 0
	if s.victimMemo.epoch == p.refusals.epoch {
		from = s.victimMemo.leaving
	}
	req := p.victimRequest(s, nil)
	for _, node := range pr.leaving[from:] {
		if s.Set.Has(node) && p.victims.Potential(&req, node, now) > 0 {
			return true
		}
	}
	for i := s.victimMemo.freedSeq; i < p.nodes.Freed.Next(); i++ {
		if node := p.nodes.Freed.At(i); node.FreedSeq == i && s.Set.Has(node) && p.victims.Potential(&req, node, now) > 0 {
			return true
		}
	}
	return false
}

// startFor preempts jobs for one that cannot start now, if it may and that helps. The job starts on CPUs of jobs that
// are suspended for it, or gets a reservation for when its victims are gone. left is the number of array tasks still to
// start.
func (pr *preemptions) startFor(s *partitionClass, j *core.Job, task int32, left int) (started bool) {
	pr.ps.p.licenses.Placing = j.ID
	if s.preemptor == nil {
		return false
	}
	for i := range s.options {
		if pr.startFor(&s.options[i], j, task, left) {
			return true
		}
	}
	end, _, ok := advance.EndTimes(j.Spec, s.Advance, pr.ps.plan.Now)
	if len(s.options) > 0 || !ok || s.licenses != nil && pr.ps.licensesFor(s, pr.ps.plan.Now, end) == nil {
		return false
	}
	left -= pr.ps.plan.preemptStarts[j.ID]
	if j.Array != nil && j.Spec.Throttle > 0 {
		left = min(left, int(j.Spec.Throttle-pr.ps.p.jobs.ArrayTasks[j.Array.Base])-pr.ps.plan.preemptStarts[j.ID])
	}
	for ; left > 0 && pr.starts < maxPreemptStarts; left-- {
		if pr.reserveVacated(s, j) {
			continue
		}
		// try this even if the memo says no victims: it needs none
		if !j.IsArray() && pr.startElsewhere(s, j) {
			return true
		}
		if pr.hasNoVictims(s, j.Priority, end) {
			return false
		}
		search := pr.ps.p.victims
		search.Prepare(pr.ps.p.victimRequest(s, j), pr.ps.plan.Now, end)
		if s.preemptor.Rules.Suspends {
			if picks := search.Run(); picks != nil && len(search.Victims) > 0 {
				return pr.startOnSuspended(search, s, j, task, picks, end)
			}
		}
		// It starts when they are gone, and must not delay a reservation then.
		search.CountLeaving, search.End = true, alloc.AddTime(alloc.AddTime(pr.ps.plan.Now+alloc.OverdueDelay,
			core.Time(s.preemptor.Rules.LongestGrace)*1e6), alloc.TimeLimit(j.Spec))
		picks := search.Run()
		if picks == nil {
			pr.recordNoVictims(search, s, j, end)
			return false
		}
		if pr.ps.overLimit = pr.ps.p.limits != nil && pr.ps.exceedsLimit(s, j, search.AllocFor(picks)); pr.ps.overLimit {
			return false
		}
		pr.countPreemptStart(j)
		on, done := namesOf(picks), len(pr.ps.plan.Preempts)
		if len(search.Victims) > 0 && !pr.startsWithoutPreempting(s, j, search.Victims) {
			for _, st := range search.Victims {
				pr.preempt(st.Alloc, s, j)
			}
		}
		for i := done; i < len(pr.ps.plan.Preempts); i++ {
			pr.ps.plan.Preempts[i].Nodes = on
		}
		pr.ps.reserveStart(s, j)
	}
	return false
}

func (pr *preemptions) countPreemptStart(j *core.Job) {
	pr.starts++
	if pr.ps.plan.preemptStarts == nil {
		pr.ps.plan.preemptStarts = map[core.JobID]int{}
	}
	pr.ps.plan.preemptStarts[j.ID]++
}

// reserveVacated reserves for a job the nodes that its victims of an earlier pass leave.
func (pr *preemptions) reserveVacated(s *partitionClass, j *core.Job) bool {
	if j.Room == nil || pr.ps.plan.preemptStarts[j.ID] >= int(j.Room.Starts) {
		return false
	}
	req := pr.ps.startRequest(s, j)
	r := pr.ps.p.finder.FindVacated(req)
	if r == nil {
		return false
	}
	pr.countPreemptStart(j)
	pr.ps.p.reserved.Add(r, pr.ps.p.finder.Later())
	pr.ps.plan.addReservation(r)
	return true
}

func namesOf(picks []fit.Choice) []core.NodeName {
	names := make([]core.NodeName, len(picks))
	for i := range picks {
		names[i] = picks[i].Node.Record.Name
	}
	slices.Sort(names)
	return names
}

// startsWithoutPreempting reports whether a job starts as soon without preempting the victims.
func (pr *preemptions) startsWithoutPreempting(s *partitionClass, j *core.Job, sets []ledger.JobOnNode) bool {
	last := pr.ps.plan.Now + alloc.OverdueDelay
	if j.Room != nil { // jobs were preempted for it; what started there since ends in time
		last = max(last, j.Room.By)
	}
	for _, st := range sets {
		last = max(last, pr.goneBy(st.Alloc))
	}
	req := pr.ps.startRequest(s, j)
	req.Last = last
	_, ok := pr.ps.p.finder.Start(req)
	return ok
}

// goneBy returns when a job is gone at the latest if it is preempted now: after its grace time.
func (pr *preemptions) goneBy(h *ledger.Allocation) core.Time {
	return max(alloc.AddTime(pr.ps.plan.Now, core.Time(h.Victim.Grace)*1e6), pr.ps.plan.Now+alloc.OverdueDelay)
}

// victimRequest is a job of a class as a search for victims needs it.
func (p *Planner) victimRequest(s *partitionClass, j *core.Job) victim.Request {
	return victim.Request{
		Job: j, Fit: &s.req, Preemptor: s.preemptor, Partition: s.part.Name, Nodes: p.nodes.Of(&s.Candidates),
		Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance,
	}
}

// startElsewhere starts a job in another of its partitions, before jobs are preempted for it.
func (pr *preemptions) startElsewhere(s *partitionClass, j *core.Job) bool {
	c := pr.ps.p.pending[j.ID].class
	if c == nil || len(c.partitions) == 1 {
		return false
	}
	for i := range c.partitions {
		if o := &c.partitions[i]; o != s && o.reason == nil && pr.ps.place(o, j, 0) {
			return true
		}
	}
	return false
}

// recordNoVictims remembers that no victims were found.
func (pr *preemptions) recordNoVictims(search *victim.Search, s *partitionClass, j *core.Job, end core.Time) {
	p := pr.ps.p
	pr.unserved = true
	if j.Pushed != nil { // it was preempted itself, so it may not preempt some jobs that others of its class may
		any := *j
		any.Pushed = nil
		if search.Job = &any; search.Run() != nil {
			return
		}
	}
	k := &s.victimMemo
	*k = victimMemo{epoch: p.refusals.epoch, leaving: len(pr.leaving), end: end, priority: math.MaxUint32}
	if s.preemptor.DependsOnPriority() {
		k.priority = j.Priority
	}
	if search.IgnoreReservations = true; len(pr.ps.p.reserved.List) == 0 || search.Run() == nil {
		k.freedSeq, k.end = p.nodes.Freed.Next(), 0
		k.until = p.jobs.NextVictimTime(pr.ps.plan.Now)
	}
}

// preempt plans to preempt a job. For the rest of the pass it ends when its grace time is over.
func (pr *preemptions) preempt(h *ledger.Allocation, s *partitionClass, j *core.Job) {
	p := pr.ps.p
	pr.changed = append(pr.changed, changedAlloc{h, *h})
	p.jobs.Ends.Remove(ledger.AllocEnd{At: h.End, Id: h.Id})
	for _, node := range p.ledger.NodesOf(h) {
		if node != nil {
			node.RemoveEnd(h)
			p.nodes.NoteChanged(node)
			pr.leaving = append(pr.leaving, node)
		}
	}
	h.End, h.Preempted = min(h.End, pr.goneBy(h)), true
	p.jobs.AddEnds(h, h.End)
	p.jobs.Ends.Insert(ledger.AllocEnd{At: h.End, Id: h.Id, Alloc: h})
	if h.Victim.Mode != core.PreemptSuspend { // jobs to suspend are suspended when the other starts
		pr.ps.plan.Preempts = append(pr.ps.plan.Preempts, Preempt{Job: h.Id, For: j.ID, Partition: s.part.Name})
	}
}

// startOnSuspended starts a job now on free resources and on CPUs of jobs that are suspended for it. It returns false
// if that exceeds a limit.
func (pr *preemptions) startOnSuspended(search *victim.Search, s *partitionClass, j *core.Job, task int32,
	picks []fit.Choice, end core.Time,
) bool {
	p := pr.ps.p
	who := make([]*ledger.Allocation, len(search.Victims))
	for i, st := range search.Victims {
		who[i] = st.Alloc
	}
	free := make([]int32, len(picks)) // free CPUs without the victims', where CPUs are not numbered
	for i := range picks {
		free[i] = picks[i].Node.Free.Cpus
	}
	for _, h := range who {
		p.jobs.MoveCPUs(h, true)
	}
	al := s.req.Alloc(s.part.Name, picks, search.View())
	terms := alloc.TermsOf(j.Spec, al)
	pr.ps.recordExtras(s, al, end)
	if pr.ps.overLimit = pr.ps.exceedsLimit(s, j, al); pr.ps.overLimit {
		for _, h := range who {
			p.jobs.MoveCPUs(h, false)
		}
		return false
	}
	for _, h := range who {
		pr.changed = append(pr.changed, changedAlloc{h, *h})
		p.jobs.Ends.Remove(ledger.AllocEnd{At: h.End, Id: h.Id})
		p.jobs.RemoveEnds(h)
	}
	var asides []Suspend
	var owes []core.Lent
	for _, h := range who {
		x := Suspend{Job: h.Id}
		booked := *h.Alloc
		booked.Nodes = slices.Clone(booked.Nodes)
		for i := range booked.Nodes {
			at := slices.IndexFunc(al.Nodes, func(na core.NodeAlloc) bool { return na.Node == booked.Nodes[i].Node })
			if at < 0 || booked.Nodes[i].Done {
				continue
			}
			if l := lentOf(&booked.Nodes[i], &al.Nodes[at], &free[at]); l.CPUs > 0 {
				l.To = j.ID
				if end < alloc.Never {
					l.Until = end
				}
				booked.Nodes[i].Lend(l.CPUs, l.Cores)
				x.Lent = append(x.Lent, l)
			}
		}
		core.Assert(len(x.Lent) > 0, "job %d is suspended for job %d and gives nothing", h.Id, j.ID)
		p.reserved.ReturnLent(h, x.Lent, end)
		h.Alloc, h.Terms.Exclusive = &booked, false
		h.Lent = append(slices.Clip(h.Lent), x.Lent...)
		owes = append(owes, x.Lent...)
		v := *h.Victim
		v.Suspended, v.Mode = true, core.PreemptSuspend
		h.Victim = &v
		if h.End < alloc.Never {
			h.End = alloc.Never
			if end < alloc.Never {
				h.End = alloc.AddTime(pr.before(h).End, end-pr.ps.plan.Now)
			}
		}
		p.jobs.MoveCPUs(h, false)
		p.jobs.AddEnds(h, h.End)
		p.jobs.Ends.Insert(ledger.AllocEnd{At: h.End, Id: h.Id, Alloc: h})
		asides = append(asides, x)
	}
	pr.ps.start(j, task, al, terms, end)
	pr.ps.plan.Starts[len(pr.ps.plan.Starts)-1].Suspends = asides
	pr.ps.started[len(pr.ps.started)-1].Alloc.Borrowed = owes
	return true
}

// lentOf returns the CPUs of a victim's node that the starting job uses. Where CPUs are not numbered it uses free ones
// first.
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

// before returns an allocation as it was before the last change in this pass.
func (pr *preemptions) before(h *ledger.Allocation) *ledger.Allocation {
	for i := len(pr.changed) - 1; ; i-- {
		if pr.changed[i].alloc == h {
			return &pr.changed[i].before
		}
	}
}

// undo restores the running jobs. If a job found no victims, the plan wakes when the next exemption ends.
func (pr *preemptions) undo() {
	p := pr.ps.p
	for i := range pr.ps.plan.Preempts {
		v := &pr.ps.plan.Preempts[i]
		v.Starts = int32(pr.ps.plan.preemptStarts[v.For])
	}
	for i := len(pr.changed) - 1; i >= 0; i-- {
		m := &pr.changed[i]
		p.jobs.Ends.Remove(ledger.AllocEnd{At: m.alloc.End, Id: m.alloc.Id})
		p.jobs.RemoveEnds(m.alloc)
		if m.alloc.Alloc != m.before.Alloc {
			p.jobs.MoveCPUs(m.alloc, true)
			p.jobs.MoveCPUs(&m.before, false)
		}
		*m.alloc = m.before
		p.jobs.AddEnds(m.alloc, m.alloc.End)
		p.jobs.Ends.Insert(ledger.AllocEnd{At: m.alloc.End, Id: m.alloc.Id, Alloc: m.alloc})
	}
	if pr.unserved {
		if at := p.jobs.NextExemption(pr.ps.plan.Now); at != 0 && (pr.ps.plan.WakeAt == 0 || at < pr.ps.plan.WakeAt) {
			pr.ps.plan.WakeAt = at
		}
	}
}
