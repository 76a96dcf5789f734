package translate

import (
	"fmt"
	"path"
	"strings"

	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
)

// optionRule is what becomes of an option of sbatch.
type optionRule struct {
	// to names the key that it becomes; "": none.
	to string
	// do writes the key. Nil: what the option asks for is read from the whole request, by request.go.
	do func(c *scriptConversion, d slurm.Directive)
	// why says what there is instead, of an option without a key.
	why string
}

// text has an option's value become a key's.
func text(key string) optionRule {
	return optionRule{to: key, do: func(c *scriptConversion, d slurm.Directive) { c.out.set(key, d.Value) }}
}

// none lists an option that no key has the effect of.
func none(why string) optionRule {
	return optionRule{why: why, do: func(c *scriptConversion, d slurm.Directive) {
		c.notes.add(NoEqual, d.String(), why)
		c.keep(d)
	}}
}

// size is an option of the request for nodes, CPUs, memory and GPUs.
func size(key string) optionRule { return optionRule{to: key} }

const (
	aboutCommand = "says how sbatch itself behaves"
	toTheLog     = "output goes to the log of the run: bireme logs RUN"
	noHardware   = "a configuration asks for CPUs, not for sockets, cores and threads"
	keptOnly     = "has no effect in this cluster either"
	oneTask      = "a YAML run has one task on each node, which starts what it needs"
)

