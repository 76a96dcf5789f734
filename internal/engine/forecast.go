package engine

import (
	"context"
	"time"

	"bireme.dev/bireme/internal/sched"
)

// forecaster works out when jobs will start, in the time the planner has nothing else to do: a slice at a time, so that a
// pass waits for one at most. The last forecast that was finished goes with every plan.
type forecaster struct {
	e    *Engine
	p    *sched.Planner
	plan *sched.Plan // as of the last pass
	last *sched.Forecast
	work *sched.Forecast // nil: none is being made

	stale bool        // there has been a pass since the last one was begun
	next  *time.Timer // rings when another may be begun
	rest  bool        // it has not rung yet
	spent time.Duration
	fails int // panics in a row

	feed        *feed
	tried       *time.Timer // rings when another trial may be answered
	resting     bool        // it has not rung yet
	failedTrial *trial      // the planner failed on it
}

// forecastSlice is about 0.1 ms of work; see sched.Forecast.Step.
const forecastSlice = 20_000

// After a forecast there is a rest of so much times what it took, and at least the least: what it says grows old slowly,
// and the machine has other things to do.
const (
	forecastRest  = 4
	forecastLeast = 100 * time.Millisecond
)

func newForecaster(e *Engine, p *sched.Planner, from *feed) *forecaster {
	f := &forecaster{e: e, p: p, feed: from, next: time.NewTimer(time.Hour), tried: time.NewTimer(time.Hour)}
	f.next.Stop()
	f.tried.Stop()
	return f
}

// begin goes on with another planner; nil: there is none until one comes.
func (f *forecaster) begin(p *sched.Planner) { f.p, f.work = p, nil }

func (f *forecaster) stop() {
	f.next.Stop()
	f.tried.Stop()
}

// failed gives a forecast up that made the planner fail. It only read: the planner is as it was, and another forecast is
// tried after a while.
func (f *forecaster) failed() {
	f.fails++
	f.work, f.rest = nil, true
	f.next.Reset(min(time.Second<<min(f.fails, 10), 10*time.Minute))
}

// trial answers one question, if some wait and it is their turn. It returns false when the planner failed on it.
func (f *forecaster) trial(wake <-chan struct{}) bool {
	if f.p == nil || f.resting {
		return true
	}
	t := f.feed.nextTrial(len(wake) > 0)
	if t == nil {
		return true
	}
	f.work = nil // it goes by the planner as it was
	took := f.feed.answer(f.e, f.p, t)
	f.resting = true
	f.tried.Reset(trialRest * took)
	if t.fault != nil {
		f.failedTrial = t
		return false
	}
	return true
}

// planned publishes a plan, with the last forecast.
func (f *forecaster) planned(plan *sched.Plan) {
	f.plan, f.stale = plan, true
	f.e.plan.Store(plan.With(f.last))
}

// wait returns true when the planner should look again, and meanwhile goes on with the forecast; false when ctx ended.
func (f *forecaster) wait(ctx context.Context, wake <-chan struct{}, timer <-chan time.Time) bool {
	for {
		if !f.trial(wake) {
			return true
		}
		if f.p != nil && f.work == nil && f.stale && !f.rest && f.p.Waiting() > 0 {
			f.work, f.stale, f.spent = f.p.Forecast(f.plan), false, 0
		}
		if f.work == nil {
			select {
			case <-wake:
				return true
			case <-timer:
				return true
			case <-ctx.Done():
				return false
			case <-f.next.C:
				f.rest = false
			case <-f.tried.C:
				f.resting = false
			case <-f.feed.trials.asked:
			}
			continue
		}
		select {
		case <-wake:
			return true
		case <-timer:
			return true
		case <-ctx.Done():
			return false
		case <-f.tried.C:
			f.resting = false
		default:
			f.slice()
		}
	}
}

// slice does a little of the forecast.
func (f *forecaster) slice() {
	began := time.Now()
	done := f.work.Step(forecastSlice)
	f.spent += time.Since(began)
	if !done {
		return
	}
	f.last, f.work, f.fails = f.work, nil, 0
	f.e.plan.Store(f.plan.With(f.last))
	f.rest = true
	f.next.Reset(max(forecastLeast, forecastRest*f.spent))
}
