package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// maxSplitTasks is how many tasks of an array one change may take apart: each costs a record.
const maxSplitTasks = 1000

// split finds what an update is to change: a copy of the job, or, where it names some of the tasks that wait
// in an array, a copy of the first of them as it will be when it is a job of its own, and which they are.
func (in *UpdateJob) split(s *State, j *core.Job) (next *core.Job, tasks taskset.Set, err error) {
	next = jobs.Clone(j)
	if in.Tasks.Empty() {
		return next, tasks, nil
	}
	if j.IsArray() {
		tasks = j.Array.Tasks.Intersect(in.Tasks)
	}
	switch {
	case tasks.Empty():
		return nil, tasks, core.Errorf(core.NotFound, "no such task of array %d waits", in.Job).Because("invalid_job_id")
	case tasks.Len() == j.Array.Tasks.Len():
		return next, taskset.Set{}, nil // all that are left: they stay one record
	case tasks.Len() > maxSplitTasks:
		return nil, tasks, core.Errorf(core.Invalid,
			"%d tasks of array %d are too many to change separately: change at most %d, or the whole array", tasks.Len(), j.ID,
			maxSplitTasks).Because("array_task")
	case s.cfg.JobsPerUser > 0 && !in.By.Admin && s.counts.JobsOf(j.Spec.User)+tasks.Len() > s.cfg.JobsPerUser:
		return nil, tasks, core.Errorf(core.Exhausted,
			"%s has %d running or pending jobs and would have %d more; the limit is %d (limits.jobs_per_user)",
			j.Spec.User, s.counts.JobsOf(j.Spec.User), tasks.Len(), s.cfg.JobsPerUser).Because("jobs_per_user")
	case in.Dependency != nil || j.Needs != nil && len(j.Needs.Left) > 0:
		return nil, tasks, core.Errorf(core.Conflict,
			"tasks of array %d wait for other jobs together; change the whole array", j.ID).Because("array_task")
	}
	next.ID, next.Room = s.rec.NextJob(), nil // so that a new spec is this record's, not the array's
	return next, tasks, nil
}

// putSplitTasks stores the tasks as jobs of their own, all as next is, and what is left of the array.
func (in *UpdateJob) putSplitTasks(s *State, j, next *core.Job, tasks taskset.Set) {
	edit := s.jobs.Edit(j)
	left := *j.Array
	left.Tasks = left.Tasks.Minus(tasks)
	edit.Job.Array = &left
	edit.CommitSilently()
	for k := range tasks.All() {
		edit := s.jobs.Edit(next)
		ref := *j.Array
		ref.Task, ref.Tasks = int32(k), taskset.Set{}
		edit.Job.ID, edit.Job.Array = s.rec.TakeJobID(), &ref
		edit.CommitWith(core.JobUpdated, core.Event{By: in.By.User})
	}
}
