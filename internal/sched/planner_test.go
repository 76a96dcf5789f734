package sched

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

func planner(parts ...core.Partition) *Planner {
	if parts == nil {
		parts = []core.Partition{{Name: "main"}}
	}
	return New(Config{Partitions: parts, Hosts: func(list string) map[core.NodeName]bool {
		if list == "" {
			return nil
		}
		return map[core.NodeName]bool{core.NodeName(list): true}
	}})
}

// TestPassLeavesThePlannerAsItWas: a plan is a wish, so that planning twice gives the same twice.
func TestPassLeavesThePlannerAsItWas(t *testing.T) {
	t.Parallel()
	p := planner()
	p.Apply(Changes{
		Nodes: []*core.Node{coretest.Node("n1").ID(1).Build(), coretest.Node("n2").ID(2).Build()},
		Jobs: []*core.Job{
			coretest.Job().ID(1).Partition("main").Array("0-9", 3).Build(),
			coretest.Job().ID(2).Partition("main").Nodes(2).CPUs(3).Tasks(2).Build(),
		},
	})
	for range 3 {
		plan := p.Pass(1)
		if len(plan.Starts) != 3 {
			t.Fatalf("%d starts, want the 3 tasks the array's limit allows", len(plan.Starts))
		}
	}
}

// TestJobsBeforeTheirNode: a job may be known before the node it holds, as when a node is dropped and comes back.
func TestJobsBeforeTheirNode(t *testing.T) {
	t.Parallel()
	p := planner()
	n := coretest.Node("n1").CPUs(2).Build()
	al := &core.Alloc{Partition: "main", Nodes: []core.NodeAlloc{{Node: "n1", CPUs: 2, Cores: []int32{0, 1}, Tasks: 1}}}
	runs := coretest.Job().ID(1).Partition("main").CPUs(2).Running(al).Build()
	waits := coretest.Job().ID(2).Partition("main").Build()
	p.Apply(Changes{Jobs: []*core.Job{runs, waits}})
	p.Apply(Changes{Nodes: []*core.Node{n}})
	if plan := p.Pass(1); len(plan.Starts) != 0 || plan.Reason(waits).Code != core.ReasonResources {
		t.Fatalf("what job 1 holds is given to job 2: %+v", plan.Starts)
	}
	p.Apply(Changes{GoneNodes: []core.NodeName{"n1"}})
	if w := p.Pass(1).Reason(waits); w.Code != core.ReasonPartitionNodes {
		t.Fatalf("without nodes it waits because %+v", w)
	}
	p.Apply(Changes{Nodes: []*core.Node{n}})
	if plan := p.Pass(1); len(plan.Starts) != 0 {
		t.Fatalf("a node that came back gives what it had given: %+v", plan.Starts)
	}
	p.Apply(Changes{Jobs: []*core.Job{ended(runs)}})
	if plan := p.Pass(1); len(plan.Starts) != 1 || plan.Starts[0].Job != 2 {
		t.Fatalf("after job 1 ended: %+v", plan.Starts)
	}
}

// TestFewNodes: a job with a limit on nodes takes the first in order that have room for it together.
func TestFewNodes(t *testing.T) {
	t.Parallel()
	p := planner()
	p.Apply(Changes{Nodes: []*core.Node{
		coretest.Node("n1").ID(1).CPUs(1).Build(), coretest.Node("n2").ID(2).CPUs(2).Build(),
		coretest.Node("n3").ID(3).CPUs(4).Build(),
	}})
	for name, tc := range map[string]struct {
		job  *core.Job
		want []core.NodeName
	}{
		"one node":  {coretest.Job().Nodes(1).Tasks(3).Build(), []core.NodeName{"n3"}},
		"two nodes": {coretest.Job().Nodes(2).Tasks(6).Build(), []core.NodeName{"n2", "n3"}},
		"two nodes, one named": {coretest.Job().Nodes(2).Tasks(5).Set(func(s *core.Spec) {
			s.Extra = &core.Extra{NodeList: "n1"}
		}).Build(), []core.NodeName{"n1", "n3"}},
		"as few as will do": {coretest.Job().Tasks(3).Set(func(s *core.Spec) {
			s.Shape.NodesMin, s.Shape.NodesMax = 1,
				2
		}).Build(), []core.NodeName{"n1", "n2"}},
		"more than all have": {coretest.Job().Nodes(2).Tasks(7).Build(), nil},
		"tasks a node": {coretest.Job().Nodes(3).Tasks(3).Set(func(s *core.Spec) {
			s.Shape.TasksPerNode = 1
		}).Build(), []core.NodeName{"n1", "n2", "n3"}},
		"too many tasks a node": {coretest.Job().Nodes(2).Tasks(4).Set(func(s *core.Spec) {
			s.Shape.TasksPerNode = 1
		}).Build(), nil},
	} {
		n := fit.RequestOf(tc.job.Spec, p.cfg.Hosts)
		n.BindLedger(p.ledger, nil, false)
		var got []core.NodeName
		for _, pk := range n.Choose(ledger.View{Nodes: p.ledger.Order}, nil) {
			got = append(got, pk.Node.Record.Name)
			if pk.Tasks < 1 || pk.Tasks > pk.Capacity {
				t.Errorf("%s: %d tasks on %s, which has room for %d", name, pk.Tasks, pk.Node.Record.Name, pk.Capacity)
			}
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	}
}

// TestWhyOfAJobThePlanDoesNotKnow: one submitted after the pass is new, not waiting for its time.
func TestWhyOfAJobThePlanDoesNotKnow(t *testing.T) {
	t.Parallel()
	p := planner()
	plan := p.Pass(100)
	if w := plan.Reason(coretest.Job().Partition("main").Submitted(200).Build()); w.Code != core.ReasonNone {
		t.Fatalf("it waits because %+v", w)
	}
	var none *Plan
	if w := none.Reason(coretest.Job().Partition("main").Submitted(200).Build()); w.Code != core.ReasonNone {
		t.Fatalf("without a plan it waits because %+v", w)
	}
	begins := coretest.Job().Partition("main").Set(func(s *core.Spec) { s.Begin = 300 }).Submitted(200).Build()
	if w := plan.Reason(begins); w.Code != core.ReasonBeginTime || w.Expected != 300 {
		t.Fatalf("a begin time: %+v", w)
	}
}
