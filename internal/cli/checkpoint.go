package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func (a *App) checkpointCommand() *cobra.Command {
	var in string
	c := &cobra.Command{
		Use: "checkpoint [RUN|JOB]", Short: "tell that a job has saved its work", Args: cobra.MaximumNArgs(1),
		Long: "Tell that a job has just saved its work: what it did until now is not lost if it has to make room for another, and of\n" +
			"several that could, the one that loses the least goes first. In a job, without an argument, it is that one.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.checkpoint(cmd.Context(), in, args) },
	}
	c.Flags().StringVar(&in, "project", "", "`PROJECT` of the run")
	return c
}

func (a *App) checkpoint(ctx context.Context, in string, args []string) error {
	ref := ""
	if len(args) > 0 {
		ref = args[0]
	} else if id, ok := a.Lookup("SLURM_JOB_ID"); ok {
		ref = id
	} else {
		return usagef("checkpoint: which job? SLURM_JOB_ID is not set here")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	id, err := findJob(ctx, c, in, ref)
	if err != nil {
		return err
	}
	now := core.Time(0)
	return c.UpdateJob(ctx, id, &client.Update{Checkpoint: &now})
}
