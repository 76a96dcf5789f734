package sched

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// setReservations takes in what changed of the advance reservations. Who may use what changes with them, so jobs that
// are concerned leave the queues and come back.
func (p *Planner) setReservations(c *Changes) {
	if len(c.GoneReservations) == 0 && !slices.ContainsFunc(c.Reservations,
		func(r *core.AdvanceReservation) bool { return !p.advance.Has(r) }) {
		return
	}
	magnets := slices.ContainsFunc(p.advance.List, (*advance.Reservation).IsMagnetic)
	list := p.advance.With(c.Reservations, c.GoneReservations, p.cfg.Hosts)
	magnets = magnets || slices.ContainsFunc(list, (*advance.Reservation).IsMagnetic)

	var moved []*core.Job
	for _, w := range p.pending {
		if w.class != nil && (magnets || w.class.special || w.job.Spec.More().Reservation != "") {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.removePending(p.pending[j.ID])
	}
	p.advance.Set(list)
	p.classes.setRules(func(r *classRules) { r.advances = list })
	p.nodes.ForgetFreed()
	for _, j := range moved {
		p.enqueueJob(j)
	}
}

// setAdvanceOptions computes how the jobs of a class use advance reservations and licenses.
func (cs *classSet) setAdvanceOptions(c *classInfo, spec *core.Spec) {
	c.special = true
	in, out := advance.Options(cs.advances, spec)
	x := spec.More()
	lic := storage.LicenseRequest(spec)
	if lic != nil {
		c.licenses = lic
		cs.licensed++
	}
	for i := range c.partitions {
		s := &c.partitions[i]
		s.licenses, s.mayDelayAdvance, s.namesAdvance = lic, x.Signal != nil && x.Signal.Reserve, !out
		s.inAdvanceQueue = s.namesAdvance && lic == nil && !slices.ContainsFunc(in,
			func(r *advance.Reservation) bool { return !r.ConfinesNodes() || r.IsPartial() })
		if len(in) == 0 {
			continue
		}
		base := *s
		base.isOption, base.namesAdvance, base.inAdvanceQueue = true, false, false
		for _, r := range in {
			way := base
			way.Advance = r
			s.options = append(s.options, way)
		}
		if out {
			s.options = append(s.options, base)
		}
	}
}

// viewNow is how a class looks at its nodes for a job that starts now and ends at end.
func (p *Planner) viewNow(s *partitionClass, end core.Time) ledger.View {
	return ledger.View{
		Nodes: p.nodes.OpenOf(&s.Candidates, &s.req), End: end, Scratch: &p.free, Advance: s.Advance,
		MayDelayAdvance: s.mayDelayAdvance,
	}
}

// assessOptions is assess for classes that may run in reservations.
func (cs *classSet) assessOptions(s *partitionClass) (why *Reason) {
	if len(s.options) == 0 {
		return &Reason{Code: core.ReasonReservationBad, Text: "the reservation it asks for is not there, or not for it"}
	}
	for i := range s.options {
		w := cs.assess(&s.options[i])
		if w == nil {
			return nil
		}
		if why == nil {
			why = w
		}
	}
	return why
}

// applyAdvance updates the windows of advance reservations at the start of a pass.
func (ps *pass) applyAdvance() {
	p, now := ps.p, ps.plan.Now
	if len(p.advance.List) == 0 {
		return
	}
	if p.advance.BeginPass(now, p.cfg.Zone, p.jobs) { // refused jobs may use what was set aside
		p.nodes.ForgetFreed()
	}
	for _, r := range p.advance.List {
		for _, w := range r.Windows {
			for _, edge := range [...]core.Time{w.Start, w.End} {
				if edge > now && edge < alloc.Never && r.IsUsable() {
					ps.plan.wakeAt(edge)
				}
			}
		}
		if len(r.Windows) > 0 && r.Windows[0].Start > now {
			if ps.plan.advanceBegins == nil {
				ps.plan.advanceBegins = map[string]core.Time{}
			}
			ps.plan.advanceBegins[r.Name] = r.Windows[0].Start
		}
	}
}

// advanceQueues is the walk over the jobs that run only in advance reservations of whole nodes. They come first: other
// jobs do not compete for these nodes.
type advanceQueues struct {
	ps   *pass
	made map[string]int // reservations made in each advance reservation
}

func (q *advanceQueues) walk() {
	var walks []queueWalk
	for _, part := range q.ps.p.partitions {
		if part.advanceQueue.Len > 0 {
			walks = append(walks, queueWalk{ps: q.ps, part: part, cursor: queueCursor{List: &part.advanceQueue}})
		}
	}
	for {
		var best *queueWalk
		var head *queueEntry
		for i := range walks {
			w := &walks[i]
			if e := w.cursor.Current(); e != nil && (best == nil || comesBefore(w.part, e, best.part, head)) {
				best, head = w, e
			}
		}
		if best == nil {
			break
		}
		if !q.ps.isLimited(head) && !q.ps.tryStart(head.class, head.job) {
			q.reserve(head)
		}
		best.cursor.Next()
	}
}

// reserve reserves for the first jobs that wait in an advance reservation. Those behind may start if they do not delay
// them.
func (q *advanceQueues) reserve(e *queueEntry) {
	plan, name := q.ps.plan, e.class.options[0].Advance.Name
	if plan.advanceHeads == nil {
		plan.advanceHeads, q.made = map[string]core.JobID{}, map[string]int{}
	}
	if q.made[name] == q.ps.p.cfg.reservationsPerQueue() {
		return
	}
	if q.made[name]++; q.made[name] == 1 {
		plan.advanceHeads[name] = e.job.ID
	}
	q.ps.reserve(e.class, e.job)
}

// placeInOptions tries the ways a job may run one after the other.
func (ps *pass) placeInOptions(s *partitionClass, j *core.Job, task int32) bool {
	over := false
	for i := range s.options {
		if ps.place(&s.options[i], j, task) {
			return true
		}
		over = over || ps.overLimit
	}
	ps.overLimit = over
	return false
}

// earliestOption finds the way in which a job could start first.
func (ps *pass) earliestOption(s *partitionClass, j *core.Job) (best *partitionClass) {
	first := alloc.Never
	for i := range s.options {
		req := ps.startRequest(&s.options[i], j)
		if at, ok := ps.p.finder.Start(req); ok && (best == nil || at < first) {
			best, first = &s.options[i], at
		}
	}
	return best
}

// recordExtras writes down what a job that is being placed has beside its nodes.
func (ps *pass) recordExtras(s *partitionClass, al *core.Alloc, end core.Time) {
	if s.Advance == nil && s.licenses == nil {
		return
	}
	more := al.Wide()
	if s.Advance != nil {
		more.Reservation = s.Advance.Name
	}
	if s.licenses != nil {
		more.Licenses = ps.licensesFor(s, ps.plan.Now, end)
	}
}

// bookExtras books licenses of a start and shows the job to advance reservations that have a part of its nodes.
func (ps *pass) bookExtras(al *core.Alloc, end core.Time) {
	if al.More != nil {
		ps.p.licenses.Book(al, 1)
		ps.p.licenses.AddHolder(al, end)
	}
	ps.p.advance.AddStart(al, end)
}

// explainAdvance finds out whether advance reservations alone keep a job from starting: even if nothing ran, what they
// leave could not hold it.
func (ps *pass) explainAdvance(s *partitionClass, j *core.Job) {
	if s.namesAdvance || len(s.options) > 0 {
		return
	}
	view := ledger.View{Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
	end := alloc.AddTime(ps.plan.Now, alloc.MinTime(j.Spec))
	why, left, some := core.ReasonReserved, ps.p.left[:0], false
	for _, node := range ps.p.nodes.Of(&s.Candidates) {
		barred := false
		for i := range node.AdvanceParts {
			if r := node.AdvanceParts[i].Reservation; node.AdvanceParts[i].Cpus == 0 && view.MustAvoid(r) &&
				r.Overlaps(ps.plan.Now, end, view.AllowedDelay(r)) {
				if barred, some = true, true; r.Flags&core.ReserveMaint != 0 && (j.Spec.More().NodeList == "" ||
					r.IsActive(ps.plan.Now)) {
					why = core.ReasonMaintenance
				}
			}
		}
		if !barred {
			left = append(left, node)
		}
	}
	ps.p.left = left
	if !some || s.req.Choose(ledger.View{Nodes: left, IfIdle: true}, ps.p.buffer.Choices) != nil {
		return
	}
	if why == core.ReasonReserved && j.Spec.More().NodeList == "" {
		why = core.ReasonResources // as Slurm, which names reservations only to who named nodes
	}
	if ps.plan.advanceReasons == nil {
		ps.plan.advanceReasons = map[core.JobID]core.Reason{}
	}
	ps.plan.advanceReasons[j.ID] = why
}

// advanceReason returns why a job that asks for advance reservations waits.
func (p *Plan) advanceReason(j *core.Job) Reason {
	at, estimate, _ := p.Expected(j.ID)
	w := Reason{Code: core.ReasonReservation, Expected: at, Estimate: estimate}
	for name := range strings.SplitSeq(j.Spec.More().Reservation, ",") {
		if from, blocked := p.advanceBegins[name]; blocked {
			w.Text = fmt.Sprintf("reservation %s begins at %s", name, from.Go().UTC().Format("2006-01-02T15:04:05Z"))
			return w
		}
		switch head := p.advanceHeads[name]; head {
		case 0:
			continue
		case j.ID:
			w.Text = "it is first in reservation " + name + " and waits for what that has in use, or has no time for it"
		default:
			w.Code, w.Text = core.ReasonPriority, fmt.Sprintf("job %d is ahead of it in reservation %s", head, name)
		}
		return w
	}
	if w = p.queueReason(j); w.Code == core.ReasonResources {
		w.Code, w.Text = core.ReasonReservation,
			"it is first in its partition and waits for what its reservation has in use, or has no time for it"
	}
	return w
}
