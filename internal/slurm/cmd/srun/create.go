package srun

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd/allocation"
)

// errGivenUp says that somebody ended the wait for a step, who has been told so.
var errGivenUp = errors.New("given up")

// create makes the step, and waits for others of the job to end if they have what it needs.
func (s *run) create(ctx context.Context, ask *client.NewStep, sig *signals) (*client.StepMade, error) {
	busy := func(err error) bool {
		return core.ReasonOf(err) == slurm.ReasonNodesBusy && core.CodeOf(err) == core.Conflict
	}
	var giveUp <-chan time.Time
	if wait := s.r.Ask.Immediate; wait != nil {
		giveUp = time.After(*wait)
	}
	told := false
	var since *client.JobList // how things stood before the last attempt: what ends from there on is seen
	for {
		made, err := s.c.NewStep(ctx, s.job, ask)
		switch {
		case !busy(err):
			if err == nil && told && !s.r.Ask.Quiet {
				s.w.Infof("Step created for job %s", s.job)
			}
			return made, err
		case !told && giveUp == nil && !s.r.Ask.Quiet:
			s.w.Infof("Job %s step creation temporarily disabled, retrying (%s)", s.job, slurm.ErrorText(err))
		}
		told = true
		last := since
		if since, err = s.c.Job(ctx, s.job); err != nil {
			return nil, err
		}
		if last == nil {
			continue
		}
		watch, stop := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() { // ends with watch
			s.untilStepEnds(watch, last)
			close(over)
		}()
		select {
		case <-over:
		case <-giveUp:
			stop()
			return nil, core.Errorf(core.Conflict, "other steps have what it needs").Because(slurm.ReasonNodesBusy)
		case got := <-sig.c:
			if got == syscall.SIGWINCH || got == syscall.SIGCONT {
				break
			}
			stop()
			s.w.Infof("Cancelled pending job step with signal %d", allocation.SignalNumber(got))
			return nil, errGivenUp
		}
		stop()
	}
}

// untilStepEnds returns when a step of the jobs, or one of the jobs, has ended; or with ctx.
func (s *run) untilStepEnds(ctx context.Context, list *client.JobList) {
	err := s.c.Watch(ctx, list.Seq, func(e *core.Event) error {
		for i := range list.Jobs {
			if e.Job == list.Jobs[i].ID && (e.Kind == core.StepEnded || e.Kind == core.JobEnded) {
				return io.EOF
			}
		}
		return nil
	})
	if !errors.Is(err, io.EOF) { // the server is away: it is asked again in a while
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
