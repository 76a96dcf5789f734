package sched

import (
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// BenchmarkTreePass is BenchmarkColdPass where the network is known and every job is placed by it: leaves of 40 nodes,
// ten of them under a switch, one above all.
func BenchmarkTreePass(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			l := newLoad(b, size.nodes, size.pending)
			l.cfg.Topology = treeFor(size.nodes)
			starts := 0
			for b.Loop() {
				b.StopTimer()
				p := l.planner()
				b.StartTimer()
				starts = len(p.Pass(loadNow).Starts)
			}
			b.ReportMetric(float64(starts), "starts")
		})
	}
}

func treeFor(nodes int) *core.Topology {
	t := &core.Topology{Kind: core.TopologyTree}
	leaves := (nodes + 39) / 40
	for i := range leaves {
		t.Switches = append(t.Switches, core.Switch{Name: fmt.Sprintf("l%04d", i), Nodes: fmt.Sprintf("n[%05d-%05d]", i*40+1,
			min(nodes, i*40+40))})
	}
	tops := (leaves + 9) / 10
	for i := range tops {
		t.Switches = append(t.Switches, core.Switch{Name: fmt.Sprintf("t%03d", i), Switches: fmt.Sprintf("l[%04d-%04d]",
			i*10, min(leaves, i*10+10)-1)})
	}
	t.Switches = append(t.Switches, core.Switch{Name: "root", Switches: fmt.Sprintf("t[000-%03d]", tops-1)})
	return t
}
