package scancel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// send makes one call and reports. What is unknown or has ended already is passed over in silence, as Slurm 22.05 does.
func send(ctx context.Context, w *cmd.World, c *client.Client, b *client.Cancel, f cmd.Flags) int {
	loud := f.Has("verbose")
	if loud && b.Step == "" {
		for _, id := range b.IDs {
			w.Infof("%s", whatIsDone(b, f, id))
		}
	}
	out, err := cancel(ctx, w, c, b, loud)
	if err != nil {
		if client.Unreachable(err) {
			return w.LoadFailed("slurm_load_jobs error", err)
		}
		w.Errorf("Kill job error on job id %s: %s", strings.Join(b.IDs, ","), slurm.ErrorText(err))
		return exitOf(err)
	}
	code := 0
	if len(out.Results) == 0 && len(b.IDs) == 0 && loud {
		w.Errorf("No active jobs match ALL job filters, including: %s", filterText(f, b))
	}
	for _, r := range out.Results {
		if b.Step != "" {
			code = max(code, tellStep(w, b, f, r))
			continue
		}
		if r.Error == nil {
			if loud && len(b.IDs) == 0 {
				w.Infof("%s", whatIsDone(b, f, r.ID))
			}
			continue
		}
		if inactive(r.Error) && len(b.IDs) == 0 {
			continue // it ended meanwhile; nobody named it
		}
		plain := inactive(r.Error) && !chosen(f)
		if !f.Has("quiet") && (!plain || loud) {
			w.Errorf("Kill job error on job id %s: %s", r.ID, text(r.Error, plain && !strings.Contains(r.ID, "_")))
		}
		if !plain {
			code = max(code, exitOf(r.Error))
		}
	}
	return code
}

// whatIsDone is what -v says of a job or step before it is done.
func whatIsDone(b *client.Cancel, f cmd.Flags, id string) string {
	what := "job "
	switch {
	case b.Step != "":
		what, id = "step ", id+"."+b.Step
	case f.Has("full"):
		what = "full job "
	case f.Has("batch"):
		what = "batch job "
	}
	if b.Signal == 0 {
		return "Terminating " + what + id
	}
	return fmt.Sprintf("Signal %d to %s%s", b.Signal, what, id)
}

// tellStep tells what became of a step. A signal to a step that is not there is lost without a word.
func tellStep(w *cmd.World, b *client.Cancel, f cmd.Flags, r client.CancelResult) int {
	noJob := r.Error != nil && inactive(r.Error)
	if f.Has("verbose") && !noJob {
		w.Infof("%s", whatIsDone(b, f, r.ID))
	}
	switch {
	case r.Error == nil:
		return 0
	case noJob:
		w.Errorf("Kill job error on job step id %s.%s: Invalid job id specified", r.ID, b.Step)
		return slurm.ExitError
	case core.ReasonOf(r.Error) == slurm.ReasonNoStep && b.Signal != 0 && b.Signal != int32(syscall.SIGKILL):
		return 0
	case core.ReasonOf(r.Error) == slurm.ReasonNoStep:
		w.Errorf("Kill job error on job step id %s: Invalid job id specified", r.ID)
		return exitNoStep
	}
	w.Errorf("Kill job error on job step id %s: %s", r.ID, slurm.ErrorText(r.Error))
	return exitOf(r.Error)
}

// Jobs that do not run yet are asked again: each time one second later, so many times.
const (
	firstRetry = 5 * time.Second
	maxRetries = 10
)

// cancel makes a call, and again for jobs that are to get a signal and do not run yet.
func cancel(ctx context.Context, w *cmd.World, c *client.Client, b *client.Cancel, loud bool) (
	*client.Cancelled, error,
) {
	call := *b
	switch {
	case call.Step != "" && call.Signal == 0: // a step has no grace
		call.Signal = int32(syscall.SIGKILL)
	case call.Step == "" && call.Signal == int32(syscall.SIGKILL):
		call.Signal = 0
	}
	out, err := c.Cancel(ctx, &call)
	if err != nil || call.Signal == 0 || len(b.IDs) == 0 || b.Step != "" {
		return out, err
	}
	for i := range maxRetries {
		var waiting []string
		for _, r := range out.Results {
			if r.Error != nil && core.ReasonOf(r.Error) == slurm.ReasonNotRunning {
				waiting = append(waiting, r.ID)
			}
		}
		if len(waiting) == 0 {
			break
		}
		if loud {
			w.Infof("Job is in transitional state, retrying")
		}
		select {
		case <-ctx.Done():
			return out, nil
		case <-time.After(firstRetry + time.Duration(i)*time.Second):
		}
		call.IDs = waiting
		more, err := c.Cancel(ctx, &call)
		if err != nil {
			return out, err
		}
		for _, r := range more.Results {
			k := slices.IndexFunc(out.Results, func(o client.CancelResult) bool { return o.ID == r.ID })
			if k >= 0 {
				out.Results[k] = r
			}
		}
	}
	return out, nil
}
