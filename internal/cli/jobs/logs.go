package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire/ranklog"
)

type logsOptions struct {
	app     *app.App
	follow  bool
	offset  int64
	project string
	ref     string

	diagnose bool
	replica  int
	job      int
	rank     int // job, or ranklog.All
	since    string
	tail     int
	attempt  int32
}

func logsCommand(a *app.App) *cobra.Command {
	o := &logsOptions{app: a}
	c := &cobra.Command{
		Use: "logs [-f] RUN|JOB", Short: "print what a run or job wrote", Args: cobra.ExactArgs(1),
		Long: `Print what a run or job wrote. Of a YAML run that is all of it; of a batch job,
whose output goes to its own files, the part that the cluster keeps.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ref = args[0]
			return namedSo(o.run(cmd.Context()), o.ref)
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until it ends")
	f.Int64Var(&o.offset, "since-offset", 0, "begin at byte `N`")
	f.StringVar(&o.project, "project", "", "`PROJECT` of the run")
	f.StringVar(&o.since, "since", "", "begin at `TIME`: a duration back such as 10m, or RFC 3339 with a zone")
	f.IntVar(&o.tail, "tail", 0, "begin with the last `N` lines")
	f.Int32Var(&o.attempt, "attempt", 0, "of the `N`th attempt, counted from 1; without it of the last")
	f.BoolVarP(&o.diagnose, "diagnose", "d", false, "print what became of the run instead of what it wrote")
	o.partFlags(c)
	c.PreRun = func(*cobra.Command, []string) { o.rank = o.part(c) }
	return c
}

// part is the rank whose output is wanted.
func (o *logsOptions) part(c *cobra.Command) int {
	if c.Flags().Changed("job") {
		return o.job
	}
	return ranklog.All
}

// partFlags name a part of a run.
func (o *logsOptions) partFlags(c *cobra.Command) {
	c.Flags().IntVar(&o.replica, "replica", 0, "of the replica `N`; a task has one, 0")
	c.Flags().IntVar(&o.job, "job", 0,
		"of the `N`th node, counted from 0, or of the task N of an array; without it of all")
}

func (o *logsOptions) run(ctx context.Context) error {
	if o.offset < 0 {
		return app.Usagef("--since-offset %d: must be 0 or more", o.offset)
	}
	if o.tail < 0 {
		return app.Usagef("--tail %d: must be 1 or more", o.tail)
	}
	if err := checkReplica(o.replica); err != nil {
		return err
	}
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	job, err := findJob(ctx, c, o.project, o.ref)
	if err != nil {
		return err
	}
	if o.diagnose {
		return o.told(ctx, c, job)
	}
	if o.attempt != 0 {
		return o.earlier(ctx, c, job)
	}
	if job, err = o.task(ctx, c, job); err != nil {
		return err
	}
	if err := o.checkRank(ctx, c, job); err != nil {
		return err
	}
	if o.since != "" || o.tail > 0 {
		if o.offset, err = o.begin(ctx, c, job); err != nil {
			return err
		}
	}
	list, err := c.Job(ctx, job)
	if err == nil && len(list.Jobs) == 0 {
		err = core.Errorf(core.NotFound, "there is no job %s", job)
	}
	if err == nil {
		if tasks := arrayTasks(job, list.Jobs); len(tasks) > 1 {
			return o.array(ctx, c, job, tasks)
		}
	}
	if o.follow {
		if err != nil {
			return err
		}
		return followLogs(ctx, c, o.app.Out, job, max(1, list.Jobs[0].Attempt), o.offset, o.rank)
	}
	out, from := rankWriter(o.app.Out, o.rank, o.offset)
	n, err := copyLogs(ctx, c, out, job, from, false)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	var sink *sinkError
	if errors.As(err, &sink) {
		return sink.error
	}
	if core.CodeOf(err) == core.NotFound || err == nil && n == 0 && o.offset == 0 {
		return o.nothing(ctx, c, job)
	}
	return err
}

// array prints what each task wrote, in their order.
func (o *logsOptions) array(ctx context.Context, c *client.Client, id string, tasks []client.Job) error {
	if o.offset != 0 {
		return app.Usagef("job %s is an array: --since-offset needs a single task, such as %s", id, taskID(&tasks[0]))
	}
	if o.follow {
		_, err := followArray(ctx, c, o.app.Out, id)
		return err
	}
	for i := range tasks {
		if !tasks[i].Array.Tasks.Empty() { // these have not started
			continue
		}
		if _, err := fmt.Fprintf(o.app.Out, "==> job %s <==\n", taskID(&tasks[i])); err != nil {
			return err
		}
		_, err := copyLogs(ctx, c, o.app.Out, taskID(&tasks[i]), 0, false)
		var sink *sinkError
		if errors.As(err, &sink) {
			return sink.error
		}
		if err != nil && core.CodeOf(err) != core.NotFound {
			return err
		}
	}
	return nil
}

// nothing says why there is no output. A job that has written nothing has no log; a job that is not there is an error.
func (o *logsOptions) nothing(ctx context.Context, c *client.Client, job string) error {
	j, err := oneJob(ctx, c, job)
	if err != nil {
		return err
	}
	switch {
	case j.State == core.Pending:
		o.app.Note("job %s is pending and has written nothing yet; `bireme logs -f %s` waits for output, `bireme why "+
			"%s` shows what the job is waiting for", job, o.ref, o.ref)
	case !j.State.Final():
		o.app.Note("job %s is %s and has written nothing yet; `bireme logs -f %s` waits for it", job, lower(j.State), o.ref)
	}
	return nil
}
