package runlife

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
)

// backoff is how long a run waits after each error of a series; the last repeats.
var backoff = [...]core.Seconds{15, 30, 60, 120, 300, 600}

// Backoff is the pause after the n-th error of a series, from 0.
func Backoff(n int32) core.Seconds { return backoff[min(max(0, int(n)), len(backoff)-1)] }

// Started begins an attempt of a run.
func Started(j *core.Job) {
	if rules := j.Spec.Rules(); rules != nil && rules.Inactivity > 0 {
		j.OwnLife().IdleSince = j.Start
	}
	if j.Life != nil && j.Life.Ranks != nil {
		j.OwnLife().Ranks = nil // those of the attempt before
	}
}

// Again decides whether an attempt that has just ended is followed by another, as a retry or by the run's schedule, and
// notes it in the job's Life. The record must be the caller's to change, with its final state, reason and end.
func Again(j *core.Job) bool {
	rules := j.Spec.Rules()
	if rules == nil || j.Spec.Kind != core.Batch || stopped(j) {
		return false
	}
	return rules.Retry != nil && retries(j, rules.Retry) || len(rules.Schedule) > 0
}

// stopped reports that somebody asked for the end of the run, which is then its last.
func stopped(j *core.Job) bool { return j.Stop != nil && j.Stop.As != core.Preempted }

func retries(j *core.Job, r *core.Retry) bool {
	switch j.State {
	case core.Preempted:
		return r.Interruption
	case core.NodeFail, core.BootFail:
		return r.Interruption || r.Error && seriesGoesOn(j, r)
	case core.Failed, core.OutOfMemory:
		if j.Reason == core.ReasonNoCapacity {
			if r.NoCapacity { // the time for it is what is over
				j.OwnLife().Exceeded = true
			}
			return false
		}
		return r.Error && seriesGoesOn(j, r)
	default:
		return false
	}
}

// seriesGoesOn decides whether another attempt follows an error, and when.
func seriesGoesOn(j *core.Job, r *core.Retry) bool {
	life := j.OwnLife()
	if life.ErrorsSince == 0 || j.Elapsed(j.End) >= r.Duration.Duration() {
		life.ErrorsSince, life.Errors = j.End, 0
	}
	at := j.End.Add(Backoff(life.Errors).Duration())
	if at.Sub(life.ErrorsSince) > r.Duration.Duration() {
		life.Exceeded = true
		return false
	}
	life.Errors++
	life.RetryAt = at
	return true
}

// Requeued gives a run that is in the queue again the time of its next attempt: after its back-off, or when its
// schedule says. It reports whether the rules decide how often that may be, in the place of the config.
func Requeued(j *core.Job, now core.Time) bool {
	rules := j.Spec.Rules()
	if rules == nil {
		return false
	}
	if j.Life != nil || len(rules.Schedule) > 0 {
		life := j.OwnLife()
		life.IdleSince = 0
		switch {
		case life.RetryAt != 0:
			j.Eligible, life.RetryAt = max(now, life.RetryAt), 0
		case len(rules.Schedule) > 0 && !repeats(j, rules):
			if at, err := nextTrigger(rules.Schedule, now); err == nil { // it was read when the job came
				j.Eligible, *life = at, core.RunLife{Trigger: at}
			}
		}
	}
	return rules.Retry != nil || len(rules.Schedule) > 0
}

// repeats reports that the attempt that is over is to be repeated, not followed by that of the next trigger.
func repeats(j *core.Job, rules *core.RunRules) bool {
	last := j.Earlier.Last()
	if last == nil || last.Attempt != j.Attempt {
		return false
	}
	switch last.State {
	case core.Pending: // somebody requeued it
		return true
	case core.Preempted, core.NodeFail, core.BootFail:
		return j.Spec.Requeue || rules.Retry != nil && rules.Retry.Interruption
	default:
		return false
	}
}

// Due is when time ends a run: it waited for nodes for too long, or nobody is connected to it; 0: never.
func Due(j *core.Job) core.Time {
	rules := j.Spec.Rules()
	if rules == nil {
		return 0
	}
	switch {
	case j.State == core.Pending && rules.StartWithin > 0 && !j.Flags.Held() && j.Needs == nil:
		return max(j.Eligible, j.Released).Add(rules.StartWithin.Duration())
	case j.State == core.Running && rules.Inactivity > 0 && j.Life != nil && j.Life.IdleSince != 0 &&
		!j.Flags.Has(core.Requeueing):
		return j.Life.IdleSince.Add(rules.Inactivity.Duration())
	default:
		return 0
	}
}

// Ending is how a run ends whose time has come (see Due): its state, why, and a sentence.
func Ending(j *core.Job) (core.JobState, core.Reason, string) {
	rules := j.Spec.Rules()
	if j.State == core.Pending {
		return core.Failed, core.ReasonNoCapacity,
			fmt.Sprintf("no capacity: it found no nodes within %v", rules.StartWithin.Duration())
	}
	return core.Cancelled, core.ReasonInactivity,
		fmt.Sprintf("nobody was connected to it for %v", rules.Inactivity.Duration())
}

// Connected notes that a step begins in a run: somebody is connected to it by SSH.
func Connected(j *core.Job, st *core.Step) {
	if st.Name == core.StepSSH && j.Life != nil && j.Life.IdleSince != 0 {
		j.OwnLife().IdleSince = 0
	}
}

// Disconnected notes that a step of a run has ended, and which are left.
func Disconnected(j *core.Job, left []*core.Step, now core.Time) {
	rules := j.Spec.Rules()
	if rules == nil || rules.Inactivity == 0 || j.Life == nil || j.Life.IdleSince != 0 {
		return
	}
	for _, st := range left {
		if st.Name == core.StepSSH && !st.State.Final() && st.Attempt == j.Attempt {
			return
		}
	}
	j.OwnLife().IdleSince = now
}

// Unused tells how a run ends of which a GPU was used too little since a moment; "" if it does not.
func Unused(j *core.Job, node core.NodeName, unit int32, since, now core.Time) (message string) {
	rules := j.Spec.Rules()
	if rules == nil || rules.Utilization == nil || j.State != core.Running || j.Flags.Has(core.Requeueing) {
		return ""
	}
	u := rules.Utilization
	if now.Sub(max(since, j.Start)) < u.Window.Duration() {
		return ""
	}
	return fmt.Sprintf("GPU %d of node %s was used less than %d%% for %v", unit, node, u.Percent, u.Window.Duration())
}
