package engine

import (
	"context"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// trial is a question to the planner: what would become of this job?
type trial struct {
	job  *core.Job
	out  sched.Outlook
	done chan struct{}
}

// Try tells what would become of a submission. It is admitted or refused like any other, and takes a number, but no job is
// made.
func (e *Engine) Try(ctx context.Context, in *state.Submit) (*core.Job, sched.Outlook, error) {
	reply, err := e.Do(ctx, &state.Try{Submit: *in})
	if err != nil {
		return nil, sched.Outlook{}, err
	}
	t := &trial{job: reply.(*core.Job), done: make(chan struct{})}
	f := e.feed.Load()
	if f == nil {
		return nil, t.out, unavailable("the server has no plan yet")
	}
	f.ask(t)
	select {
	case <-t.done:
		return t.job, t.out, nil
	case <-f.over:
		return nil, t.out, unavailable("the state is being loaded anew")
	case <-ctx.Done():
		return nil, t.out, ctx.Err()
	}
}

// ask lets the planner answer a trial when it next looks.
func (f *feed) ask(t *trial) {
	f.mu.Lock()
	f.trials = append(f.trials, t)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// answer works off the trials.
func (f *feed) answer(p *sched.Planner, now core.Time) {
	f.mu.Lock()
	list := f.trials
	f.trials = nil
	f.mu.Unlock()
	for _, t := range list {
		t.out = p.Trial(t.job, now)
		close(t.done)
	}
}
