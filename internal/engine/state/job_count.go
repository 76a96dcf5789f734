package state

import "bireme.dev/bireme/internal/core"

// userCount is what a user has: live jobs, of which an array that has not started is one, tasks of arrays that have
// not started, and live jobs that recur.
type userCount struct{ jobs, tasks, cron int }

// countUserJobs keeps the counts while jobs change; sign is 1 for a record that comes and -1 for one that goes.
func (s *State) countUserJobs(j *core.Job, sign int) {
	c := s.userCounts[j.Spec.User]
	c.jobs += sign
	if j.IsArray() {
		c.tasks += sign * j.Array.Tasks.Len()
	}
	if j.Spec.Recurs() {
		c.cron += sign
	}
	if c == (userCount{}) {
		delete(s.userCounts, j.Spec.User)
		return
	}
	s.userCounts[j.Spec.User] = c
}

// A user who is no administrator may have a fifth of what the others leave of MaxJobs, so that no number of users fills
// it; minArrayTasks they may have wherever there is room at all.
const (
	arrayTaskDivisor = 5
	minArrayTasks    = 16
)

// admitJobCount refuses a submission of so many more jobs, of which one is an array or none, for its user's limits.
func (s *State) admitJobCount(by core.Identity, j *core.Job, records int) error {
	if n := j.Count() + records - 1; s.liveCount+n > s.cfg.MaxJobs {
		return core.Errorf(core.Exhausted, "%d jobs are waiting or running; the limit is %d (jobs.max_jobs)", s.liveCount,
			s.cfg.MaxJobs).Because("max_jobs")
	}
	if by.Admin {
		return nil
	}
	user := j.Spec.User
	has := s.userCounts[user]
	if most := s.cfg.JobsPerUser; most > 0 && has.jobs+records > most {
		return core.Errorf(core.Exhausted, "%s has %d running or pending jobs; the limit is %d (limits.jobs_per_user)", user,
			has.jobs, most).Because("jobs_per_user")
	}
	if most := s.cfg.CronJobsPerUser; most > 0 && j.Spec.Recurs() && has.cron+records > most {
		return core.Errorf(core.Exhausted, "%s has %d recurring jobs; the limit is %d (limits.cron_jobs_per_user)", user,
			has.cron, most).Because("cron_jobs_per_user")
	}
	if j.Array == nil {
		return nil
	}
	n := j.Array.Tasks.Len()
	if most := s.cfg.ArrayTasksPerUser; most > 0 && has.tasks+n > most {
		return core.Errorf(core.Exhausted,
			"%s has %d pending array tasks and requests %d more; the limit is %d (limits.array_tasks_per_user)", user,
			has.tasks, n, most).Because("array_tasks_per_user")
	}
	others := s.liveCount - has.jobs - has.tasks
	if most := max(minArrayTasks, (s.cfg.MaxJobs-others)/arrayTaskDivisor); has.tasks+n > most {
		return core.Errorf(core.Exhausted,
			"%s has %d array tasks that wait, and asks for %d more; "+
				"while others have %d of the %d jobs there can be (jobs.max_jobs), a user may have %d",
			user, has.tasks, n, others, s.cfg.MaxJobs, most).Because("array_tasks_per_user")
	}
	return nil
}
