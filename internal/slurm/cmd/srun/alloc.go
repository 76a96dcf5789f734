package srun

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// quiet is how long a job may wait before srun says that it is queued.
const quiet = 300 * time.Millisecond

var errStarted = errors.New("something changed")

// allocate submits the job and waits until it has its nodes. Without them it returns the exit code and false.
func (s *run) allocate(ctx context.Context, sig *signals) (code int, ok bool) {
	spec := &s.r.Spec
	spec.Kind = core.Interactive
	spec.From = core.Origin{Host: s.w.Host, Dir: s.w.Dir, Line: strings.Join(append([]string{s.w.Name}, s.argv...), " ")}
	out, err := s.c.Submit(ctx, &client.Submit{Spec: *spec})
	if err != nil {
		if core.ReasonOf(err) != slurm.ReasonInvalidGres {
			for _, line := range slurm.ErrorPreface(err, spec) {
				s.w.Errorf("%s", line)
			}
		}
		s.w.Errorf("Unable to allocate resources: %s", slurm.ErrorText(err))
		return slurm.ExitError, false
	}
	s.job = strconv.FormatInt(int64(out.ID), 10)
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() { // ends with done
		select {
		case got := <-sig.c:
			sig.ended = got
			cancel()
		case <-done:
		}
	}()
	defer close(done)
	var giveUp <-chan time.Time
	if s.r.Ask.Immediate != nil {
		t := time.NewTimer(*s.r.Ask.Immediate)
		defer t.Stop()
		giveUp = t.C
	}
	state, err := s.waitStart(wait, out.ID, giveUp)
	switch {
	case sig.ended != nil:
		s.cancelJob(ctx)
		s.w.Infof("Job allocation %s has been revoked", s.job)
		return 128 + signalNumber(sig.ended), false
	case errors.Is(err, errTooLate):
		s.cancelJob(ctx)
		s.w.Errorf("Unable to allocate resources: %s", slurm.ErrorText(core.Errorf(core.Conflict, "too late").Because(slurm.ReasonImmediate)))
		return slurm.ExitError, false
	case err != nil:
		s.cancelJob(ctx)
		s.w.Errorf("Unable to allocate resources: %s", slurm.ErrorText(err))
		return slurm.ExitError, false
	case state != core.Running:
		s.w.Infof("Job allocation %s has been revoked", s.job)
		s.w.Infof("Force Terminated JobId=%s", s.job)
		return slurm.ExitError, false
	}
	return 0, true
}

var errTooLate = errors.New("not started in time")

// waitStart follows the job until it runs or has ended. It says that the job is queued once it is not started at once.
func (s *run) waitStart(ctx context.Context, id core.JobID, giveUp <-chan time.Time) (core.JobState, error) {
	told := false
	began := s.w.Now()
	for {
		list, err := s.c.Job(ctx, s.job)
		if err != nil {
			return 0, err
		}
		state := list.Jobs[0].State
		if state != core.Pending {
			if told && state == core.Running && !s.r.Ask.Quiet && s.r.Ask.Immediate == nil {
				s.w.Infof("job %s has been allocated resources", s.job)
			}
			return state, nil
		}
		watch, stop := context.WithCancelCause(ctx)
		var hush *time.Timer
		if !told {
			hush = time.AfterFunc(max(0, quiet-s.w.Now().Sub(began)), func() { stop(errStarted) })
		}
		over := make(chan error, 1)
		go func() { // ends with watch, which is always stopped below
			over <- s.c.Watch(watch, list.Seq, func(e *core.Event) error {
				if e.Job == id {
					return errStarted
				}
				return nil
			})
		}()
		select {
		case err = <-over:
		case <-giveUp:
			stop(errTooLate)
			<-over
			return 0, errTooLate
		}
		stop(nil)
		if hush != nil {
			hush.Stop()
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if errors.Is(context.Cause(watch), errStarted) && !told {
			s.tellQueued(&list.Jobs[0])
			told = true
		}
		if code := core.CodeOf(err); err != nil && code == core.Denied {
			return 0, err
		}
	}
}

// tellQueued says that the job waits, and first if it would for ever. Who gives it a moment only is told at its end.
func (s *run) tellQueued(j *client.Job) {
	if s.r.Ask.Quiet || s.r.Ask.Immediate != nil {
		return
	}
	switch j.Waiting {
	case core.ReasonPartitionNodes, core.ReasonPartitionTime, core.ReasonPartitionDown, core.ReasonBadConstraints:
		s.w.Infof("%s", slurm.ErrorText(core.Errorf(core.Conflict, "it cannot start").Because(slurm.ReasonPartitionConfig)))
	}
	s.w.Infof("job %s queued and waiting for resources", s.job)
}

// cancelJob gives up the job. It must be done even when srun's own context has ended.
func (s *run) cancelJob(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if _, err := s.c.Cancel(ctx, &client.Cancel{IDs: []string{s.job}}); err != nil {
		s.w.Errorf("Unable to cancel job %s: %s", s.job, slurm.ErrorText(err))
	}
}
