package engine

import (
	"context"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// feed carries changes from the writer to the planner; what has not been taken yet is merged.
type feed struct {
	mu   sync.Mutex
	c    sched.Changes
	news int64 // counts additions
	wake chan struct{}

	trials trials
	over   chan struct{} // closed when nobody takes from it any more
}

func newFeed(all sched.Changes) *feed {
	f := &feed{c: all, wake: make(chan struct{}, 1), over: make(chan struct{})}
	f.trials.asked = make(chan struct{}, 1)
	f.wake <- struct{}{}
	return f
}

// add gives the planner news and returns their number.
func (f *feed) add(c sched.Changes) int64 {
	f.mu.Lock()
	f.news++
	news := f.news
	f.c.Merge(c)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return news
}

// take gives what was added since, and the number of the last addition.
func (f *feed) take() (sched.Changes, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.c
	f.c = sched.Changes{}
	return c, f.news
}

// sleepers are the nodes that a plan wants to be woken.
func sleepers(plan *sched.Plan) (out []core.NodeName) {
	for i := range plan.Provision {
		if n := plan.Provision[i].Node; n != "" {
			out = append(out, n)
		}
	}
	return out
}

// planning is the planner's goroutine.
type planning struct {
	e     *Engine
	f     *feed
	p     *sched.Planner
	lost  bool // p failed: nothing is done with it until all has come anew
	fc    *forecaster
	timer *time.Timer
}

// planLoop runs a pass whenever something changed or a planned moment comes, and hands its starts to the writer. It
// waits until they are applied, so that the next pass sees them; it does not wait for their commit.
func (e *Engine) planLoop(ctx context.Context, f *feed) {
	l := &planning{e: e, f: f, p: sched.New(state.PlannerConfig(*e.config.Load())), timer: time.NewTimer(time.Hour)}
	defer l.timer.Stop()
	l.fc = newForecaster(e, l.p, f)
	defer l.fc.stop()
	for {
		more := false
		if fault := guard("forecast", func() { more = l.fc.wait(ctx, f.wake, l.timer.C) }); fault != nil {
			e.report(fault, 0, nil)
			l.fc.failed()
			continue
		}
		if !more {
			return
		}
		if t := l.fc.failedTrial; t != nil {
			l.fc.failedTrial = nil
			if !l.recover(ctx, t.fault, 0) {
				return
			}
			continue
		}
		s, fault := l.round()
		if fault != nil {
			if !l.recover(ctx, fault, l.p.Looking()) {
				return
			}
			continue
		}
		if s != nil && !l.hand(ctx, s) {
			return
		}
	}
}

// round takes in what changed and plans.
func (l *planning) round() (s *startBatch, fault *panicked) {
	c, seen := l.f.take()
	began := time.Now()
	defer func() {
		took := time.Since(began)
		l.e.mu.Lock()
		l.e.stats.Passes++
		l.e.stats.Planning += took
		l.e.mu.Unlock()
	}()
	fault = guard("plan", func() {
		if c.Anew != nil {
			l.p, l.lost = sched.New(*c.Anew), false
			l.fc.begin(l.p)
		}
		if l.lost { // all comes anew
			return
		}
		l.p.Apply(c)
		now := core.At(l.e.cfg.Now())
		plan := l.p.Pass(now)
		l.fc.planned(plan)
		wait := time.Hour
		if plan.WakeAt != 0 {
			wait = min(wait, max(time.Millisecond, plan.WakeAt.Sub(now)))
		}
		l.timer.Reset(wait)
		s = &startBatch{starts: plan.Starts, preempts: plan.Preempts, now: now, seen: seen, applied: make(chan struct{})}
		if l.e.config.Load().Power.Wakes {
			s.wakes = sleepers(plan)
		}
	})
	if fault == nil && s != nil {
		l.e.plannerWell()
	}
	return s, fault
}

// hand gives the writer what is to start and waits until it is applied. It returns false when ctx ended.
func (l *planning) hand(ctx context.Context, s *startBatch) bool {
	select {
	case l.e.starts <- s:
	case <-ctx.Done():
		return false
	}
	select {
	case <-s.applied:
	case <-ctx.Done():
		return false
	}
	if s.refused > 0 { // the world moved on; look again soon, with what the writer has told us by then
		l.timer.Reset(10 * time.Millisecond)
	}
	return true
}

// recover asks the writer for all there is, after the planner failed. It returns false when ctx ended.
func (l *planning) recover(ctx context.Context, fault *panicked, job core.JobID) bool {
	r, rest := l.e.plannerLost(fault, job)
	l.lost = true
	l.fc.begin(nil)
	if rest > 0 && !pause(ctx, rest) {
		return false
	}
	select {
	case l.e.replans <- r:
		return true
	case <-ctx.Done():
		return false
	}
}
