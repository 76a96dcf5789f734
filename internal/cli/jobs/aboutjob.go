package jobs

import (
	"context"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
)

// aboutJob is a command that tells something of one job.
type aboutJob struct {
	app     *app.App
	json    bool
	project string
	use     string
	short   string
	jsonAs  string                 // what --json prints
	more    func(c *cobra.Command) // makes options that only this command has
	tell    func(ctx context.Context, c *client.Client, id string, json bool) error
}

func (o *aboutJob) command() *cobra.Command {
	c := &cobra.Command{
		Use: o.use + " RUN|JOB", Short: o.short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.app.Connect()
			if err != nil {
				return err
			}
			id, err := findJob(cmd.Context(), c, o.project, args[0])
			if err != nil {
				return err
			}
			return namedSo(o.tell(cmd.Context(), c, id, o.json), args[0])
		},
	}
	if o.more != nil {
		o.more(c)
	}
	c.Flags().BoolVar(&o.json, "json", false, o.jsonAs)
	c.Flags().StringVar(&o.project, "project", "", "`PROJECT` of the run")
	return c
}
