package speccheck

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/fit"
)

// Bounds on what a job may ask for: far above any cluster, far below where arithmetic on them could go wrong.
const (
	MaxNodes = 1 << 20
	MaxTasks = 1 << 24
	maxGres  = 1 << 30
	// MaxArrayRanges is how many ranges the indices of an array may be: each start of a task goes through them.
	MaxArrayRanges = 1 << 14
)

// Shape refuses numbers that mean nothing, whoever sent them.
func Shape(spec *core.Spec) error {
	sh := &spec.Shape
	for _, c := range []struct {
		name    string
		v, most int32
	}{
		{"nodes", sh.NodesMin, MaxNodes},
		{"nodes", sh.NodesMax, MaxNodes},
		{"ntasks", sh.Tasks, MaxTasks},
		{"ntasks-per-node", sh.TasksPerNode, MaxTasks},
		{"cpus-per-task", sh.CPUsPerTask, MaxTasks},
		{"mincpus", sh.MinCPUs, MaxTasks},
		{"array limit", spec.Throttle, 1<<31 - 1},
	} {
		if c.v < 0 || c.v > c.most {
			return core.Errorf(core.Invalid, "%s: %d must be from 0 to %d", c.name, c.v, c.most).Because("invalid_shape")
		}
	}
	if sh.NodesMax != 0 && sh.NodesMax < sh.NodesMin {
		return core.Errorf(core.Invalid, "nodes: minimum %d exceeds maximum %d", sh.NodesMin,
			sh.NodesMax).Because("invalid_shape")
	}
	if sh.MemPerCPU < 0 || sh.MemPerNode < 0 && sh.MemPerNode != fit.AllMemory {
		return core.Errorf(core.Invalid, "memory must not be negative").Because("invalid_shape")
	}
	if spec.TimeLimit < 0 {
		return core.Errorf(core.Invalid, "the time limit must be more than 0").Because("time_limit")
	}
	if err := checkShapeMore(sh); err != nil {
		return err
	}
	for _, g := range AllGres(sh) {
		if g.Name == "" || g.Count < 0 || g.Count > maxGres {
			return core.Errorf(core.Invalid, "gres %[2]q: %[1]d is not a valid count", g.Count, g.Name).Because("invalid_gres")
		}
	}
	return nil
}

// MinMemoryPerNode is what a job needs on each node at least.
func MinMemoryPerNode(sh *core.Shape) core.Bytes {
	return max(sh.MemPerNode, sh.MemPerCPU*core.Bytes(max(sh.CPUsPerTask, sh.MinCPUs)))
}

// MaxComponents is how many a het job may have, as in Slurm.
const MaxComponents = 128

func SetIf[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
