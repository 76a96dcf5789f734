package translate

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/dstack/config"
)

// keyRule is what becomes of a key of a task or dev environment.
type keyRule struct {
	to string // the option that it becomes, or what of the script; "": none
	// do writes the option. Nil: task.go reads it from the whole submission.
	do  func(c *taskConversion, key string)
	why string // of a key without an option: what there is instead
}

// becomes is a key whose option is read from the submission.
func becomes(option string) keyRule { return keyRule{to: option} }

// lacking lists a key that no option has the effect of.
func lacking(why string) keyRule {
	return keyRule{why: why, do: func(c *taskConversion, key string) {
		c.notes.add(NoEqual, key, why)
		c.keep(key)
	}}
}

const (
	noCloud     = "nodes of a cluster belong to its partitions"
	needsImage  = "a script runs in an image only by --container-image"
	startNodes  = "srun starts tasks on all nodes at once"
	noContainer = "options of a container are its image, mounts and working directory"
)

// keyRules has every key of tasks and dev environments, those below resources by their path.
var keyRules = map[string]keyRule{
	"type": becomes("the script"), "name": becomes("--job-name"), "nodes": becomes("--nodes"),
	"commands": becomes("the script's lines"), "shell": becomes("the script's first line"), "image": becomes(
		"--container-image"), "resources": becomes("--cpus-per-task, --mem, --gres, --tmp"),

	"array": becomes("--array"), "partition": becomes("--partition"), "qos": becomes("--qos"),
	"account": becomes("--account"), "time": becomes("--time"), "max_duration": becomes("--time"),
	"begin": becomes("--begin"), "deadline": becomes("--deadline"), "constraint": becomes("--constraint"),
	"switches": becomes("--switches"), "requeue": becomes("--requeue"), "reservation": becomes("--reservation"),
	"runtime": becomes("--container-image or none"),

	"env":         {to: "--export", do: (*taskConversion).env},
	"working_dir": {to: "--chdir", do: (*taskConversion).workingDir},
	"volumes":     {to: "--container-mounts", do: (*taskConversion).volumes},
	"depends_on":  {to: "--dependency", do: (*taskConversion).dependsOn},
	"checkpoint":  {to: "--signal", do: (*taskConversion).checkpoint},
	"retry":       {to: "--requeue", do: (*taskConversion).retry},
	"fleets":      {to: "--constraint", do: (*taskConversion).fleets},
	"instances":   {to: "--nodelist", do: (*taskConversion).instances},
	"tags":        {to: "the options that they stand for", do: (*taskConversion).tags},

	"resources.cpu": becomes("--cpus-per-task"), "resources.cpu.count": becomes("--cpus-per-task"),
	"resources.cpu.arch": lacking("a constraint names a feature of nodes"), "resources.memory": becomes("--mem"),
	"resources.disk": becomes("--tmp"), "resources.disk.size": becomes("--tmp"),
	"resources.shm_size": lacking("/dev/shm is as the node has it"), "resources.gpu": becomes("--gres"),
	"resources.gpu.name": becomes("--gres"), "resources.gpu.count": becomes("--gres"),
	"resources.gpu.vendor":             lacking("a type of GRES or a constraint names the kind of GPU"),
	"resources.gpu.memory":             lacking("a type of GRES or a constraint names the kind of GPU"),
	"resources.gpu.total_memory":       lacking("a type of GRES or a constraint names the kind of GPU"),
	"resources.gpu.compute_capability": lacking("a type of GRES or a constraint names the kind of GPU"),

	"groups":              lacking("components of a het job (#SBATCH hetjob) run one script, on the first of their nodes"),
	"ports":               lacking("ports of a node are reached through ssh"),
	"user":                lacking(noContainer),
	"privileged":          lacking(noContainer),
	"entrypoint":          lacking("the script's lines are what runs"),
	"home_dir":            lacking("dstack does not look at it either"),
	"registry_auth":       lacking("the nodes have the registry's login, or the image is public"),
	"python":              lacking(needsImage + "; modules or a virtual environment bring Python"),
	"nvcc":                lacking(needsImage + "; modules bring the compiler"),
	"docker":              lacking(needsImage),
	"single_branch":       lacking("git clone in the script's lines fetches code"),
	"repos":               lacking("git clone in the script's lines fetches code; jobs see the shared file system"),
	"files":               lacking("jobs see the shared file system; sbcast copies a file to all nodes"),
	"dstack":              lacking("sbatch in the script's lines submits further jobs"),
	"setup":               lacking("the script's lines prepare what they need"),
	"priority":            lacking("a QOS lifts jobs; --nice lowers them"),
	"backends":            lacking(noCloud),
	"regions":             lacking(noCloud),
	"availability_zones":  lacking(noCloud),
	"instance_types":      lacking(noCloud),
	"spot_policy":         lacking(noCloud),
	"max_price":           lacking(noCloud),
	"creation_policy":     lacking(noCloud),
	"idle_duration":       lacking(noCloud),
	"backend_options":     lacking(noCloud),
	"stop_duration":       lacking("the cluster says how long a job has after SIGTERM"),
	"utilization_policy":  lacking("idle GPUs end no job"),
	"startup_order":       lacking(startNodes),
	"stop_criteria":       lacking("a script ends when its last line has"),
	"schedule":            lacking("scrontab submits scripts by the clock"),
	"ide":                 lacking("salloc gives a shell"),
	"version":             lacking("salloc gives a shell"),
	"init":                lacking("salloc gives a shell"),
	"inactivity_duration": lacking("an allocation lasts until its shell ends or its time is over"),
}

