package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// setReservations takes in what changed of the advance reservations. Who may use what changes with them, so jobs that
// are concerned leave the queues and come back.
func (p *Planner) setReservations(c *Changes) {
	if len(c.GoneReservations) == 0 && !slices.ContainsFunc(c.Reservations,
		func(r *core.AdvanceReservation) bool { return !p.hasReservation(r) }) {
		return
	}
	magnets := slices.ContainsFunc(p.advances, (*advance.Reservation).IsMagnetic)
	books := slices.Clone(p.advances) // plans read the old ones
	for _, name := range c.GoneReservations {
		books = slices.DeleteFunc(books, func(r *advance.Reservation) bool { return r.Name == name })
	}
	for _, r := range c.Reservations {
		books = slices.DeleteFunc(books, func(o *advance.Reservation) bool { return o.Name == r.Name })
		books = append(books, advance.New(r, p.cfg.Hosts))
	}
	slices.SortFunc(books, func(a, b *advance.Reservation) int { return cmp.Compare(a.Name, b.Name) })
	magnets = magnets || slices.ContainsFunc(books, (*advance.Reservation).IsMagnetic)

	var moved []*core.Job
	for _, w := range p.pending {
		if w.class != nil && (magnets || w.class.special || w.job.Spec.More().Reservation != "") {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.removePending(p.pending[j.ID])
	}
	p.advances, p.advanceVersion = books, p.advanceVersion+1
	p.nodes.ForgetFreed()
	p.key = p.newKeyFunc()
	p.classReasonsStale = true
	if len(books) == 0 {
		p.placeAdvanceOnNodes()
	}
	for _, j := range moved {
		p.enqueueJob(j)
	}
}

// hasReservation reports whether an advance reservation is known with the same values.
func (p *Planner) hasReservation(r *core.AdvanceReservation) bool {
	old := advance.Find(p.advances, r.Name)
	if old == nil {
		return false
	}
	o := old.AdvanceReservation
	return o.Start == r.Start && o.End == r.End && o.Created == r.Created && o.Nodes == r.Nodes &&
		o.CoreCount == r.CoreCount &&
		o.Flags == r.Flags && o.MaxDelay == r.MaxDelay && slices.Equal(o.Users, r.Users) && slices.Equal(o.Projects,
		r.Projects) &&
		slices.Equal(o.Groups, r.Groups) && slices.Equal(o.Licenses, r.Licenses)
}

// setAdvanceOptions computes how the jobs of a class use advance reservations and licenses.
func (p *Planner) setAdvanceOptions(c *classInfo, spec *core.Spec) {
	c.special = true
	in, out := advance.Options(p.advances, spec)
	x := spec.More()
	lic := alloc.ParseLicenses(x.Licenses)
	if lic != nil {
		c.licenses = lic
		p.licenseClasses++
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
func (p *Planner) assessOptions(s *partitionClass) (why *Reason) {
	if len(s.options) == 0 {
		return &Reason{Code: core.ReasonReservationBad, Text: "the reservation it asks for is not there, or not for it"}
	}
	for i := range s.options {
		w := p.assess(&s.options[i])
		if w == nil {
			return nil
		}
		if why == nil {
			why = w
		}
	}
	return why
}

// placeAdvanceOnNodes notes on every node what reservations have of it.
func (p *Planner) placeAdvanceOnNodes() {
	if p.advanceLedgerVersion == p.ledger.Version && p.advanceAppliedVersion == p.advanceVersion {
		return
	}
	p.advanceLedgerVersion, p.advanceAppliedVersion = p.ledger.Version, p.advanceVersion
	for _, a := range p.ledger.Order {
		a.AdvanceParts, a.PartlyReserved = a.AdvanceParts[:0], false
	}
	p.partlyReserved = p.partlyReserved[:0]
	for _, r := range p.advances {
		var on []*ledger.Node
		for _, a := range p.ledger.Order {
			if r.Nodes[a.Record.Name] {
				on = append(on, a)
			}
		}
		slices.SortFunc(on, func(a, b *ledger.Node) int { return cmp.Compare(a.Record.ID, b.Record.ID) })
		for i, a := range on {
			s := ledger.AdvancePart{Reservation: r}
			if r.IsPartial() {
				if s.Cpus = r.CoresOn(i, len(on)) * max(1, a.Record.Hardware.Threads); s.Cpus == 0 {
					s.Cpus = -1
				}
				if !a.PartlyReserved {
					p.partlyReserved = append(p.partlyReserved, a)
				}
				a.PartlyReserved = true
			}
			a.AdvanceParts = append(a.AdvanceParts, s)
		}
	}
}

// applyAdvance updates the windows of advance reservations at the start of a pass, and lists the jobs on nodes of which
// they have a part.
func (ps *pass) applyAdvance() {
	p, now := ps.p, ps.plan.Now
	p.placeAdvanceOnNodes()
	mark := newFingerprint() // of all of them
	mark.add(uint64(p.advanceVersion))
	for _, r := range p.advances {
		r.UpdateWindows(now, p.cfg.Zone)
		mark.add(uint64(r.RecursFrom), uint64(len(r.Windows)))
		for _, w := range r.Windows {
			mark.add(uint64(w.Start), uint64(w.End))
			for _, edge := range [...]core.Time{w.Start, w.End} {
				if edge > now && edge < alloc.Never && r.IsUsable() {
					ps.plan.wakeAt(edge)
				}
			}
		}
	}
	for _, r := range p.advances {
		if len(r.Windows) > 0 && r.Windows[0].Start > now {
			if ps.plan.advanceBegins == nil {
				ps.plan.advanceBegins = map[string]core.Time{}
			}
			ps.plan.advanceBegins[r.Name] = r.Windows[0].Start
		}
	}
	if mark != p.advanceFingerprint { // what they set aside may be had, or the other way round
		p.advanceFingerprint = mark
		p.nodes.ForgetFreed()
	}
	if len(p.partlyReserved) == 0 {
		return
	}
	for _, a := range p.partlyReserved {
		a.AdvanceJobs = a.AdvanceJobs[:0]
	}
	for _, h := range p.jobs.Allocs {
		for i, a := range p.ledger.NodesOf(h) {
			if na := &h.Alloc.Nodes[i]; a != nil && !na.Done {
				a.AddAdvanceJob(na, h.Alloc.Inside(), max(h.End, now+alloc.OverdueDelay))
			}
		}
	}
}

// lastAdvanceBefore is the last moment before end at which a reservation begins that is in the way of a class.
func (ps *pass) lastAdvanceBefore(s *partitionClass, end core.Time) (beyond core.Time) {
	at := ledger.View{Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
	for _, r := range ps.p.advances {
		if !at.MustAvoid(r) {
			continue
		}
		slack := at.AllowedDelay(r)
		if r.IsPartial() {
			slack = 0
		}
		for _, w := range r.Windows {
			if alloc.Overlaps(w.Start+slack, end) {
				beyond = max(beyond, w.Start+slack)
			}
		}
		if r.RecursFrom != 0 && alloc.Overlaps(r.RecursFrom, end) {
			beyond = max(beyond, r.RecursFrom)
		}
	}
	return beyond
}

// walkAdvanceQueues walks the jobs that run only in advance reservations of whole nodes. They come first: other jobs do
// not compete for these nodes.
func (ps *pass) walkAdvanceQueues() {
	p := ps.p
	var lanes []queueWalk
	for _, part := range p.partitions {
		if part.advanceQueue.Len > 0 {
			lanes = append(lanes, queueWalk{part: part, cursor: queueCursor{List: &part.advanceQueue}})
		}
	}
	for {
		var best *queueWalk
		var head *queueEntry
		for i := range lanes {
			l := &lanes[i]
			if e := l.cursor.Current(); e != nil && (best == nil || comesBefore(l.part, e, best.part, head)) {
				best, head = l, e
			}
		}
		if best == nil {
			break
		}
		if !ps.isLimited(head) && !ps.tryStart(head.class, head.job) {
			ps.reserveInAdvance(head)
		}
		best.cursor.Next()
	}
}

// reserveInAdvance reserves for the first jobs that wait in an advance reservation. Those behind may start if they do
// not delay them.
func (ps *pass) reserveInAdvance(e *queueEntry) {
	if ps.plan.advanceHeads == nil {
		ps.plan.advanceHeads = map[string]core.JobID{}
	}
	name := e.class.options[0].Advance.Name
	if ps.advanceReserved == nil {
		ps.advanceReserved = map[string]int{}
	}
	if ps.advanceReserved[name] == ps.p.cfg.reservationsPerQueue() {
		return
	}
	if ps.advanceReserved[name]++; ps.advanceReserved[name] == 1 {
		ps.plan.advanceHeads[name] = e.job.ID
	}
	ps.reserve(e.class, e.job)
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
		sw := ps.newStartSearch(&s.options[i], j)
		if picks := sw.earliest(); picks != nil && (best == nil || sw.view.At < first) {
			best, first = &s.options[i], sw.view.At
		}
	}
	return best
}

// isOpen reports whether the job's advance reservation and licenses allow a start at sw.view.At.
func (sw *startSearch) isOpen() bool {
	if r := sw.class.Advance; r.IsOver() {
		return false
	} else if r.ConfinesTime() {
		if _, ok := r.WindowFor(sw.view.At, sw.view.End); !ok {
			return false
		}
	}
	return sw.class.licenses == nil || sw.pass.licensesFor(sw.class, sw.view.At, sw.view.End) != nil
}

// addAdvancePoints adds the times at which advance reservations change what the job may use.
func (sw *startSearch) addAdvancePoints(now core.Time) {
	for _, r := range sw.pass.p.advances {
		var nodes []*ledger.Node
		for _, a := range sw.view.Nodes {
			if r.Nodes[a.Record.Name] {
				nodes = append(nodes, a)
			}
		}
		stop := &ledger.Reservation{Nodes: nodes}
		for _, w := range r.Windows {
			if r == sw.class.Advance && w.Start > now {
				sw.points = append(sw.points, changePoint{w.Start, stop})
			}
			if w.End > now && w.End < alloc.Never {
				sw.points = append(sw.points, changePoint{w.End, stop})
			}
		}
	}
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
		ps.p.bookLicenses(al, 1)
		ps.addLicenseUse(al, end)
	}
	if len(ps.p.partlyReserved) == 0 {
		return
	}
	for i := range al.Nodes {
		na := &al.Nodes[i]
		ps.p.ledger.Nodes[na.Node].AddAdvanceJob(na, al.Inside(), end)
	}
}

// explainAdvance finds out whether advance reservations alone keep a job from starting: even if nothing ran, what they
// leave could not hold it.
func (ps *pass) explainAdvance(s *partitionClass, j *core.Job) {
	if s.namesAdvance || len(s.options) > 0 {
		return
	}
	at := ledger.View{Advance: s.Advance, MayDelayAdvance: s.mayDelayAdvance}
	end := alloc.AddTime(ps.plan.Now, alloc.MinTime(j.Spec))
	why, left, some := core.ReasonReserved, ps.p.unreserved[:0], false
	for _, a := range ps.p.nodes.Of(&s.Candidates) {
		barred := false
		for i := range a.AdvanceParts {
			if r := a.AdvanceParts[i].Reservation; a.AdvanceParts[i].Cpus == 0 && at.MustAvoid(r) && r.Overlaps(ps.plan.Now,
				end, at.AllowedDelay(r)) {
				if barred, some = true, true; r.Flags&core.ReserveMaint != 0 && (j.Spec.More().NodeList == "" ||
					r.IsActive(ps.plan.Now)) {
					why = core.ReasonMaintenance
				}
			}
		}
		if !barred {
			left = append(left, a)
		}
	}
	ps.p.unreserved = left
	if !some || s.req.Choose(ledger.View{Nodes: left, IfIdle: true}, ps.p.choices) != nil {
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
		if from, shut := p.advanceBegins[name]; shut {
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
