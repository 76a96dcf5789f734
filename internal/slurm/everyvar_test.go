package slurm_test

import (
	"regexp"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// rich is a job that asks for everything that shows in a variable: a task of an array, started again, with GPUs.
func rich() *core.Job {
	on := func(n core.NodeName, units ...int32) core.NodeAlloc {
		return core.NodeAlloc{Node: n, CPUs: 4, Tasks: 2, Gres: []core.GresAlloc{
			{Name: "gpu", Type: "a100", Units: units}, {Name: "shard", Units: []int32{0, 1, 2}},
		}}
	}
	j := slurmtest.Job(75, "deep", "01:14:26", slurmtest.Running("01:14:28", on("n001", 2, 3), on("n002", 0, 1)),
		slurmtest.With(from), func(j *client.Job) {
			s := j.Spec
			s.TimeLimit, s.QOS = 300, "high"
			s.IO = core.IO{WorkDir: "/home/u", Stdout: "o-%j", Stderr: "e-%j"}
			s.Shape = core.Shape{
				NodesMin: 2, NodesMax: 2, Tasks: 4, TasksPerNode: 2, CPUsPerTask: 2, MemPerCPU: 100 * core.MiB, Exclusive: true,
				Given: core.GivenNodes | core.GivenTasks | core.GivenTasksPerNode | core.GivenCPUsPerTask | core.GivenMemPerCPU,
				More:  &core.ShapeMore{MemPerGPU: core.GiB, GPUsPerTask: []core.Gres{{Name: "gpu", Count: 1}}},
			}
			s.Extra = &core.Extra{
				Reservation: "maint", Dependency: coretest.Dependency("afterok:7"), Licenses: coretest.Licenses("matlab:2"),
				Distribution: "plane=2",
				Segment:      2, Constraint: coretest.Constraint("fast"), Comment: "why",
				Kept: &core.KeptOptions{Slurm: map[string]string{
					"gpus": "4", "gpus-per-node": "2", "gpus-per-socket": "1", "gpus-per-task": "1",
					"cpus-per-gpu": "2", "gpu-bind": "per_task:1", "gpu-freq": "low",
					"ntasks-per-core": "1", "ntasks-per-socket": "2", "ntasks-per-gpu": "1", "hint": "nomultithread",
					"overcommit": "1", "profile": "none",
					"network": "ib", "threads-per-core": "1", "tres-per-task": "cpu=2", "oom-kill-step": "1",
					"mem-bind": "local", "cpu-freq": "low", "extra": "note",
				}},
			}
			j.Array = &core.ArrayRef{Base: 73, Task: 6, Count: 3, Min: 2, Max: 10, Step: 4}
			j.Attempt = 3
		})
	return &j.Job
}

// Every variable of Slurm's that tells of the job, with the form of its value, by where it is seen. What belongs to the
// keeper (SLURM_TASK_PID, TMPDIR, SLURM_TMPDIR), to srun (SLURM_UMASK, SRUN_DEBUG, the addresses) and to het jobs is
// tested there.
func TestEveryVariable(t *testing.T) {
	t.Parallel()
	const number, list = `\d+`, `\d+(,\d+)*`
	job := map[string]string{
		"SLURM_JOB_ID": "75", "SLURM_JOBID": "75", "SLURM_JOB_NAME": "deep", "SLURM_JOB_NODELIST": `n\[001-002\]`,
		"SLURM_NODELIST":      `n\[001-002\]`,
		"SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2", "SLURM_JOB_PARTITION": "main", "SLURM_JOB_ACCOUNT": ".+",
		"SLURM_JOB_QOS":         "high",
		"SLURM_JOB_RESERVATION": "maint", "SLURM_JOB_CPUS_PER_NODE": `4\(x2\)`, "SLURM_TASKS_PER_NODE": `2\(x2\)`,
		"SLURM_CPUS_PER_TASK": "2",
		"SLURM_NTASKS":        "4", "SLURM_NPROCS": "4", "SLURM_NTASKS_PER_NODE": "2", "SLURM_NTASKS_PER_CORE": "1",
		"SLURM_NTASKS_PER_SOCKET": "2",
		"SLURM_NTASKS_PER_GPU":    "1", "SLURM_MEM_PER_CPU": "100", "SLURM_MEM_PER_GPU": "1024", "SLURM_GPUS": "4",
		"SLURM_GPUS_PER_NODE":   "2",
		"SLURM_GPUS_PER_SOCKET": "1", "SLURM_GPUS_PER_TASK": "1", "SLURM_CPUS_PER_GPU": "2",
		"SLURM_GPU_BIND": "per_task:1", "SLURM_GPU_FREQ": "low",
		"SLURM_SUBMIT_DIR": "/.*", "SLURM_SUBMIT_HOST": "vm", "SLURM_CLUSTER_NAME": "anchor",
		"SLURM_JOB_START_TIME": `\d{10}`, "SLURM_JOB_END_TIME": `\d{10}`,
		"SLURM_RESTART_COUNT": "2", "SLURM_JOB_DEPENDENCY": "afterok:7", "SLURM_JOB_LICENSES": "matlab:2",
		"SLURM_JOB_SEGMENT_SIZE": "2",
		"SLURM_ARRAY_JOB_ID":     "73", "SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_COUNT": "3",
		"SLURM_ARRAY_TASK_MIN": "2", "SLURM_ARRAY_TASK_MAX": "10",
		"SLURM_ARRAY_TASK_STEP": "4", "SLURM_DISTRIBUTION": "plane=2", "SLURM_DIST_PLANESIZE": "2",
		"SLURM_HINT": "nomultithread", "SLURM_OVERCOMMIT": "1",
		"SLURM_PROFILE": "none", "SLURM_NETWORK": "ib", "SLURM_THREADS_PER_CORE": "1", "SLURM_TRES_PER_TASK": "cpu=2",
		"SLURM_OOMKILLSTEP": "1",
		"SBATCH_MEM_BIND":   "local", "SLURM_CPU_FREQ_REQ": "low", "SLURM_CONF": "/.*",
	}
	owner := map[string]string{"SLURM_JOB_UID": number, "SLURM_JOB_GID": number, "SLURM_JOB_USER": ".+"}
	node := map[string]string{
		"SLURM_CPUS_ON_NODE": "4", "SLURM_GPUS_ON_NODE": "2", "SLURM_SHARDS_ON_NODE": "3", "SLURMD_NODENAME": `n00[12]`,
		"SLURM_TOPOLOGY_ADDR": `n00[12]`, "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
	}
	gpus := map[string]string{
		"CUDA_VISIBLE_DEVICES": list, "ROCR_VISIBLE_DEVICES": list, "GPU_DEVICE_ORDINAL": list,
		"ZE_AFFINITY_MASK": list,
	}
	j := rich()
	step := &core.Step{Job: 75, ID: 4, Nodes: []core.NodeName{"n002"}, Tasks: []int32{2}}
	parts := []slurm.StepPart{{Job: j, Step: step, Ranks: [][]int32{{0, 1}}}}
	with := func(m map[string]string, key, value string) map[string]string {
		out := map[string]string{}
		for k, v := range m {
			out[k] = v
		}
		out[key] = value
		return out
	}
	tasked := with(with(with(with(job, "SLURM_NTASKS", "2"), "SLURM_NPROCS", "2"), "SLURM_NNODES", "1"),
		"SLURM_TASKS_PER_NODE", "2")
	for where, tc := range map[string]struct {
		env  []string
		want []map[string]string
		not  []string // variables that are not there
	}{
		"batch script": {slurm.BatchEnv(j, 0, info), []map[string]string{job, owner, node, gpus, {
			"SLURM_NODEID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_GTIDS": "0", "ENVIRONMENT": "BATCH",
			"HOSTNAME":       "n001",
			"SLURM_JOB_GPUS": "2,3", "CUDA_VISIBLE_DEVICES": "2,3",
		}}, []string{"SLURM_STEP_ID", "SLURM_JOB_COMMENT"}},
		"salloc": {
			slurm.AllocEnv(j, info),
			[]map[string]string{job},
			[]string{"CUDA_VISIBLE_DEVICES", "SLURMD_NODENAME", "SLURM_JOB_UID", "SLURM_CPUS_ON_NODE"},
		},
		"task": {
			slurm.MergeEnv(slurm.StepEnv(parts, info), slurm.TaskEnv(parts, 0, 0, 1, info)),
			[]map[string]string{tasked, owner, node, {
				"SLURM_STEP_ID": "4", "SLURM_STEPID": "4", "SLURM_STEP_NODELIST": "n002", "SLURM_STEP_NUM_NODES": "1",
				"SLURM_STEP_NUM_TASKS":      "2",
				"SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_GPUS": "0,1", "SLURM_PROCID": "1", "SLURM_LOCALID": "1",
				"SLURM_NODEID": "0", "SLURM_GTIDS": "0,1",
				"CUDA_VISIBLE_DEVICES": "1", "SLURMD_NODENAME": "n002",
			}},
			[]string{"ENVIRONMENT", "SLURM_JOB_COMMENT"},
		},
		"prolog and epilog": {slurm.HookEnv(j, "n002", info), []map[string]string{owner, gpus, {
			"SLURM_JOB_ID": "75", "SLURM_JOBID": "75", "SLURM_JOB_PARTITION": "main", "SLURM_JOB_ACCOUNT": ".+",
			"SLURM_JOB_QOS":      "high",
			"SLURM_JOB_NODELIST": `n\[001-002\]`, "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_CPUS_PER_NODE": `4\(x2\)`,
			"SLURM_JOB_GPUS":        "0,1",
			"SLURM_JOB_CONSTRAINTS": "fast", "SLURM_JOB_COMMENT": "why", "SLURM_JOB_RESERVATION": "maint",
			"SLURM_JOB_RESTART_COUNT": "2",
			"SLURM_JOB_STDIN":         "/dev/null", "SLURM_JOB_STDOUT": "/home/u/o-75",
			"SLURM_JOB_STDERR": "/home/u/e-75", "SLURM_JOB_WORK_DIR": "/home/u",
			"SLURM_JOB_OVERSUBSCRIBE": "NO", "SLURM_JOB_EXCLUSIVE": "YES", "SLURM_JOB_START_TIME": `\d{10}`,
			"SLURM_JOB_END_TIME": `\d{10}`,
			"SLURM_JOB_LICENSES": "matlab:2", "SLURM_JOB_EXTRA": "note", "SLURM_CLUSTER_NAME": "anchor",
			"SLURMD_NODENAME": "n002", "SLURM_CONF": "/.*",
			"SLURM_ARRAY_JOB_ID": "73", "SLURM_ARRAY_TASK_ID": "6", "SLURM_JOB_NAME": "deep",
		}}, []string{"PATH"}},
	} {
		got := map[string]string{}
		for _, e := range tc.env {
			name, value, _ := strings.Cut(e, "=")
			if _, twice := got[name]; twice {
				t.Errorf("%s: %s is there twice", where, name)
			}
			got[name] = value
		}
		for _, group := range tc.want {
			for name, form := range group {
				if value, ok := got[name]; !ok {
					t.Errorf("%s: %s is missing", where, name)
				} else if !regexp.MustCompile("^(" + form + ")$").MatchString(value) {
					t.Errorf("%s: %s=%s, want %s", where, name, value, form)
				}
			}
		}
		for _, name := range tc.not {
			if value, ok := got[name]; ok {
				t.Errorf("%s: there is %s=%s", where, name, value)
			}
		}
	}
}
