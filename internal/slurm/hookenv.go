package slurm

import (
	"cmp"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// HookEnv is what the prolog and the epilog of a job see on a node. GPUs have the node's own numbers.
// SLURM_SCRIPT_CONTEXT, and how the job ended, are the keeper's to add.
func HookEnv(j *core.Job, node core.NodeName, info ClusterInfo) []string {
	s, more := j.Spec, j.Spec.More()
	v := make(vars, 0, 40)
	id := strconv.FormatInt(int64(j.ID), 10)
	v.set("SLURM_JOB_ID", id)
	v.set("SLURM_JOBID", id)
	v.set("SLURM_JOB_NAME", s.Name)
	v.some("SLURM_CLUSTER_NAME", info.Name)
	v.some("SLURM_CONF", info.Conf)
	v.set("SLURMD_NODENAME", string(node))
	v.set("SLURM_JOB_USER", string(s.User))
	v.num("SLURM_JOB_UID", int64(s.UID))
	v.num("SLURM_JOB_GID", int64(s.GID))
	v.some("SLURM_JOB_ACCOUNT", string(s.Project))
	v.some("SLURM_JOB_QOS", string(s.QOS))
	v.some("SLURM_JOB_CONSTRAINTS", more.Constraint.String())
	v.some("SLURM_JOB_COMMENT", more.Comment)
	v.some("SLURM_JOB_RESERVATION", more.Reservation)
	v.some("SLURM_JOB_LICENSES", more.Licenses.String())
	v.some("SLURM_JOB_EXTRA", more.SlurmOption("extra"))
	v.num("SLURM_JOB_RESTART_COUNT", int64(Restarts(j)))
	v.set("SLURM_JOB_WORK_DIR", s.IO.WorkDir)
	if s.Kind == core.Batch {
		v.set("SLURM_JOB_STDIN", OutPath(j, cmp.Or(s.IO.Stdin, "/dev/null")))
		v.set("SLURM_JOB_STDOUT", OutPath(j, s.IO.Stdout))
		v.set("SLURM_JOB_STDERR", OutPath(j, cmp.Or(s.IO.Stderr, s.IO.Stdout)))
	}
	shared := "NO"
	if s.Shape.Wide().OverSubscribe {
		shared = "YES"
	}
	v.set("SLURM_JOB_OVERSUBSCRIBE", shared)
	v.when(s.Shape.Exclusive, "SLURM_JOB_EXCLUSIVE", "YES")
	if j.Start != 0 {
		v.num("SLURM_JOB_START_TIME", j.Start.Unix())
		if s.TimeLimit > 0 && s.TimeLimit < core.Forever {
			v.num("SLURM_JOB_END_TIME", j.Start.Add(s.TimeLimit.Duration()).Unix())
		}
	}
	if a := j.Array; a != nil {
		v.num("SLURM_ARRAY_JOB_ID", int64(a.Base))
		v.num("SLURM_ARRAY_TASK_ID", int64(a.Task))
	}
	a := j.Alloc
	if a == nil {
		return v
	}
	v.set("SLURM_JOB_PARTITION", string(a.Partition))
	v.allocVars(a, nodeTasks(j))
	for i := range a.Nodes {
		if n := &a.Nodes[i]; n.Node == node && !info.Counted {
			units := gpuUnits(n)
			v.some("SLURM_JOB_GPUS", units)
			v.gpuVars(units)
		}
	}
	return v
}
