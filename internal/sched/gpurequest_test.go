package sched

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// TestGPUsByMemoryAndMaker places a job that says which GPUs will do.
func TestGPUsByMemoryAndMaker(t *testing.T) {
	t.Parallel()
	l := ledger.New()
	for i, hw := range []core.Hardware{
		{Gres: []core.Gres{{Name: "gpu", Type: "l4", Count: 2}}, Units: []core.Unit{{
			Name: "gpu", Type: "l4",
			Memory: 23034 * core.MiB, Vendor: "nvidia", Capability: 89,
		}, {Name: "gpu", Type: "l4", Index: 1, Memory: 23034 * core.MiB, Vendor: "nvidia", Capability: 89}}},
		{
			Gres: []core.Gres{{Name: "gpu", Type: "h100", Count: 1}, {Name: "gpu", Type: "mi300x", Count: 1}},
			Units: []core.Unit{
				{Name: "gpu", Type: "h100", Memory: 81559 * core.MiB, Vendor: "nvidia", Capability: 90},
				{Name: "gpu", Type: "mi300x", Index: 1, Memory: 196592 * core.MiB, Vendor: "amd"},
			},
		},
		{Gres: []core.Gres{{Name: "gpu", Type: "mystery", Count: 8}}},
	} {
		hw.CPUs, hw.Memory = 8, 16*core.GiB
		l.SetNode(&core.Node{ID: int64(i), Name: core.NodeName("abc"[i : i+1]), Roles: core.Compute, Hardware: hw})
	}
	for name, tc := range map[string]struct {
		count int64
		ask   *core.GPUAsk
		want  string // node and type; empty: nowhere
	}{
		"any":                        {1, nil, "a l4"},
		"24 GB as sold":              {2, &core.GPUAsk{MemMin: 24 * core.GiB, MemMax: 24 * core.GiB}, "a l4"},
		"80 GB or more":              {2, &core.GPUAsk{MemMin: 80 * core.GiB}, "b h100"},
		"80 GB or more, too many":    {3, &core.GPUAsk{MemMin: 80 * core.GiB}, ""},
		"more than 100":              {1, &core.GPUAsk{MemMin: 100 * core.GiB}, "b mi300x"},
		"of AMD":                     {1, &core.GPUAsk{Vendor: "amd"}, "b mi300x"},
		"of AMD, two":                {2, &core.GPUAsk{Vendor: "amd"}, ""},
		"one of two names":           {1, &core.GPUAsk{Names: []string{"H200", "H100"}}, "b h100"},
		"a name nothing is known of": {8, &core.GPUAsk{Names: []string{"Mystery"}}, "c mystery"},
		"its memory":                 {8, &core.GPUAsk{Names: []string{"Mystery"}, MemMin: core.GiB}, ""},
		"capability 8.0 or more":     {2, &core.GPUAsk{Capability: 80}, "a l4"},
		"capability 9.0 or more":     {1, &core.GPUAsk{Capability: 90}, "b h100"},
		"capability 9.0, two":        {2, &core.GPUAsk{Capability: 90}, ""},
		"small":                      {1, &core.GPUAsk{MemMax: 16 * core.GiB}, ""},
	} {
		var s *core.Spec
		coretest.Job().Set(func(sp *core.Spec) { s = sp })
		s.Shape.Gres = []core.Gres{{Name: "gpu", Count: tc.count}}
		s.Extra = &core.Extra{GPU: tc.ask}
		n := fit.RequestOf(s, func(string) map[core.NodeName]bool { return nil })
		at := ledger.View{Nodes: l.NodesIn(nil)}
		got := ""
		if picks := n.Choose(at, nil); picks != nil {
			na := n.Alloc("main", picks, at).Nodes[0]
			got = string(na.Node) + " " + na.Gres[0].Type
		}
		if got != tc.want {
			t.Errorf("%s: placed on %q, want %q", name, got, tc.want)
		}
		if never := fit.CheckSatisfiable(l, s, &core.Partition{Nodes: "ALL"}, &fit.NodeSet{},
			func(string) map[core.NodeName]bool { return nil }); (never != nil) != (tc.want == "") {
			t.Errorf("%s: can never start: %+v", name, never)
		}
	}
}
