package jobs

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

type attachOptions struct {
	app     *app.App
	project string
	ports   []string
	host    string
	node    int
	quiet   bool
	ref     string

	logs     bool
	since    string
	replica  int
	identity string

	background bool
}

func attachCommand(a *app.App) *cobra.Command {
	o := &attachOptions{app: a}
	c := &cobra.Command{
		Use: "attach RUN|JOB", Short: "follow a run, with its ports on this machine", Args: cobra.ExactArgs(1),
		Long: `Follow a run or job: its output from the beginning, the ports of its configuration on this machine, and its
name as a host for ssh, scp and editors, until it ends; the exit status is then the run's own. A connection that is
lost is made again. Ctrl-C leaves, and asks whether the run is to be stopped.

While attached, ~/.ssh/config includes a file with the host, by one line at its beginning.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ref = args[0]
			return namedSo(o.run(cmd.Context()), o.ref)
		},
	}
	f := c.Flags()
	f.StringVar(&o.project, "project", "", "`PROJECT` of the run")
	portFlags(c, &o.ports, &o.host)
	f.IntVar(&o.node, "node", 0, "ssh and ports: the `N`th of the job's nodes, from 0 on")
	f.IntVar(&o.node, "job", 0, "the same as --node")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no output")
	f.BoolVar(&o.logs, "logs", !a.Dstack, "show its output")
	f.BoolVar(&o.background, "background", false, "attach in the background, without output, until the run ends")
	f.StringVar(&o.since, "since", "", "output from `TIME` on: a duration back such as 10m, or RFC 3339 with a zone")
	f.IntVar(&o.replica, "replica", 0, "of the replica `N`; a task has one, 0")
	f.StringVar(&o.identity, "ssh-identity", "", "ignored: the cluster knows you, and no `KEY` is needed")
	return c
}

// portFlags are those of commands that forward ports.
func portFlags(c *cobra.Command, ports *[]string, host *string) {
	f := c.Flags()
	f.StringArrayVarP(ports, "port", "p", nil, "forward a port, `[LOCAL:]PORT`; *:PORT takes a free one here")
	f.StringVar(host, "host", "localhost", "`ADDRESS` of this machine on which the ports listen")
}

func (o *attachOptions) run(ctx context.Context) error {
	if err := checkReplica(o.replica); err != nil {
		return err
	}
	if o.background {
		return o.spawn(ctx)
	}
	o.quiet = o.quiet || !o.logs
	named, err := parsePorts(o.ports)
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
	id, err := findJob(ctx, c, o.project, o.ref)
	if err != nil {
		return err
	}
	j, err := oneJob(ctx, c, id)
	if err != nil {
		return err
	}
	tasks, err := tasksNow(ctx, c, id)
	if err != nil {
		return err
	}
	if j.State.Final() && !slices.ContainsFunc(tasks, func(j client.Job) bool { return !ended(&j) }) {
		return core.Errorf(core.Conflict, "%s has ended: it %s; `bireme logs %s` shows what it wrote", o.ref,
			j.State.Phrase(), o.ref)
	}
	if o.node < 0 || j.Alloc != nil && o.node >= len(j.Alloc.Nodes) {
		return app.Usagef("--node %d: %s has %s, the first is 0", o.node, o.ref, app.Plural(len(j.Alloc.Nodes), "node"))
	}
	t := &attachment{
		app: o.app, client: c, project: o.project, name: o.ref, job: id, node: o.node, host: true, hold: countsIdle(j.Spec),
		quiet: o.quiet,
	}
	if o.since != "" {
		l := &logsOptions{app: o.app, project: o.project, ref: o.ref, since: o.since}
		if t.offset, err = l.begin(ctx, c, id); err != nil {
			return err
		}
	}
	if t.forwards, err = chooseForwards(declaredPorts(j.Spec), named, o.host); err != nil {
		return err
	}
	return t.run(ctx)
}

// countsIdle reports whether a run ends when nobody is connected for some time.
func countsIdle(s *core.Spec) bool {
	r := s.Rules()
	return r != nil && r.Inactivity > 0
}

// declaredPorts are those that a configuration names.
func declaredPorts(s *core.Spec) []core.Port {
	if box := s.More().Container; box != nil {
		return box.Ports
	}
	return nil
}
