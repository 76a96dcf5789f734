package sbatch

import (
	"context"
	"errors"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

var errEnded = errors.New("ended")

// wait returns when the job, or every task of the array, has ended: with its exit code, 1 if a signal ended it, the
// highest of an array.
func wait(ctx context.Context, w *cmd.World, c *client.Client, id core.JobID) int {
	for {
		list, err := c.Job(ctx, strconv.FormatInt(int64(id), 10))
		if err != nil {
			w.Errorf("Unable to wait for job %d: %s", id, slurm.ErrorText(err))
			return slurm.ExitError
		}
		if code, ended := result(list.Jobs); ended {
			return code
		}
		err = c.Watch(ctx, list.Seq, func(e *core.Event) error {
			if e.Kind == core.JobEnded || e.Kind == core.JobCleaned || e.Kind == core.JobRequeued {
				for i := range list.Jobs {
					if j := &list.Jobs[i]; j.ID == e.Job || j.Array != nil {
						return errEnded
					}
				}
			}
			return nil
		})
		if ctx.Err() != nil {
			return slurm.ExitError
		}
		if err != nil && !errors.Is(err, errEnded) && core.CodeOf(err) != core.Gone && core.CodeOf(err) != core.Unavailable {
			w.Errorf("Unable to wait for job %d: %s", id, slurm.ErrorText(err))
			return slurm.ExitError
		}
	}
}

// result reports whether all have ended, and the exit code of the whole.
func result(jobs []client.Job) (code int, ended bool) {
	for i := range jobs {
		j := &jobs[i]
		if !j.State.Final() || j.Flags.Any(core.Requeueing) {
			return 0, false
		}
		one := int(j.Exit.Code)
		if j.Exit.Signal != 0 || one == 0 && j.State != core.Completed {
			one = 1
		}
		code = max(code, one)
	}
	return code, len(jobs) > 0
}
