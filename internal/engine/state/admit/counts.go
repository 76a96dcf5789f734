package admit

import (
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// Counts is how many jobs there are, and of each user.
type Counts struct {
	cfg   *conf.Config
	live  int // jobs, array tasks counted one by one
	users map[core.UserName]UserCount
	heavy map[core.JobID]int // live jobs whose texts count as further jobs, and as how many
	last  *core.Spec         // whose texts were counted last
	more  int                // and as how many jobs
}

// NewCounts makes counts of no job.
func NewCounts(cfg *conf.Config) *Counts {
	return &Counts{cfg: cfg, users: map[core.UserName]UserCount{}, heavy: map[core.JobID]int{}}
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
	c.weigh(old, j)
}

// textsPerJob is how many bytes of texts a job may have that counts as one. They stay in memory for the job's life: as
// many long ones as short ones would fill it.
const textsPerJob = 4 << 10

// moreOf is as how many further jobs one of a spec counts for the length of its texts.
func (c *Counts) moreOf(spec *core.Spec) int {
	if spec != c.last { // admission asks, and the new record again; an array's tasks share one
		c.last, c.more = spec, speccheck.TextSize(spec)/textsPerJob
	}
	return c.more
}

// weigh keeps what long texts count as while jobs change.
func (c *Counts) weigh(old, j *core.Job) {
	if old != nil && old.Spec == j.Spec && j.Live() {
		return
	}
	was, is := c.heavy[j.ID], 0
	if j.Live() {
		is = c.moreOf(j.Spec)
	}
	if was == is {
		return
	}
	if delete(c.heavy, j.ID); is > 0 {
		c.heavy[j.ID] = is
	}
	u := c.users[j.Spec.User]
	if u.More += is - was; u == (UserCount{}) {
		delete(c.users, j.Spec.User)
		return
	}
	c.users[j.Spec.User] = u
}

// AdmitTexts refuses a change of a live job that makes its texts too long for its user's limit.
func (c *Counts) AdmitTexts(by core.Identity, j *core.Job, spec *core.Spec) error {
	most, grows := c.cfg.JobsPerUser, c.moreOf(spec)-c.heavy[j.ID]
	if by.Admin || most <= 0 || grows <= 0 {
		return nil
	}
	if has := c.users[j.Spec.User]; has.Jobs+has.More+grows > most {
		return errJobs(j.Spec.User, has, most)
	}
	return nil
}

func errJobs(user core.UserName, has UserCount, most int) error {
	count := strconv.Itoa(has.Jobs)
	if has.More > 0 {
		count += " running or pending jobs, which count as " + strconv.Itoa(has.Jobs+has.More) +
			" for the length of their texts"
	} else {
		count += " running or pending jobs"
	}
	return core.Errorf(core.Exhausted, "%s has %s; the limit is %d (limits.jobs_per_user)", user, count, most).
		Because("jobs_per_user")
}

// Live counts jobs, array tasks one by one.
func (c *Counts) Live() int { return c.live }

// Users is what each user has, to read.
func (c *Counts) Users() map[core.UserName]UserCount { return c.users }

// JobsOf counts the live jobs of a user; an array that has not started is one.
func (c *Counts) JobsOf(user core.UserName) int { return c.users[user].Jobs }

// UserCount is what a user has: live jobs, of which an array that has not started is one, tasks of arrays that have
// not started, live jobs that recur, and what live jobs count as beyond one each for the length of their texts.
type UserCount struct{ Jobs, Tasks, Cron, More int }

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

// Admit refuses a submission of a job, that may be an array, and of others with it, for its user's limits.
func (c *Counts) Admit(by core.Identity, j *core.Job, others []*core.Spec) error {
	records := 1 + len(others)
	if n := j.Count() + records - 1; c.live+n > c.cfg.MaxJobs {
		return core.Errorf(core.Exhausted, "%d jobs are waiting or running; the limit is %d (jobs.max_jobs)", c.live,
			c.cfg.MaxJobs).Because("max_jobs")
	}
	if by.Admin {
		return nil
	}
	user := j.Spec.User
	has := c.users[user]
	if most := c.cfg.JobsPerUser; most > 0 {
		count := has.Jobs + has.More + records
		for _, spec := range others {
			count += c.moreOf(spec)
		}
		if count += c.moreOf(j.Spec); count > most {
			return errJobs(user, has, most)
		}
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
	rest := c.live - has.Jobs - has.Tasks
	if most := max(minArrayTasks, (c.cfg.MaxJobs-rest)/arrayTaskDivisor); has.Tasks+n > most {
		return core.Errorf(core.Exhausted,
			"%s has %d array tasks that wait, and asks for %d more; "+
				"while others have %d of the %d jobs there can be (jobs.max_jobs), a user may have %d",
			user, has.Tasks, n, rest, c.cfg.MaxJobs, most).Because("array_tasks_per_user")
	}
	return nil
}
