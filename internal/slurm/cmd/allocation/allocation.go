// Package allocation is what srun and salloc share: asking for nodes and waiting for them.
package allocation

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/secretarg"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// quiet is how long a job may wait before it is said to be queued.
const quiet = 300 * time.Millisecond

var (
	errStarted = errors.New("something changed")
	errTooLate = errors.New("not started in time")
)

// Request asks for nodes.
type Request struct {
	World  *cmd.World
	Client *client.Client
	Asked  *slurm.Request
	More   []*slurm.Request // of further components
	Argv   []string         // for the submit line

	Refused string // "Unable to allocate resources": what a refusal begins with
	Busy    error  // what is said when Immediate is over
	Dot     string // salloc ends the sentence that a job was revoked with one, srun does not
	// Pending is said of a job that does not start at once, before the rest.
	Pending func(job string)

	Job   string          // its number, once it is submitted
	Ended os.Signal       // the signal that ended the wait
	Found *client.JobList // the job as it was seen last
}

// Get submits the job and waits until it has its nodes. Without them it returns the exit code and false.
func (a *Request) Get(ctx context.Context, signals <-chan os.Signal) (code int, ok bool) {
	spec := &a.Asked.Spec
	if _, err := a.World.Among(ctx, a.Client, a.Asked); err != nil {
		return a.World.Complain(err), false
	}
	spec.Kind = core.Interactive
	spec.From = core.Origin{
		Host: a.World.Host, Dir: a.World.Dir,
		Line: strings.Join(append([]string{a.World.Name}, secretarg.Mask(a.Argv)...), " "),
	}
	submit := &client.Submit{Spec: *spec}
	for _, r := range a.More {
		r.Spec.Kind, r.Spec.From = spec.Kind, spec.From
		submit.Components = append(submit.Components, r.Spec)
	}
	out, err := a.Client.Submit(ctx, submit)
	if err != nil {
		if core.ReasonOf(err) != slurm.ReasonInvalidGres {
			for _, line := range slurm.ErrorPreface(err, spec) {
				a.World.Errorf("%s", line)
			}
		}
		a.World.Errorf("%s: %s", a.Refused, slurm.ErrorText(err))
		a.World.HintOfSubmit(ctx, a.Client, err)
		return slurm.ExitError, false
	}
	a.World.Told(out, a.Asked.Ask.Quiet)
	a.Job = strconv.FormatInt(int64(out.ID), 10)
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	caught := make(chan os.Signal, 1)
	go func() { // ends with done
		defer close(caught)
		for {
			select {
			case got := <-signals:
				if got == syscall.SIGWINCH || got == syscall.SIGCHLD || got == syscall.SIGCONT {
					continue
				}
				caught <- got
				cancel()
				return
			case <-done:
				return
			}
		}
	}()
	var giveUp <-chan time.Time
	if a.Asked.Ask.Immediate != nil {
		t := time.NewTimer(*a.Asked.Ask.Immediate)
		defer t.Stop()
		giveUp = t.C
	}
	state, err := a.waitStart(wait, out.ID, giveUp)
	close(done)
	a.Ended = <-caught
	switch {
	case a.Ended != nil:
		a.Cancel(ctx)
		a.World.Infof("Job allocation %s has been revoked%s", a.Job, a.Dot)
		if a.Dot == "" {
			a.World.Infof("Force Terminated JobId=%s", a.Job)
		}
		return 128 + SignalNumber(a.Ended), false
	case errors.Is(err, errTooLate):
		a.Cancel(ctx)
		revoked := func() {
			if a.Dot != "" {
				a.World.Infof("Job allocation %s has been revoked.", a.Job)
			}
		}
		if a.Dot != "" && a.talks() { // salloc itself has waited; without seconds the server says no
			a.World.Errorf("Unable to allocate resources: Connection timed out")
			revoked()
		} else {
			revoked()
			a.World.Errorf("Unable to allocate resources: %s", slurm.ErrorText(a.Busy))
		}
		return slurm.ExitError, false
	case err != nil:
		a.Cancel(ctx)
		a.World.Errorf("Unable to allocate resources: %s", slurm.ErrorText(err))
		return slurm.ExitError, false
	case state == core.DeadlineMissed:
		a.World.Infof("Job has been cancelled")
		if a.Dot != "" {
			a.World.Infof("Job allocation %s has been revoked.", a.Job)
		}
		a.World.Errorf("%s: Job/step already completing or completed", a.Refused)
		return slurm.ExitError, false
	case state != core.Running:
		a.World.Infof("Job allocation %s has been revoked%s", a.Job, a.Dot)
		a.World.Infof("Force Terminated JobId=%s", a.Job)
		return slurm.ExitError, false
	}
	return 0, true
}

