package translate

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/slurm"
)

// keptKey begins a line of a script that holds a line of YAML: keys that no option has the effect of.
const keptKey = "#BIREME "

// scriptConversion makes a configuration of a script.
type scriptConversion struct {
	o     Options
	req   *slurm.Request
	given map[string]slurm.Directive // the last of each option
	out   *keys
	res   *keys // out's resources
	notes notes
	kept  []slurm.Directive // options that the way back puts back
	lines []string          // likewise, as lines
	srun  []string          // variables that tell srun in the commands what it was told before

	nodes      int
	nodesNoted bool // that the script does not say how many
	contained  bool
}

func (c *scriptConversion) keep(d slurm.Directive) {
	c.kept = slices.DeleteFunc(c.kept, func(o slurm.Directive) bool { return o.Option == d.Option })
	c.kept = append(c.kept, d)
}

func (c *scriptConversion) resources() *keys {
	if c.res == nil {
		c.res = &keys{}
		c.out.set("resources", c.res)
	}
	return c.res
}

// Script makes a YAML configuration of a batch script.
func Script(src []byte, o Options) (*Result, error) {
	if bad := slurm.CheckScript(src); bad != nil {
		return nil, core.Errorf(core.Invalid, "%s: %s", o.Name, strings.Join(bad, " "))
	}
	parts, err := slurm.Directives(o.Name, src)
	if err != nil {
		return nil, refused(err)
	}
	c := &scriptConversion{
		o: o, req: slurm.NewRequest(slurm.Sbatch, o.Now, o.Dir), given: map[string]slurm.Directive{}, out: &keys{},
	}
	c.out.set("type", "task")
	for _, d := range parts[0] {
		c.given[d.Option] = d
		if rule := optionRules[d.Option]; rule.why == "" && !unread[d.Option] {
			if _, err := c.req.Args([]string{d.String()}); err != nil {
				return nil, refused(err)
			}
		}
	}
	if _, err := c.req.Finish(); err != nil {
		return nil, refused(err)
	}
	c.request()
	for _, d := range parts[0] {
		if rule := optionRules[d.Option]; rule.do != nil && c.given[d.Option] == d {
			rule.do(c, d)
		}
	}
	c.components(parts[1:])
	shebang, kept, body := splitScript(src)
	c.defaults(body)
	c.commands(shebang, body)
	c.overlay(kept)
	variablesOfScript(&c.notes, body, c.contained)
	return c.result()
}

// unread are options whose values are looked at here only: reading them looks at files of this machine.
var unread = map[string]bool{
	"nodelist": true, "container": true, "container-image": true, "container-mounts": true, "container-workdir": true,
	"get-user-env": true, "signal": true,
}

// refused makes an error of a complaint in Slurm's words.
func refused(err error) error {
	text := strings.TrimPrefix(err.Error(), "sbatch: error: ")
	var c *slurm.Complaint
	if as(err, &c) && c.Hint != "" {
		text += "; " + c.Hint
	}
	return core.Errorf(core.Invalid, "%s", text)
}

// components lists the further components of a het job.
func (c *scriptConversion) components(parts [][]slurm.Directive) {
	for _, list := range parts {
		c.notes.add(NoEqual, "hetjob", "a task has nodes of one kind, those of the first component; groups of unlike nodes "+
			"need a container")
		c.lines = append(c.lines, "#SBATCH hetjob")
		for _, d := range list {
			c.lines = append(c.lines, slurm.DirectiveLine(d.String()))
		}
	}
}

var bareExport = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*export[ \t]+([A-Za-z_][A-Za-z0-9_]*)[ \t]*(?:#.*)?$`)
})

// defaults writes what sbatch does where a script says nothing and a configuration does otherwise.
func (c *scriptConversion) defaults(body string) {
	_, yes := c.given["requeue"]
	_, no := c.given["no-requeue"]
	if !yes && !no {
		c.out.set("requeue", true)
	}
	if !c.contained {
		c.out.set("runtime", core.RuntimeProcess)
	}
	if _, ok := c.given["export"]; !ok {
		c.exportAll(body, slurm.Directive{Option: "export", Value: "ALL", Set: true}, nil)
	}
	if _, ok := c.out.values["working_dir"]; !ok && !c.contained {
		c.notes.add(Differs, "--chdir", "sbatch starts a script where it is called, the run starts at home; working_dir "+
			"says where else")
	}
}

