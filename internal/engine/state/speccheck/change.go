package speccheck

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// ApplyShapeChange changes a shape. What admission filled in and the change does not name is filled in again.
func ApplyShapeChange(c *core.AskChange, sh *core.Shape) error {
	for _, n := range []struct {
		name  string
		v     *int32
		least int32
	}{
		{"cpus", c.CPUs, 1},
		{"ntasks", c.Tasks, 1},
		{"ntasks-per-node", c.TasksPerNode, 0},
		{"cpus-per-task", c.CPUsPerTask, 1},
		{"mincpus", c.MinCPUs, 0},
		{"sockets", c.Sockets, 0},
		{"cores", c.Cores, 0},
		{"threads", c.Threads, 0},
	} {
		if n.v != nil && *n.v < n.least {
			return core.Errorf(core.Invalid, "%s: %d must be %d or more", n.name, *n.v, n.least).Because("invalid_shape")
		}
	}
	if c.Nodes != nil {
		if c.Nodes.Min < 1 {
			return core.Errorf(core.Invalid, "nodes: %d must be 1 or more", c.Nodes.Min).Because("invalid_shape")
		}
		sh.NodesMin, sh.NodesMax = c.Nodes.Min, cmp.Or(c.Nodes.Max, c.Nodes.Min)
		sh.Given |= core.GivenNodes
	}
	if c.TasksPerNode != nil {
		sh.TasksPerNode = *c.TasksPerNode
		sh.Given |= core.GivenTasksPerNode
	}
	if c.CPUsPerTask != nil {
		sh.CPUsPerTask = *c.CPUsPerTask
		sh.Given |= core.GivenCPUsPerTask
	}
	SetIf(&sh.MinCPUs, c.MinCPUs)
	if c.Gres != nil {
		sh.Gres = slices.Clone(*c.Gres)
		sh.Given |= core.GivenGres
	}
	switch each := max(1, sh.CPUsPerTask); {
	case c.Tasks != nil:
		sh.Tasks = *c.Tasks
		sh.Given |= core.GivenTasks
	case c.CPUs != nil:
		sh.Tasks = (*c.CPUs-1)/each + 1
		sh.Given |= core.GivenTasks
	case (c.Nodes != nil || c.TasksPerNode != nil) && sh.Given&core.GivenTasks == 0:
		sh.Tasks = 0
	}
	if c.MemPerNode != nil {
		sh.MemPerNode, sh.MemPerCPU = *c.MemPerNode, 0
		sh.Given = sh.Given&^core.GivenMemPerCPU | core.GivenMemPerNode
	}
	if c.MemPerCPU != nil {
		sh.MemPerNode, sh.MemPerCPU = 0, *c.MemPerCPU
		sh.Given = sh.Given&^core.GivenMemPerNode | core.GivenMemPerCPU
	}
	applyPlaceChange(&c.PlaceChange, sh)
	return nil
}

func applyPlaceChange(c *core.PlaceChange, sh *core.Shape) {
	if c.OverSubscribe == nil && c.Sockets == nil && c.Cores == nil && c.Threads == nil && c.GPUs == nil {
		return
	}
	more := *sh.Wide()
	SetIf(&more.OverSubscribe, c.OverSubscribe)
	SetIf(&more.Sockets, c.Sockets)
	SetIf(&more.Cores, c.Cores)
	SetIf(&more.Threads, c.Threads)
	if c.GPUs != nil {
		more.GPUs = slices.Clone(*c.GPUs)
	}
	sh.More = &more
}
