package depend

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
)

// Ending is how a job, an array task, or tasks canceled together ended.
type Ending struct {
	id, base core.JobID
	task     int32
	tasks    taskset.Set
	OK       bool // it completed
}

// EndingOf is how a job ended.
func EndingOf(j *core.Job) Ending {
	e := Ending{id: j.ID, OK: j.State == core.Completed}
	if j.Array != nil {
		e.base, e.task, e.tasks = j.Array.Base, j.Array.Task, j.Array.Tasks
	}
	return e
}

// hasTask reports whether task k is among those that ended.
func (e *Ending) hasTask(k int32) bool {
	if e.tasks.Len() > 0 {
		return e.tasks.Contains(int(k))
	}
	return e.base != 0 && e.task == k
}

// Matches reports whether an ending is of what a condition names.
func (e *Ending) Matches(n *core.Need) bool {
	if n.Task > 0 {
		return e.base == n.Job && e.hasTask(n.Task-1)
	}
	return n.Job != 0 && (e.base == n.Job || e.base == 0 && e.id == n.Job)
}

// Paired returns the tasks of an array that have the numbers of those that ended.
func (e *Ending) Paired(tasks taskset.Set) taskset.Set {
	if e.tasks.Len() > 0 {
		return tasks.Intersect(e.tasks)
	}
	return tasks.Intersect(taskset.Of(int(e.task)))
}
