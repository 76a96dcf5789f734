package slurm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// notOurs are variables of the recordings that come from elsewhere: the submitting process, the keeper, Slurm's own
// plumbing, and srun's options.
var notOurs = []string{
	"HOME", "PWD", "SHELL", "TMPDIR", "SLURM_TASK_PID", "SLURM_PRIO_PROCESS", "SLURM_NODE_ALIASES",
	"SLURM_WORKING_CLUSTER",
	"SLURM_LABELIO", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT",
	"SLURM_STEP_LAUNCHER_PORT", "SLURM_UMASK", "SRUN_DEBUG",
}

// newer are variables of later releases, or of nodes with real GPUs, which the recordings do not have.
var newer = []string{
	"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "ENVIRONMENT", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	"GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
	"SLURM_JOB_GPUS", "SLURM_STEP_GPUS",
}

func envMap(lines, drop []string) map[string]string {
	m := map[string]string{}
	for _, l := range lines {
		if k, v, ok := strings.Cut(l, "="); ok && !slices.Contains(drop, k) {
			m[k] = v
		}
	}
	return m
}

func golden(t *testing.T, name string) map[string]string {
	text, _ := slurmtest.Golden(t, name)
	return envMap(slurmtest.Lines(text), notOurs)
}

var info = slurm.ClusterInfo{Name: "anchor", Conf: "/tmp/golden/slurm/slurm.conf"}

func from(s *core.Spec) { s.From.Host = "vm" }

// job71 is sbatch -N2 --ntasks-per-node=2 -c2 --mem=512 --gres=gpu:2 --time=5.
func job71() *core.Job {
	on := func(n core.NodeName) core.NodeAlloc {
		return core.NodeAlloc{
			Node: n, CPUs: 4, Tasks: 2,
			Gres: []core.GresAlloc{{Name: "gpu", Type: "a100", Units: []int32{0, 1}}},
		}
	}
	j := slurmtest.Job(71, "envdump", "01:14:26", slurmtest.Running("01:14:28", on("n001"), on("n002")),
		slurmtest.With(from), func(j *client.Job) {
			j.Spec.Shape = core.Shape{
				NodesMin: 2, NodesMax: 2, Tasks: 4, TasksPerNode: 2, CPUsPerTask: 2, MemPerNode: 512 * core.MiB,
				Given: core.GivenNodes | core.GivenTasksPerNode | core.GivenCPUsPerTask | core.GivenMemPerNode,
			}
		})
	return &j.Job
}

