package jobs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/nodes"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
)

type applyOptions struct {
	app     *app.App
	file    string
	yes     bool
	detach  bool
	name    string
	env     []string
	project string
	args    []string
	force   bool

	profile   string
	noProfile bool
	ports     []string // to forward while attached
	host      string
}

func applyCommand(a *app.App) *cobra.Command {
	o := &applyOptions{app: a}
	c := &cobra.Command{
		Use: "apply [-f FILE] [-- ARGS...]", Short: "run a YAML configuration",
		Long: `Run a YAML configuration (type: task) and follow its output to the end; the exit
status is then the run's own. One of type: fleet makes a fleet of SSH hosts, or
changes it in place, and waits until its hosts are nodes. Without -f it takes .dstack.yml or .dstack.yaml of
the current folder; -f - reads standard input. ARGS replace ${{ run.args }}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
				return app.Usagef("apply: unexpected argument %q: give the file with -f, and arguments of the run "+
					"after --", args[0])
			}
			o.args = args
			return o.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "the configuration, `FILE`; - for standard input")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVarP(&o.detach, "detach", "d", false, "print the run's name and job and leave")
	f.StringVarP(&o.name, "name", "n", "", "name of the run")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set a variable, `KEY=VALUE`, or pass your own, KEY")
	f.StringVar(&o.profile, "profile", "", "use the profile `NAME` of .dstack/profiles.yml")
	f.BoolVar(&o.noProfile, "no-profile", false, "use no profile, not even the default one")
	c.MarkFlagsMutuallyExclusive("profile", "no-profile")
	f.StringVar(&o.project, "project", "", "`PROJECT` to run in")
	portFlags(c, &o.ports, &o.host)
	f.BoolVar(&o.force, "force", false, "of a fleet: hosts leave although jobs run on them")
	return c
}

func (o *applyOptions) run(ctx context.Context) error {
	file, src, err := readConfiguration(o.app, "apply", o.file)
	if err != nil {
		return err
	}
	cfg, err := config.Read(src)
	if err != nil {
		return inFile(err, file)
	}
	if err := convert.CheckKind(cfg); err != nil {
		return inFile(err, file)
	}
	if cfg.Kind == config.KindFleet {
		f := nodes.FleetApply{
			App: o.app, Name: o.name, Env: o.env, Project: o.project, Yes: o.yes, Force: o.force,
			Detach: o.detach,
		}
		return inFile(f.Run(ctx, file, cfg), file)
	}
	spec, err := o.spec(cfg)
	if err != nil {
		return inFile(err, file)
	}
	generated := o.name == ""
	files, err := o.pack(cfg.Run().Files, file)
	if err != nil {
		return err
	}
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	if o.project, err = app.Project(ctx, c, o.project); err != nil {
		return err
	}
	if generated {
		if err := o.freeName(ctx, c); err != nil {
			return err
		}
	}
	sub, err := o.submission(ctx, c, spec, file)
	if err != nil {
		return inFile(err, file)
	}
	sub.Files, sub.Config = files, string(src)
	if !generated {
		if err := o.replace(ctx, c); err != nil {
			return err
		}
	}
	if !o.app.Confirm(o.yes, "%sSubmit run %s?", plan(sub), o.name) {
		return core.Errorf(core.Conflict, "nothing was submitted")
	}
	return o.submit(ctx, c, sub)
}

// freeName names the run by the first number that is free in the project.
func (o *applyOptions) freeName(ctx context.Context, c *client.Client) error {
	list, err := c.Runs(ctx, o.project, "")
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for i := range list.Runs {
		used[list.Runs[i].Name] = true
	}
	o.name = dstack.RunName(rand.Uint64(), func(n string) bool { return used[n] })
	return nil
}

// replace makes room for a run of a given name: one that is still going is stopped first, if the user agrees.
func (o *applyOptions) replace(ctx context.Context, c *client.Client) error {
	run, err := findRun(ctx, c, o.project, o.name)
	if core.CodeOf(err) == core.NotFound {
		return nil
	}
	if err != nil || run.Ended != 0 {
		return err
	}
	if !o.yes && !o.app.Terminal {
		return core.Errorf(core.Conflict, "run %s %s; stop it with `bireme stop %s`, or give -y to replace it", o.name,
			runPhrase(run.State), o.name)
	}
	if !o.app.Confirm(o.yes, "Run %s %s. Stop it and start anew?", o.name, runPhrase(run.State)) {
		return core.Errorf(core.Conflict, "run %s was left alone; nothing was submitted", o.name)
	}
	o.app.Note("stopping run %s", o.name)
	if err := c.StopRun(ctx, o.project, o.name); err != nil && core.CodeOf(err) != core.Conflict {
		return err
	}
	for {
		if run, err = findRun(ctx, c, o.project, o.name); err != nil {
			return err
		}
		if run.Ended != 0 {
			return nil
		}
		if err := app.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// plan words what is asked for, before the question.
func plan(s *client.Submit) string {
	var b strings.Builder
	line := func(k, v string) { fmt.Fprintf(&b, "  %-9s %s\n", k, v) }
	if p := string(s.Spec.Project); p != "" {
		line("project", p)
	}
	line("asks for", asked(&s.Spec.Shape))
	if c := s.Spec.More().Container; c != nil {
		line("runs in", "a container of "+c.Image)
	} else {
		line("runs in", "processes of its nodes")
	}
	if n := len(s.Files); n > 0 {
		line("brings", app.Size(core.Bytes(n))+" of files")
	}
	switch l := s.Spec.TimeLimit; l {
	case 0:
	case core.Forever:
		line("limit", "none")
	default:
		line("limit", app.Span(l.Duration()))
	}
	return b.String()
}

// asked words a shape.
func asked(s *core.Shape) string {
	nodes, cpus := client.Wants(*s)
	parts := []string{app.Plural(nodes, "node")}
	if nodes > 1 {
		parts = append(parts, "each with "+app.Plural(cpus/nodes, "CPU"))
	} else {
		parts = append(parts, app.Plural(cpus, "CPU"))
	}
	switch {
	case s.MemPerNode > 0:
		parts = append(parts, app.Size(s.MemPerNode)+" of memory")
	case s.MemPerCPU > 0:
		parts = append(parts, app.Size(s.MemPerCPU)+" of memory per CPU")
	}
	if len(s.Gres) > 0 {
		parts = append(parts, app.Gres(s.Gres))
	}
	if s.Exclusive {
		parts = append(parts, "exclusive")
	}
	return strings.Join(parts, ", ")
}