// env passes variables on as --export does: with the login environment, and nothing else of the caller's.
func (c *taskConversion) env(key string) {
	var list []string
	for _, v := range c.run.Env {
		switch {
		case v.From != "":
			list = append(list, v.Name)
		case strings.Contains(v.Value, "${{"):
			c.notes.add(NoEqual, key+"."+v.Name, "a script reads secrets from files; pass "+v.Name+" on from the caller")
			c.keep(key)
			list = append(list, v.Name)
		case strings.ContainsAny(v.Value, ",\n"):
			c.keep(key)
			if strings.Contains(v.Value, "\n") {
				c.notes.add(NoEqual, key+"."+v.Name, "--export takes one line")
				continue
			}
			c.before = append(c.before, "export "+v.Name+"="+config.QuoteWord(v.Value)+" "+lineMark+" --export takes no comma")
		default:
			list = append(list, v.Name+"="+v.Value)
		}
	}
	if len(list) > 0 {
		c.exported = strings.Join(list, ",")
	}
}

func (c *taskConversion) workingDir(key string) {
	dir := config.Value(c.run.WorkingDir)
	switch {
	case c.image != "":
		if strings.HasPrefix(dir, "/") {
			c.inside = append(c.inside, "--container-workdir="+dir)
			return
		}
		c.notes.add(NoEqual, key, "--container-workdir is a path from the root")
		c.keep(key)
	case strings.HasPrefix(dir, "/"):
		c.add("chdir", dir)
	default:
		rest, home := strings.CutPrefix(dir, "~/")
		if dir = config.QuoteWord(dir); home {
			dir = "~/" + config.QuoteWord(rest)
		} else if dir == "'~'" {
			dir = "~"
		}
		c.keep(key)
		c.before = append(c.before, "cd "+dir+" || exit "+lineMark+" --chdir takes a path from the root")
	}
}

func (c *taskConversion) volumes(key string) {
	var list []string
	for i := range c.run.Volumes {
		m := &c.run.Volumes[i]
		switch {
		case !m.IsInstance():
			c.notes.add(NoEqual, key+": "+strings.Join(m.Names, ","), "jobs see the shared file system; mount it where "+
				m.Path+" is meant")
			c.keep(key)
		case c.image == "":
			c.notes.add(NoEqual, key+": "+m.InstancePath, "a process sees the node's paths as they are")
			c.keep(key)
		default:
			if m.Optional {
				c.notes.add(Differs, key+": "+m.InstancePath, "a mount of --container-mounts must be there")
				c.keep(key)
			}
			list = append(list, m.InstancePath+":"+m.Path)
		}
	}
	if len(list) > 0 {
		c.inside = append(c.inside, "--container-mounts="+strings.Join(list, ","))
	}
}

// dependsOn writes a dependency; where it names runs, only the user knows their jobs.
func (c *taskConversion) dependsOn(key string) {
	for _, d := range c.cfg.Additions.Dependencies.List {
		if d.Run != "" {
			c.notes.add(NoEqual, key+": "+d.Run, "--dependency takes the number of a job: --dependency="+string(d.When)+
				":JOB on sbatch's command line")
			c.keep(key)
			return
		}
	}
	text := c.sub.Spec.More().Dependency.String()
	if n, ok := c.raw.values[key].(*yaml.Node); ok && n.Kind == yaml.ScalarNode {
		text = n.Value
	}
	c.add("dependency", text)
}

func (c *taskConversion) checkpoint(key string) {
	c.keep(key)
	p := c.cfg.Additions.Checkpoint
	if s := c.sub.Spec.More().Signal; s != nil {
		c.add("signal", grammar.SignalName(int(s.Signal))+"@"+strconv.FormatInt(int64(s.Before), 10))
		c.notes.add(Differs, key, "--signal sends it to the tasks of steps; with B: in front of it to the script alone")
	}
	if p.SavedFile != "" {
		c.notes.add(NoEqual, key+".saved_file", "bireme checkpoint in the script's lines says that the state was saved")
	}
}

func (c *taskConversion) retry(key string) {
	c.keep(key)
	events, _ := c.policy.Retry.Acts()
	for _, e := range events {
		switch e {
		case config.RetryNoCapacity:
			c.notes.add(Differs, key+": "+e, "a job waits until there are nodes, without a limit")
		case config.RetryError:
			c.notes.add(NoEqual, key+": "+e, "a job that fails is not started again; scontrol requeue does it")
		case config.RetryInterruption:
			c.notes.add(Differs, key+": "+e, "--requeue has no limit of time")
		}
	}
}

