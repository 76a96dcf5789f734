package state

import (
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/runlife"
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

// TestRanksOfProcesses: the commands of a run of processes on several nodes end by themselves on some of them; the
// next attempt begins without these ends.
func TestRanksOfProcesses(t *testing.T) {
	t.Parallel()
	alloc := &core.Alloc{Nodes: []core.NodeAlloc{{Node: "a"}, {Node: "b"}, {Node: "c"}}}
	told := func(j *core.Job) []core.RankExit {
		for _, in := range []Exited{
			{Node: "b", Step: "0", Exit: core.Exit{Code: 5}},
			{Node: "b", Step: "0", Exit: core.Exit{Code: 6}},          // again
			{Node: "a", Step: "0", Cause: jobs.CauseCancelled},        // it was ended
			{Node: "c", Step: "1", Exit: core.Exit{Code: 7}},          // of a step that the commands made
			{Node: "d", Step: "0", Exit: core.Exit{Code: 8}},          // not of the job's
			{Node: "c", Step: "0", Exit: core.Exit{Code: 0}, Job: 17}, // the right one is chosen before
		} {
			in.addRank(j)
		}
		if j.Life == nil {
			return nil
		}
		return j.Life.Ranks
	}
	run := &core.Job{Spec: &core.Spec{Run: "r"}, Alloc: alloc}
	want := []core.RankExit{{Rank: 1, Code: 5}, {Rank: 2}}
	if got := told(run); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	runlife.Started(run)
	if run.Life.Ranks != nil {
		t.Errorf("%+v", run.Life.Ranks)
	}
	for name, j := range map[string]*core.Job{
		"in containers": {Spec: &core.Spec{Run: "r", Extra: &core.Extra{Container: &core.Container{}}}, Alloc: alloc},
		"of Slurm":      {Spec: &core.Spec{}, Alloc: alloc},
		"on one node":   {Spec: &core.Spec{Run: "r"}, Alloc: &core.Alloc{Nodes: alloc.Nodes[1:2]}},
	} {
		if got := told(j); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
