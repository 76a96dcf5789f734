package config

import "bireme.dev/bireme/internal/core"

// Limits bound what one user, job or request may take of the server and of nodes. Zero means no limit.
type Limits struct {
	// tasks of a user's arrays that have not started; jobs.max_jobs may allow fewer
	ArrayTasksPerUser int64 `yaml:"array_tasks_per_user"`
	// open connections of one user of a host to the server's or node's socket
	Connections int64 `yaml:"connections"`
	// jobs that recur, the lines of a crontab; a new table counts beside the old one
	CronJobsPerUser int64 `yaml:"cron_jobs_per_user"`
	EnvVars         int64 `yaml:"env_vars"`     // variables in the environment of a job or step
	EnvVarSize      Size  `yaml:"env_var_size"` // of one of them, with its name
	Followers       int64 `yaml:"followers"`    // logs that one user follows
	// that wait or run; an array and its tasks that have not started are one, and 4 KiB of a job's texts count as one more
	JobsPerUser int64 `yaml:"jobs_per_user"`
	// output of one attempt of a job kept by the server, and by its node until the server has it
	LogPerJob  Size `yaml:"log_per_job"`
	LogPerUser Size `yaml:"log_per_user"` // output of all jobs of a user kept by the server
	// output of runs that a node takes in a second, all of them together, in turns
	LogRate Size `yaml:"log_rate"`
	// of a run while no other on its node writes much (256 KiB a second); log_rate where that is more
	LogRateAlone Size  `yaml:"log_rate_alone"`
	MailPerHour  int64 `yaml:"mail_per_hour"` // letters about one user's jobs; what is over is not sent
	// on the disks of logs, of the server and of nodes: below it output is dropped, below a quarter the server takes no
	// new jobs
	MinFreeDisk Size  `yaml:"min_free_disk"`
	StepsPerJob int64 `yaml:"steps_per_job"` // as Slurm's MaxStepCount
	// scripts, environments, files and records of jobs and steps that a user has stored in a day
	StoredPerDay    Size  `yaml:"stored_per_day"`
	Tokens          int64 `yaml:"tokens"`            // of a user that have neither expired nor been revoked
	TrialsPerUser   int64 `yaml:"trials_per_user"`   // jobs of a user that are tried (--test-only) at once
	Triggers        int64 `yaml:"triggers"`          // programs that wait for an event (strigger), of all users
	TriggersPerUser int64 `yaml:"triggers_per_user"` // of a user who is no administrator
	// Of one user's requests: bytes of the bodies of those under way, how many are worked on at once, may come at once
	// and be under way, and come in a second.
	RequestBytes      Size  `yaml:"request_bytes"`
	RequestsAtOnce    int64 `yaml:"requests_at_once"`
	RequestsBurst     int64 `yaml:"requests_burst"`
	RequestsInFlight  int64 `yaml:"requests_in_flight"`
	RequestsPerSecond int64 `yaml:"requests_per_second"`
	Streams           int64 `yaml:"streams"` // watches, followed logs and steps' streams that one user has open
	// Of an address whose callers have shown no identity: open connections, and requests in a second.
	UnknownConnections int64 `yaml:"unknown_connections"`
	UnknownRequests    int64 `yaml:"unknown_requests"`
}

func defaultLimits() Limits {
	return Limits{
		ArrayTasksPerUser: 1_000_000, CronJobsPerUser: 2000, JobsPerUser: 100_000, StepsPerJob: 40_000, TrialsPerUser: 4,
		EnvVars: 10_000, EnvVarSize: Size(128 * core.KiB), // the kernel executes nothing with a longer one
		LogPerJob: Size(20 * core.GiB), LogPerUser: Size(200 * core.GiB), LogRate: Size(16 * core.MiB),
		LogRateAlone: Size(160 * core.MiB),
		MinFreeDisk:  Size(core.GiB), MailPerHour: 200, StoredPerDay: Size(10 * core.GiB),
		Tokens: 100, Triggers: 10_000, TriggersPerUser: 100,
		Connections: 1024, Followers: 100, RequestBytes: Size(128 * core.MiB), RequestsAtOnce: 4, RequestsBurst: 1000,
		RequestsInFlight:  256,
		RequestsPerSecond: 200, Streams: 1000, UnknownConnections: 1000, UnknownRequests: 50,
	}
}

func (d *decoder) checkLimits(l *Limits) {
	for _, x := range []struct {
		name  string
		value int64
	}{
		{"connections", l.Connections},
		{"followers", l.Followers},
		{"request_bytes", int64(l.RequestBytes)},
		{"requests_at_once", l.RequestsAtOnce},
		{"requests_burst", l.RequestsBurst},
		{"requests_in_flight", l.RequestsInFlight},
		{"requests_per_second", l.RequestsPerSecond},
		{"streams", l.Streams},
		{"unknown_connections", l.UnknownConnections},
		{"unknown_requests", l.UnknownRequests},
		{"array_tasks_per_user", l.ArrayTasksPerUser},
		{"cron_jobs_per_user", l.CronJobsPerUser},
		{"jobs_per_user", l.JobsPerUser},
		{"steps_per_job", l.StepsPerJob},
		{"trials_per_user", l.TrialsPerUser},
		{"env_vars", l.EnvVars},
		{"env_var_size", int64(l.EnvVarSize)},
		{"log_per_job", int64(l.LogPerJob)},
		{"log_per_user", int64(l.LogPerUser)},
		{"log_rate", int64(l.LogRate)},
		{"log_rate_alone", int64(l.LogRateAlone)},
		{"mail_per_hour", l.MailPerHour},
		{"min_free_disk", int64(l.MinFreeDisk)},
		{"stored_per_day", int64(l.StoredPerDay)},
		{"tokens", l.Tokens},
		{"triggers", l.Triggers},
		{"triggers_per_user", l.TriggersPerUser},
	} {
		if x.value < 0 {
			d.at("limits."+x.name, "%d is less than 0; 0 means no limit", x.value)
		}
	}
}
