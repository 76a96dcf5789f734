package steplayout

import (
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestCharge [step-tres]: what steps of a job use, in a job with 4 CPUs, 400 MiB, two GPUs and a network on each of two
// nodes.
func TestCharge(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	node := func(name core.NodeName) core.NodeAlloc {
		return core.NodeAlloc{
			Node: name, CPUs: 4, Cores: []int32{0, 1, 2, 3}, Mem: 400 * mib, Tasks: 4,
			Gres: []core.GresAlloc{{Name: "gpu", Type: "a", Units: []int32{0, 1}}, {Name: "net", Units: []int32{0}}},
		}
	}
	gpus := func(n int64) []core.Gres { return []core.Gres{{Name: "gpu", Count: n}} }
	type ask = core.StepRequest
	perCPU := core.Shape{MemPerCPU: 100 * mib, Gres: gpus(2)}
	for name, c := range map[string]struct {
		shape core.Shape
		ask   ask
		want  string
	}{
		"all of a node":      {perCPU, ask{Tasks: 1, Nodes: 1}, "4 CPUs 400 MiB [gpu:2]"},
		"all nodes":          {perCPU, ask{}, "8 CPUs 800 MiB [gpu:4]"},
		"shared":             {perCPU, ask{Tasks: 1, Overlap: true}, "4 CPUs 400 MiB [gpu:2]"},
		"exact":              {perCPU, ask{Tasks: 1, Exact: true}, "1 CPUs 100 MiB [gpu:2]"},
		"its own memory":     {perCPU, ask{Tasks: 1, Exact: true, MemPerNode: 30 * mib}, "1 CPUs 30 MiB [gpu:2]"},
		"memory by CPU":      {perCPU, ask{Tasks: 2, Nodes: 2, Exact: true, MemPerCPU: 20 * mib}, "2 CPUs 40 MiB [gpu:4]"},
		"its own units":      {perCPU, ask{Tasks: 2, Nodes: 2, Exact: true, Gres: gpus(1)}, "2 CPUs 200 MiB [gpu:2]"},
		"units by task":      {perCPU, ask{Tasks: 1, Exact: true, GPUsPerTask: gpus(1)}, "1 CPUs 100 MiB [gpu:1]"},
		"no units":           {perCPU, ask{Tasks: 1, Exact: true, NoGres: true}, "1 CPUs 100 MiB []"},
		"none were asked":    {core.Shape{}, ask{Tasks: 1}, "4 CPUs 400 MiB []"},
		"memory by the node": {core.Shape{MemPerNode: 400 * mib}, ask{Tasks: 1, Exact: true}, "1 CPUs 400 MiB []"},
	} {
		j := &core.Job{
			ID: 7, State: core.Running, Spec: &core.Spec{Shape: c.shape},
			Alloc: &core.Alloc{Nodes: []core.NodeAlloc{node("n1"), node("n2")}},
		}
		c.ask.MaxTasksPerNode = 512
		st, err := Place(j, nil, "", &c.ask)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var units []string
		for _, g := range st.Gres {
			units = append(units, fmt.Sprintf("%s:%d", g.Name, g.Count))
		}
		if got := fmt.Sprintf("%d CPUs %d MiB %v", st.CPUs, st.Mem/mib, units); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