// exportAll names what of the caller's environment the commands are seen to use.
func (c *scriptConversion) exportAll(body string, d slurm.Directive, env []any) {
	for _, m := range bareExport().FindAllStringSubmatch(body, -1) {
		if !slices.Contains(env, any(m[1])) {
			env = append(env, m[1])
		}
	}
	if len(env) > 0 {
		c.out.set("env", env)
	}
	c.notes.add(Differs, d.String(), "a run has the variables of a login and those of env, not all of the caller's")
	c.keep(d)
}

// export names the variables that --export passes on.
func (c *scriptConversion) export(d slurm.Directive) {
	switch strings.ToUpper(d.Value) {
	case "NONE":
		return
	case "NIL":
		c.notes.add(NoEqual, d.String(), "a run begins with the variables of a login")
		c.keep(d)
		return
	}
	var env []any
	all := false
	for w := range strings.SplitSeq(d.Value, ",") {
		switch {
		case strings.EqualFold(w, "ALL"):
			all = true
		case w != "":
			env = append(env, w)
		}
	}
	if all {
		c.exportAll("", d, env)
		return
	}
	c.out.set("env", env)
}

// overlay puts keys back that an earlier conversion kept in the script.
func (c *scriptConversion) overlay(text string) {
	kept := top([]byte(text))
	if kept == nil {
		return
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := kept.values[n]; return ok })
	}
	if has("image", "python", "nvcc", "docker") {
		c.out.drop("runtime")
	}
	if has("groups") {
		for _, k := range []string{"nodes", "commands", "resources"} {
			c.out.drop(k)
		}
	}
	if has("fleets") {
		c.out.drop("constraint")
	}
	for _, name := range kept.names {
		c.out.set(name, kept.values[name])
	}
}

// keyOrder is the order in which keys are written.
var keyOrder = []string{
	"type", "name", "runtime", "image", "python", "nvcc", "docker", "shell", "working_dir", "array", "depends_on", "nodes",
	"groups", "env", "commands", "resources", "volumes", "max_duration", "time",
}

