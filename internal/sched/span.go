package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// shortest is how long a job must be able to run: less than its limit if it says so.
func shortest(s *core.Spec) core.Time {
	n := length(s)
	if x := s.Extra; x != nil && x.TimeMin > 0 {
		n = min(n, core.Time(x.TimeMin)*1e6)
	}
	return n
}

// scrap is the least of a reservation's time that a job which says no limit starts for.
const scrap core.Time = 60e6

// spanOf is until when a job that starts now would like to run, and until when it must be able to. They differ for jobs
// that may be cut short (--time-min). One that says no limit runs until its deadline, or its reservation's end.
func spanOf(s *core.Spec, own *advance, now core.Time) (end, least core.Time, ok bool) {
	end = after(now, length(s))
	least = end
	x := s.More()
	if x.TimeMin > 0 {
		least = after(now, shortest(s))
	}
	if x.Deadline > 0 {
		if end = min(end, x.Deadline); x.TimeMin == 0 && least == never {
			least = end
		}
		if least > end || end < now+1e6 {
			return 0, 0, false
		}
	}
	if own.over() {
		return 0, 0, false
	}
	if own.timed() {
		must := least
		if x.Fill {
			must = now + scrap
		}
		w, fits := own.fits(now, must)
		if !fits {
			return 0, 0, false
		}
		if end = min(end, w.to); x.Fill {
			least = end
		}
	}
	return end, least, true
}

// planLength is how long a job is planned to run in a reservation, or outside of any; at least, if it fills that.
func planLength(s *core.Spec, own *advance, now core.Time) core.Time {
	n := shortest(s)
	x := s.More()
	if x.Fill && own.timed() {
		return min(n, scrap)
	}
	if n == never && x.Deadline > now {
		return x.Deadline - now
	}
	return n
}

// choose finds nodes for a job of a class that starts now, with the last end at which that delays nobody.
// If the class was refused before, few tells that only nodes were looked at on which something came free since.
func (ps *pass) choose(s *slot, end, least core.Time) (picks []pick, at look, few bool) {
	at = ps.p.lookOf(s, end)
	if few = ps.few(s, least); few {
		at.nodes = ps.p.gained(s.part)
	}
	picks = ps.pick(s, &at)
	if picks != nil || least == end {
		return picks, at, few
	}
	for _, t := range ps.cuts(end, least) {
		at.end = t
		if picks = ps.pick(s, &at); picks != nil {
			return picks, at, few
		}
	}
	return nil, at, few
}

// pick finds nodes for a job whose end is settled.
func (ps *pass) pick(s *slot, at *look) []pick {
	if s.lic != nil && ps.grant(s, ps.plan.Now, at.end) == nil {
		return nil
	}
	at.share = false
	picks := s.need.choose(*at, ps.p.buf)
	if picks == nil && s.need.shares() { // what is idle comes before what can be shared
		at.share = true
		picks = s.need.choose(*at, ps.p.buf)
	}
	return picks
}

// cuts are the ends at which a job that is cut short may make way for something, the last first, in whole minutes.
func (ps *pass) cuts(end, least core.Time) []core.Time {
	cuts := []core.Time{least}
	add := func(t core.Time) {
		if whole := ps.plan.Now + (t-ps.plan.Now)/60e6*60e6; whole > least && whole < end {
			cuts = append(cuts, whole)
		}
	}
	for i := range ps.reserved {
		if ps.reserved[i].nodes != nil {
			add(ps.reserved[i].at)
		}
	}
	for _, r := range ps.p.books {
		for _, w := range r.windows {
			add(w.from)
		}
	}
	slices.SortFunc(cuts, func(a, b core.Time) int { return int(max(-1, min(1, b-a))) })
	return slices.Compact(cuts)
}

// limitFor is the limit a job starts with if that is another one than it has, else 0.
func limitFor(s *core.Spec, now, end core.Time) core.Seconds {
	if end == never || after(now, length(s)) == end {
		return 0
	}
	return core.Seconds((end - now) / 1e6)
}
