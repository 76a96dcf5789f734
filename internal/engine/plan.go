package engine

import (
	"context"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// plannerFeed carries changes from the writer to the planner; what has not been taken yet is merged.
type plannerFeed struct {
	mu      sync.Mutex
	changes sched.Changes
	seq     int64 // counts additions
	wake    chan struct{}

	trials trials
	closed chan struct{} // closed when nobody takes from it any more
}

func newPlannerFeed(all sched.Changes) *plannerFeed {
	f := &plannerFeed{changes: all, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	f.trials.asked = make(chan struct{}, 1)
	f.wake <- struct{}{}
	return f
}

// add gives the planner news and returns their number.
func (f *plannerFeed) add(c sched.Changes) int64 {
	f.mu.Lock()
	f.seq++
	news := f.seq
	f.changes.Merge(c)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return news
}

// take gives what was added since, and the number of the last addition.
func (f *plannerFeed) take() (sched.Changes, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.changes
	f.changes = sched.Changes{}
	return c, f.seq
}

// nodesToWake are the nodes that a plan wants to be woken.
func nodesToWake(plan *sched.Plan) (out []core.NodeName) {
	for i := range plan.Provision {
		if n := plan.Provision[i].Node; n != "" {
			out = append(out, n)
		}
	}
	return out
}

// planLoop is the planner's goroutine.
type planLoop struct {
	engine   *Engine
	feed     *plannerFeed
	planner  *sched.Planner
	lost     bool // p failed: nothing is done with it until all has come again
	forecast *forecaster
	timer    *time.Timer
}

// runPlanLoop runs a pass whenever something changed or a planned moment comes, and hands its starts to the writer. It
// waits until they are applied, so that the next pass sees them; it does not wait for their commit.
func (e *Engine) runPlanLoop(ctx context.Context, f *plannerFeed) {
	l := &planLoop{
		engine: e, feed: f, planner: sched.New(state.PlannerConfig(*e.config.Load())),
		timer: time.NewTimer(time.Hour),
	}
	defer l.timer.Stop()
	l.forecast = newForecaster(e, l.planner, f)
	defer l.forecast.stop()
	for {
		more := false
		if fault := guard("forecast", func() { more = l.forecast.wait(ctx, f.wake, l.timer.C) }); fault != nil {
			e.report(fault, 0, nil)
			l.forecast.abandon()
			continue
		}
		if !more {
			return
		}
		if t := l.forecast.failedTrial; t != nil {
			l.forecast.failedTrial = nil
			if !l.recover(ctx, t.fault, 0) {
				return
			}
			continue
		}
		s, fault := l.runPass()
		if fault != nil {
			if !l.recover(ctx, fault, l.planner.CurrentJob()) {
				return
			}
			continue
		}
		if s != nil && !l.handOver(ctx, s) {
			return
		}
	}
}

// runPass takes in what changed and plans.
func (l *planLoop) runPass() (s *startBatch, fault *panicError) {
	c, seen := l.feed.take()
	began, backfilled := time.Now(), 0
	defer func() {
		took := time.Since(began)
		l.engine.mu.Lock()
		l.engine.stats.Passes++
		l.engine.stats.Planning += took
		l.engine.stats.LastPass, l.engine.stats.LastPassAt = took, core.At(began)
		l.engine.stats.LongestPass = max(l.engine.stats.LongestPass, took)
		l.engine.stats.Backfilled += int64(backfilled)
		l.engine.mu.Unlock()
	}()
	fault = guard("plan", func() {
		if c.NewConfig != nil {
			l.planner, l.lost = sched.New(*c.NewConfig), false
			l.forecast.usePlanner(l.planner)
		}
		if l.lost { // all comes again
			return
		}
		l.planner.Apply(c)
		now := core.At(l.engine.cfg.Now())
		plan := l.planner.Pass(now)
		backfilled = plan.Backfilled()
		l.forecast.publish(plan)
		wait := time.Hour
		if plan.WakeAt != 0 {
			wait = min(wait, max(time.Millisecond, plan.WakeAt.Sub(now)))
		}
		l.timer.Reset(wait)
		s = &startBatch{starts: plan.Starts, preempts: plan.Preempts, now: now, seenSeq: seen, applied: make(chan struct{})}
		if l.engine.config.Load().Power.Wakes {
			s.wakes = nodesToWake(plan)
		}
	})
	if fault == nil && s != nil {
		l.engine.plannerRecovered()
	}
	return s, fault
}

// handOver gives the writer what is to start and waits until it is applied. It returns false when ctx ended.
func (l *planLoop) handOver(ctx context.Context, s *startBatch) bool {
	select {
	case l.engine.starts <- s:
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
func (l *planLoop) recover(ctx context.Context, fault *panicError, job core.JobID) bool {
	r, rest := l.engine.plannerFailed(fault, job)
	l.lost = true
	l.forecast.usePlanner(nil)
	if rest > 0 && !pause(ctx, rest) {
		return false
	}
	select {
	case l.engine.replans <- r:
		return true
	case <-ctx.Done():
		return false
	}
}
