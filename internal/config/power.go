package config

import (
	"path/filepath"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// Power says how nodes that nobody needs are put to sleep and woken. The programs are run by the server, as its user,
// with the nodes as a host list for an argument; after a restart of the server they may be run again for nodes that are
// on their way.
type Power struct {
	SuspendProgram    string `yaml:"suspend_program"`     // puts nodes to sleep; empty: they are only not used
	ResumeProgram     string `yaml:"resume_program"`      // wakes them; empty: no job has one woken
	ResumeFailProgram string `yaml:"resume_fail_program"` // is told of those that were not there in time
	// nodes that were idle for so long are put to sleep; 0: none is
	SuspendTime       Duration `yaml:"suspend_time"`
	SuspendTimeout    Duration `yaml:"suspend_timeout"`    // that it takes until they sleep and can be woken again
	ResumeTimeout     Duration `yaml:"resume_timeout"`     // within which they must be back; those that are not are down
	ExcludeNodes      string   `yaml:"exclude_nodes"`      // host list of those that are not put to sleep by themselves
	ExcludePartitions []string `yaml:"exclude_partitions"` // whose nodes are not, either
}

func defaultPower() Power {
	return Power{SuspendTimeout: Duration(30 * time.Second), ResumeTimeout: Duration(time.Minute)}
}

func (d *decoder) checkPower(c *Config) {
	p := &c.Power
	for _, x := range [][2]string{
		{"suspend_program", p.SuspendProgram},
		{"resume_program", p.ResumeProgram},
		{"resume_fail_program", p.ResumeFailProgram},
	} {
		if x[1] != "" && !filepath.IsAbs(x[1]) {
			d.at("power."+x[0], "%q is not an absolute path", x[1])
		}
	}
	if p.ExcludeNodes != "" {
		if _, err := hostlist.Expand(p.ExcludeNodes, maxNames); err != nil {
			d.at("power.exclude_nodes", "%v", err)
		}
	}
	if p.SuspendTime > 0 && p.ResumeProgram == "" {
		d.at("power.suspend_time", "needs power.resume_program, which wakes the nodes again")
	}
	if c.Reboot.Timeout < 0 {
		d.at("reboot.timeout", "must not be negative")
	}
}

// The states a node of the file may begin in.
var nodeStates = map[string]core.NodeFlag{
	"": 0, "cloud": core.NodePoweredDown, "future": core.NodeFuture, "down": core.NodeDown, "drain": core.NodeDrain,
	"fail": core.NodeFailFlag,
}
