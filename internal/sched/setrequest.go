package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

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
