package dstack

import (
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Options are what the caller adds to a configuration.
type Options struct {
	Name    string // of the run; wins over the file's
	Project core.ProjectName
	Env     []string // NAME=VALUE or NAME; wins over the file's
	Lookup  func(name string) (value string, ok bool)
	Args    []string // what ${{ run.args }} stands for
	From    core.Origin
	Runtime string // of the project, for a task that does not say its own; empty: not known yet
}

// Submit turns the task into a submission. What the file leaves to the caller (the name, bare variables, arguments)
// must be there now; all faults come in one error.
func (t *Task) Submit(o Options) (*client.Submit, error) {
	f := &faults{file: t.File}
	t.settleRuntime(f, o.Runtime)
	name := o.Name
	if name == "" {
		name = t.Name
	}
	if err := CheckName(name); err != nil {
		f.add(nil, "name", "%s", err.Error())
	}
	script := t.script(f, map[string]string{"run.args": shellJoin(o.Args)})
	env := t.secretEnv(f, environment(f, t.Env, o.Env, o.Lookup))
	if err := f.err(); err != nil {
		return nil, err
	}
	spec := core.Spec{
		Name:      name,
		Project:   o.Project,
		Runtime:   core.RuntimeProcess,
		Run:       name,
		Shape:     t.shape(),
		TimeLimit: t.MaxDuration,
		IO:        core.IO{WorkDir: t.absoluteDir(), Stream: true},
		From:      o.From,
		Requeue:   t.Requeue,
		Extra:     t.extra(),
	}
	if spec.Extra.Container != nil {
		spec.Runtime, spec.IO.WorkDir = core.RuntimeContainer, "/"
		if spec.Extra.Container.Own { // the commands are the entrypoint's arguments
			for _, c := range t.Commands {
				spec.Args = append(spec.Args, c.text)
			}
		}
	}
	return &client.Submit{
		Spec: spec, Script: script, Env: env, Run: name, Config: string(t.source),
		// What can never start is refused, unless the file says that it should wait for capacity to come.
		Strict: !t.Wait,
	}, nil
}

// shape asks for the task's part on each node: one task a node, as dstack runs one container a node.
func (t *Task) shape() core.Shape {
	s := core.Shape{
		NodesMin: t.Nodes, NodesMax: t.Nodes, Tasks: t.Nodes, TasksPerNode: 1, CPUsPerTask: 1, Blocks: true,
		Given: core.GivenNodes | core.GivenTasks | core.GivenTasksPerNode,
	}
	if t.CPUs > 0 {
		s.CPUsPerTask, s.Given = t.CPUs, s.Given|core.GivenCPUsPerTask
	}
	if t.Memory > 0 {
		s.MemPerNode, s.Given = t.Memory, s.Given|core.GivenMemPerNode
	}
	if t.GPUs.Count > 0 {
		s.Gres, s.Given = []core.Gres{t.GPUs}, s.Given|core.GivenGres
	}
	if t.MaxDuration != 0 {
		s.Given |= core.GivenTimeLimit
	}
	return s
}

// extra gives the rare wishes. The commands start from the environment of a login on the node, because the caller's may
// be that of a laptop.
func (t *Task) extra() *core.Extra {
	c := t.container()
	return &core.Extra{
		LoginEnv: c == nil, TmpDisk: t.Disk, KillGrace: t.StopDuration, RunPriority: t.Priority,
		Container: c, GPU: t.GPUAsk,
	}
}

// absoluteDir is the working directory as far as it is known before the node is: homes differ, and are found there.
func (t *Task) absoluteDir() string {
	if strings.HasPrefix(t.WorkDir, "~") || t.WorkDir == "" {
		return "/"
	}
	return t.WorkDir
}

// script joins the commands so that each runs only if the one before it succeeded, in one shell: what a command exports
// or where it goes holds for the next. Each stands on lines of its own inside braces, so that a comment at its end, a
// trailing & or a here-document means what it says; the colon makes a command of nothing but comments legal.
func (t *Task) script(f *faults, vars map[string]string) string {
	if c := t.container(); c != nil && c.Own {
		return ownScript
	}
	var b strings.Builder
	if t.box.contains {
		b.WriteString(t.prelude() + "export DSTACK_WORKING_DIR=\"$PWD\"\n")
	} else {
		b.WriteString(t.chdir())
	}
	for i, c := range t.Commands {
		text, err := interpolate(c.text, vars)
		if err != nil {
			f.add(c.node, index("commands", i), "%s", err.Error())
			continue
		}
		if i > 0 {
			b.WriteString(" && ")
		}
		b.WriteString("{ :\n" + strings.TrimRight(text, " \t\r\n") + "\n}")
	}
	body := b.String() + "\n"
	head := "#!" + t.Shell + "\n"
	if t.Nodes == 1 || t.box.contains { // the first of several containers starts it in the others
		return head + body
	}
	// A batch script runs on the first node; a step takes the commands to all of them, and fails when one node does.
	return head + `exec "${BIREME_EXE:-bireme}" srun --ntasks-per-node=1 --kill-on-bad-exit=1 ` + shellQuote(t.Shell) +
		" -c " +
		shellQuote("export DSTACK_NODE_RANK=$SLURM_NODEID\n"+hostfile+body) + "\n"
}

// chdir goes to the working directory. One that was asked for must be there; a home may be missing.
func (t *Task) chdir() string {
	to := `cd ~ 2>/dev/null || cd "${TMPDIR:-/tmp}"`
	switch rest, home := strings.CutPrefix(t.WorkDir, "~/"); {
	case home:
		to = "cd ~/" + shellQuote(rest)
	case t.WorkDir == "~":
		to = "cd ~"
	case t.WorkDir != "":
		to = "cd " + shellQuote(t.WorkDir)
	}
	return to + " || exit\nexport DSTACK_WORKING_DIR=\"$PWD\"\n"
}
