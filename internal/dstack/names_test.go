package dstack

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestRunName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := uint64(0); seed < 3000; seed++ {
		name := RunName(seed, func(n string) bool { return seen[n] })
		if err := CheckName(name); err != nil || seen[name] {
			t.Fatalf("seed %d: %q, seen %v, %v", seed, name, seen[name], err)
		}
		seen[name] = true
	}
}

func TestRunEnv(t *testing.T) {
	t.Parallel()
	gpu := func(units ...int32) []core.GresAlloc {
		return []core.GresAlloc{{Name: "gpu", Type: "a100", Units: units}}
	}
	job := &core.Job{
		ID: 7, Spec: &core.Spec{Run: "train"},
		Alloc: &core.Alloc{Nodes: []core.NodeAlloc{{Node: "n2", Gres: gpu(0, 1)}, {Node: "n1", Gres: gpu(3)}}},
	}
	addr := func(n core.NodeName) string { return map[core.NodeName]string{"n1": "127.0.1.1", "n2": "127.0.1.2"}[n] }
	want := []string{
		"DSTACK_RUN_NAME=train", "DSTACK_RUN_ID=id-1", "DSTACK_JOB_ID=7", "DSTACK_NODES_NUM=2", "DSTACK_NODE_RANK=1",
		"DSTACK_NODES_IPS=127.0.1.2\n127.0.1.1", "DSTACK_MASTER_NODE_IP=127.0.1.2", "DSTACK_GPUS_PER_NODE=1",
		"DSTACK_GPUS_NUM=3",
	}
	if diff := cmp.Diff(want, RunEnv(job, []*core.Job{job}, "id-1", 1, addr)); diff != "" {
		t.Error(diff)
	}
	for name, j := range map[string]*core.Job{
		"no run": {Spec: &core.Spec{}, Alloc: job.Alloc}, "not started": {Spec: job.Spec}, "nil": nil,
	} {
		if got := RunEnv(j, []*core.Job{j}, "", 0, addr); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
