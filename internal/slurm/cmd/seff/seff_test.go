package seff

import (
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func TestEfficiency(t *testing.T) {
	t.Parallel()
	c := slurmtest.Lab()
	start := slurmtest.Day("01:00:00")
	spec := &core.Spec{User: "ann"}
	c.Jobs = []client.Job{
		{Job: core.Job{
			ID: 7, State: core.Completed, Spec: spec, Start: start, End: start + 100e6,
			Alloc: &core.Alloc{Nodes: []core.NodeAlloc{
				{Node: "n1", CPUs: 4, Mem: core.GiB}, {Node: "n2", CPUs: 4, Mem: core.GiB},
			}},
			Usage: core.Usage{User: 90 * time.Second, Sys: 10 * time.Second, MaxRSS: 100 * core.MiB}, Steps: 1,
		}},
		{Job: core.Job{ID: 8, State: core.Pending, Spec: spec}},
	}
	c.Steps = []core.Step{{Job: 7, Usage: core.Usage{User: 300 * time.Second, MaxRSS: 512 * core.MiB}}}
	c.Start(t)
	got := c.Run(t, "seff", Run, []string{"7"})
	want := "Job ID: 7\nCluster: anchor\nUser/Group: ann/root\nState: COMPLETED (exit code 0)\n" +
		"Nodes: 2\nCores per node: 4\nCPU Utilized: 00:06:40\nCPU Efficiency: 50.00% of 00:13:20 core-walltime\n" +
		"Job Wall-clock time: 00:01:40\nMemory Utilized: 512.00 MB\nMemory Efficiency: 25.00% of 2.00 GB\n"
	if got.Out != want || got.Code != 0 {
		t.Errorf("code %d\n%s%s", got.Code, got.Out, got.Err)
	}
	if got := c.Run(t, "seff", Run, []string{"8"}); !strings.Contains(got.Out, "not available for jobs in the PENDING") {
		t.Errorf("a job that waits:\n%s%s", got.Out, got.Err)
	}
	if got := c.Run(t, "seff", Run, []string{"999"}); got.Err != "Job not found.\n" || got.Code != 1 {
		t.Errorf("no job: %d %s%s", got.Code, got.Out, got.Err)
	}
	if got := c.Run(t, "seff", Run, nil); got.Code != 1 || !strings.HasPrefix(got.Err, "Usage: seff") {
		t.Errorf("no id: %d %s", got.Code, got.Err)
	}
}