// optionRules has every option of sbatch.
var optionRules = map[string]optionRule{
	"account": text("account"), "array": text("array"), "begin": text("begin"), "constraint": text("constraint"),
	"deadline": text("deadline"), "partition": text("partition"), "qos": text("qos"), "reservation": text("reservation"),
	"switches": text("switches"),

	"chdir":                {to: "working_dir", do: (*scriptConversion).chdir},
	"container":            {to: "image", do: (*scriptConversion).bundle},
	"container-image":      {to: "image", do: (*scriptConversion).image},
	"container-mounts":     {to: "volumes", do: (*scriptConversion).mounts},
	"container-workdir":    text("working_dir"),
	"container-mount-home": none("volumes lists paths one by one"),
	"dependency":           {to: "depends_on", do: (*scriptConversion).dependency},
	"export":               {to: "env", do: (*scriptConversion).export},
	"get-user-env": {to: "runtime", do: func(c *scriptConversion, d slurm.Directive) {
		c.keep(d) // processes of a YAML run begin with the login environment anyway
	}},
	"job-name":   {to: "name", do: (*scriptConversion).jobName},
	"no-requeue": {to: "requeue", do: func(c *scriptConversion, _ slurm.Directive) { c.out.set("requeue", false) }},
	"nodelist":   {to: "instances", do: (*scriptConversion).nodeList},
	"requeue": {to: "requeue", do: func(c *scriptConversion, d slurm.Directive) {
		c.out.set("requeue", true)
		if d.Set {
			c.keep(d)
		}
	}},
	"signal": {to: "checkpoint", do: (*scriptConversion).signal},
	"time":   {to: "max_duration", do: (*scriptConversion).time},
	"tmp":    {to: "resources.disk", do: (*scriptConversion).tmp},
	"wrap":   none("a script has its commands in its lines; sbatch takes this on the command line"),

	"nodes": size("nodes"), "ntasks": size("resources.cpu"), "ntasks-per-node": size("resources.cpu"),
	"ntasks-per-gpu": size("resources.cpu"), "cpus-per-task": size("resources.cpu"), "cpus-per-gpu": size("resources.cpu"),
	"mincpus": size("resources.cpu"), "tres-per-task": size("resources.cpu"), "mem": size("resources.memory"),
	"mem-per-cpu": size("resources.memory"), "mem-per-gpu": size("resources.memory"), "gres": size("resources.gpu"),
	"gpus": size("resources.gpu"), "gpus-per-node": size("resources.gpu"), "gpus-per-task": size("resources.gpu"),
	"gpus-per-socket": size("resources.gpu"),

	"acctg-freq":           none(keptOnly),
	"batch":                none("constraint says what all nodes have"),
	"bb":                   none(keptOnly),
	"bbf":                  none(keptOnly),
	"cluster-constraint":   none("there is one cluster"),
	"clusters":             none("the project that the run is applied in says which cluster"),
	"comment":              none("tags hold notes of a run"),
	"consolidate-segments": none("switches keeps nodes together"),
	"container-id":         none("a container is named after its run"),
	"contiguous":           none("switches keeps nodes together"),
	"core-spec":            none(noHardware),
	"cores-per-socket":     none(noHardware),
	"cpu-freq":             none(keptOnly),
	"delay-boot":           none(keptOnly),
	"distribution":         none(oneTask),
	"error":                none(toTheLog),
	"exclude":              none("instances names the nodes that will do, constraint their features"),
	"exclusive":            none("resources asks for a part of a node; ask for all of its CPUs"),
	"export-file":          none("env lists variables; apply --env gives more"),
	"extra":                none(keptOnly),
	"extra-node-info":      none(noHardware),
	"gid":                  none("a run belongs to the one who applies it"),
	"gpu-bind":             none(oneTask),
	"gpu-freq":             none(keptOnly),
	"gres-flags":           none(keptOnly),
	"help":                 none(aboutCommand),
	"hint":                 none(noHardware),
	"hold":                 none("begin delays a start; scontrol hold holds a run's job"),
	"ignore-pbs":           none(aboutCommand),
	"input":                none("the commands read their files themselves"),
	"kill-on-invalid-dep":  none("a run whose depends_on cannot come true waits until it is stopped"),
	"licenses":             none("licenses are asked for by sbatch only"),
	"mail-type":            none("no mail is sent about runs; bireme events follows them"),
	"mail-user":            none("no mail is sent about runs; bireme events follows them"),
	"mcs-label":            none(keptOnly),
	"mem-bind":             none(oneTask),
	"mem-update":           none("resources.memory is what the run keeps to its end"),
	"network":              none(keptOnly),
	"nice":                 none("priority, from 0 to 100, lifts a run; it cannot be lowered"),
	"no-kill":              none("a run ends when one of its nodes fails; retry starts it again"),
	"nodefile":             none("instances names the nodes that will do"),
	"ntasks-per-core":      none(noHardware),
	"ntasks-per-socket":    none(noHardware),
	"oom-kill-step":        none(keptOnly),
	"open-mode":            none(toTheLog),
	"output":               none(toTheLog),
	"overcommit":           none(oneTask),
	"oversubscribe":        none("CPUs of a YAML run are its own"),
	"parsable":             none(aboutCommand),
	"power":                none(keptOnly),
	"prefer":               none("constraint says what nodes must have"),
	"priority":             none("that of a run is priority, from 0 to 100"),
	"profile":              none(keptOnly),
	"propagate":            none("the commands set their limits themselves: ulimit"),
	"quiet":                none(aboutCommand),
	"reboot":               none("an administrator reboots nodes"),
	"resources":            none("resources of a configuration belong to its nodes"),
	"runtime":              none("image names what a container is made of"),
	"segment":              none("switches keeps nodes together"),
	"sockets-per-node":     none(noHardware),
	"spread-job":           none("nodes says how many nodes it has"),
	"spread-segments":      none("switches keeps nodes together"),
	"stepmgr":              none(keptOnly),
	"test-only":            none(aboutCommand),
	"thread-spec":          none(noHardware),
	"threads-per-core":     none(noHardware),
	"time-min":             none("max_duration is one limit"),
	"tres-bind":            none(oneTask),
	"uid":                  none("a run belongs to the one who applies it"),
	"usage":                none(aboutCommand),
	"use-min-nodes":        none("nodes says how many nodes it has"),
	"verbose":              none(aboutCommand),
	"version":              none(aboutCommand),
	"wait":                 none("apply stays until the run has ended, unless it is given -d"),
	"wait-all-nodes":       none(keptOnly),
	"wckey":                none("tags hold notes of a run"),
}

// maxName is the longest name of a run.
const maxName = 41

// jobName makes a run's name of a job's: lower case, letters, digits and dashes, a letter first.
func (c *scriptConversion) jobName(d slurm.Directive) {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, d.Value)
	name = strings.Trim(name[:min(len(name), maxName)], "-")
	if name == "" || name[0] < 'a' {
		name = "job-" + name
	}
	if len(name) < 2 {
		name += "-job"
	}
	name = strings.TrimRight(name[:min(len(name), maxName)], "-")
	c.out.set("name", name)
	if name != d.Value {
		c.notes.add(Differs, d.String(), "a run's name has lower-case letters, digits and dashes: "+name)
		c.keep(d)
	}
}

func (c *scriptConversion) chdir(d slurm.Directive) {
	dir := d.Value
	if !path.IsAbs(dir) {
		c.notes.add(Differs, d.String(), "is taken from where bireme convert was given")
		c.keep(d)
		dir = path.Join(c.o.Dir, dir)
	}
	c.out.set("working_dir", dir)
}

const otherUser = "a YAML run is in its container as the image's user, a Slurm job as its submitter"

