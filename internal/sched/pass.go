package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/reserve"
)

// Pass plans at time now. The planner is unchanged afterwards: what the pass books and reserves is taken back at its
// end.
func (p *Planner) Pass(now core.Time) *Plan {
	plan := &Plan{
		Now: now, keyFunc: p.classes.key, heads: p.sparePromises.heads, expected: p.sparePromises.expected,
		reservedOn: p.sparePromises.reservedOn,
	}
	p.enqueueEligible(now, plan)
	p.expireSwitchWaits(now, plan)
	ps := p.beginPass(plan)
	ps.applyAdvance()
	ps.walkQueues()
	p.currentJob = 0
	ps.finishLimits()
	ps.explainLicenses()
	ps.explainThrottled()
	ps.provision()
	ps.undo()
	p.sharePromises(plan)
	p.currentJob = 0
	plan.classReasons, plan.hetReasons = p.classes.currentReasons(), p.hets.reasons()
	return plan
}

// beginPass numbers the nodes and resets what is kept for the length of a pass.
func (p *Planner) beginPass(plan *Plan) *pass {
	p.numberNodes()
	p.nodes.BeginPass()
	ps := &p.pass
	*ps = pass{p: p, plan: plan, started: ps.started[:0], preemptions: preemptions{ps: ps}}
	p.refusals.beginPass(&ps.started)
	p.licenses.BeginPass(plan.Now, &ps.started)
	p.finder.BeginPass(plan.Now)
	return ps
}

// undo leaves the planner as the pass found it: without its reservations, starts and preemptions.
func (ps *pass) undo() {
	p := ps.p
	p.reserved.Clear()
	for i := len(ps.started) - 1; i >= 0; i-- {
		p.jobs.Ends.Remove(ps.started[i])
		p.release(ps.started[i].Alloc)
	}
	ps.preemptions.undo()
	for i := range ps.started {
		p.allocationPool.put(ps.started[i].Alloc)
	}
	clear(ps.started)
}

// enqueueEligible moves jobs whose begin time has passed into their partition queues and records the next such time in
// plan.WakeAt.
func (p *Planner) enqueueEligible(now core.Time, plan *Plan) {
	for {
		c := queueCursor{List: &p.ineligible}
		e := c.Current()
		if e == nil {
			return
		}
		if e.since > now {
			plan.WakeAt = e.since
			return
		}
		j := e.job
		p.ineligible.Remove(*e)
		p.setCurrentJob(j)
		p.enqueueJob(j)
	}
}

// pass is the state of one pass.
type pass struct {
	p                  *Planner
	plan               *Plan
	started            []ledger.AllocEnd
	reservationDropped bool // retry jobs that were refused because of that reservation
	steps              int
	overLimit          bool // the last placement exceeded a limit
	trying             *queueEntry
	// Started tasks by job (1 for a job without tasks), for jobs that are in several queues.
	startedTasks map[core.JobID]int

	preemptions preemptions

	placingHet bool      // components of a het job are being placed; their reservations stay until all have a placement
	notBefore  core.Time // earliest begin of a reservation; 0: no bound
}

// walkQueues starts what can start, in the order of the rule. Under core.RuleEASYSJBF a second walk goes over the jobs
// behind the heads, shortest first.
func (ps *pass) walkQueues() {
	rule := ps.p.cfg.Rule
	if ps.p.usesTimetable() {
		ps.runTimetable(ps.p.partitions[0])
		return
	}
	if ps.p.advanceEntries > 0 {
		(&advanceQueues{ps: ps}).walk()
	}
	walks := ps.p.walks[:0]
	for _, part := range ps.p.partitions {
		part.deadClasses = 0
		w := queueWalk{
			ps: ps, part: part, cursor: queueCursor{List: &part.queue},
			reservationsLeft: ps.p.cfg.reservationsPerQueue() - 1,
		}
		if k := len(walks); k < cap(walks) {
			w.heads = walks[:k+1][k].heads
		}
		walks = append(walks, w)
	}
	ps.p.walks = walks
	ps.walkInOrder(walks)
	ps.p.reserved.End()
	if rule == core.RuleEASYSJBF {
		for i := range walks {
			w := &walks[i]
			w.cursor, w.closed, w.ended, w.reservationsLeft = queueCursor{List: &w.part.shortest}, !w.headFound, !w.headFound, 0
		}
		ps.walkInOrder(walks)
	}
	ps.p.reserved.Keep()
}

