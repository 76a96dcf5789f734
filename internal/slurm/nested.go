package slurm

import (
	"slices"
	"strings"
)

// ofJob are variables that a job or a step has of itself; * ends a prefix.
var ofJob = []string{
	"SLURM_ARRAY_*", "SLURM_CPUS_*", "SLURM_CPU_BIND*", "SLURM_DIST_PLANESIZE", "SLURM_DISTRIBUTION", "SLURM_GPUS*",
	"SLURM_GPU_*", "SLURM_GTIDS", "SLURM_HET_*", "SLURM_HINT", "SLURM_JOB_*", "SLURM_JOBID", "SLURM_LAUNCH_*",
	"SLURM_LOCALID", "SLURM_MEM_*", "SLURM_NNODES", "SLURM_NODEID", "SLURM_NODELIST", "SLURM_NPROCS", "SLURM_NTASKS*",
	"SLURM_OPEN_MODE", "SLURM_OVERCOMMIT", "SLURM_PACK_*", "SLURM_PROCID", "SLURM_PROFILE", "SLURM_RESTART_COUNT",
	"SLURM_SHARDS*", "SLURM_SRUN_COMM_*", "SLURM_STEP*", "SLURM_TASKS_PER_NODE", "SLURM_TASK_PID",
	"SLURM_THREADS_PER_CORE", "SLURM_TRES_PER_TASK", "SLURM_TOPOLOGY_*", "SLURM_WHOLE",
}

// WithoutJob is the environment of whoever submits another job from inside one, without what describes that one: the
// new job has its own. Outside of jobs it is the environment itself.
func WithoutJob(environ []string) []string {
	if _, inside := lookup(environ, "SLURM_JOB_ID"); !inside {
		return environ
	}
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(ofJob, func(w string) bool {
			prefix, open := strings.CutSuffix(w, "*")
			return name == prefix || open && strings.HasPrefix(name, prefix)
		})
	})
}
