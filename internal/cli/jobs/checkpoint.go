package jobs

import (
	"context"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

type checkpointOptions struct {
	app     *app.App
	project string
}

func checkpointCommand(a *app.App) *cobra.Command {
	o := &checkpointOptions{app: a}
	c := &cobra.Command{
		Use: "checkpoint [RUN|JOB]", Short: "record that a job has saved its work", Args: cobra.MaximumNArgs(1),
		Long: "Record that a job has just saved its work: what it did until now is not lost if it has to make room for " +
			"another, and of\n" +
			"several that could, the one that loses the least goes first. In a job, without an argument, it is that one.",
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	c.Flags().StringVar(&o.project, "project", "", "`PROJECT` of the run")
	return c
}

func (o *checkpointOptions) run(ctx context.Context, args []string) error {
	ref := ""
	if len(args) > 0 {
		ref = args[0]
	} else if id, ok := o.app.Lookup("SLURM_JOB_ID"); ok {
		ref = id
	} else {
		return app.Usagef("checkpoint: name a run or job; SLURM_JOB_ID is not set")
	}
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	id, err := findJob(ctx, c, o.project, ref)
	if err != nil {
		return err
	}
	now := core.Time(0)
	return c.UpdateJob(ctx, id, &client.Update{Checkpoint: &now})
}
