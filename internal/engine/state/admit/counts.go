package admit

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/conf"
)

// Counts is how many jobs there are, and of each user.
type Counts struct {
	cfg   *conf.Config
	live  int // jobs, array tasks counted one by one
	users map[core.UserName]UserCount
}

// NewCounts makes counts of no job.
func NewCounts(cfg *conf.Config) *Counts {
	return &Counts{cfg: cfg, users: map[core.UserName]UserCount{}}
}

// JobChanged keeps the counts; old is nil for a new job.
func (c *Counts) JobChanged(old, j *core.Job) {
	if old != nil {
		c.live -= old.Count()
		c.count(old, -1)
	}
	if j.Live() {
		c.live += j.Count()
		c.count(j, 1)
	}
}

// Live counts jobs, array tasks one by one.
func (c *Counts) Live() int { return c.live }

// Users is what each user has, to read.
func (c *Counts) Users() map[core.UserName]UserCount { return c.users }

// JobsOf counts the live jobs of a user; an array that has not started is one.
func (c *Counts) JobsOf(user core.UserName) int { return c.users[user].Jobs }

// UserCount is what a user has: live jobs, of which an array that has not started is one, tasks of arrays that have
// not started, and live jobs that recur.
type UserCount struct{ Jobs, Tasks, Cron int }

// count keeps the counts while jobs change; sign is 1 for a record that comes and -1 for one that goes.
func (c *Counts) count(j *core.Job, sign int) {
	u := c.users[j.Spec.User]
	u.Jobs += sign
	if j.IsArray() {
		u.Tasks += sign * j.Array.Tasks.Len()
	}
	if j.Spec.Recurs() {
		u.Cron += sign
	}
	if u == (UserCount{}) {
		delete(c.users, j.Spec.User)
		return
	}
	c.users[j.Spec.User] = u
}

// A user who is no administrator may have a fifth of what the others leave of MaxJobs, so that no number of users fills
// it; minArrayTasks they may have wherever there is room at all.
const (
	arrayTaskDivisor = 5
	minArrayTasks    = 16
)

// Admit refuses a submission of so many more jobs, of which one is an array or none, for its user's limits.
func (c *Counts) Admit(by core.Identity, j *core.Job, records int) error {
	if n := j.Count() + records - 1; c.live+n > c.cfg.MaxJobs {
		return core.Errorf(core.Exhausted, "%d jobs are waiting or running; the limit is %d (jobs.max_jobs)", c.live,
			c.cfg.MaxJobs).Because("max_jobs")
	}
	if by.Admin {
		return nil
	}
	user := j.Spec.User
	has := c.users[user]
	if most := c.cfg.JobsPerUser; most > 0 && has.Jobs+records > most {
		return core.Errorf(core.Exhausted, "%s has %d running or pending jobs; the limit is %d (limits.jobs_per_user)", user,
			has.Jobs, most).Because("jobs_per_user")
	}
	if most := c.cfg.CronJobsPerUser; most > 0 && j.Spec.Recurs() && has.Cron+records > most {
		return core.Errorf(core.Exhausted, "%s has %d recurring jobs; the limit is %d (limits.cron_jobs_per_user)", user,
			has.Cron, most).Because("cron_jobs_per_user")
	}
	if j.Array == nil {
		return nil
	}
	n := j.Array.Tasks.Len()
	if most := c.cfg.ArrayTasksPerUser; most > 0 && has.Tasks+n > most {
		return core.Errorf(core.Exhausted,
			"%s has %d pending array tasks and requests %d more; the limit is %d (limits.array_tasks_per_user)", user,
			has.Tasks, n, most).Because("array_tasks_per_user")
	}
	others := c.live - has.Jobs - has.Tasks
	if most := max(minArrayTasks, (c.cfg.MaxJobs-others)/arrayTaskDivisor); has.Tasks+n > most {
		return core.Errorf(core.Exhausted,
			"%s has %d array tasks that wait, and asks for %d more; "+
				"while others have %d of the %d jobs there can be (jobs.max_jobs), a user may have %d",
			user, has.Tasks, n, others, c.cfg.MaxJobs, most).Because("array_tasks_per_user")
	}
	return nil
}