// walkInOrder tries the first job of all open walks, by comesBefore, until every walk is closed.
func (ps *pass) walkInOrder(walks []queueWalk) {
	for {
		var best *queueWalk
		var head *queueEntry
		headless := 0 // walks that have reservations to make
		for i := range walks {
			w := &walks[i]
			if w.closed {
				continue
			}
			e := w.head()
			if e == nil {
				w.closed = true
				continue
			}
			if !w.reservationsMade() {
				headless++
			}
			if best == nil || comesBefore(w.part, e, best.part, head) {
				best, head = w, e
			}
		}
		if best == nil {
			return
		}
		if headless == 0 {
			ps.p.reserved.End()
		}
		if ps.steps++; best.reservationsMade() && !best.byClass && best.shouldWalkByClass(headless) {
			best.walkByClass()
			continue
		}
		if best.byClass && ps.isRefused(head) { // a start since then used what it needed
			best.nextByClass()
			continue
		}
		ps.trying = head
		if !ps.tryStart(head.class, head.job) {
			best.handleBlocked(head)
		}
		if ps.reservationDropped {
			ps.reservationDropped = false
			ps.rewind(walks, best.part, *head)
			continue
		}
		best.next()
	}
}

// rewind restarts all walks behind last: a dropped reservation may let jobs start that were skipped.
func (ps *pass) rewind(walks []queueWalk, part *partition, last queueEntry) {
	for i := range walks {
		if w := &walks[i]; !w.ended {
			w.byClass, w.closed = false, false
			w.cursor = w.cursor.List.First(func(e *queueEntry) bool { return comesBefore(part, &last, w.part, e) })
		}
	}
}

// isRefused reports whether a job is known not to start in this pass. It reads only the queue entry: loading the job
// record would cost more than the rest of the check.
func (ps *pass) isRefused(e *queueEntry) bool {
	if len(e.class.options) > 0 {
		return false
	}
	end := alloc.AddTime(ps.plan.Now, e.minTime)
	return ps.p.refusals.isRefused(e.class, end) && (e.class.preemptor == nil || ps.p.hasOneQueue() && !e.inArray &&
		ps.preemptions.hasNoVictims(e.class, e.priority, end))
}

// comesBefore orders jobs of different partitions: by rank, then by the partition's tier (except for jobs with vacated
// nodes), then as within a queue.
func comesBefore(a *partition, e *queueEntry, b *partition, f *queueEntry) bool {
	if e.rank != f.rank {
		return e.rank > f.rank
	}
	if a.PriorityTier != b.PriorityTier && e.rank != rankVacated {
		return a.PriorityTier > b.PriorityTier
	}
	return e.Compare(f) < 0
}

func isPartitionDown(state string) bool { return state != "" && state != "UP" && state != "DRAIN" }

// tryStart starts a job, or as many tasks of an array as fit. It returns false if the job is blocked, so that
// handleBlocked decides about the jobs behind it. A job that a limit keeps from starting is not blocked.
func (ps *pass) tryStart(s *partitionClass, j *core.Job) bool {
	ps.p.setCurrentJob(j)
	if hetRefOf(j) != nil {
		return hetPlacement{ps}.tryStart(s, j)
	}
	done := ps.startedTasks[j.ID]
	if !j.IsArray() {
		if ps.plan.preemptStarts[j.ID] > 0 { // in another of its partitions
			return false
		}
		return done > 0 || ps.isThrottled(j) || ps.isLimitedNow(s, j) || ps.place(s, j, 0) || ps.overLimit ||
			ps.preemptions.startFor(s, j, 0, 1) || ps.overLimit
	}
	skip, left := done, j.Array.Tasks.Len()-done
	for task := range j.Array.Tasks.All() {
		if skip > 0 { // placed in another of its partitions
			skip--
			continue
		}
		if ps.isThrottled(j) || ps.isLimitedNow(s, j) {
			return true
		}
		if !ps.place(s, j, int32(task)) && (ps.overLimit || !ps.preemptions.startFor(s, j, int32(task), left)) {
			return ps.overLimit
		}
		left--
	}
	return true
}

// isThrottled reports whether the job's array has as many running tasks as its limit allows.
func (ps *pass) isThrottled(j *core.Job) bool {
	return j.Array != nil && j.Spec.Throttle > 0 && ps.p.jobs.ArrayTasks[j.Array.Base] >= j.Spec.Throttle
}

