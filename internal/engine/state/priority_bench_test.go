package state

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/ranking"
	"bireme.dev/bireme/internal/policy"
)

// BenchmarkRecalcSlice is one slice of a calculation in which every priority changes: what a command may have to wait
// for.
func BenchmarkRecalcSlice(b *testing.B) {
	st := New(Config{Priority: &Priority{
		Config: policy.Config{Weights: policy.Weights{Age: 1 << 31, FairShare: 1000, JobSize: 1000, Partition: 1000}},
		Period: 1,
	}}, &Image{})
	now := st.Advance(epoch)
	do := func(in Input) {
		if _, err := st.Apply(in); err != nil {
			b.Fatal(err)
		}
	}
	do(&EnsureUser{UID: 1000, UnixName: "alice"})
	n := coretest.Node("n1").Build()
	do(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	for range 50 * ranking.JobsPerSlice {
		do(&Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: coretest.Job().Tasks(1).CPUs(2).Time(time.Hour).Spec()})
	}
	endBatch(st)
	b.ReportAllocs()
	changed := 0
	for b.Loop() {
		now = st.Advance(now.Add(time.Second))
		do(&Tick{})
		changed += len(endBatch(st).Jobs)
		st.Snapshot()
	}
	if changed == 0 {
		b.Fatal("no priority changed")
	}
	b.ReportMetric(float64(changed)/float64(b.N), "jobs/op")
}