// result writes the configuration and reads it again: what cannot be read is never handed out.
func (c *scriptConversion) result() (*Result, error) {
	if c.o.Stock {
		if err := c.stock(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(c.out.names, func(a, b string) int { return place(a) - place(b) })
	text, err := write(c.out)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(c.notes.head(c.o.Name))
	if len(c.kept)+len(c.lines) > 0 {
		b.WriteString(mark + " bireme convert puts these options back into a script; they have no effect here:\n")
	}
	for _, d := range c.kept {
		b.WriteString(slurm.DirectiveLine(d.String()) + "\n")
	}
	for _, l := range c.lines {
		b.WriteString(l + "\n")
	}
	b.WriteString("\n" + text)
	if _, err := config.Read([]byte(b.String())); err != nil {
		return nil, core.Errorf(core.Invalid, "%s cannot be written as a configuration: %v", c.o.Name, err)
	}
	return &Result{Output: b.String(), Notes: c.notes.list()}, nil
}

func place(key string) int {
	if i := slices.Index(keyOrder, key); i >= 0 {
		return i
	}
	return len(keyOrder)
}

// stock writes additions as tags, and sizes that a stock client would fill in otherwise.
func (c *scriptConversion) stock() error {
	text, err := write(c.out)
	if err != nil {
		return err
	}
	cfg, err := config.Read([]byte(text))
	if err != nil {
		return core.Errorf(core.Invalid, "%s cannot be written as a configuration: %v", c.o.Name, err)
	}
	for _, k := range config.AdditionKeys() {
		c.out.drop(k)
	}
	tags := &keys{}
	for _, t := range cfg.Policy().Tags {
		tags.set(t.Name, t.Value)
	}
	if len(tags.names) > 0 {
		c.out.set("tags", tags)
	}
	if _, isKept := c.out.values["resources"]; isKept && c.res == nil {
		return nil
	}
	if _, ok := c.resources().values["cpu"]; !ok {
		c.res.set("cpu", "1..")
	}
	if _, ok := c.res.values["memory"]; !ok {
		c.res.set("memory", "0MB..")
	}
	return nil
}

// splitScript takes a script apart: its first line, the YAML that it keeps, and what is left without #SBATCH lines and
// the lines that only a conversion needed.
func splitScript(src []byte) (shebang, kept, body string) {
	first, rest, _ := bytes.Cut(src, []byte("\n"))
	shebang = strings.TrimSpace(strings.TrimPrefix(string(first), "#!"))
	var out []string
	lines := strings.Split(string(rest), "\n")
	head := true
	for i, l := range lines {
		trimmed := strings.TrimLeft(l, " \t")
		if head && trimmed != "" && trimmed[0] != '#' {
			head = false
		}
		switch {
		case head && (strings.HasPrefix(l, "#SBATCH") || strings.HasPrefix(l, "#SLURM")):
			continue
		case head && strings.HasPrefix(l, strings.TrimSpace(keptKey)):
			kept += strings.TrimPrefix(strings.TrimPrefix(l, "#BIREME"), " ") + "\n"
			continue
		case head && strings.HasPrefix(l, mark+" "), strings.Contains(l, " "+lineMark+" "):
			continue
		}
		out = append(out, lines[i])
	}
	return shebang, kept, strings.Trim(strings.Join(out, "\n"), "\n")
}

// shells are interpreters whose scripts are commands.
var shells = []string{"sh", "bash", "dash", "ksh", "zsh", "ash"}

// inDocument is how commands start an interpreter that is no shell.
const (
	documentHead = " /dev/fd/3 3<<'BIREME_SCRIPT'\n"
	documentTail = "\nBIREME_SCRIPT"
)

// dollars protects what commands of a configuration have replaced: $$ is a dollar there, and ${{ begins a variable.
var dollars = strings.NewReplacer("$$", "$$$$", "${{", "$${{")

// commands writes the body of the script as commands.
func (c *scriptConversion) commands(shebang, body string) {
	list, wrapped := unwrap(&c.contained, c.out, body)
	words := strings.Fields(cmp.Or(shebang, "/bin/sh"))
	if len(words) > 1 && path.Base(words[0]) == "env" {
		words = words[1:]
	}
	shell := words[0]
	switch base := path.Base(shell); {
	case !slices.Contains(shells, base):
		list = []string{"exec " + shebang + documentHead + body + documentTail}
	case base == "bash" && (shell == "/bin/bash" || shell == "bash") && !c.contained:
	case base == "sh" && shell == "/bin/sh" || base == "bash" && (shell == "/bin/bash" || shell == "bash"):
		c.out.set("shell", base)
	case path.IsAbs(shell):
		c.out.set("shell", shell)
	}
	if shebang != "/bin/bash" && shebang != "/bin/sh" && shebang != shell && slices.Contains(shells, path.Base(shell)) {
		c.lines = append(c.lines, "#!"+shebang)
		if len(words) > 1 {
			c.notes.add(Differs, "#!"+shebang, "commands start without options of their shell; set gives some of them")
		}
	}
	if len(list) == 0 {
		return
	}
	if !wrapped {
		list[0] = c.prelude() + list[0]
	}
	var commands []any
	for _, l := range list {
		commands = append(commands, dollars.Replace(l))
	}
	c.out.set("commands", commands)
}

// prelude lets a run on several nodes do what a batch script does: it runs on the first, and srun reaches the others.
func (c *scriptConversion) prelude() string {
	out := ""
	if c.nodes > 1 {
		out = `[ "$DSTACK_NODE_RANK" = 0 ] || exit 0 ` + lineMark + " a batch script runs on the first of its nodes\n"
		if !c.contained {
			c.srun = append([]string{"SLURM_OVERLAP=1"}, c.srun...)
		}
	}
	if len(c.srun) > 0 {
		out += "export " + strings.Join(c.srun, " ") + " " + lineMark + " for srun\n"
	}
	return out
}
