package preempt_test

import (
	"slices"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/sched/preempt"
)

const now = core.Time(1_000_000_000_000)

func waiting(qos core.QOSName, priority uint32) *core.Job {
	j := coretest.Job().ID(1).Build()
	j.Spec.QOS, j.Priority = qos, priority
	return j
}

func running(qos core.QOSName, part core.PartitionName, priority uint32) *core.Job {
	j := coretest.Job().ID(2).Build()
	j.Spec.QOS, j.Spec.Requeue, j.Spec.Kind = qos, true, core.Batch
	j.State, j.Priority, j.Start = core.Running, priority, now-core.Time(time.Hour/time.Microsecond)
	j.Alloc = &core.Alloc{Partition: part, Nodes: []core.NodeAlloc{{Node: "n1", CPUs: 4}}}
	return j
}

// Who may preempt whom, and how.
func TestMayPreempt(t *testing.T) {
	t.Parallel()
	parts := []core.Partition{{Name: "low", PriorityTier: 1}, {Name: "high", PriorityTier: 2}}
	byQOS := core.Preemption{Type: core.PreemptByQOS, Mode: core.PreemptRequeue, Grace: 30}
	qos := func(change ...func(map[core.QOSName]*core.QOS)) (list []*core.QOS) {
		all := map[core.QOSName]*core.QOS{
			"urgent": {Name: "urgent", Preempt: []core.QOSName{"normal"}}, "normal": {Name: "normal"}, "other": {Name: "other"},
		}
		for _, c := range change {
			c(all)
		}
		for _, n := range []core.QOSName{"normal", "other", "urgent"} {
			list = append(list, all[n])
		}
		return list
	}
	for name, tc := range map[string]struct {
		cfg  core.Preemption
		qos  []*core.QOS
		j    *core.Job
		in   core.PartitionName
		v    *core.Job
		how  core.PreemptMode // "": it may not
		want core.Seconds     // of grace
	}{
		"its QOS lists the other's": {
			byQOS, qos(), waiting("urgent", 1), "low", running("normal", "low", 9), core.PreemptRequeue, 30,
		},
		"another QOS":         {byQOS, qos(), waiting("urgent", 1), "low", running("other", "low", 0), "", 0},
		"the other way round": {byQOS, qos(), waiting("normal", 9), "low", running("urgent", "low", 1), "", 0},
		"no such partition":   {byQOS, qos(), waiting("urgent", 1), "none", running("normal", "low", 1), "", 0},
		"nobody":              {core.Preemption{}, qos(), waiting("urgent", 1), "high", running("normal", "low", 1), "", 0},
		"a mode of its own": {byQOS, qos(func(q map[core.QOSName]*core.QOS) {
			q["normal"].PreemptMode, q["normal"].Grace = core.PreemptCancel, 60
		}), waiting("urgent", 1), "low", running("normal", "low", 9), core.PreemptCancel, 60},
		"off is the cluster's mode": {byQOS, qos(func(q map[core.QOSName]*core.QOS) {
			q["normal"].PreemptMode = core.PreemptOff
		}), waiting("urgent", 1), "low", running("normal", "low", 9), core.PreemptRequeue, 30},
		"exempt for two hours": {byQOS, qos(func(q map[core.QOSName]*core.QOS) {
			q["normal"].PreemptExempt = 7200
		}), waiting("urgent", 1), "low", running("normal", "low", 9), "", 0},
		"exempt for ten minutes": {byQOS, qos(func(q map[core.QOSName]*core.QOS) {
			q["normal"].PreemptExempt = 600
		}), waiting("urgent", 1), "low", running("normal", "low", 9), core.PreemptRequeue, 30},
		"a circle counts for neither": {byQOS, qos(func(q map[core.QOSName]*core.QOS) {
			q["normal"].Preempt = []core.QOSName{"urgent"}
		}), waiting("urgent", 1), "low", running("normal", "low", 9), "", 0},
		"a higher tier": {
			core.Preemption{Type: core.PreemptByTier, Mode: core.PreemptCancel},
			qos(), waiting("other", 1), "high",
			running("other", "low", 9), core.PreemptCancel, 0,
		},
		"the same tier": {
			core.Preemption{Type: core.PreemptByTier, Mode: core.PreemptCancel},
			qos(), waiting("other", 9), "low",
			running("other", "low", 1), "", 0,
		},
	} {
		got, may := preempt.NewRules(tc.cfg, parts, tc.qos).MayPreempt(tc.j, tc.in, tc.v, now)
		if may != (tc.how != "") || got.How != tc.how || got.Grace != tc.want {
			t.Errorf("%s: %v %+v, want %q with %d s", name, may, got, tc.how, tc.want)
		}
	}
}

// A job that may not be requeued is canceled; one that has ended, or shares its CPUs, is no candidate.
func TestCandidates(t *testing.T) {
	t.Parallel()
	rules := preempt.NewRules(core.Preemption{Type: core.PreemptByQOS, Mode: core.PreemptRequeue}, nil, nil)
	fixed := running("normal", "low", 1)
	fixed.Spec.Requeue = false
	if v := rules.Candidate(fixed); v == nil || v.Mode != core.PreemptCancel || v.Cpus != 4 {
		t.Errorf("a job that may not be requeued: %+v", v)
	}
	ended := running("normal", "low", 1)
	ended.State = core.Completed
	shared := running("normal", "low", 1)
	shared.Alloc.More = &core.AllocMore{Share: 4}
	if v, w := rules.Candidate(ended), rules.Candidate(shared); v != nil || w != nil {
		t.Errorf("ended: %+v; shared: %+v", v, w)
	}
}

// Cost follows the setting: youngest by the time since the start, smallest by CPUs, least lost by lost CPU time.
func TestCostOrders(t *testing.T) {
	t.Parallel()
	rules := preempt.NewRules(core.Preemption{Type: core.PreemptByQOS, Mode: core.PreemptRequeue}, nil, nil)
	job := func(hours int, cpus int32, saved bool) *preempt.Candidate {
		j := running("normal", "low", 1)
		j.Start = now - core.Time(hours)*3600e6
		j.Alloc.Nodes[0].CPUs = cpus
		if saved {
			j.Checkpoint = now
		}
		return rules.Candidate(j)
	}
	list := map[string]*preempt.Candidate{
		"old, saved, large": job(9, 64, true), "young": job(1, 32, false), "small": job(5, 1, false),
	}
	for order, want := range map[core.PreemptOrder][]string{
		core.Youngest:  {"young", "small", "old, saved, large"},
		core.Smallest:  {"small", "young", "old, saved, large"},
		core.LeastLost: {"old, saved, large", "small", "young"},
	} {
		got := []string{"old, saved, large", "small", "young"}
		slices.SortFunc(got, func(a, b string) int { return int(list[a].Cost(order, now) - list[b].Cost(order, now)) })
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", order, got, want)
		}
	}
}
