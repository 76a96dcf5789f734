// Package taskpid tells a task its own process number by SLURM_TASK_PID, which is filled in while the task is at its
// exec.
package taskpid
