package slurm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// het76 is sbatch -n1 -c4 : -n2 --gres=gpu:1.
func het76() []*core.Job {
	part := func(offset, tasks, cpus int32, node core.NodeName, given core.ShapeGiven) *core.Job {
		j := slurmtest.Job(76+core.JobID(offset), "het.sh", "01:14:40", slurmtest.Running("01:14:41",
			core.NodeAlloc{Node: node, CPUs: tasks * cpus, Tasks: tasks}), slurmtest.With(from), func(j *client.Job) {
			j.Spec.Shape = core.Shape{Tasks: tasks, CPUsPerTask: cpus, MemPerCPU: 10 * core.MiB, Given: given}
			j.Spec.Extra = &core.Extra{Het: &core.HetRef{Lead: 76, Offset: offset, Count: 2}}
		})
		return &j.Job
	}
	return []*core.Job{
		part(0, 1, 4, "n001", core.GivenTasks|core.GivenCPUsPerTask),
		part(1, 2, 1, "n002", core.GivenTasks),
	}
}

func TestHetEnv(t *testing.T) {
	t.Parallel()
	all := het76()
	got := envMap(slurm.MergeEnv(slurm.BatchEnv(all[0], 0, info), slurm.HetEnv(all)),
		append(slices.Clone(newer), "HOSTNAME"))
	delete(got, "SLURM_CPUS_PER_TASK") // 22.05 has it by component only
	if d := cmp.Diff(golden(t, "env-het-batch"), got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestHetNames: components bear the first one's id and their place.
func TestHetNames(t *testing.T) {
	t.Parallel()
	want, _ := slurmtest.Golden(t, "scontrol-show-job-het")
	head, _, _ := strings.Cut(want, "\n   UserId")
	j := slurmtest.Job(16, "het", "01:09:07", func(j *client.Job) {
		j.Spec.Extra = &core.Extra{Het: &core.HetRef{Lead: 16, Offset: 0, Count: 2}}
	})
	if got := report.ShowJob(&j, report.ShowOptions{}); !strings.HasPrefix(got, head) {
		t.Errorf("got %.80q, want %q", got, head)
	}
}
