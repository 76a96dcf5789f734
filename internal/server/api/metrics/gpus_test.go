package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/hub"
)

func TestExportedIsPassedOnByJob(t *testing.T) {
	t.Parallel()
	const head = "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
	line := func(uuid, value string) string {
		return `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="` + uuid + `",modelName="NVIDIA H200"} ` + value + "\n"
	}
	job := &core.Job{ID: 12, Spec: &core.Spec{Run: "train", User: "ada"}}
	gpus := []hub.GPU{
		{Node: "n2", UnitState: core.UnitState{UUID: "GPU-c"}, Job: job},
		{Node: "n1", UnitState: core.UnitState{UUID: "GPU-a"}, Job: job},
		{Node: "n1", UnitState: core.UnitState{UUID: "GPU-b", Index: 1}},
	}
	got := relabelled(gpus, map[core.NodeName][]byte{
		"n1": []byte(head + line("GPU-a", "97") + line("GPU-b", "0")),
		"n2": []byte(head + line("GPU-c", "55")),
	})
	relabelledLine := func(node, uuid, value string) string {
		return `DCGM_FI_DEV_GPU_UTIL{bireme_node="` + node + `",bireme_job="12",bireme_run="train",bireme_user="ada",` +
			`gpu="0",UUID="` + uuid + `",modelName="NVIDIA H200"} ` + value + "\n"
	}
	want := head + relabelledLine("n1", "GPU-a", "97") + relabelledLine("n2", "GPU-c", "55")
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}
