package translate

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/slurm"
)

// taskConversion makes a script of a configuration.
type taskConversion struct {
	o      Options
	cfg    *config.Configuration
	run    *config.Run
	policy config.Policy
	sub    *client.Submit // what the configuration asks for
	raw    *keys          // as it is written
	image  string
	nodes  int

	options  []slurm.Directive
	inside   []string // options of the container
	exported string   // value of --export
	before   []string // lines before the commands
	kept     []string // keys
	notes    notes
}

func (c *taskConversion) add(option, value string) {
	c.options = append(c.options, slurm.Directive{Option: option, Value: value, Set: true})
}

// Configuration makes a batch script of a task, and a call of salloc of a dev environment.
func Configuration(src []byte, o Options) (*Result, error) {
	cfg, err := config.Read(src)
	if err != nil {
		var faults config.Faults
		if as(err, &faults) {
			return nil, faults.In(o.Name)
		}
		return nil, err
	}
	if cfg.Task == nil && cfg.DevEnvironment == nil {
		return nil, core.Errorf(core.Invalid, "%s: type: %s has no equal among Slurm's files; task and dev-environment have",
			o.Name, cfg.Kind)
	}
	convert.Modest(cfg)
	c := &taskConversion{o: o, cfg: cfg, run: cfg.Run(), policy: *cfg.Policy(), raw: top(src), exported: "NONE"}
	if err := c.submission(); err != nil {
		return nil, err
	}
	c.head()
	c.resources()
	for _, key := range c.raw.names {
		if rule := keyRules[key]; rule.do != nil && cfg.Wrote(key) {
			rule.do(c, key)
		}
	}
	c.add("export", c.exported)
	kept, first := optionsOf(src)
	c.restore(kept)
	if cfg.DevEnvironment != nil {
		return c.salloc()
	}
	return c.script(src, first)
}

// submission asks for the run what apply would ask for, with names of runs for numbers of jobs.
func (c *taskConversion) submission() error {
	plain := *c.cfg
	if t := plain.Task; t != nil {
		copied := *t
		copied.Env, copied.Groups, plain.Task = nil, nil, &copied
	} else {
		copied := *plain.DevEnvironment
		copied.Env, plain.DevEnvironment = nil, &copied
	}
	s := &convert.Spec{Configuration: plain}
	sub, err := s.Submit(convert.Options{
		Name: c.cfg.Name(), Project: core.ProjectName(c.cfg.Additions.Account), Runtime: core.RuntimeProcess, Now: c.o.Now,
		Job: func(run string) (string, error) { return run, nil },
	})
	if err != nil {
		return err
	}
	c.sub, c.nodes = sub, s.Nodes()
	c.image = config.Value(c.run.Image)
	return nil
}

// head writes the options that stand for themselves.
func (c *taskConversion) head() {
	a, spec := &c.cfg.Additions, &c.sub.Spec
	some := func(option, value string) {
		if value != "" {
			c.add(option, value)
		}
	}
	some("job-name", c.cfg.Name())
	some("partition", a.Partition)
	some("account", a.Account)
	some("qos", a.QOS)
	if t := c.cfg.Task; t != nil && t.Nodes != nil {
		c.add("nodes", strconv.Itoa(*t.Nodes))
	}
	c.limit(spec.TimeLimit)
	if a.Array != nil {
		c.add("array", a.Array.String())
	}
	c.moment("begin", a.Begin)
	c.moment("deadline", a.Deadline)
	if len(c.policy.Fleets) == 0 {
		some("constraint", a.Constraint.String())
	}
	some("switches", a.Switches.String())
	some("reservation", config.Value(c.policy.Reservation))
	if c.cfg.Task != nil {
		option := "no-requeue"
		if spec.Requeue {
			option = "requeue"
		}
		c.options = append(c.options, slurm.Directive{Option: option})
	}
	if c.image != "" {
		c.inside = append(c.inside, "--container-image="+c.image)
		c.notes.add(Differs, "image", otherUser)
	}
	if c.cfg.Task != nil && !c.cfg.Wrote("working_dir") && c.image == "" {
		c.notes.add(Differs, "working_dir", "the run starts at home, sbatch starts a script where it is called; --chdir "+
			"says where else")
	}
}

func (c *taskConversion) limit(t core.Seconds) {
	key := "max_duration"
	if c.cfg.Additions.Time != 0 {
		key = "time"
	}
	switch {
	case t == 0:
	case t == core.Forever:
		c.add("time", "UNLIMITED")
	default:
		minutes := (int64(t) + 59) / 60
		c.add("time", grammar.FormatLimit(minutes))
		if int64(t)%60 != 0 {
			c.notes.add(Differs, key, "--time counts minutes; it is rounded up")
			c.keep(key)
		}
	}
}

// moment writes a time as sbatch reads it: without a zone, in that of the reader.
func (c *taskConversion) moment(option, text string) {
	if text == "" {
		return
	}
	if _, err := grammar.ParseMoment(text, c.o.Now, grammar.Upcoming); err != nil {
		at, err := config.Moment(text, c.o.Now)
		if err != nil {
			return // it was read before
		}
		text = at.Go().In(c.o.Now.Location()).Format("2006-01-02T15:04:05")
		c.notes.add(Differs, option, "sbatch takes times of its own zone: "+text)
		c.keep(option)
	}
	c.add(option, text)
}

