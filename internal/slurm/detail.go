package slurm

import (
	"path/filepath"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Pieces of a job that several listings show.

func tasksOf(s *core.Spec) int32 {
	// with --overcommit the shape has fewer
	if n, err := strconv.ParseInt(s.More().Options["ntasks"], 10, 32); err == nil {
		return int32(n)
	}
	if s.Shape.Tasks > 0 {
		return s.Shape.Tasks
	}
	n, _ := client.Wants(s.Shape)
	return n * max(1, s.Shape.TasksPerNode)
}

// tasksNow is tasksOf for a job that may have got more nodes than it asked for at least, with tasks on each.
func tasksNow(j *core.Job) int32 {
	sh := &j.Spec.Shape
	if j.Alloc == nil || sh.NodesMax <= sh.NodesMin || sh.Given&core.GivenTasks != 0 {
		return tasksOf(j.Spec)
	}
	n := int32(0)
	for i := range j.Alloc.Nodes {
		n += j.Alloc.Nodes[i].Tasks
	}
	return n
}

func minCPUsNode(s *core.Spec) int32 {
	return max(1, s.Shape.MinCPUs, max(1, s.Shape.CPUsPerTask)*max(1, s.Shape.TasksPerNode))
}

// restarts is how often the job was started again.
func restarts(j *core.Job) int32 {
	if j.State == core.Pending && j.Attempt > 0 {
		return j.Attempt
	}
	return max(0, j.Attempt-1)
}

// outPath is where a job's output goes, as far as it is known: with the symbols of its job filled in.
func outPath(j *core.Job, pattern string) string {
	if pattern == "" {
		return ""
	}
	n := core.FilenameNames{Job: j.ID, Step: "batch", User: j.Spec.User, JobName: j.Spec.Name, Restarts: int(restarts(j))}
	if a := j.Array; a != nil {
		n.ArrayJob, n.ArrayTask = a.Base, int64(a.Task)
		if a.Tasks.Len() > 0 {
			n.ArrayTask = 4294967294 // as Slurm shows the tasks that have not started
		}
	}
	if j.Alloc != nil && len(j.Alloc.Nodes) > 0 {
		n.Node = j.Alloc.Nodes[0].Node
	}
	p := core.ExpandFilename(pattern, n, 0)
	if !filepath.IsAbs(p) {
		p = filepath.Join(j.Spec.IO.WorkDir, p)
	}
	return p
}

// dependencyText shows what a job still waits for: one entry an id, each with how it stands.
func dependencyText(j *client.Job) string {
	if j.Needs != nil {
		return j.Needs.String()
	}
	text := j.Spec.More().Dependency
	if text == "" || j.State != core.Pending || j.Waiting != core.ReasonDependency &&
		j.Waiting != core.ReasonDependencyNever {
		return "(null)"
	}
	status := "(unfulfilled)"
	if j.Waiting == core.ReasonDependencyNever {
		status = "(failed)"
	}
	sep := ","
	if strings.Contains(text, "?") {
		sep = "?"
	}
	var out []string
	for _, item := range strings.Split(text, sep) {
		kind, ids, ok := strings.Cut(item, ":")
		switch {
		case !ok && kind != "" && kind[0] >= '0' && kind[0] <= '9':
			out = append(out, "afterany:"+kind+status)
		case !ok:
			out = append(out, kind+status)
		default:
			for _, id := range strings.Split(ids, ":") {
				out = append(out, kind+":"+id+status)
			}
		}
	}
	return strings.Join(out, sep)
}
