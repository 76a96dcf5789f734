package steplayout

import (
	"fmt"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestPlace makes steps one after the other in a job with two nodes of four CPUs, 400 MiB and two GPUs. A "-" before a
// step ends the one made first of those that are left.
func TestPlace(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	node := func(name core.NodeName) core.NodeAlloc {
		return core.NodeAlloc{
			Node: name, CPUs: 4, Cores: []int32{0, 1, 2, 3}, Mem: 400 * mib, Tasks: 4,
			Gres: []core.GresAlloc{{Name: "gpu", Units: []int32{0, 1}}},
		}
	}
	gpus := func(n int64) []core.Gres { return []core.Gres{{Name: "gpu", Count: n}} }
	type ask = core.StepRequest
	one := ask{Tasks: 1, Exact: true}
	for name, steps := range map[string][]struct {
		ask  ask
		ends bool   // the first that runs ends before
		want string // node:tasks:CPUs…, or the reason it is not made
	}{
		"all nodes": {{ask{}, false, "n1:1:0123 n2:1:0123"}, {one, false, "nodes_busy"}, {one, true, "n1:1:0"}},
		"a node each": {
			{ask{Tasks: 1}, false, "n1:1:0123"},
			{ask{Tasks: 1}, false, "n2:1:0123"},
			{ask{Tasks: 1}, false, "nodes_busy"},
		},
		"side by side": {
			{one, false, "n1:1:0"},
			{ask{Tasks: 2, Nodes: 1, Exact: true}, false, "n1:2:12"},
			{ask{Tasks: 4, Nodes: 1, Exact: true}, false, "n2:4:0123"},
		},
		"one waits for all": {
			{one, false, "n1:1:0"},
			{ask{}, false, "nodes_busy"},
			{ask{Nodes: 2, Tasks: 2}, false, "nodes_busy"},
			{ask{}, true, "n1:1:0123 n2:1:0123"},
		},
		"one that overlaps": {
			{ask{}, false, "n1:1:0123 n2:1:0123"},
			{ask{Overlap: true, Tasks: 2}, false, "n1:1: n2:1:"},
		},
		"over one that does": {{ask{Overlap: true}, false, "n1:1: n2:1:"}, {ask{}, false, "n1:1:0123 n2:1:0123"}},
		"too much for ever": {
			{ask{Tasks: 9}, false, "too_many_cpus"},
			{ask{MemPerNode: 500 * mib}, false, "task_memory"},
			{ask{Gres: gpus(3)}, false, "invalid_gres"},
		},
		"overcommitted": {{ask{Tasks: 9, Nodes: 1, Overcommit: true}, false, "n1:9:0123"}},
		"memory": {{
			ask{Tasks: 1, Nodes: 1, On: []core.NodeName{"n1"}, Exact: true, MemPerNode: 300 * mib},
			false, "n1:1:0",
		}, {
			ask{Tasks: 1, On: []core.NodeName{"n1"}, Exact: true, MemPerNode: 200 * mib},
			false,
			"nodes_busy",
		}, {ask{Tasks: 1, On: []core.NodeName{"n1"}, Exact: true, MemPerCPU: 100 * mib}, false, "n1:1:1"}},
		"GPUs": {
			{ask{Tasks: 1, Exact: true, Gres: gpus(1)}, false, "n1:1:0 gpu 0"},
			{ask{Tasks: 1, Exact: true, On: []core.NodeName{"n1"}, Gres: gpus(1)}, false, "n1:1:1 gpu 1"},
			{ask{Tasks: 1, Exact: true, On: []core.NodeName{"n1"}, Gres: gpus(1)}, false, "nodes_busy"},
			{one, false, "n1:1:2"},
		},
		"GPUs by task":  {{ask{Tasks: 2, Nodes: 1, Exact: true, GPUsPerTask: gpus(1)}, false, "n1:2:01 gpu 01"}},
		"GPUs over all": {{ask{Tasks: 2, Nodes: 2, Exact: true, GPUs: gpus(3)}, false, "n1:1:0 gpu 01 n2:1:0 gpu 0"}},
		"from the second on": {
			{ask{Tasks: 1, Relative: 1}, false, "n2:1:0123"},
			{ask{Tasks: 1, Relative: 1}, false, "nodes_busy"},
		},
		"all but the first": {
			{ask{Not: []core.NodeName{"n1"}}, false, "n2:1:0123"},
			{ask{Not: []core.NodeName{"n1", "n2"}}, false, "too_many_nodes"},
		},
		"a node that is not it": {{ask{On: []core.NodeName{"n3"}}, false, "invalid_node"}},
	} {
		j := &core.Job{
			ID: 7, State: core.Running, Attempt: 1, Spec: &core.Spec{},
			Alloc: &core.Alloc{Nodes: []core.NodeAlloc{node("n1"), node("n2")}},
		}
		var running []*core.Step
		for i, s := range steps {
			if s.ends {
				running = running[1:]
			}
			s.ask.MaxTasksPerNode = 512
			st, err := Place(j, running, "", &s.ask)
			got := core.ReasonOf(err)
			if err == nil {
				got = showHolds(st)
				st.State, st.Attempt = core.Running, 1
				running = append(running, st)
			}
			if got != s.want {
				t.Errorf("%s, step %d: %s, want %s", name, i, got, s.want)
			}
		}
	}
}

func showHolds(st *core.Step) string {
	var words []string
	for i, n := range st.Nodes {
		text := fmt.Sprintf("%s:%d:", n, st.Tasks[i])
		if len(st.Holds) > 0 {
			text += strings.Join(strings.Fields(strings.Trim(fmt.Sprint(st.Holds[i].Cores), "[]")), "")
			for _, g := range st.Holds[i].Gres {
				text += " " + g.Name + " " + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(g.Units), "[]")), "")
			}
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// TestCrowded: CPUs need not be there for --overcommit, but a node takes only so many tasks of a step.
func TestCrowded(t *testing.T) {
	t.Parallel()
	j := &core.Job{
		ID: 7, Spec: &core.Spec{},
		Alloc: &core.Alloc{Nodes: []core.NodeAlloc{{Node: "a", CPUs: 2}, {Node: "b", CPUs: 2}}},
	}
	for tasks, fails := range map[int32]string{8: "", 9: "too_many_cpus"} {
		_, err := Place(j, nil, "", &core.StepRequest{Tasks: tasks, Overcommit: true, Overlap: true, MaxTasksPerNode: 4})
		if core.ReasonOf(err) != fails {
			t.Errorf("%d tasks on two nodes that take 4 each: %v", tasks, err)
		}
	}
}
