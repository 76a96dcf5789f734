package slurm

import (
	"path/filepath"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/filename"
)

// Pieces of a job that several listings show.

func TasksOf(s *core.Spec) int32 {
	// with --overcommit the shape has fewer
	if n, err := strconv.ParseInt(s.More().SlurmOption("ntasks"), 10, 32); err == nil {
		return int32(n)
	}
	if s.Shape.Tasks > 0 {
		return s.Shape.Tasks
	}
	n, _ := client.Wants(s.Shape)
	return n * max(1, s.Shape.TasksPerNode)
}

// tasksNow is TasksOf for a job that may have got more nodes than it asked for at least, with tasks on each.
func tasksNow(j *core.Job) int32 {
	sh := &j.Spec.Shape
	if j.Alloc == nil || sh.NodesMax <= sh.NodesMin || sh.Given&core.GivenTasks != 0 {
		return TasksOf(j.Spec)
	}
	n := int32(0)
	for i := range j.Alloc.Nodes {
		n += j.Alloc.Nodes[i].Tasks
	}
	return n
}

// nodeTasks are the tasks on each node of a job that has nodes. With --overcommit all of them are dealt out evenly.
func nodeTasks(j *core.Job) []int32 {
	list := make([]int32, len(j.Alloc.Nodes))
	if j.Spec.More().SlurmOption("ntasks") != "" {
		n, nodes := TasksOf(j.Spec), int32(len(list))
		for i := range list {
			list[i] = n / nodes
			if int32(i) < n%nodes {
				list[i]++
			}
		}
		return list
	}
	sh := &j.Spec.Shape
	// without a number of tasks, whole nodes have room for as many as they have CPUs for
	whole := sh.Exclusive && sh.Given&(core.GivenTasks|core.GivenTasksPerNode) == 0
	for i := range list {
		if list[i] = j.Alloc.Nodes[i].Tasks; whole {
			list[i] = max(list[i], j.Alloc.Nodes[i].CPUs/max(1, sh.CPUsPerTask))
		}
	}
	return list
}

// Restarts is how often the job was started again.
func Restarts(j *core.Job) int32 {
	if j.State == core.Pending && j.Attempt > 0 {
		return j.Attempt
	}
	return max(0, j.Attempt-1)
}

// OutPath is where a job's output goes, as far as it is known: with the symbols of its job filled in.
func OutPath(j *core.Job, pattern string) string {
	if pattern == "" {
		return ""
	}
	n := filename.Names{Job: j.ID, Step: "batch", User: j.Spec.User, JobName: j.Spec.Name, Restarts: int(Restarts(j))}
	if a := j.Array; a != nil {
		n.ArrayJob, n.ArrayTask = a.Base, int64(a.Task)
		if a.Tasks.Len() > 0 {
			n.ArrayTask = 4294967294 // as Slurm shows the tasks that have not started
		}
	}
	if j.Alloc != nil && len(j.Alloc.Nodes) > 0 {
		n.Node = j.Alloc.Nodes[0].Node
	}
	p := filename.Expand(pattern, n, 0)
	if !filepath.IsAbs(p) {
		p = filepath.Join(j.Spec.IO.WorkDir, p)
	}
	return p
}

// InMiB rounds a size up to whole MiB, the unit of Slurm's memory fields.
func InMiB(m core.Bytes) int64 { return int64((m + core.MiB - 1) / core.MiB) }