// fleets restricts the job to nodes with the feature that a fleet's nodes have: its name.
func (c *taskConversion) fleets(key string) {
	c.keep(key)
	var names []string
	for _, f := range c.policy.Fleets {
		names = append(names, f.Name)
	}
	text := strings.Join(names, "|")
	switch own := c.cfg.Additions.Constraint.String(); {
	case len(names) > 1 && c.nodes > 1 && own == "":
		text = "[" + text + "]"
	case own != "":
		text = "(" + text + ")&(" + own + ")"
		c.keep("constraint")
	}
	if _, err := grammar.ParseConstraint(text); err != nil {
		c.notes.add(NoEqual, key, "--constraint cannot say it: "+err.Error())
		return
	}
	c.add("constraint", text)
	c.notes.add(Differs, key, "nodes of a fleet have its name as a feature; for a partition write --partition")
}

// instances names nodes where all of them are used; others than names are known to fleets only.
func (c *taskConversion) instances(key string) {
	var names []string
	for _, s := range c.policy.Instances {
		if s.Name == "" || strings.ContainsAny(s.Name, ",[]/ ") {
			c.notes.add(NoEqual, key, "--nodelist takes names of nodes")
			c.keep(key)
			return
		}
		names = append(names, s.Name)
	}
	if len(names) > c.nodes {
		c.notes.add(NoEqual, key, "--nodelist names nodes that must be used, not those that will do")
		c.keep(key)
		return
	}
	c.add("nodelist", strings.Join(names, ","))
	if len(names) != c.nodes {
		c.keep(key)
	}
}

// tags lists those that are no additions: additions are options.
func (c *taskConversion) tags(key string) {
	ours := true
	for _, t := range c.policy.Tags {
		if !strings.HasPrefix(t.Name, config.TagPrefix) {
			ours = false
			c.notes.add(NoEqual, key+"."+t.Name, "--comment holds a note of a job")
		}
	}
	if !ours {
		c.keep(key)
	}
}

// resources writes what each node must have. What it cannot write exactly is kept.
func (c *taskConversion) resources() {
	shape, r := &c.sub.Spec.Shape, &c.run.Resources
	if shape.CPUsPerTask > 1 {
		c.add("cpus-per-task", strconv.Itoa(int(shape.CPUsPerTask)))
	}
	if m := shape.MemPerNode; m > 0 {
		c.add("mem", sizeText(m))
		if m%core.MiB != 0 {
			c.keep("resources")
		}
	}
	for _, g := range shape.Gres {
		c.add("gres", gresText(g))
	}
	if d := c.sub.Spec.More().TmpDisk; d > 0 {
		c.add("tmp", sizeText(d))
		if d%core.MiB != 0 {
			c.keep("resources")
		}
	}
	lack := func(given bool, path string) {
		if given {
			c.notes.add(NoEqual, path, keyRules[path].why)
			c.keep("resources")
		}
	}
	lack(r.ShmSize != nil, "resources.shm_size")
	lack(r.CPU.Arch != nil, "resources.cpu.arch")
	if g := r.GPU; g != nil {
		lack(g.Vendor != nil, "resources.gpu.vendor")
		lack(g.Memory != nil, "resources.gpu.memory")
		lack(g.TotalMemory != nil, "resources.gpu.total_memory")
		lack(g.ComputeCapability != nil, "resources.gpu.compute_capability")
		if len(g.Name) > 1 {
			c.notes.add(NoEqual, "resources.gpu.name", "--gres takes one type; a constraint names features: a100|h100")
			c.keep("resources")
		}
	}
	c.ranges(r)
}

// ranges lists upper ends: a job gets what it asks for, no less and no more.
func (c *taskConversion) ranges(r *config.Resources) {
	open := func(path string, low, high float64, closed bool) {
		if closed && high > low {
			c.notes.add(Differs, path, "a range is its lower end")
			c.keep("resources")
		}
	}
	n := r.CPU.Count
	open("resources.cpu", float64(config.Value(n.Min)), float64(config.Value(n.Max)), n.Max != nil)
	m := r.Memory
	open("resources.memory", float64(config.Value(m.Min)), float64(config.Value(m.Max)), m.Max != nil)
	if g := r.GPU; g != nil {
		n := g.Count
		open("resources.gpu.count", float64(config.Value(n.Min)), float64(config.Value(n.Max)), n.Max != nil)
	}
	if d := r.Disk; d != nil {
		open("resources.disk", float64(config.Value(d.Size.Min)), float64(config.Value(d.Size.Max)), d.Size.Max != nil)
	}
}

// sizeText writes a size as sbatch reads it.
func sizeText(b core.Bytes) string {
	mib := int64((b + core.MiB - 1) / core.MiB)
	if mib%1024 == 0 {
		return strconv.FormatInt(mib/1024, 10) + "G"
	}
	return strconv.FormatInt(mib, 10) + "M"
}

// keep has the script hold a key as it was written, for the way back.
func (c *taskConversion) keep(key string) {
	if !slices.Contains(c.kept, key) {
		c.kept = append(c.kept, key)
	}
}
