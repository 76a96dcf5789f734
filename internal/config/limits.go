package config

import "bireme.dev/bireme/internal/core"

// Limits bound what one user, job or request may take of the server and of nodes. Zero means no limit.
type Limits struct {
	EnvVars     int64 `yaml:"env_vars"`      // variables in the environment of a job or step
	EnvVarSize  Size  `yaml:"env_var_size"`  // of one of them, with its name
	LogPerJob   Size  `yaml:"log_per_job"`   // output of one attempt of a job kept by the server, and by its node until the server has it
	LogPerUser  Size  `yaml:"log_per_user"`  // output of all jobs of a user kept by the server
	LogRate     Size  `yaml:"log_rate"`      // output of runs that a node takes in a second, all of them together, in turns
	MinFreeDisk Size  `yaml:"min_free_disk"` // on the disks of logs, of the server and of nodes: below it output is dropped
	Tokens      int64 `yaml:"tokens"`        // of a user that have neither expired nor been revoked
}

func defaultLimits() Limits {
	return Limits{
		EnvVars: 10_000, EnvVarSize: Size(128 * core.KiB), // the kernel executes nothing with a longer one
		LogPerJob: Size(20 * core.GiB), LogPerUser: Size(200 * core.GiB), LogRate: Size(16 * core.MiB),
		MinFreeDisk: Size(core.GiB),
		Tokens:      100,
	}
}

func (d *decoder) checkLimits(l *Limits) {
	for _, x := range []struct {
		name  string
		value int64
	}{
		{"env_vars", l.EnvVars}, {"env_var_size", int64(l.EnvVarSize)}, {"log_per_job", int64(l.LogPerJob)},
		{"log_per_user", int64(l.LogPerUser)}, {"log_rate", int64(l.LogRate)}, {"min_free_disk", int64(l.MinFreeDisk)},
		{"tokens", l.Tokens},
	} {
		if x.value < 0 {
			d.at("limits."+x.name, "%d is less than 0; 0 means no limit", x.value)
		}
	}
}
