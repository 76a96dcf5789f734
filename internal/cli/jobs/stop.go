package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

type stopOptions struct {
	app     *app.App
	abort   bool
	yes     bool
	json    bool
	project string
	refs    []string
}

func stopCommand(a *app.App) *cobra.Command {
	o := &stopOptions{app: a}
	c := &cobra.Command{
		Use: "stop [-x] RUN|JOB...", Short: "end runs and jobs", Args: cobra.MinimumNArgs(1),
		Long: "End runs and jobs: their processes get TERM, and KILL after the grace time.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.refs = args
			return o.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.abort, "abort", "x", false, "kill at once, without grace")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.StringVar(&o.project, "project", "", "`PROJECT` of the runs")
	if !a.Dstack {
		f.BoolVar(&o.json, "json", false, "print JSON: what is being stopped")
	}
	return c
}

// run stops all it can and reports every failure; the exit status is that of the first.
func (o *stopOptions) run(ctx context.Context) error {
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	var faults []error
	stopped := []string{}
	for _, ref := range o.refs {
		if !o.yes && o.app.Terminal { // nobody is asked about what is not there
			if err := o.look(ctx, c, ref); err != nil {
				faults = append(faults, err)
				continue
			}
		}
		if !o.app.Confirm(o.yes, "Stop %s?", ref) {
			continue
		}
		if err := o.one(ctx, c, ref); err != nil && !(o.app.Dstack && core.CodeOf(err) == core.Conflict) { // it has ended
			faults = append(faults, namedSo(err, ref))
			continue
		}
		if o.app.Dstack {
			fmt.Fprintln(o.app.Out, map[bool]string{false: "Stopped", true: "Aborted"}[o.abort])
			continue
		}
		stopped = append(stopped, ref)
		if !o.json {
			o.app.Note("%s is being stopped", ref)
		}
	}
	if o.json {
		faults = append(faults, o.app.PrintJSON(map[string]any{"stopped": stopped}))
	}
	return errors.Join(faults...)
}

// look prints why there is nothing to stop.
func (o *stopOptions) look(ctx context.Context, c *client.Client, ref string) error {
	if isJobID(ref) {
		_, err := oneJob(ctx, c, ref)
		return err
	}
	in, err := app.Project(ctx, c, o.project)
	if err != nil {
		return err
	}
	run, err := findRun(ctx, c, in, ref)
	if id, ok := shownJob(ref); ok && core.CodeOf(err) == core.NotFound {
		_, err = oneJob(ctx, c, id)
		return err
	}
	if err == nil && run.Ended != 0 {
		err = core.Errorf(core.Conflict, "run %s has ended: it %s", ref, runPhrase(run.State))
	}
	return err
}

func (o *stopOptions) one(ctx context.Context, c *client.Client, ref string) error {
	if isJobID(ref) {
		return cancel(ctx, c, &client.Cancel{IDs: []string{ref}, Abort: o.abort})
	}
	in, err := app.Project(ctx, c, o.project)
	if err != nil {
		return err
	}
	run, err := findRun(ctx, c, in, ref)
	if id, ok := shownJob(ref); ok && core.CodeOf(err) == core.NotFound {
		return cancel(ctx, c, &client.Cancel{IDs: []string{id}, Abort: o.abort})
	}
	if err != nil {
		return err
	}
	if run.Ended != 0 {
		return core.Errorf(core.Conflict, "run %s has ended: it %s", ref, runPhrase(run.State))
	}
	if !o.abort || len(run.Jobs) == 0 {
		return c.StopRun(ctx, in, ref)
	}
	var ids []string
	for _, id := range run.Jobs {
		ids = append(ids, strconv.FormatInt(int64(id), 10))
	}
	err = cancel(ctx, c, &client.Cancel{IDs: ids, Abort: true})
	if code := core.CodeOf(err); code == core.Conflict || code == core.NotFound {
		return nil // it has ended meanwhile
	}
	return err
}

// cancel ends or signals jobs and gives the first failure.
func cancel(ctx context.Context, c *client.Client, what *client.Cancel) error {
	done, err := c.Cancel(ctx, what)
	if err != nil {
		return err
	}
	for _, r := range done.Results {
		if r.Error != nil {
			return r.Error
		}
	}
	return nil
}
