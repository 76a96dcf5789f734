package sched

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestTrial: a job that is tried is told what would become of it, and the plan of the others is as if it had never
// been.
func TestTrial(t *testing.T) {
	t.Parallel()
	p := planner()
	al := &core.Alloc{Partition: "main", Nodes: []core.NodeAlloc{{
		Node: "n1", CPUs: 4, Cores: []int32{0, 1, 2, 3},
		Tasks: 1,
	}}}
	runs := coretest.Job().ID(1).Partition("main").CPUs(4).Time(600 * time.Second).Running(al).Build()
	p.Apply(Changes{
		Nodes: []*core.Node{coretest.Node("n1").ID(1).CPUs(4).Build(), coretest.Node("n2").ID(2).CPUs(4).Build()},
		Jobs:  []*core.Job{runs, coretest.Job().ID(2).Partition("main").CPUs(4).Time(300 * time.Second).Build()},
	})
	now := runs.Start + 1e6
	before := p.Pass(now).Starts
	try := func(id core.JobID, nodes int32) TrialResult {
		j := coretest.Job().ID(id).Partition("main").Nodes(nodes).Tasks(nodes).CPUs(4).Time(60 * time.Second).Build()
		out := p.Trial(j, now, 1<<30, nil)
		if after := p.Pass(now).Starts; !cmp.Equal(before, after) {
			t.Errorf("before: %+v\nafter: %+v", before, after)
		}
		return out
	}
	one := try(3, 1) // behind job 2, which has n2 for 300 seconds
	if one.Start != now+300e6 || !slices.Equal(one.Nodes, []core.NodeName{"n2"}) || one.CPUs != 4 ||
		one.Partition != "main" {
		t.Errorf("one node: %+v", one)
	}
	both := try(4, 2) // until job 1 ends
	if both.Start != runs.Start+600e6 || len(both.Nodes) != 2 || both.CPUs != 8 {
		t.Errorf("both nodes: %+v", both)
	}
	if none := try(5, 3); none.Start != 0 || none.Reason.Code != core.ReasonPartitionNodes {
		t.Errorf("more nodes than there are: %+v", none)
	}
	p.Apply(Changes{Jobs: []*core.Job{ended(runs)}})
	before = p.Pass(now).Starts
	if free := try(6, 1); free.Start != now || len(free.Nodes) != 1 {
		t.Errorf("a free node: %+v", free)
	}
}
