package server

import (
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// batchEnv gives the core of Slurm's variables for a batch script.
func batchEnv(j *core.Job, cluster string) []string {
	id := strconv.FormatInt(int64(j.ID), 10)
	nodes := make([]string, len(j.Alloc.Nodes))
	for i := range j.Alloc.Nodes {
		nodes[i] = string(j.Alloc.Nodes[i].Node)
	}
	list, count := hostlist.Fold(nodes), strconv.Itoa(len(nodes))
	env := []string{
		"SLURM_JOB_ID=" + id, "SLURM_JOBID=" + id, "SLURM_JOB_NAME=" + j.Spec.Name, "SLURM_JOB_PARTITION=" + string(j.Alloc.Partition),
		"SLURM_JOB_NODELIST=" + list, "SLURM_NODELIST=" + list, "SLURM_JOB_NUM_NODES=" + count, "SLURM_NNODES=" + count,
		"SLURM_JOB_USER=" + string(j.Spec.User), "SLURM_JOB_UID=" + strconv.FormatUint(uint64(j.Spec.UID), 10),
		"SLURM_JOB_ACCOUNT=" + string(j.Spec.Project), "SLURM_CLUSTER_NAME=" + cluster,
		"SLURM_SUBMIT_DIR=" + j.Spec.From.Dir, "SLURM_SUBMIT_HOST=" + j.Spec.From.Host, "SLURM_NODEID=0", "SLURM_PROCID=0", "SLURM_LOCALID=0",
		"SLURM_NTASKS=" + strconv.Itoa(int(max(1, j.Spec.Shape.Tasks))), "SLURM_JOB_CPUS_PER_NODE=" + strconv.Itoa(int(j.Alloc.Nodes[0].CPUs)),
		"ENVIRONMENT=BATCH",
	}
	if a := j.Array; a != nil {
		env = append(env, "SLURM_ARRAY_JOB_ID="+strconv.FormatInt(int64(a.Base), 10), "SLURM_ARRAY_TASK_ID="+strconv.Itoa(int(a.Task)),
			"SLURM_ARRAY_TASK_COUNT="+strconv.Itoa(int(a.Count)), "SLURM_ARRAY_TASK_MIN="+strconv.Itoa(int(a.Min)),
			"SLURM_ARRAY_TASK_MAX="+strconv.Itoa(int(a.Max)), "SLURM_ARRAY_TASK_STEP="+strconv.Itoa(int(a.Step)))
	}
	if j.Attempt > 1 {
		env = append(env, "SLURM_RESTART_COUNT="+strconv.Itoa(int(j.Attempt-1)))
	}
	return env
}

// stepEnv gives those of a numbered step.
func stepEnv(j *core.Job, st *core.Step, cluster string, node int, ranks []int32) (shared []string, tasks [][]string) {
	names, total := make([]string, len(st.Nodes)), int32(0)
	for i, n := range st.Nodes {
		names[i] = string(n)
		total += st.Tasks[i]
	}
	id, n := strconv.Itoa(int(st.ID)), strconv.Itoa(int(total))
	shared = append(batchEnv(j, cluster),
		"SLURM_STEP_ID="+id, "SLURM_STEPID="+id, "SLURM_STEP_NODELIST="+hostlist.Fold(names), "SLURM_STEP_NUM_NODES="+strconv.Itoa(len(names)),
		"SLURM_STEP_NUM_TASKS="+n, "SLURM_NTASKS="+n, "SLURM_NPROCS="+n, "SLURM_NODEID="+strconv.Itoa(node), "SLURMD_NODENAME="+string(st.Nodes[node]),
	)
	for local, r := range ranks {
		tasks = append(tasks, []string{"SLURM_PROCID=" + strconv.Itoa(int(r)), "SLURM_LOCALID=" + strconv.Itoa(local)})
	}
	return shared, tasks
}
