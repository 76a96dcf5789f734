package engine

import (
	"context"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// trial is a question to the planner: what would become of this job?
type trial struct {
	job   *core.Job
	asked time.Time
	out   sched.TrialResult
	fault *panicError
	done  chan struct{}
}

// trials are the questions that wait. They are answered one at a time, and only when the planner has nothing else to
// do.
type trials struct {
	list  []*trial
	asked chan struct{}
}

// Bounds on trials: how many of all users wait, and how long the planner works on other things after one, in times of
// what it took. A trial stops looking further ahead when there is something to plan, or after maxTrialTime. One that
// has waited for maxTrialDelay, because there is always something to plan, is answered before the next pass.
const (
	maxTrials     = 256
	maxTrialDelay = time.Second
	trialRest     = 2
	maxTrialTime  = 250 * time.Millisecond
	trialSlice    = 200_000 // about a millisecond; see sched.Forecast.Step
)

// Try tells what would become of a submission. It is admitted or refused like any other, and takes a number, but no job
// is made.
func (e *Engine) Try(ctx context.Context, in *state.Submit) (*core.Job, sched.TrialResult, error) {
	if err := e.senders.beginTrial(&in.By, e.config.Load().TrialsPerUser); err != nil {
		return nil, sched.TrialResult{}, err
	}
	defer e.senders.endTrial(in.By.User)
	job, err := Do(ctx, e, &state.Try{Submit: *in})
	if err != nil {
		return nil, sched.TrialResult{}, err
	}
	t := &trial{job: job, asked: time.Now(), done: make(chan struct{})}
	f := e.feed.Load()
	if f == nil {
		return nil, t.out, unavailable("the server has no plan yet")
	}
	f.enqueueTrial(t)
	select {
	case <-t.done:
		if t.fault != nil {
			return nil, t.out, core.Errorf(core.Internal,
				"the server failed on this job; the fault is in its log").Because("fault")
		}
		return t.job, t.out, nil
	case <-f.closed:
		return nil, t.out, unavailable("the state is being loaded anew")
	case <-ctx.Done():
		f.withdrawTrial(t)
		return nil, t.out, ctx.Err()
	}
}

// enqueueTrial lets the planner answer a trial when it has nothing else to do.
func (f *plannerFeed) enqueueTrial(t *trial) {
	f.mu.Lock()
	f.trials.list = append(f.trials.list, t)
	f.mu.Unlock()
	select {
	case f.trials.asked <- struct{}{}:
	default:
	}
}

// withdrawTrial takes a question back.
func (f *plannerFeed) withdrawTrial(t *trial) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, o := range f.trials.list {
		if o == t {
			f.trials.list = append(f.trials.list[:i:i], f.trials.list[i+1:]...)
			return
		}
	}
}

// nextTrial gives the first that waits; when the planner is busy only if it is late.
func (f *plannerFeed) nextTrial(busy bool) *trial {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.trials.list) == 0 {
		return nil
	}
	t := f.trials.list[0]
	if busy && time.Since(t.asked) < maxTrialDelay {
		return nil
	}
	f.trials.list = f.trials.list[1:]
	return t
}

// answerTrial works on one trial and tells how long that took.
func (f *plannerFeed) answerTrial(e *Engine, p *sched.Planner, t *trial) time.Duration {
	began := time.Now()
	more := func() bool { return len(f.wake) == 0 && time.Since(began) < maxTrialTime }
	t.fault = guard("trial", func() { t.out = p.Trial(t.job, core.At(e.cfg.Now()), trialSlice, more) })
	if t.fault != nil {
		e.senders.trialFailed(t.job.Spec.User)
	}
	close(t.done)
	return time.Since(began)
}
