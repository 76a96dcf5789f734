package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// het sends a het job of two or three components.
func (c *chaos) het() {
	part := func() *core.Spec {
		b := coretest.Job().User("alice").CPUs(int32(1 + c.choose(3)))
		b.Set(func(s *core.Spec) { s.UID, s.Requeue, s.TimeLimit = 1000, true, core.Seconds(60*(1+c.choose(5))) })
		return b.Spec()
	}
	in := &Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: part()}
	for range 1 + c.choose(2) {
		in.Components = append(in.Components, part())
	}
	in.Spec.Hold = c.choose(5) == 0
	in.Spec.Requeue = c.choose(3) > 0
	_, _ = c.do(in)
}

// checkHets: the components of a het job run, wait and go back together, but for one that was canceled alone.
func (w *world) checkHets() {
	w.t.Helper()
	runs := func(j *core.Job) bool {
		return (j.State == core.Running || j.State == core.Suspended) && !jobs.IsOver(j)
	}
	for j := range w.st.Snapshot().Jobs() {
		ref := j.Spec.More().Het
		if ref == nil || ref.Offset == 0 {
			continue
		}
		lead, ok := w.st.rec.Job(ref.Lead)
		switch {
		case !ok || jobs.IsOver(lead):
			if !jobs.IsOver(j) && !(ok && lead.Flags.Has(core.Requeueing)) {
				w.t.Fatalf("component %d+%d is %s; the first has ended", ref.Lead, ref.Offset, j.State)
			}
		case runs(lead) && !runs(j):
			if j.Stop == nil || j.Stop.As != core.Cancelled {
				w.t.Fatalf("component %d+%d is %s with flags %b; the first runs", ref.Lead, ref.Offset, j.State, j.Flags)
			}
		case lead.State == core.Pending && runs(j):
			w.t.Fatalf("component %d+%d runs; the first waits", ref.Lead, ref.Offset)
		case runs(lead) && runs(j) && lead.Start != j.Start:
			w.t.Fatalf("component %d+%d has run since %d; the first since %d", ref.Lead, ref.Offset, j.Start, lead.Start)
		}
	}
}
