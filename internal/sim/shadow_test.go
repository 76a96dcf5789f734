package sim

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestShadow: what ran at the beginning keeps its nodes; what comes later is planned around it, by priority.
func TestShadow(t *testing.T) {
	t.Parallel()
	const begin = core.Time(1_700_000_000e6)
	at := func(s int64) core.Time { return begin + core.Time(s)*1e6 }
	job := func(cpus int32, limit core.Seconds, prio uint32) *core.Spec {
		return &core.Spec{
			Name: "j", TimeLimit: limit, Shape: core.Shape{NodesMin: 1, NodesMax: 1, Tasks: cpus, CPUsPerTask: 1},
			Extra: &core.Extra{Priority: &prio}, Partition: core.ParsePartitions("p"),
		}
	}
	in := &Shadow{
		Begin: begin, Partitions: []core.Partition{{Name: "p", Nodes: "ALL", Default: true}},
		Nodes: []*core.Node{
			{Name: "a", Hardware: core.Hardware{CPUs: 4, Memory: core.GiB}, Weight: 1},
			{Name: "b", Hardware: core.Hardware{CPUs: 4, Memory: core.GiB}, Weight: 1},
		},
		Jobs: []ShadowJob{
			{Spec: job(4, 200, 5), Arrival: at(10), Run: 50},               // waits for a node: b is free only by 100
			{Spec: job(4, 200, 9), Arrival: at(10), Run: 50},               // before it
			{Spec: job(4, 100, 1), Arrival: at(-50), Nodes: "b", Run: 100}, // runs on b
			{Spec: job(4, 400, 1), Arrival: at(-50), Nodes: "a", Run: 300}, // runs on a
			{Spec: job(8, 10, 1), Arrival: at(20), Run: 10},                // fits nowhere
		},
	}
	if err := in.Run(at(10_000)); err != nil {
		t.Fatal(err)
	}
	for i := range in.Jobs {
		j := &in.Jobs[i]
		got, _ := j.Start()
		var want core.Time
		switch {
		case j.Nodes != "":
			want = begin
		case j.Spec.Shape.Tasks == 8:
			want = 0
		case *j.Spec.Extra.Priority == 9:
			want = at(100)
		default:
			want = at(150)
		}
		if got != want {
			t.Errorf("job %d (%d CPUs, priority %d) starts at %d, want %d", i, j.Spec.Shape.Tasks, *j.Spec.Extra.Priority,
				(got-begin)/1e6, (want-begin)/1e6)
		}
	}
}
