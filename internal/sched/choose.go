package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// chooseNow chooses nodes for a job of a class that starts now, with the latest end that delays no reservation. few
// reports that only nodes were tried on which something came free since the class was refused.
func (ps *pass) chooseNow(s *partitionClass, end, least core.Time) (picks []fit.Choice, view ledger.View, few bool) {
	view = ps.p.viewNow(s, end)
	if few = ps.p.refusals.fitsOnlyFreed(s, least); few {
		view.Nodes = ps.p.nodes.FreedIn(s.Set)
	}
	picks = ps.chooseUntil(s, &view)
	if picks != nil || least == end {
		return picks, view, few
	}
	for _, t := range ps.shorterEnds(end, least) {
		view.End = t
		if picks = ps.chooseUntil(s, &view); picks != nil {
			return picks, view, few
		}
	}
	return nil, view, few
}

// chooseUntil chooses nodes for a job with a given end.
func (ps *pass) chooseUntil(s *partitionClass, view *ledger.View) []fit.Choice {
	if s.licenses != nil && ps.licensesFor(s, ps.plan.Now, view.End) == nil {
		return nil
	}
	view.JoinShared = false
	picks := s.req.Choose(*view, ps.p.buffer.Choices)
	if picks == nil && s.req.MayShare() { // what is idle comes before what can be shared
		view.JoinShared = true
		picks = s.req.Choose(*view, ps.p.buffer.Choices)
	}
	return picks
}

// shorterEnds lists the ends at which a job with a shortened time limit would make way for something, latest first, in
// whole minutes.
func (ps *pass) shorterEnds(end, least core.Time) []core.Time {
	cuts := []core.Time{least}
	add := func(t core.Time) {
		if whole := ps.plan.Now + (t-ps.plan.Now)/60e6*60e6; whole > least && whole < end {
			cuts = append(cuts, whole)
		}
	}
	for i := range ps.p.reserved.List {
		if ps.p.reserved.List[i].Nodes != nil {
			add(ps.p.reserved.List[i].Start)
		}
	}
	for _, r := range ps.p.advance.List {
		for _, w := range r.Windows {
			add(w.Start)
		}
	}
	slices.SortFunc(cuts, func(a, b core.Time) int { return int(max(-1, min(1, b-a))) })
	return slices.Compact(cuts)
}

// placeOnFewer places a job that would like more nodes than its limits allow on as many as they do.
func (ps *pass) placeOnFewer(s *partitionClass, j *core.Job, view ledger.View, had int) *core.Alloc {
	w := s.req.Set
	if w == nil || !w.WantsMax {
		return nil
	}
	var best *core.Alloc
	for lo, hi := int(s.req.NodesMin), had-1; lo <= hi; { // what is over a limit is so with more nodes too
		mid := (lo + hi) / 2
		req, v := s.req, *w
		req.NodesMax, req.Set = int32(mid), &v
		v.WantsMax = req.NodesMax > req.NodesMin
		picks := req.Choose(view, ps.p.buffer.Choices)
		if picks == nil { // so few have too little room
			lo = mid + 1
			continue
		}
		ps.p.buffer.Choices = picks
		if al := req.Alloc(s.part.Name, picks, view); ps.exceedsLimit(s, j, al) {
			hi = mid - 1
		} else {
			best, lo = al, mid+1
		}
	}
	if best != nil {
		delete(ps.plan.overLimit, j.ID)
	}
	return best
}
