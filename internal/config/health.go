package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Health says how nodes watch over themselves. Each check is off, warn (shown) or drain (no new jobs, with the reason).
type Health struct {
	// run by each node's agent as its user, root as a rule; one that fails drains with the first line it printed
	Program  string   `yaml:"program"`
	Interval Duration `yaml:"interval"` // between two runs of it; 0: only when an agent has connected
	// of nodes on which it is run: any, idle, nondrained_idle, mixed, alloc; empty: any
	States []string `yaml:"states"`
	Cycle  bool     `yaml:"cycle"`  // the nodes take their turns throughout the interval instead of all at once
	Return bool     `yaml:"return"` // a node that was drained by a check comes back when nothing is wrong any more

	Every         Duration `yaml:"every"`          // between two looks at what follows; 0: never
	Disk          string   `yaml:"disk"`           // of the agent's directory, jobs' temporary directories and /tmp
	DiskPercent   int64    `yaml:"disk_percent"`   // used at most
	Memory        string   `yaml:"memory"`         //
	MemoryPercent int64    `yaml:"memory_percent"` // used at most
	Mount         string   `yaml:"mount"`          //
	Mounts        []string `yaml:"mounts"`         // directories that must be mounted
	Skew          string   `yaml:"skew"`           //
	MaxSkew       Duration `yaml:"max_skew"`       // between a node's clock and the server's
	GPUProcesses  string   `yaml:"gpu_processes"`  // that hold a GPU while no job has one
	Engine        string   `yaml:"engine"`         // the container engine does not answer
}

// Reboot says how nodes are restarted.
type Reboot struct {
	Program string `yaml:"program"` // run on the node by its agent; empty: nodes cannot be restarted
	// within which a node must be back; one that is not is down. 0: it may take as long as it likes
	Timeout Duration `yaml:"timeout"`
}

func defaultHealth() Health {
	return Health{
		Return: true, Every: Duration(time.Minute), Disk: "warn", DiskPercent: 98, Memory: "warn", MemoryPercent: 98,
		Mount: "drain",
		Skew:  "warn", MaxSkew: Duration(5 * time.Second), GPUProcesses: "warn", Engine: "off",
	}
}

// healthStates are the states of nodes a health program may be meant for.
var healthStates = []string{"any", "idle", "nondrained_idle", "mixed", "alloc"}

func (d *decoder) checkHealth(c *Config) {
	h := &c.Health
	for _, p := range [][2]string{{"health.program", h.Program}, {"reboot.program", c.Reboot.Program}} {
		if p[1] != "" && !filepath.IsAbs(p[1]) {
			d.at(p[0], "%q is not an absolute path", p[1])
		}
	}
	for _, p := range h.Mounts {
		if !filepath.IsAbs(p) {
			d.at("health.mounts", "%q is not an absolute path", p)
		}
	}
	for _, s := range h.States {
		if !slices.Contains(healthStates, s) {
			d.at("health.states", "%q: there are %s", s, strings.Join(healthStates, ", "))
		}
	}
	for _, k := range [][2]string{
		{"disk", h.Disk},
		{"memory", h.Memory},
		{"mount", h.Mount},
		{"skew", h.Skew},
		{"gpu_processes", h.GPUProcesses},
		{"engine", h.Engine},
	} {
		if k[1] != "off" && k[1] != "warn" && k[1] != "drain" {
			d.at("health."+k[0], "%q is neither off, warn nor drain", k[1])
		}
	}
	for _, k := range []struct {
		name string
		n    int64
	}{{"disk_percent", h.DiskPercent}, {"memory_percent", h.MemoryPercent}} {
		if k.n < 1 || k.n > 100 {
			d.at("health."+k.name, "%d is not between 1 and 100", k.n)
		}
	}
}
