package steps

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/steplayout"
)

// TestLayout: which tasks of a step run where, as Slurm lays them out on three nodes of two CPUs.
func TestLayout(t *testing.T) {
	t.Parallel()
	j := &core.Job{ID: 1, Alloc: &core.Alloc{Nodes: []core.NodeAlloc{
		{Node: "a", CPUs: 2},
		{Node: "b", CPUs: 2},
		{Node: "c", CPUs: 2},
	}}}
	for name, tc := range map[string]struct {
		ask   client.NewStep
		nodes []core.NodeName
		ranks [][]int32
		fails string
	}{
		"block": {
			client.NewStep{Tasks: 4, Distribution: "block"},
			[]core.NodeName{"a", "b", "c"},
			[][]int32{{0, 1}, {2}, {3}},
			"",
		},
		"nothing said": {client.NewStep{Tasks: 4}, []core.NodeName{"a", "b", "c"}, [][]int32{{0, 1}, {2}, {3}}, ""},
		"cyclic": {
			client.NewStep{Tasks: 4, Distribution: "cyclic"},
			[]core.NodeName{"a", "b", "c"},
			[][]int32{{0, 3}, {1}, {2}},
			"",
		},
		"pack": {
			client.NewStep{Tasks: 4, Distribution: "block,Pack"},
			[]core.NodeName{"a", "b"},
			[][]int32{{0, 1}, {2, 3}},
			"",
		},
		"plane": {
			client.NewStep{Tasks: 4, Distribution: "plane=2"},
			[]core.NodeName{"a", "b", "c"},
			[][]int32{{0, 1}, {2}, {3}},
			"",
		},
		"two nodes, block": {client.NewStep{Tasks: 3, Nodes: 2}, []core.NodeName{"a", "b"}, [][]int32{{0, 1}, {2}}, ""},
		"two, cyclic": {
			client.NewStep{Tasks: 3, Nodes: 2, Distribution: "cyclic:block"},
			[]core.NodeName{"a", "b"},
			[][]int32{{0, 2}, {1}},
			"",
		},
		"arbitrary": {
			client.NewStep{NodeList: "c,a,c", Distribution: "arbitrary"},
			[]core.NodeName{"c", "a"},
			[][]int32{{0, 2}, {1}},
			"",
		},
		"list too short":  {client.NewStep{NodeList: "c,a", Tasks: 3, Distribution: "arbitrary"}, nil, nil, "invalid_shape"},
		"not of the job":  {client.NewStep{NodeList: "c,x", Distribution: "arbitrary"}, nil, nil, "invalid_node"},
		"too many on one": {client.NewStep{NodeList: "c,c,c", Distribution: "arbitrary"}, nil, nil, "too_many_cpus"},
		"too many":        {client.NewStep{Tasks: 7}, nil, nil, "too_many_cpus"},
	} {
		tc.ask.Overlap = true
		request, err := stepRequest(&tc.ask, 512)
		if err != nil {
			t.Fatal(err)
		}
		st, err := steplayout.Place(j, nil, "", request)
		if core.ReasonOf(err) != tc.fails {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		nodes, tasks, ranks := st.Nodes, st.Tasks, ranksOf(request, tc.ask.Distribution, st)
		if diff := cmp.Diff(tc.nodes, nodes) + cmp.Diff(tc.ranks, ranks); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for i := range ranks {
			if int(tasks[i]) != len(ranks[i]) {
				t.Errorf("%s: %d tasks and ranks %v", name, tasks[i], ranks[i])
			}
		}
	}
}
