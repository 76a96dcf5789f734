package sched

import "bireme.dev/bireme/internal/core"

// queueWalk is the walk over one partition's queue in a pass.
type queueWalk struct {
	ps               *pass
	part             *partition
	cursor           queueCursor
	headFound        bool // the first job that cannot start was found
	closed           bool // no more jobs to try
	ended            bool // by the rule, no more jobs may start, even after rewind
	byClass          bool // the walk goes on by class, over heads
	headLacksOther   bool // the head waits for something other than nodes; see waitsForOther
	reservationsLeft int  // number of jobs behind the head that still get a reservation
	heads            classHeads
}

// reservationsMade reports whether the queue gets no more reservations in this pass.
func (w *queueWalk) reservationsMade() bool {
	return w.headFound && !w.headLacksOther && w.reservationsLeft == 0
}

func (w *queueWalk) head() *queueEntry {
	if !w.byClass {
		return w.cursor.Current()
	}
	if len(w.heads) == 0 {
		return nil
	}
	return &w.heads[0].head
}

// next moves the walk past its first job and past the jobs behind it that are known not to start. These are not
// compared with the jobs of other queues.
func (w *queueWalk) next() {
	if w.byClass {
		w.nextByClass()
		return
	}
	w.cursor.Next()
	k := 0
	for e := w.cursor.Current(); e != nil && (w.reservationsMade() && w.ps.isRefused(e) ||
		w.ps.isLimited(e)); e = w.cursor.Current() {
		if k++; k > maxSkipped && w.mayWalkByClass() {
			return
		}
		w.cursor.Next()
	}
}

// handleBlocked applies the backfill rule to a job that cannot start now. The first such job of a queue is its head; it
// and the next reservationsLeft jobs get reservations. The jobs behind them may start if they delay none of these.
func (w *queueWalk) handleBlocked(e *queueEntry) {
	// like Slurm's NoReserve: it waits without a reservation
	if e.gate != nil && (e.gate.NoReserve || e.priority < e.gate.MinReservePriority) {
		w.waitUnreserved(e)
		return
	}
	promised := !w.headFound || w.reservationsLeft > 0
	switch {
	case !w.headFound:
		w.headFound = true
		if w.ps.plan.heads == nil {
			w.ps.plan.heads = map[core.PartitionName]core.JobID{}
		}
		w.ps.plan.heads[w.part.Name] = e.job.ID
		if w.ps.p.cfg.Rule != core.RuleFCFS {
			w.ps.reserve(e.class, e.job)
		}
		w.headLacksOther = w.ps.waitsForOther(e)
		if len(w.ps.p.advance.List) > 0 {
			w.ps.explainAdvance(e.class, e.job)
		}
	case w.reservationsLeft > 0:
		w.reservationsLeft--
		if w.ps.plan.expected[e.job.ID] == 0 || w.ps.p.cfg.Rule != core.RuleConservative {
			w.ps.reserve(e.class, e.job)
		}
		w.headLacksOther = w.headLacksOther && w.ps.waitsForOther(e)
	case w.headLacksOther && !w.ps.waitsForOther(e):
		w.headLacksOther = false
		w.ps.reserveNodes(e.class, e.job)
	}
	if rule := w.ps.p.cfg.Rule; rule == core.RuleFCFS || rule == core.RuleEASYSJBF && promised && w.reservationsLeft == 0 {
		w.closed, w.ended = true, true
	}
	// every class of the queue was refused
	if w.reservationsLeft == 0 && w.part.deadClasses >= w.part.liveClasses {
		w.closed = true
	}
}

// waitUnreserved handles a job that waits without a reservation. It is reported as the head only if no other job is.
func (w *queueWalk) waitUnreserved(e *queueEntry) {
	if w.ps.plan.heads == nil {
		w.ps.plan.heads = map[core.PartitionName]core.JobID{}
	}
	if _, ok := w.ps.plan.heads[w.part.Name]; !ok {
		w.ps.plan.heads[w.part.Name] = e.job.ID
	}
	if w.headFound && w.reservationsLeft == 0 && w.part.deadClasses >= w.part.liveClasses {
		w.closed = true
	}
}