func TestBatchEnv(t *testing.T) {
	t.Parallel()
	got := envMap(slurm.BatchEnv(job71(), 0, info), newer)
	if d := cmp.Diff(golden(t, "env-batch"), got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	array := slurmtest.Job(75, "aenv.sh", "01:14:34", slurmtest.Running("01:14:36", slurmtest.On("n001", 1)),
		slurmtest.With(from), func(j *client.Job) {
			j.Array = &core.ArrayRef{Base: 73, Task: 6, Count: 3, Min: 2, Max: 10, Step: 4}
		})
	got = envMap(slurm.BatchEnv(&array.Job, 0, info), append(slices.Clone(newer), "HOSTNAME"))
	if d := cmp.Diff(golden(t, "env-array"), got); d != "" {
		t.Errorf("array (-want +got)\n%s", d)
	}
}

func TestTaskEnv(t *testing.T) {
	t.Parallel()
	step := &core.Step{Job: 71, ID: 0, Nodes: []core.NodeName{"n001", "n002"}, Tasks: []int32{2, 2}}
	all := []slurm.StepPart{{Job: job71(), Step: step, Ranks: slurm.Distribute(step.Tasks, "block")}}
	for name, at := range map[string][2]int{"env-task-0": {0, 0}, "env-task-3": {1, 1}} {
		// srun sends on what the batch script had.
		env := slurm.MergeEnv(slurm.BatchEnv(job71(), 0, info), slurm.StepEnv(all, info))
		env = slurm.MergeEnv(env, slurm.TaskEnv(all, 0, at[0], at[1], slurm.ClusterInfo{}))
		if d := cmp.Diff(golden(t, name), envMap(env, append(slices.Clone(newer), "HOSTNAME"))); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	direct := slurmtest.Job(72, "bash", "01:14:33",
		slurmtest.Running("01:14:33", slurmtest.On("n001", 3), slurmtest.On("n002", 1)), slurmtest.With(from),
		func(j *client.Job) {
			j.Spec.Kind = core.Interactive
			j.Spec.Shape = core.Shape{NodesMin: 2, Tasks: 4, Given: core.GivenNodes | core.GivenTasks}
		})
	step = &core.Step{Job: 72, ID: 0, Nodes: []core.NodeName{"n001", "n002"}, Tasks: []int32{3, 1}}
	all = []slurm.StepPart{{Job: &direct.Job, Step: step, Ranks: slurm.Distribute(step.Tasks, "")}}
	env := slurm.MergeEnv(slurm.StepEnv(all, info), slurm.TaskEnv(all, 0, 1, 0, slurm.ClusterInfo{}))
	if d := cmp.Diff(golden(t, "env-srun-direct-3"), envMap(env, newer)); d != "" {
		t.Errorf("direct (-want +got)\n%s", d)
	}
}

func TestDistribute(t *testing.T) {
	t.Parallel()
	for how, want := range map[string][][]int32{
		"block":      {{0, 1, 2}, {3}},
		"cyclic":     {{0, 2, 3}, {1}},
		"plane=2":    {{0, 1, 3}, {2}},
		"":           {{0, 1, 2}, {3}},
		"cyclic:*,P": {{0, 2, 3}, {1}},
	} {
		if d := cmp.Diff(want, slurm.Distribute([]int32{3, 1}, how)); d != "" {
			t.Errorf("%s (-want +got)\n%s", how, d)
		}
	}
}

func TestProcessIsInherited(t *testing.T) {
	t.Parallel()
	submit := func(p slurm.Process, args ...string) (*core.Spec, []string) {
		r := slurm.NewRequest(slurm.Sbatch, slurmtest.Day("01:00:00").Go(), "/tmp")
		if _, err := r.Args(args); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		env := r.JobEnviron([]string{"A=1", "SLURM_PRIO_PROCESS=9"}, p)
		return &r.Spec, env
	}
	limits := map[string]uint64{"NOFILE": 1024, "CORE": 0, "AS": 7}
	spec, env := submit(slurm.Process{Umask: 0o27, Nice: 5, Limits: limits}, "--propagate=NOFILE,CORE")
	want := &core.Extra{Umask: "0027"}
	if d := cmp.Diff(want, spec.Extra); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	asked := []string{"A=1", "SLURM_PRIO_PROCESS=5", "SLURM_RLIMIT_CORE=U0", "SLURM_RLIMIT_NOFILE=U1024"}
	if d := cmp.Diff(asked, env); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	spec, env = submit(slurm.Process{Umask: 0o22, Limits: limits})
	if spec.Extra != nil {
		t.Errorf("a plain job has %+v", spec.Extra)
	}
	all := []string{
		"A=1", "SLURM_PRIO_PROCESS=0", "SLURM_RLIMIT_CORE=0", "SLURM_RLIMIT_NOFILE=1024",
		"SLURM_RLIMIT_AS=7",
	}
	if d := cmp.Diff(all, env); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, env = submit(slurm.Process{Limits: limits}, "--propagate=NONE"); len(env) != 2 {
		t.Errorf("nothing is passed on, and there is %q", env)
	}
}

// TestTakeLimits [rlimits]: limits leave the environment before a job starts; what the site keeps goes through only
// where the user asked.
func TestTakeLimits(t *testing.T) {
	t.Parallel()
	env := []byte("A=1\x00SLURM_RLIMIT_CORE=5\x00SLURM_RLIMIT_NOFILE=U7\x00SLURM_RLIMIT_AS=18446744073709551615\x00" +
		"SLURM_RLIMIT_BAD=1\x00SLURM_RLIMIT_CPU=x\x00B=2\x00")
	for _, c := range []struct {
		keep []string
		want map[string]int64
	}{
		{nil, map[string]int64{"core": 5, "nofile": 7, "as": -1}},
		{[]string{"CORE", "NOFILE"}, map[string]int64{"nofile": 7, "as": -1}},
		{[]string{"ALL"}, map[string]int64{"nofile": 7}},
	} {
		rest, got := slurm.TakeLimits(env, c.keep)
		if d := cmp.Diff(c.want, got); d != "" || string(rest) != "A=1\x00B=2\x00" {
			t.Errorf("keep %v: rest %q (-want +got)\n%s", c.keep, rest, d)
		}
	}
}
