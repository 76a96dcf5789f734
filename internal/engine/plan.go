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

	trials []*trial
	over   chan struct{} // closed when nobody takes from it any more
}

func newFeed(all sched.Changes) *feed {
	f := &feed{c: all, wake: make(chan struct{}, 1), over: make(chan struct{})}
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

// planLoop runs a pass whenever something changed or a planned moment comes, and hands its starts to the writer. It
// waits until they are applied, so that the next pass sees them; it does not wait for their commit.
func (e *Engine) planLoop(ctx context.Context, f *feed) {
	p := sched.New(state.PlannerConfig(*e.config.Load()))
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	fc := newForecaster(e, p)
	defer fc.stop()
	for {
		if !fc.wait(ctx, f.wake, timer.C) {
			return
		}
		c, seen := f.take()
		if c.Anew != nil {
			p = sched.New(*c.Anew)
			fc.begin(p)
		}
		p.Apply(c)
		now := core.At(e.cfg.Now())
		f.answer(p, now)
		plan := p.Pass(now)
		fc.planned(plan)
		wait := time.Hour
		if plan.WakeAt != 0 {
			wait = min(wait, max(time.Millisecond, plan.WakeAt.Sub(now)))
		}
		timer.Reset(wait)
		s := &startBatch{starts: plan.Starts, preempts: plan.Preempts, now: now, seen: seen, applied: make(chan struct{})}
		if e.config.Load().Power.Wakes {
			s.wakes = sleepers(plan)
		}
		select {
		case e.starts <- s:
		case <-ctx.Done():
			return
		}
		select {
		case <-s.applied:
		case <-ctx.Done():
			return
		}
		if s.refused > 0 { // the world moved on; look again soon, with what the writer has told us by then
			timer.Reset(10 * time.Millisecond)
		}
	}
}