// optionsOf finds the options that an earlier conversion kept in a configuration, and the script's first line.
func optionsOf(src []byte) (kept []string, first string) {
	for l := range strings.SplitSeq(string(src), "\n") {
		switch {
		case strings.HasPrefix(l, "#SBATCH "):
			kept = append(kept, l)
		case strings.HasPrefix(l, "#!"):
			first = l
		case strings.TrimSpace(l) != "" && l[0] != '#':
			return kept, first
		}
	}
	return kept, first
}

// restore puts kept options back, in the place of those of their family.
func (c *taskConversion) restore(lines []string) {
	if len(lines) == 0 {
		return
	}
	parts, err := slurm.Directives(c.o.Name, []byte(strings.Join(lines, "\n")))
	if err != nil {
		c.notes.add(Differs, "#SBATCH", "comments of this form are not read as options: "+err.Error())
		return
	}
	var drop []string
	for _, d := range parts[0] {
		drop = append(drop, familyOf(d.Option)...)
	}
	if nodesByTasks(parts[0]) > 1 { // where the script says it itself, that is kept, too
		drop = append(drop, "nodes")
	}
	var out []slurm.Directive
	for _, d := range c.options {
		if !contains(drop, d.Option) {
			out = append(out, d)
		}
	}
	var inside []string
	for _, w := range c.inside {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		if !contains(drop, name) {
			inside = append(inside, w)
		}
	}
	c.options, c.inside = append(out, parts[0]...), inside
	for _, list := range parts[1:] {
		c.options = append(c.options, slurm.Directive{Option: hetjob})
		c.options = append(c.options, list...)
	}
}

// nodesByTasks is how many nodes the tasks of options need, where they say how many a node has; 0: they do not.
func nodesByTasks(list []slurm.Directive) int {
	var tasks, each int
	for _, d := range list {
		switch n, err := strconv.Atoi(d.Value); {
		case err != nil:
		case d.Option == "ntasks":
			tasks = n
		case d.Option == "ntasks-per-node":
			each = n
		}
	}
	if each <= 0 {
		return 0
	}
	return (tasks + each - 1) / each
}

// hetjob stands among the options where another component begins.
const hetjob = ""

func contains(list []string, w string) bool {
	for _, x := range list {
		if x == w {
			return true
		}
	}
	return false
}

// keptLines are the keys that the way back puts back.
func (c *taskConversion) keptLines() (string, error) {
	if len(c.kept) == 0 {
		return "", nil
	}
	k := &keys{}
	for _, name := range c.raw.names {
		if contains(c.kept, name) {
			k.set(name, c.raw.values[name])
		}
	}
	text, err := write(k)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(mark + " bireme convert puts these keys back into a configuration; they have no effect here:\n")
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString(strings.TrimRight(keptKey+l, " ") + "\n")
	}
	return b.String(), nil
}

// stepHead begins the line that takes commands to all nodes of a job.
const stepHead = "srun --ntasks-per-node=1 --kill-on-bad-exit=1 --export=ALL"

// script writes the script and reads it again: what cannot be read is never handed out.
func (c *taskConversion) script(src []byte, first string) (*Result, error) {
	shell := c.shell()
	body := c.body()
	job, node := variablesOfCommands(&c.notes, body, c.nodes)
	onAll := c.nodes > 1 && !strings.Contains(string(src), firstNode)
	var lines string
	switch {
	case body == "":
		lines = "true " + lineMark + " there are no commands"
	case onAll:
		lines = join(c.before, job) + stepLine(c.inside, shell, join(node)+body)
		c.inside = nil
	default:
		lines = join(c.before, job, node) + body
	}
	if first == "" {
		first = "#!" + shell
		if inner, rest, ok := document(body); ok && !onAll {
			first, lines = "#!"+inner, rest
		}
	}
	for _, w := range c.inside {
		name, value, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		c.options = append([]slurm.Directive{{Option: name, Value: value, Set: true}}, c.options...)
	}
	kept, err := c.keptLines()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(first + "\n" + c.notes.head(c.o.Name))
	for _, d := range c.options {
		if d.Option == hetjob {
			b.WriteString("#SBATCH hetjob\n")
			continue
		}
		b.WriteString(slurm.DirectiveLine(d.String()) + "\n")
	}
	b.WriteString(kept + "\n" + lines + "\n")
	out := b.String()
	if bad := slurm.CheckScript([]byte(out)); bad != nil {
		return nil, core.Errorf(core.Invalid, "%s cannot be written as a script: %s", c.o.Name, strings.Join(bad, " "))
	}
	if _, err := slurm.Directives(c.o.Name, []byte(out)); err != nil {
		return nil, refused(err)
	}
	return &Result{Output: out, Notes: c.notes.list()}, nil
}

// salloc writes the call that gives what a dev environment has: nodes to work on.
func (c *taskConversion) salloc() (*Result, error) {
	var words []string
	for _, d := range c.options {
		switch d.Option {
		case "export", hetjob, "requeue", "no-requeue":
			continue
		}
		words = append(words, config.QuoteWord(d.String()))
	}
	for _, w := range c.inside {
		words = append(words, config.QuoteWord(w))
	}
	kept, err := c.keptLines()
	if err != nil {
		return nil, err
	}
	c.notes.add(Differs, "type: dev-environment", "salloc gives a shell and the nodes until the shell ends")
	out := "#!/bin/sh\n" + c.notes.head(c.o.Name) + kept + "\nexec salloc " + strings.Join(words, " ") + " \"$@\"\n"
	return &Result{Output: out, Notes: c.notes.list()}, nil
}
