package steplayout

import (
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestUnitsOfSteps [gres-step]: which units of its job's two GPUs and network a step sees, and which wait for others.
func TestUnitsOfSteps(t *testing.T) {
	t.Parallel()
	gres := func(name string, n int64) []core.Gres { return []core.Gres{{Name: name, Count: n}} }
	type ask = core.StepRequest
	both := append(gres("gpu", 2), gres("net", 1)...)
	exact := func(a ask) ask { a.Tasks, a.Exact, a.MaxTasksPerNode = 1, true, 512; return a }
	for name, c := range map[string]struct {
		job    []core.Gres
		before ask // of the step that runs
		ask    ask
		want   string // the units it sees, or busy
	}{
		"plain ones have all":     {both, ask{NoGres: true}, ask{}, "gpu[0 1] net[0]"},
		"of what was asked for":   {gres("gpu", 2), ask{NoGres: true}, ask{}, "gpu[0 1]"},
		"nothing was asked for":   {nil, ask{}, ask{}, ""},
		"none":                    {both, ask{}, ask{NoGres: true}, ""},
		"one":                     {both, ask{NoGres: true}, ask{GPUs: gres("gpu", 1)}, "gpu[0]"},
		"the other":               {both, ask{Gres: gres("gpu", 1)}, ask{GPUsPerTask: gres("gpu", 1)}, "gpu[1]"},
		"of another kind":         {both, ask{Gres: gres("gpu", 2)}, ask{Gres: gres("net", 1)}, "net[0]"},
		"plain after plain waits": {both, ask{}, ask{}, "busy"},
		"plain after one waits":   {both, ask{Gres: gres("gpu", 1)}, ask{}, "busy"},
		"one after plain waits":   {both, ask{}, ask{Gres: gres("gpu", 1)}, "busy"},
		"two after one waits":     {both, ask{GPUs: gres("gpu", 1)}, ask{Gres: gres("gpu", 2)}, "busy"},
		"by task, of the node's": {
			both, ask{NoGres: true}, ask{GPUsPerTask: gres("gpu", 1), Gres: gres("gpu", 2)}, "gpu[0 1]",
		},
		"shared units":               {both, ask{}, ask{Overlap: true, Gres: gres("gpu", 1)}, "gpu[0]"},
		"shared with none":           {both, ask{}, ask{Overlap: true, NoGres: true}, ""},
		"what is shared is not held": {both, ask{Overlap: true}, ask{}, "gpu[0 1] net[0]"},
	} {
		node := core.NodeAlloc{Node: "n1", CPUs: 4, Cores: []int32{0, 1, 2, 3}, Gres: []core.GresAlloc{
			{Name: "gpu", Units: []int32{0, 1}}, {Name: "net", Units: []int32{0}},
		}}
		j := &core.Job{
			ID: 7, State: core.Running, Spec: &core.Spec{Shape: core.Shape{Gres: c.job}},
			Alloc: &core.Alloc{Nodes: []core.NodeAlloc{node}},
		}
		before, request := exact(c.before), exact(c.ask)
		first, err := Place(j, nil, "", &before)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := "busy"
		if st, err := Place(j, []*core.Step{first}, "", &request); err == nil {
			units := node.Gres
			if len(st.Units) > 0 {
				units = st.Units[0]
			}
			got = ""
			for i, g := range units {
				got += map[bool]string{true: " "}[i > 0] + fmt.Sprint(g.Name, g.Units)
			}
		} else if core.CodeOf(err) != core.Conflict {
			t.Errorf("%s: %v", name, err)
		}
		if got != c.want {
			t.Errorf("%s: it sees %q, want %q", name, got, c.want)
		}
	}
}
