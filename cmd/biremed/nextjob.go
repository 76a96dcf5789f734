package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server"
)

func newNextJobCommand() *cobra.Command {
	var f configFlags
	c := &cobra.Command{
		Use: "next-job-id [N] [--config FILE]", Short: "show or raise the id that the next job gets, without a server",
		Args: cobra.MaximumNArgs(1),
		Long: `Show the id that the next job gets, or raise it to N. It is never lowered. Raise it after an older copy
of the database was put back on another machine, before the server is started: ids that were given out
after the copy was made do not come again then. Stop the server first; while one runs, 'scontrol show
config' shows NEXT_JOB_ID.`,
		RunE: func(c *cobra.Command, args []string) (err error) {
			next := int64(0)
			if len(args) == 1 {
				if next, err = strconv.ParseInt(args[0], 10, 64); err != nil || next < 1 {
					return core.Errorf(core.Invalid, "next-job-id: %q is not a job id", args[0])
				}
			}
			cfg, err := f.load()
			if err != nil {
				return err
			}
			lock, err := holdStore(cfg)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, release(lock)) }()
			was, is, err := server.RaiseNextJob(c.Context(), cfg, core.JobID(next))
			if err != nil {
				return err
			}
			if was == is {
				fmt.Fprintf(c.OutOrStdout(), "the next job gets id %d\n", is)
			} else {
				fmt.Fprintf(c.OutOrStdout(), "the next job gets id %d (it was %d)\n", is, was)
			}
			return nil
		},
	}
	f.add(c)
	return c
}
