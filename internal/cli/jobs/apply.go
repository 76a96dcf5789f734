package jobs

import (
	"context"
	"fmt"
	"io"
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
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/wire/parcel"
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

	json        bool
	verbose     bool
	maxOffers   int
	fullOffers  bool
	unallocated bool
	flags       RunFlags
	repos       repoOptions
	identity    string
	unaccounted bool      // it is in a container because the caller has no account on the nodes
	out         io.Writer // of the plan; nil: standard error
}

// presetOptions are options of dstack's apply that only presets have.
var presetOptions = []string{"keep-service", "previous", "trials"}

// screen is where the plan goes: standard output is the run's.
func (o *applyOptions) screen() io.Writer {
	if o.out != nil {
		return o.out
	}
	return o.app.Err
}

func applyCommand(a *app.App) *cobra.Command {
	o := &applyOptions{app: a}
	c := &cobra.Command{
		Use: "apply [-f FILE] [-- ARGS...]", Short: "run a YAML configuration",
		Long: `Run a YAML configuration (type: task, dev-environment or service): show what is asked for and which nodes
could do it, ask, submit, and follow the output to the end; the exit status is then the run's own. A run of that name
that still lives is changed in place where that can be done, else stopped first, if you agree. One of type: fleet
makes a fleet of SSH hosts, or changes it in place, and waits until its hosts are nodes. Without -f it takes
.dstack.yml or .dstack.yaml of the current folder; -f - reads standard input. ARGS replace ${{ run.args }}.

While attached, the ports of the configuration are on this machine and ` + "`ssh RUN`" + ` leads into the run.
Ctrl-C asks whether the run is to be stopped.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 && !a.Dstack {
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
	f.BoolVar(&o.force, "force", false, "apply although nothing changed; of a fleet: hosts leave although jobs run there")
	f.BoolVar(&o.json, "json", false, "print the run as JSON and leave")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show more of the plan")
	o.offerFlags(f)
	o.repos.register(f)
	f.StringVar(&o.identity, "ssh-identity", "", "also let the owner of this private `KEY` in by ssh")
	if a.Dstack {
		o.out = a.Out
		for _, name := range presetOptions { // of presets, which are refused by their type
			f.StringArray(name, nil, "")
			_ = f.MarkHidden(name) // it was just made
		}
		f.Lookup(presetOptions[0]).NoOptDefVal = "true"
	}
	o.flags.Register(c)
	return c
}

func (o *applyOptions) run(ctx context.Context) error {
	if err := o.checkOffers(); err != nil {
		return err
	}
	file, src, err := ReadConfiguration(o.app, "apply", o.file)
	if err != nil {
		return err
	}
	cfg, err := config.Read(src)
	if err != nil {
		return InFile(err, file)
	}
	if err := convert.CheckKind(cfg); err != nil {
		return InFile(err, file)
	}
	if cfg.Kind == config.KindFleet {
		f := nodes.FleetApply{
			App: o.app, Name: o.name, Env: o.env, Project: o.project, Yes: o.yes, Force: o.force,
			Detach: o.detach,
		}
		return InFile(f.Run(ctx, file, cfg), file)
	}
	if cfg.Kind == config.KindVolume {
		v := nodes.VolumeApply{App: o.app, Name: o.name, Project: o.project, Yes: o.yes, Detach: o.detach}
		return InFile(v.Run(ctx, file, cfg), file)
	}
	return o.applyRun(ctx, cfg, file)
}

// applyRun applies a task or a dev environment.
func (o *applyOptions) applyRun(ctx context.Context, cfg *config.Configuration, file string) error {
	spec, err := o.spec(cfg)
	if err != nil {
		return InFile(err, file)
	}
	if o.file == "-" {
		spec.ConfigurationPath = &o.file
	} else {
		spec.ConfigurationPath = &file
	}
	generated := o.name == ""
	files, err := o.pack(spec, file)
	if err != nil {
		return err
	}
	repo, err := o.repos.find(ctx, cfg, o.folder(file))
	if err != nil {
		return InFile(err, file)
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
	if repo != nil {
		if files, err = o.withRepo(ctx, c, spec, repo, file, files); err != nil {
			return err
		}
	}
	p, err := o.plan(ctx, c, spec)
	if err != nil {
		return err
	}
	o.unaccounted = p != nil && p.contained() && unaccounted(ctx, c, spec, o.project)
	sub, err := o.submission(ctx, c, spec, file, p)
	if err != nil {
		return InFile(err, file)
	}
	if base := spec.FilesBase(sub.Spec.Runtime); base != "" && files != nil {
		if files, err = parcel.Below(files, base); err != nil {
			return err
		}
	}
	sub.Files = files
	return o.carryOut(ctx, c, p, sub)
}

// carryOut shows the plan, asks, and does it.
func (o *applyOptions) carryOut(ctx context.Context, c *client.Client, p *planned, sub *client.Submit) error {
	if p == nil {
		if err := o.replace(ctx, c, sub); err != nil {
			return err
		}
		fmt.Fprint(o.screen(), plan(sub))
	} else if err := o.print(ctx, c, p); err != nil {
		return err
	}
	does, err := o.decide(p)
	if err != nil {
		return err
	}
	switch does {
	case nothing:
		return nil
	case keep:
		if o.json {
			return o.printRun(ctx, o.app, c)
		}
		return nil
	case await:
		if err := o.awaitEnd(ctx, c); err != nil {
			return err
		}
	case update:
		run, err := o.update(ctx, c, p)
		if err != nil {
			return err
		}
		return o.updated(ctx, c, run, sub)
	case override:
		if err := o.stop(ctx, c, sub); err != nil {
			return err
		}
	case create:
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
func (o *applyOptions) replace(ctx context.Context, c *client.Client, sub *client.Submit) error {
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
	if run.State != wire.RunTerminating &&
		!o.app.Confirm(o.yes, "Run %s %s. Stop it and start anew?", o.name, runPhrase(run.State)) {
		return core.Errorf(core.Conflict, "run %s was left alone; nothing was submitted", o.name)
	}
	if run.State == wire.RunTerminating {
		return o.awaitEnd(ctx, c)
	}
	return o.stop(ctx, c, sub)
}

// stop ends the live run of the same name and waits until it has ended. It is left alone where what is to come after
// it would be refused anyway.
func (o *applyOptions) stop(ctx context.Context, c *client.Client, sub *client.Submit) error {
	trial := *sub
	trial.Files = nil // nothing of them is decided on
	if _, err := c.Try(ctx, &trial); neverAccepted(err) {
		o.app.Note("run %s was left alone: what is to take its place is refused", o.name)
		return err
	}
	o.app.Note("stopping run %s", o.name)
	err := c.StopRun(ctx, o.project, o.name)
	if code := core.CodeOf(err); err != nil && code != core.Conflict && code != core.NotFound { // it has ended meanwhile
		return err
	}
	return o.awaitEnd(ctx, c)
}

// neverAccepted reports whether a submission is refused whatever runs now. Limits do not count: the run that makes room
// may be what they are reached by.
func neverAccepted(err error) bool {
	return core.CodeOf(err) == core.Invalid || core.ReasonOf(err) == "node_config_unavailable"
}

// awaitEnd waits until the run of the same name has ended, and says now and then that it does.
func (o *applyOptions) awaitEnd(ctx context.Context, c *client.Client) error {
	began, told := time.Now(), time.Now()
	for {
		run, err := findRun(ctx, c, o.project, o.name)
		if err != nil {
			return err
		}
		if run.Ended != 0 {
			return nil
		}
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			o.app.Note("waiting for run %s to end, for %s", o.name, app.Span(told.Sub(began).Round(time.Second)))
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
