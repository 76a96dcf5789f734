package engine

import (
	"context"
	"time"

	"bireme.dev/bireme/internal/sched"
)

// forecaster works out when jobs will start, in the time the planner has nothing else to do: a slice at a time, so that
// a pass waits for one at most. The last forecast that was finished goes with every plan.
type forecaster struct {
	engine  *Engine
	planner *sched.Planner
	plan    *sched.Plan // as of the last pass
	last    *sched.Forecast
	current *sched.Forecast // nil: none is being made

	stale     bool        // there has been a pass since the last one was begun
	restTimer *time.Timer // rings when another may be begun
	resting   bool        // it has not rung yet
	spent     time.Duration
	fails     int // panics in a row

	feed         *plannerFeed
	trialTimer   *time.Timer // rings when another trial may be answered
	trialResting bool        // it has not rung yet
	failedTrial  *trial      // the planner failed on it
}

// forecastSlice is about 0.1 ms of work; see sched.Forecast.Step.
const forecastSlice = 20_000

// After a forecast there is a rest of so much times what it took, and at least the least: what it says grows old
// slowly, and the machine has other things to do.
const (
	forecastRest    = 4
	minForecastRest = 100 * time.Millisecond
)

func newForecaster(e *Engine, p *sched.Planner, from *plannerFeed) *forecaster {
	f := &forecaster{
		engine: e, planner: p, feed: from, restTimer: time.NewTimer(time.Hour),
		trialTimer: time.NewTimer(time.Hour),
	}
	f.restTimer.Stop()
	f.trialTimer.Stop()
	return f
}

// usePlanner goes on with another planner; nil: there is none until one comes.
func (f *forecaster) usePlanner(p *sched.Planner) { f.planner, f.current = p, nil }

func (f *forecaster) stop() {
	f.restTimer.Stop()
	f.trialTimer.Stop()
}

// abandon gives a forecast up that made the planner fail. It only read: the planner is as it was, and another forecast
// is tried after a while.
func (f *forecaster) abandon() {
	f.fails++
	f.current, f.resting = nil, true
	f.restTimer.Reset(min(time.Second<<min(f.fails, 10), 10*time.Minute))
}

// answerTrial answers one question, if some wait and it is their turn. It returns false when the planner failed on it.
func (f *forecaster) answerTrial(wake <-chan struct{}) bool {
	if f.planner == nil || f.trialResting {
		return true
	}
	t := f.feed.nextTrial(len(wake) > 0)
	if t == nil {
		return true
	}
	f.current = nil // it goes by the planner as it was
	took := f.feed.answerTrial(f.engine, f.planner, t)
	f.trialResting = true
	f.trialTimer.Reset(trialRest * took)
	if t.fault != nil {
		f.failedTrial = t
		return false
	}
	return true
}

// publish publishes a plan, with the last forecast.
func (f *forecaster) publish(plan *sched.Plan) {
	f.plan, f.stale = plan, true
	f.engine.plan.Store(plan.WithForecast(f.last))
}

// wait returns true when the planner should look again, and meanwhile goes on with the forecast; false when ctx ended.
func (f *forecaster) wait(ctx context.Context, wake <-chan struct{}, timer <-chan time.Time) bool {
	for {
		if !f.answerTrial(wake) {
			return true
		}
		if f.planner != nil && f.current == nil && f.stale && !f.resting && f.planner.PendingCount() > 0 {
			f.current, f.stale, f.spent = f.planner.Forecast(f.plan), false, 0
		}
		if f.current == nil {
			select {
			case <-wake:
				return true
			case <-timer:
				return true
			case <-ctx.Done():
				return false
			case <-f.restTimer.C:
				f.resting = false
			case <-f.trialTimer.C:
				f.trialResting = false
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
		case <-f.trialTimer.C:
			f.trialResting = false
		default:
			f.step()
		}
	}
}

// step does a little of the forecast.
func (f *forecaster) step() {
	began := time.Now()
	done := f.current.Step(forecastSlice)
	f.spent += time.Since(began)
	if !done {
		return
	}
	f.last, f.current, f.fails = f.current, nil, 0
	f.engine.plan.Store(f.plan.WithForecast(f.last))
	f.resting = true
	f.restTimer.Reset(max(minForecastRest, forecastRest*f.spent))
}
