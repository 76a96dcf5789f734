package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

type psOptions struct {
	app     *app.App
	all     bool
	last    int
	json    bool
	watch   bool
	project string
	mine    bool
}

func psCommand(a *app.App) *cobra.Command {
	o := &psOptions{app: a}
	c := &cobra.Command{
		Use: "ps", Short: "list runs and jobs", Args: cobra.NoArgs,
		Long: "List the jobs that have not ended, of all front ends; with -a also those that have, newest last.",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := c.Flags()
	f.BoolVarP(&o.all, "all", "a", false, "also jobs that have ended")
	f.IntVarP(&o.last, "last", "n", 0, "the last `N` jobs, ended or not")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVarP(&o.watch, "watch", "w", false, "print again whenever something changes, until interrupted")
	f.StringVar(&o.project, "project", "", "only jobs of `PROJECT`")
	f.BoolVar(&o.mine, "me", false, "only your own jobs")
	return c
}

func (o *psOptions) run(ctx context.Context) error {
	if o.last < 0 {
		return app.Usagef("-n %d: must be 1 or more", o.last)
	}
	if o.watch && o.json {
		return app.Usagef("-w and --json cannot be used together; programs can use `bireme events -f --json`")
	}
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	ended := o.all || o.last > 0
	q := client.JobsQuery{History: ended, LeaveDeleted: ended}
	if o.project != "" {
		q.Projects = []string{o.project}
	}
	if o.mine {
		me, err := c.Whoami(ctx)
		if err != nil {
			return err
		}
		q.Users = []string{string(me.User)}
	}
	if !o.watch {
		_, err := o.print(ctx, c, q)
		return err
	}
	return o.follow(ctx, c, q)
}

// follow prints a fresh table on a clear screen after each change; changes that come together make one.
func (o *psOptions) follow(ctx context.Context, c *client.Client, q client.JobsQuery) error {
	for {
		fmt.Fprint(o.app.Out, "\x1b[H\x1b[2J")
		seq, err := o.print(ctx, c, q)
		if err != nil {
			return err
		}
		if err := nextChange(ctx, c, seq); err != nil {
			return err
		}
		if err := app.Wait(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
}

// nextChange waits for an event after seq. An end of the stream or a purge is a reason to look again, no more.
func nextChange(ctx context.Context, c *client.Client, seq int64) error {
	err := c.Watch(ctx, seq, func(*core.Event) error { return errStop })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code := core.CodeOf(err); code == core.Denied || code == core.Unknown {
		return err
	}
	return nil
}

func (o *psOptions) print(ctx context.Context, c *client.Client, q client.JobsQuery) (int64, error) {
	list, err := o.list(ctx, c, q)
	if err != nil {
		return 0, err
	}
	if o.json {
		return list.Seq, o.app.PrintJSON(list)
	}
	submitted := firstSubmitted(ctx, c, list)
	t := app.Table{{"JOB", "NAME", "USER", "PROJECT", "STATE", "SUBMITTED", "RUNTIME", "NODES", "CPUS", "WHERE"}}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		t.Row(jobName(j), j.Name, string(j.User), string(j.Project), jobState(j), ago(list.Now, submitted(j)), runtime(j),
			fmt.Sprint(j.Nodes), fmt.Sprint(j.CPUs), where(j, list.Now))
	}
	return list.Seq, t.Write(o.app.Out)
}

// firstSubmitted gives when a job was submitted. A run that is tried again is as old as the run: its job has the time
// of its last try.
func firstSubmitted(ctx context.Context, c *client.Client, list *client.BriefList) func(*client.Brief) core.Time {
	type key struct{ project, name string }
	created := map[key]core.Time{}
	asked := map[string]bool{}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if p := string(j.Project); j.Run != "" && j.State == core.Pending && !asked[p] {
			asked[p] = true
			runs, err := c.Runs(ctx, p, "")
			if err != nil {
				continue // the job's own time is not wrong
			}
			for k := range runs.Runs {
				if r := &runs.Runs[k]; r.Ended == 0 {
					created[key{p, r.Name}] = r.Created
				}
			}
		}
	}
	return func(j *client.Brief) core.Time {
		if t := created[key{string(j.Project), j.Run}]; t != 0 && j.Run != "" && j.State == core.Pending && t < j.Submit {
			return t
		}
		return j.Submit
	}
}

// list asks for the jobs to show; the last N come newest first and are turned round.
func (o *psOptions) list(ctx context.Context, c *client.Client, q client.JobsQuery) (*client.BriefList, error) {
	q.Limit, q.Newest = o.last, o.last > 0
	list, err := c.Briefs(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.Newest {
		slices.Reverse(list.Jobs)
	}
	slices.SortStableFunc(list.Jobs, func(a, b client.Brief) int {
		return cmp.Or(cmp.Compare(whole(&a), whole(&b)), tasksLast(&a, &b), cmp.Compare(a.Task, b.Task))
	})
	list.More = false // -n asked for no more
	if list.Jobs == nil {
		list.Jobs = []client.Brief{}
	}
	return list, nil
}

// whole is the id under which a job is listed: its array's, or its own. The last task of an array has the array's.
func whole(j *client.Brief) core.JobID {
	if j.Base != 0 {
		return j.Base
	}
	return j.ID
}

// tasksLast puts the tasks of an array that have not started behind those that have.
func tasksLast(a, b *client.Brief) int {
	switch {
	case a.Tasks == "" && b.Tasks != "":
		return -1
	case a.Tasks != "" && b.Tasks == "":
		return 1
	}
	return 0
}

func jobName(j *client.Brief) string {
	switch {
	case j.Het != 0:
		return fmt.Sprintf("%d+%d", j.Het, j.HetOffset)
	case j.Tasks != "":
		return fmt.Sprintf("%d_[%s]", j.Base, j.Tasks)
	case j.Base != 0:
		return fmt.Sprintf("%d_%d", j.Base, j.Task)
	}
	return fmt.Sprint(int64(j.ID))
}

// jobState is the state's name in small letters: native listings are not Slurm's.
func jobState(j *client.Brief) string {
	if j.Flags.Has(core.Completing) {
		return lower(j.State) + " (cleaning up)"
	}
	return lower(j.State)
}

func runtime(j *client.Brief) string {
	if j.State == core.Pending {
		return ""
	}
	return app.Span(j.Elapsed.Duration())
}

// where is the nodes of a job that has some, and otherwise why it has none, and when it should have.
func where(j *client.Brief, now core.Time) string {
	switch {
	case j.NodeList != "":
		return j.NodeList
	case j.State == core.Pending:
		text := "(" + j.Reason.String() + ")"
		if j.Start != 0 && now != 0 {
			about := ""
			if j.Estimate {
				about = "about "
			}
			text += ", in " + about + app.Span(max(0, j.Start.Sub(now)))
		}
		return text
	}
	return ""
}

func ago(now, t core.Time) string {
	if t == 0 || now == 0 {
		return ""
	}
	return app.Span(max(0, now.Sub(t))) + " ago"
}
