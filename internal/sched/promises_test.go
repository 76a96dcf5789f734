package sched

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestFillingIsPlannedToTheEnd: a job that lasts as long as its reservation of licenses is not promised a start on
// nodes that somebody else has reserved before that ends.
func TestFillingIsPlannedToTheEnd(t *testing.T) {
	t.Parallel()
	p := planner()
	p.Apply(Changes{
		Nodes: []*core.Node{coretest.Node("n1").Build()},
		Reservations: []*core.AdvanceReservation{
			{Name: "mine", ID: 1, Start: 100e6, End: 1000e6, Licenses: []core.License{{Name: "l", Total: 1}}},
			{Name: "theirs", ID: 2, Start: 400e6, End: 500e6, Nodes: "n1"},
		},
		Jobs: []*core.Job{coretest.Job().ID(1).Partition("main").Set(func(s *core.Spec) {
			s.TimeLimit, s.Extra = core.Forever, &core.Extra{Reservation: "mine", Fill: true}
		}).Build()},
	})
	for _, now := range []core.Time{1e6, 100e6, 300e6, 450e6} {
		plan := p.Pass(now)
		if at, _, _ := plan.Expected(1); at != 500e6 || len(plan.Starts) > 0 {
			t.Errorf("at %d it is promised %d, and %d start", now, at, len(plan.Starts))
		}
	}
	if plan := p.Pass(500e6); len(plan.Starts) != 1 || plan.Starts[0].TimeLimit != 500 {
		t.Errorf("at last %+v", plan.Starts)
	}
}

// TestTasksOfSeveralKindsAreKept: what is kept for a job that asks for GPUs of several types as a whole is enough for
// its tasks, however few of the GPUs a node gives.
func TestTasksOfSeveralKindsAreKept(t *testing.T) {
	t.Parallel()
	p := planner()
	al := &core.Alloc{Partition: "main", Nodes: []core.NodeAlloc{{Node: "n2", CPUs: 2, Cores: []int32{0, 1}, Tasks: 1}}}
	p.Apply(Changes{
		Nodes: []*core.Node{
			coretest.Node("n1").ID(1).CPUs(4).Gres("gpu", "x", 1).Build(),
			coretest.Node("n2").ID(2).CPUs(2).Gres("gpu", "y", 1).Build(),
		},
		Jobs: []*core.Job{
			coretest.Job().ID(1).Partition("main").CPUs(2).Time(100 * time.Second).Running(al).Build(),
			coretest.Job().ID(2).Partition("main").Nodes(2).Tasks(6).Set(func(s *core.Spec) {
				s.Shape.More = &core.ShapeMore{GPUs: []core.Gres{{Name: "gpu", Type: "x", Count: 1}, {
					Name: "gpu", Type: "y",
					Count: 1,
				}}}
			}).Build(),
			coretest.Job().ID(3).Partition("main").Time(200 * time.Second).Build(),
		},
	})
	if plan := p.Pass(1e6); len(plan.Starts) != 0 {
		t.Errorf("job 2 needs all CPUs of both nodes, and job %d starts for longer than it waits", plan.Starts[0].Job)
	}
}