// waitStart follows the job until it runs or has ended. It says that the job is queued once it is not started at once.
func (a *Request) waitStart(ctx context.Context, id core.JobID, giveUp <-chan time.Time) (core.JobState, error) {
	told := false
	began := a.World.Now()
	if len(a.More) > 0 && a.talks() { // Slurm starts a het job only after it was queued, and programs wait for the lines
		if a.Pending != nil {
			a.Pending(a.Job)
		}
		a.World.Infof("job %s queued and waiting for resources", a.Job)
		told = true
	}
	for {
		list, err := a.Client.Job(ctx, a.Job)
		if err != nil {
			return 0, err
		}
		a.Found = list
		state := list.Jobs[0].State
		if state != core.Pending {
			if !told && state == core.DeadlineMissed { // it was queued, if only for a moment
				a.tellQueued(&list.Jobs[0])
			}
			if told && state == core.Running && a.talks() {
				a.World.Infof("job %s has been allocated resources", a.Job)
			}
			return state, nil
		}
		watch, stop := context.WithCancelCause(ctx)
		var hush *time.Timer
		if !told {
			hush = time.AfterFunc(max(0, quiet-a.World.Now().Sub(began)), func() { stop(errStarted) })
		}
		over := make(chan error, 1)
		go func() { // ends with watch, which is always stopped below
			over <- a.Client.Watch(watch, list.Seq, func(e *core.Event) error {
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
			a.tellQueued(&list.Jobs[0])
			told = true
		}
		if code := core.CodeOf(err); err != nil && code == core.Denied {
			return 0, err
		}
	}
}

// talks reports whether waiting is spoken of: who gives it a moment only is told at its end.
func (a *Request) talks() bool {
	i := a.Asked.Ask.Immediate
	return !a.Asked.Ask.Quiet && (i == nil || *i > time.Second)
}

// tellQueued says that the job waits, and first if it would forever.
func (a *Request) tellQueued(j *client.Job) {
	if !a.talks() {
		return
	}
	switch j.Waiting {
	case core.ReasonPartitionDown:
		a.World.Infof("Partition in DOWN state")
	case core.ReasonPartitionNodes, core.ReasonPartitionTime, core.ReasonBadConstraints:
		a.World.Infof("%s", slurm.ErrorText(
			core.Errorf(core.Conflict, "it cannot start").Because(slurm.ReasonPartitionConfig)))
	default:
	}
	if a.Asked.Spec.Hold {
		a.World.Infof("Job is in held state, pending scheduler release")
	}
	if a.Pending != nil {
		a.Pending(a.Job)
	}
	a.World.Infof("job %s queued and waiting for resources", a.Job)
}

// Cancel gives up the job. It is done even when the command's own context has ended.
func (a *Request) Cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if _, err := a.Client.Cancel(ctx, &client.Cancel{IDs: []string{a.Job}}); err != nil {
		a.World.Errorf("Unable to cancel job %s: %s", a.Job, slurm.ErrorText(err))
	}
}

// Release gives the allocation back, also when the command itself was told to end. One that is gone is given back
// already.
func (a *Request) Release(ctx context.Context, exit core.Exit) {
	err := a.Client.Release(context.WithoutCancel(ctx), a.Job, exit)
	if err != nil && core.CodeOf(err) != core.NotFound && core.CodeOf(err) != core.Conflict {
		a.World.Errorf("Unable to release job %s: %s", a.Job, slurm.ErrorText(err))
	}
}

// SignalNumber is the number of a signal.
func SignalNumber(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
