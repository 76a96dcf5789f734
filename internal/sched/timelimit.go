package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// minTime is how long a job must be able to run: less than its limit if it says so.
func minTime(s *core.Spec) core.Time {
	n := timeLimit(s)
	if x := s.Extra; x != nil && x.TimeMin > 0 {
		n = min(n, core.Time(x.TimeMin)*1e6)
	}
	return n
}

// minFillTime is the least of a reservation's time that a job which says no limit starts for.
const minFillTime core.Time = 60e6

// endTimes is until when a job that starts now would like to run, and until when it must be able to. They differ for
// jobs
// that may be cut short (--time-min). One that says no limit runs until its deadline, or its reservation's end.
func endTimes(s *core.Spec, own *advanceReservation, now core.Time) (end, least core.Time, ok bool) {
	end = addTime(now, timeLimit(s))
	least = end
	x := s.More()
	if x.TimeMin > 0 {
		least = addTime(now, minTime(s))
	}
	if x.Deadline > 0 {
		if end = min(end, x.Deadline); x.TimeMin == 0 && least == never {
			least = end
		}
		if least > end || end < now+1e6 {
			return 0, 0, false
		}
	}
	if own.isOver() {
		return 0, 0, false
	}
	if own.confinesTime() {
		must := least
		if x.Fill {
			must = now + minFillTime
		}
		w, fits := own.windowFor(now, must)
		if !fits {
			return 0, 0, false
		}
		if end = min(end, w.end); x.Fill {
			least = end
		}
	}
	return end, least, true
}

// planTime is how long a job is planned to run in a reservation, or outside of any; at least, if it fills that.
func planTime(s *core.Spec, own *advanceReservation, now core.Time) core.Time {
	n := minTime(s)
	x := s.More()
	if x.Fill && own.confinesTime() {
		return min(n, minFillTime)
	}
	if n == never && x.Deadline > now {
		return x.Deadline - now
	}
	return n
}

// chooseNow finds nodes for a job of a class that starts now, with the last end at which that delays nobody.
// If the class was refused before, few tells that only nodes were looked at on which something came free since.
func (ps *pass) chooseNow(s *partitionClass, end, least core.Time) (picks []nodeChoice, at nodeView, few bool) {
	at = ps.p.viewNow(s, end)
	if few = ps.fitsOnlyFreed(s, least); few {
		at.nodes = ps.p.freedNodes(s.part)
	}
	picks = ps.chooseUntil(s, &at)
	if picks != nil || least == end {
		return picks, at, few
	}
	for _, t := range ps.shorterEnds(end, least) {
		at.end = t
		if picks = ps.chooseUntil(s, &at); picks != nil {
			return picks, at, few
		}
	}
	return nil, at, few
}

// choosePool finds nodes for a job whose end is settled.
func (ps *pass) chooseUntil(s *partitionClass, at *nodeView) []nodeChoice {
	if s.licenses != nil && ps.licensesFor(s, ps.plan.Now, at.end) == nil {
		return nil
	}
	at.joinShared = false
	picks := s.req.choose(*at, ps.p.choices)
	if picks == nil && s.req.mayShare() { // what is idle comes before what can be shared
		at.joinShared = true
		picks = s.req.choose(*at, ps.p.choices)
	}
	return picks
}

// shorterEnds are the ends at which a job that is cut short may make way for something, the last first, in whole
// minutes.
func (ps *pass) shorterEnds(end, least core.Time) []core.Time {
	cuts := []core.Time{least}
	add := func(t core.Time) {
		if whole := ps.plan.Now + (t-ps.plan.Now)/60e6*60e6; whole > least && whole < end {
			cuts = append(cuts, whole)
		}
	}
	for i := range ps.reserved {
		if ps.reserved[i].nodes != nil {
			add(ps.reserved[i].start)
		}
	}
	for _, r := range ps.p.advances {
		for _, w := range r.windows {
			add(w.start)
		}
	}
	slices.SortFunc(cuts, func(a, b core.Time) int { return int(max(-1, min(1, b-a))) })
	return slices.Compact(cuts)
}

// newTimeLimit is the limit a job starts with if that is another one than it has, else 0.
func newTimeLimit(s *core.Spec, now, end core.Time) core.Seconds {
	if end == never || addTime(now, timeLimit(s)) == end {
		return 0
	}
	return core.Seconds((end - now) / 1e6)
}
