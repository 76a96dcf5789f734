package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// patience is how long a run may wait before the user is told why.
const patience = 1500 * time.Millisecond

// attach follows a run's output to its end and gives the job's own exit status.
func (o *applyOptions) attach(ctx context.Context, c *client.Client, id core.JobID) error {
	job := strconv.FormatInt(int64(id), 10)
	explain, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { o.explainWait(explain, c, job) })
	err := followLogs(ctx, c, o.app.Out, job, 1, 0)
	stop()
	wg.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return o.interrupted(c)
	}
	if err != nil {
		return fmt.Errorf("cannot follow run %s, which continues (`bireme logs -f %s` follows it again): %w", o.name,
			o.name, err)
	}
	j, err := oneJob(ctx, c, job)
	if err != nil {
		return err
	}
	code := jobExit(j)
	o.app.Note("run %s: %s", o.name, ending(j))
	if code != 0 {
		return &app.StatusError{Code: code}
	}
	return nil
}

// explainWait tells once why the run has not started, if it has not after a while.
func (o *applyOptions) explainWait(ctx context.Context, c *client.Client, job string) {
	if app.Wait(ctx, patience) != nil {
		return
	}
	w, err := c.Why(ctx, job)
	if err != nil || w.State != core.Pending {
		return // it started, or the one who follows its output learns what is wrong
	}
	o.app.Note("run %s is waiting (%s): %s", o.name, w.Reason, w.Why)
}

// interrupted is Ctrl-C while attached: the run goes on unless the user says otherwise.
func (o *applyOptions) interrupted(c *client.Client) error {
	if o.app.Terminal && o.app.Ask("\nStop run %s?", o.name) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.StopRun(ctx, o.project, o.name); err != nil {
			return err
		}
		o.app.Note("run %s is being stopped", o.name)
	} else {
		o.app.Note("run %s continues; `bireme logs -f %s` follows it, `bireme stop %s` stops it", o.name, o.name, o.name)
	}
	return &app.StatusError{Code: app.ExitInterrupted}
}

// followLogs copies a job's output to w from an offset until the job has ended and all of it has been written. A stream
// that breaks is taken up where it broke, so nothing is lost or printed twice; it gives up after a minute without an
// answer. Each attempt of a job has a log of its own: when a job is requeued, the next is followed from its beginning.
func followLogs(ctx context.Context, c *client.Client, w io.Writer, job string, attempt int32, offset int64) error {
	const giveUp = time.Minute
	var silent time.Duration
	pause := 50 * time.Millisecond
	for {
		n, err := copyLogs(ctx, c, w, job, offset, true)
		if offset += n; n > 0 {
			silent, pause = 0, 50*time.Millisecond
		}
		var sink *sinkError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &sink):
			return sink.error
		case err != nil && core.CodeOf(err) != core.Unavailable && core.CodeOf(err) != core.NotFound &&
			core.CodeOf(err) != core.Exhausted:
			return err
		}
		j, jobErr := oneJob(ctx, c, job)
		if jobErr == nil && j.Attempt > attempt {
			attempt, offset = j.Attempt, 0
			continue
		}
		switch {
		case jobErr == nil && j.State.Final() && !j.Flags.Has(core.Requeueing) && err == nil && n == 0:
			return nil // ended, and a stream opened afterwards or at its end had nothing more
		case jobErr == nil && j.State.Final() && core.CodeOf(err) == core.NotFound:
			return nil // ended without ever writing
		case jobErr != nil && core.CodeOf(jobErr) != core.Unavailable && core.CodeOf(jobErr) != core.Exhausted:
			return jobErr
		}
		if err != nil || jobErr != nil {
			if silent >= giveUp {
				return errors.Join(err, jobErr)
			}
		}
		if n > 0 {
			continue
		}
		if err := app.Wait(ctx, pause); err != nil {
			return err
		}
		silent, pause = silent+pause, min(2*pause, 2*time.Second)
	}
}

// sinkError is a failure of where output goes, as against where it comes from.
type sinkError struct{ error }

// copyLogs copies what one stream gives and tells how far it came.
func copyLogs(ctx context.Context, c *client.Client, w io.Writer, job string, offset int64, follow bool) (
	int64, error,
) {
	r, at, err := c.Logs(ctx, job, client.LogQuery{Offset: offset, Follow: follow})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	skipped := max(0, at-offset)
	buf := make([]byte, 32<<10)
	var n int64
	for {
		got, err := r.Read(buf)
		if got > 0 {
			if _, werr := w.Write(buf[:got]); werr != nil {
				return skipped + n, &sinkError{werr}
			}
			n += int64(got)
		}
		switch {
		case errors.Is(err, io.EOF):
			return skipped + n, nil
		case err != nil:
			return skipped + n, &core.Error{Code: core.Unavailable, Message: "the log stream broke", Err: err}
		}
	}
}

// ownExit is how the job's program ended; nothing where it did not end by itself but has Slurm's mark for that.
func ownExit(j *client.Job) core.Exit {
	if j.Exit == core.ExitOOM && j.State == core.OutOfMemory || j.Exit == core.ExitLaunch &&
		j.Reason == core.ReasonLaunchFailure {
		return core.Exit{}
	}
	return j.Exit
}

// jobExit is the status a command that stands for the job ends with: the job's own, 128 plus its signal, or 1 for an
// end that has neither (a time limit, a lost node, no memory, no image).
func jobExit(j *client.Job) int {
	own := ownExit(j)
	switch {
	case own.Signal != 0:
		return 128 + int(own.Signal)
	case own.Code != 0:
		return int(own.Code)
	case j.State != core.Completed:
		return app.ExitFailed
	}
	return app.ExitOK
}

// ending words how a job ended.
func ending(j *client.Job) string {
	text := lower(j.State)
	own := ownExit(j)
	switch {
	case own.Signal != 0:
		text += fmt.Sprintf(", signal %d", own.Signal)
	case own.Code != 0:
		text += fmt.Sprintf(", exit status %d", own.Code)
	}
	if j.Message != "" {
		text += ": " + j.Message
	}
	return text
}