// explainThrottled records for Plan.Reason which jobs are throttled at the end of the pass.
func (ps *pass) explainThrottled() {
	for id, j := range ps.p.throttledJobs {
		if ps.isThrottled(j) {
			if ps.plan.throttled == nil {
				ps.plan.throttled = map[core.JobID]bool{}
			}
			ps.plan.throttled[id] = true
		}
	}
}

// addThrottled records a pending job whose array has a limit on running tasks.
func (p *Planner) addThrottled(j *core.Job) {
	if p.throttledJobs == nil {
		p.throttledJobs = map[core.JobID]*core.Job{}
	}
	p.throttledJobs[j.ID] = j
}

// place starts a job, or a task of an array, on free nodes if that delays no reservation. A class that was refused is
// not tried again in the same pass for jobs that end as late: free resources only shrink during a pass.
func (ps *pass) place(s *partitionClass, j *core.Job, task int32) bool {
	if len(s.options) > 0 {
		return ps.placeInOptions(s, j, task)
	}
	p := ps.p
	p.currentJob = j.ID
	ps.p.licenses.Placing = j.ID
	ps.overLimit = false
	end, least, ok := advance.EndTimes(j.Spec, s.Advance, ps.plan.Now)
	if !ok || ps.p.refusals.isRefused(s, least) || s.licenses != nil && ps.licensesFor(s, ps.plan.Now, least) == nil {
		return false
	}
	var picks []fit.Choice
	var view ledger.View
	few := false
	if own := reserve.Vacated(j, p.nodes.OpenOf(&s.Candidates, &s.req)); own != nil {
		view = p.viewNow(s, end)
		view.Nodes = own
		picks = ps.chooseUntil(s, &view)
	}
	if picks == nil {
		picks, view, few = ps.chooseNow(s, end, least)
	}
	if picks == nil {
		if few {
			ps.p.refusals.recordOnFreed(s, least)
		} else {
			ps.p.refusals.record(s, least)
		}
		return false
	}
	p.buffer.Choices, end = picks, view.End
	al := s.req.Alloc(s.part.Name, picks, view)
	if ps.overLimit = ps.exceedsLimit(s, j, al); ps.overLimit {
		if al = ps.placeOnFewer(s, j, view, len(picks)); al == nil {
			return false
		}
		ps.overLimit = false
	}
	terms := alloc.TermsOf(j.Spec, al)
	ps.recordExtras(s, al, end)
	ps.start(j, task, al, terms, end)
	return true
}

// start books a job, or a task of an array, in the ledger and adds it to the plan.
func (ps *pass) start(j *core.Job, task int32, al *core.Alloc, terms alloc.Terms, end core.Time) {
	p := ps.p
	h := p.allocationPool.get()
	*h = ledger.Allocation{Alloc: al, Terms: terms, Job: j}
	p.limits.start(h, end)
	for i := range h.Alloc.Nodes {
		ok := p.ledger.Allocate(&h.Alloc.Nodes[i], h.Terms)
		core.Assert(ok, "placement of job %d takes what is not free on %s", j.ID, h.Alloc.Nodes[i].Node)
		p.nodes.NoteChanged(p.ledger.Nodes[h.Alloc.Nodes[i].Node])
	}
	ps.bookExtras(h.Alloc, end)
	p.jobs.AddEnds(h, end)
	p.reserved.Lower(h, end)
	if j.Array != nil {
		h.ArrayBase = j.Array.Base
		p.jobs.ArrayTasks[h.ArrayBase]++
	}
	if len(p.partitions) > 1 || p.cfg.Rule == core.RuleEASYSJBF {
		if ps.startedTasks == nil {
			ps.startedTasks = map[core.JobID]int{}
		}
		ps.startedTasks[j.ID]++
		if !j.IsArray() && !ps.placingHet {
			ps.dropReservationsOf(j.ID)
		}
	}
	limit := alloc.NewTimeLimit(j.Spec, ps.plan.Now, end)
	e := ledger.AllocEnd{At: end, Id: j.ID, Task: task + 1, Alloc: h}
	p.jobs.Ends.Insert(e)
	ps.started = append(ps.started, e)
	ps.plan.Starts = append(ps.plan.Starts, Start{
		Job: j.ID, Task: task, Array: j.IsArray(), Alloc: h.Alloc,
		TimeLimit: limit,
	})
}
