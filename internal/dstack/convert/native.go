package convert

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/dstack/config"
)

// containerKeys mean nothing to processes.
var containerKeys = []string{"privileged", "entrypoint", "registry_auth", "user", "volumes", "ports"}

// CheckProcess refuses keys of a run of processes that only containers have.
func CheckProcess(c *config.Configuration) error {
	run, task := c.Run(), c.Task
	given := map[string]bool{
		"privileged": run.Privileged, "entrypoint": run.Entrypoint != nil, "registry_auth": run.RegistryAuth != nil,
		"user": run.User != nil, "volumes": slices.ContainsFunc(run.Volumes, func(m config.Mount) bool {
			return m.IsInstance()
		}),
		"ports": task != nil && len(task.Ports) > 0 || c.DevEnvironment != nil && len(c.DevEnvironment.Ports) > 0,
	}
	var faults config.Faults
	for _, key := range containerKeys {
		if given[key] {
			faults = append(faults, c.Fault("needs a container: name an image, or write runtime: container", key))
		}
	}
	if task != nil && len(task.Groups) > 0 {
		faults = append(faults, c.Fault("needs a container: name an image, or write runtime: container", "groups"))
	}
	p := c.Policy()
	if o := config.Value(p.StartupOrder); o != "" && o != "any" {
		faults = append(faults, c.Fault("needs containers: processes start on all nodes at once", "startup_order"))
	}
	if s := config.Value(p.StopCriteria); s != "" && s != "all-done" {
		faults = append(faults, c.Fault("needs containers: a run of processes ends when all its nodes have", "stop_criteria"))
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// CheckKind refuses configurations that are read but not run.
func CheckKind(c *config.Configuration) error {
	switch c.Kind {
	case config.KindTask, config.KindDevEnvironment, config.KindService, config.KindFleet, config.KindVolume:
		return nil
	case config.KindGateway, config.KindPreset:
	}
	return config.Faults{c.Fault("a "+string(c.Kind)+" cannot be applied yet: this version runs task, dev-environment, "+
		"service, fleet and volume; `bireme config validate` checks it", "type")}
}

// CheckRuns refuses by name what is read but not run yet.
func CheckRuns(c *config.Configuration) error {
	var faults config.Faults
	add := func(message string, loc ...any) { faults = append(faults, c.Fault(message, loc...)) }
	run, p := c.Run(), c.Policy()
	for i, f := range run.Files {
		switch {
		case f.Local == "" || f.Path == "":
			add("needs both a local path and one in the container", "files", i)
		case ofSomebody(f.Local) || ofSomebody(f.Path):
			add("a path may begin with ~/, but not with ~NAME", "files", i)
		case strings.ContainsRune(f.Local+f.Path, 0):
			add("must not contain a NUL byte", "files", i)
		}
	}
	if c.Service != nil {
		if key, message := unsupported(c.Service); key != "" {
			add(message, key)
		}
	}
	if run.Dstack {
		add("access to the server from inside the run is not available yet", "dstack")
	}
	for i := range p.Fleets {
		if p.Fleets[i].Project != nil {
			add("fleets of other projects are not available yet", "fleets", i)
		}
	}
	remote := func(list []string, names ...string) bool {
		for _, s := range list {
			for _, n := range names {
				if strings.EqualFold(s, n) {
					return true
				}
			}
		}
		return list == nil
	}
	const noCloud = "there are no cloud backends yet, only nodes and fleets of SSH hosts (backend remote)"
	if !remote(p.Backends, "remote", "ssh") {
		add(noCloud, "backends")
	}
	if !remote(p.Regions, "remote") {
		add(noCloud, "regions")
	}
	if config.Value(p.SpotPolicy) == "spot" {
		add("fleets of SSH hosts have no spot instances", "spot_policy")
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// ofSomebody reports whether a path is below the home of a user it names.
func ofSomebody(p string) bool {
	return strings.HasPrefix(p, "~") && p != "~" && !strings.HasPrefix(p, "~/")
}

// Modest asks for little where the file names no size: one CPU and the partition's default memory. The stock client
// asks for 2 CPUs and 8 GB then, which chooses among machines; here it would be taken from a shared node.
func Modest(c *config.Configuration) {
	run := c.Run()
	one, none := int64(1), config.Float(0)
	if !c.Wrote("resources", "cpu") {
		run.Resources.CPU.Count = config.Range{Min: &one}
	}
	if !c.Wrote("resources", "memory") {
		run.Resources.Memory = config.SizeRange{Min: &none}
	}
}

// Undecided reports whether the configuration leaves what it runs in to its project.
func (s *Spec) Undecided() bool {
	r := s.Configuration.Run()
	return s.Configuration.Additions.Runtime == "" && r.Image == nil && r.Python == nil && !config.Value(r.Docker) &&
		!config.Value(r.NVCC)
}

// Waits reports whether the run may wait for nodes that are not there yet.
func (s *Spec) Waits() bool {
	p := s.Policy()
	events, _ := p.Retry.Acts()
	for _, e := range events {
		if e == config.RetryNoCapacity {
			return true
		}
	}
	return false
}

// NameOf checks the name of a run or fleet that a configuration gives itself.
func NameOf(c *config.Configuration, check func(string) error) error {
	name := c.Name()
	if name == "" {
		return nil
	}
	if err := check(name); err != nil {
		return config.Faults{c.Fault(err.Error(), "name")}
	}
	return nil
}
