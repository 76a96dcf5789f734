package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestRanksOfExit: a job keeps no more ends by rank than it has nodes, whatever is reported.
func TestRanksOfExit(t *testing.T) {
	t.Parallel()
	in := &Exited{Ranks: make([]core.RankExit, 50_000)}
	groups := &core.Extra{Het: &core.HetRef{}}
	alloc := &core.Alloc{Nodes: make([]core.NodeAlloc, 3)}
	for name, tc := range map[string]struct {
		job  core.Job
		want int
	}{
		"of three nodes":    {core.Job{Spec: &core.Spec{}, Alloc: alloc}, 3},
		"of several groups": {core.Job{Spec: &core.Spec{Extra: groups}, Alloc: alloc}, maxGroupRanks},
		"without nodes":     {core.Job{Spec: &core.Spec{}}, 0},
	} {
		if got := len(in.ranksOf(&tc.job)); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
	in.Ranks = in.Ranks[:2]
	if len(in.ranksOf(&core.Job{Spec: &core.Spec{}, Alloc: alloc})) != 2 {
		t.Error("fewer than nodes")
	}
}
