package stock

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/screen"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/dstack/wire"
)

func runCommand(a *app.App) *cobra.Command {
	b := &base{App: a}
	c := &cobra.Command{Use: "run", Short: "show a run as JSON", Args: app.NoSuchCommand}
	b.projectFlag(c)
	var id string
	var asJSON bool
	get := &cobra.Command{
		Use: "get [NAME]", Short: "print a run as JSON", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !asJSON {
				return app.Usagef("run get: --json is required: there is no other form")
			}
			in, err := nameOrID(args, id)
			if err != nil {
				return err
			}
			if in["name"] != nil {
				in["run_name"] = in["name"]
			}
			delete(in, "name")
			return b.show(cmd.Context(), "runs/get", in)
		},
	}
	get.Flags().StringVar(&id, "id", "", "the run with this `ID` instead, also a deleted one")
	get.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(get)
	return c
}

// nameOrID is what is asked for: a name or an id, exactly one.
func nameOrID(args []string, id string) (map[string]any, error) {
	switch {
	case len(args) == 1 && id != "":
		return nil, app.Usagef("give a name or --id, not both")
	case len(args) == 1:
		return map[string]any{"name": args[0]}, nil
	case id != "":
		return map[string]any{"id": id}, nil
	}
	return nil, app.Usagef("give a name, or --id")
}

// show prints the answer to a call.
func (b *base) show(ctx context.Context, path string, in any) error {
	d, err := b.server(ctx)
	if err != nil {
		return err
	}
	var out any
	if err := d.Post(ctx, path, in, &out); err != nil {
		return err
	}
	return b.PrintJSON(out)
}

type psOptions struct {
	base
	all, verbose, watch, json bool
	last                      int
	format                    string
}

// psCommand lists runs as dstack does; `bireme ps` lists jobs.
func psCommand(a *app.App) *cobra.Command {
	o := &psOptions{base: base{App: a}}
	c := &cobra.Command{
		Use: "ps", Short: "list runs", Args: cobra.NoArgs,
		Long: "List the runs that have not ended, or the last one if all have; jobs of Slurm's commands are called job-N.",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd) },
	}
	o.projectFlag(c)
	f := c.Flags()
	f.BoolVarP(&o.all, "all", "a", false, "also runs that have ended")
	f.IntVarP(&o.last, "last", "n", 0, "the last `N` runs, ended or not")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show more of each")
	watchFlag(c, &o.watch)
	formatFlags(c, &o.format, &o.json)
	return c
}

func watchFlag(c *cobra.Command, watch *bool) {
	c.Flags().BoolVarP(watch, "watch", "w", false, "print again every two seconds, until interrupted")
}

// again prints until the user has seen enough.
func (b *base) again(ctx context.Context, watch bool, print func() error) error {
	for {
		if watch {
			fmt.Fprint(b.Out, "\x1b[H\x1b[2J")
		}
		if err := print(); err != nil || !watch {
			return err
		}
		if err := app.Wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

func (o *psOptions) run(ctx context.Context, cmd *cobra.Command) error {
	if err := checkFormat(o.format, &o.json); err != nil {
		return err
	}
	if cmd.Flags().Changed("last") && o.last < 1 {
		return app.Usagef("-n %d: must be 1 or more", o.last)
	}
	d, err := o.server(ctx)
	if err != nil {
		return err
	}
	return o.again(ctx, o.watch && !o.json, func() error {
		runs, err := o.list(ctx, d)
		if err != nil {
			return err
		}
		if o.json {
			return o.PrintJSON(map[string]any{"project": d.Project, "runs": runs})
		}
		return screen.Runs(runs, o.verbose, o.Now()).Write(o.Out)
	})
}

func (o *psOptions) list(ctx context.Context, d client.Dstack) ([]*wire.Run, error) {
	const most = 100
	in := map[string]any{
		"project_name": d.Project, "only_active": !o.all && o.last == 0, "limit": most, "job_submissions_limit": 1,
	}
	if o.last > 0 {
		in["limit"] = min(o.last, most)
	}
	runs := []*wire.Run{}
	if err := d.All(ctx, "runs/list", in, &runs); err != nil || len(runs) > 0 || o.all || o.last > 0 {
		return runs, err
	}
	in["only_active"], in["limit"] = false, 1
	return runs, d.All(ctx, "runs/list", in, &runs)
}