func (c *scriptConversion) image(d slurm.Directive) {
	c.contained = true
	image := strings.Replace(strings.TrimPrefix(d.Value, "docker://"), "#", "/", 1)
	if strings.HasPrefix(image, ".") {
		image = path.Join(c.o.Dir, image)
	}
	c.out.set("image", image)
	c.notes.add(Differs, d.String(), otherUser)
	if image != d.Value {
		c.keep(d)
	}
}

// bundle takes --container: an image's address or file, as other plugins have it, else an OCI bundle.
func (c *scriptConversion) bundle(d slurm.Directive) {
	c.keep(d)
	image, remote := strings.CutPrefix(d.Value, "docker://")
	if !remote && path.Ext(image) != ".sif" && path.Ext(image) != ".sqsh" {
		c.notes.add(NoEqual, d.String(), "image names an image of a registry or a .sif or .sqsh file, no OCI bundle")
		return
	}
	c.contained = true
	c.out.set("image", strings.Replace(image, "#", "/", 1))
	c.notes.add(Differs, d.String(), "sbatch takes an image by --container-image here; "+otherUser)
}

func (c *scriptConversion) mounts(d slurm.Directive) {
	var list []any
	exact := true
	for m := range strings.SplitSeq(d.Value, ",") {
		f := strings.Split(m, ":")
		target := f[0]
		if len(f) > 1 {
			target = f[1]
		}
		exact = exact && len(f) == 2
		list = append(list, path.Clean(f[0])+":"+path.Clean(target))
	}
	c.out.set("volumes", list)
	if strings.Contains(d.Value, ":ro") {
		c.notes.add(Differs, d.String(), "volumes may be written to")
	}
	if !exact {
		c.keep(d)
	}
}

// dependency keeps what names jobs as depends_on reads it.
func (c *scriptConversion) dependency(d slurm.Directive) {
	if needs, err := grammar.ParseDependency(d.Value); err != nil || needs == nil {
		c.notes.add(NoEqual, d.String(), "depends_on has after, afterany, afterok, afternotok, aftercorr and singleton")
		c.keep(d)
		return
	}
	c.out.set("depends_on", d.Value)
	c.notes.add(Differs, d.String(), "names of runs will do instead of numbers of jobs")
}

// nodeList names nodes where they are all that the job gets.
func (c *scriptConversion) nodeList(d slurm.Directive) {
	names, err := hostlist.Expand(d.Value, 1<<16)
	if err != nil || strings.Contains(d.Value, "/") || len(names) != c.nodes {
		c.notes.add(NoEqual, d.String(), "instances names the nodes that will do, not those that must be among them")
		c.keep(d)
		return
	}
	var list []any
	for _, n := range names {
		list = append(list, n)
	}
	c.out.set("instances", list)
	if strings.Join(names, ",") != d.Value {
		c.keep(d)
	}
}

func (c *scriptConversion) signal(d slurm.Directive) {
	c.keep(d)
	s, err := grammar.ParseSignalSpec(d.Value)
	if err != nil {
		c.notes.add(NoEqual, d.String(), err.Error())
		return
	}
	cp := &keys{}
	cp.set("signal", grammar.SignalName(s.Signal))
	if s.Seconds > 0 {
		cp.set("grace", duration(int64(s.Seconds)))
	}
	c.out.set("checkpoint", cp)
	c.notes.add(Differs, d.String(), "checkpoint sends it to all processes of the run, and its grace is also the time "+
		"between a request to stop and the end")
}

func (c *scriptConversion) time(d slurm.Directive) {
	minutes, err := grammar.ParseTimeLimit(d.Value)
	switch {
	case err != nil:
		c.notes.add(NoEqual, d.String(), err.Error())
		c.keep(d)
	case minutes == grammar.Unlimited:
		c.out.set("max_duration", "off")
	default:
		c.out.set("max_duration", duration(minutes*60))
	}
}

func (c *scriptConversion) tmp(d slurm.Directive) {
	mib, err := grammar.ParseMemory(d.Value)
	if err != nil || mib == 100*1024 || mib == 0 {
		c.notes.add(NoEqual, d.String(), "disk: 100GB.. is what a configuration that says nothing has")
		c.keep(d)
		return
	}
	c.resources().set("disk", inUnits(mib)+"..")
}

// duration writes seconds in the greatest unit that they are a whole number of.
func duration(s int64) string {
	for _, u := range []struct {
		unit string
		n    int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}} {
		if s > 0 && s%u.n == 0 {
			return fmt.Sprintf("%d%s", s/u.n, u.unit)
		}
	}
	return fmt.Sprintf("%ds", s)
}

// inUnits writes MiB as dstack does, where GB are powers of 1024 too.
func inUnits(mib int64) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%dGB", mib/1024)
	}
	return fmt.Sprintf("%dMB", mib)
}
