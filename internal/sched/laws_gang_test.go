package sched

import (
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// TestGangsAreWhole: jobs that each need most of the nodes never hold a part of what they need, whoever pushes whom
// aside, and they do not keep each other from running forever.
func TestGangsAreWhole(t *testing.T) {
	t.Parallel()
	for _, k := range pushKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newPushWorld(rt, rapid.Uint64().Draw(rt, "seed"), k.kind, k.modes...)
				gangs := 6 + w.r.IntN(10)
				for n := 0; ; n++ {
					if n < gangs {
						w.submit()
						w.widen()
					} else if !w.end() {
						break
					}
					for _, s := range w.pass().Starts {
						if j := w.jobs[s.Job]; len(s.Alloc.Nodes) < int(j.Spec.Shape.NodesMin) {
							rt.Fatalf("job %d is given %d nodes of %d", j.ID, len(s.Alloc.Nodes), j.Spec.Shape.NodesMin)
						}
					}
					for _, id := range w.order {
						if j := w.jobs[id]; j.State == core.Pending && j.Alloc != nil || j.State == core.Running &&
							len(j.Alloc.Nodes) < int(j.Spec.Shape.NodesMin) {
							rt.Fatalf("job %d is %s and holds %+v", id, j.State, j.Alloc)
						}
					}
					if n > gangs*gangs*4 {
						rt.Fatalf("%d gangs have not ended after %d events and %d times that one was preempted", gangs, n, w.pushes)
					}
				}
				for _, id := range w.order {
					if j := w.jobs[id]; j.Live() && (j.State != core.Pending || w.p.pending[id].class.reason() == nil) {
						rt.Fatalf("job %d stays %s", id, j.State)
					}
				}
			})
		})
	}
}

// widen makes the last job one that needs all nodes but one, or all.
func (w *pushWorld) widen() {
	j := *w.jobs[w.nextID]
	s := *j.Spec
	n := int32(len(w.nodes) - w.r.IntN(2))
	s.Partition = core.ListPartitions(w.cfg.Partitions[0].Name)
	s.Shape = core.Shape{
		NodesMin: n, NodesMax: n, Tasks: n, CPUsPerTask: int32(1 + w.r.IntN(2)),
		Exclusive: w.r.IntN(2) == 0,
	}
	j.Spec = &s
	w.put(&j)
}

// TestNobodyStarves: whatever keeps arriving behind them, jobs start within the time that those before them may take.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newLawWorld(rt, core.RuleEASY, rapid.Uint64().Draw(rt, "seed"), 1)
		arrive := func(priority uint32) {
			w.submit()
			j := *w.jobs[w.nextID]
			j.Priority = priority
			if s := *j.Spec; s.TimeLimit == core.Forever {
				s.TimeLimit = 100
				j.Spec = &s
			}
			w.put(&j)
		}
		for range 3 + w.r.IntN(5) { // what runs already
			arrive(0)
		}
		w.pass()
		bound := w.now
		for _, end := range w.endings {
			bound = max(bound, end)
		}
		first := w.nextID
		for range 2 + w.r.IntN(6) {
			arrive(1)
			bound += alloc.TimeLimit(w.jobs[w.nextID].Spec)
		}
		last := w.nextID
		for w.now <= bound {
			w.pass()
			arrive(uint32(w.r.IntN(2)))
			arrive(uint32(w.r.IntN(2)))
			w.pass()
			if len(w.endings) == 0 {
				break
			}
			w.end()
		}
		for id := first + 1; id <= last; id++ {
			if j := w.jobs[id]; j.State == core.Pending && w.p.pending[id].class.reason() == nil {
				rt.Fatalf("job %d still waits after %v", id, w.now.Sub(loadNow))
			}
		}
	})
}
