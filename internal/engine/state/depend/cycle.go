package depend

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
)

// FindCycle looks for a way from what a job is to wait for back to the job, and describes it; nil: there is none. Only
// an update can close a cycle: at submission no job can wait for the new one. records lists the live records of a job
// or an array, by id.
func FindCycle(j *core.Job, needs *core.Needs, records func(core.JobID) []*core.Job) []string {
	seen := map[core.JobID]bool{}
	var follow func(needs *core.Needs) []string
	follow = func(needs *core.Needs) []string {
		for i := range needs.Left {
			n := &needs.Left[i]
			if n.Failed || n.Kind == core.NeedSingleton {
				continue
			}
			name := fmt.Sprintf("%d", n.Job)
			if n.Task > 0 {
				name = fmt.Sprintf("%d_%d", n.Job, n.Task-1)
			}
			if conditionNames(n, j) {
				return []string{name}
			}
			if seen[n.Job] {
				continue
			}
			seen[n.Job] = true
			for _, o := range records(n.Job) {
				if o.Needs == nil || n.Task > 0 && o.Array != nil && !o.IsArray() && o.Array.Task != n.Task-1 {
					continue
				}
				if way := follow(o.Needs); way != nil {
					return append([]string{name}, way...)
				}
			}
		}
		return nil
	}
	if way := follow(needs); way != nil {
		way[0] = fmt.Sprintf("job %d would wait for %s", j.ID, way[0])
		return way
	}
	return nil
}

// conditionNames reports whether a condition names a job, or the array that it is a task of.
func conditionNames(n *core.Need, j *core.Job) bool {
	switch {
	case j.Array == nil:
		return n.Job == j.ID
	case n.Job != j.Array.Base && n.Job != j.ID:
		return false
	case n.Task == 0:
		return true
	case j.IsArray():
		return j.Array.Tasks.Contains(int(n.Task - 1))
	}
	return n.Task-1 == j.Array.Task
}
