package jobs

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/runlife"
)

// LatestStart is the last moment at which a job with a deadline may start.
func LatestStart(spec *core.Spec) core.Time {
	x := spec.Extra
	least := x.TimeMin
	if least == 0 && spec.TimeLimit < core.Forever {
		least = spec.TimeLimit
	}
	return x.Deadline.Add(-least.Duration())
}

// DeadlineOf is when a job with a deadline is given up: while it waits, when it can no longer end in time, and then at
// the deadline itself; 0: never.
func DeadlineOf(j *core.Job) core.Time {
	x := j.Spec.Extra
	if x == nil || x.Deadline == 0 || IsOver(j) {
		return 0
	}
	if j.State == core.Pending {
		return LatestStart(j.Spec) + 1
	}
	return x.Deadline
}

// MissDeadline ends a job that did not make it.
func (e *Edit) MissDeadline() {
	if e.Job.State == core.Pending {
		e.Job.Start = e.ed.rec.Now()
		e.End(core.DeadlineMissed, core.ReasonDeadline, "it can no longer end before its deadline")
		if e.Job.Spec.More().LateAccepted {
			e.Job.Exit = core.Exit{Code: 1} // as Slurm
		}
		return
	}
	e.End(core.DeadlineMissed, core.ReasonDeadline, "its deadline has come")
}

// RunExpired ends a run whose time to wait or to be idle is over. One that comes by a schedule and found no nodes waits
// for its next trigger.
func (e *Edit) RunExpired() {
	waited := e.Job.State == core.Pending
	st, why, message := runlife.Ending(e.Job)
	if waited {
		e.Job.Start = e.ed.rec.Now() // as of all that ends without having started
	}
	if e.End(st, why, message); !waited || len(e.Job.Spec.Rules().Schedule) == 0 {
		e.Commit()
		return
	}
	e.Job.Attempt++ // no agent has heard of it, but clients count it
	e.Job.Remember()
	e.requeueNow(0)
}

// TimeLimitOf is how long a job may last; 0: forever.
func TimeLimitOf(spec *core.Spec) core.Time {
	if spec.TimeLimit <= 0 || spec.TimeLimit >= core.Forever {
		return 0
	}
	return core.Time(spec.TimeLimit) * 1e6
}

// ShortenTimeLimit gives a job that starts a shorter limit than it asked for. If it comes back to the queue it asks for
// all of it again.
func (e *Edit) ShortenTimeLimit(limit core.Seconds) {
	spec := *e.Job.Spec
	x := *spec.More()
	x.TimeAsked = spec.TimeLimit
	spec.TimeLimit, spec.Extra = limit, &x
	e.ReplaceSpec(&spec)
}

// restoreTimeLimit is the other way round.
func (e *Edit) restoreTimeLimit() {
	if e.Job.Spec.More().TimeAsked == 0 {
		return
	}
	spec := *e.Job.Spec
	x := *spec.Extra
	spec.TimeLimit, x.TimeAsked = x.TimeAsked, 0
	spec.Extra = &x
	e.ReplaceSpec(&spec)
}

// ReplaceSpec gives a job another spec.
func (e *Edit) ReplaceSpec(spec *core.Spec) {
	e.Job.Spec, e.Job.SpecID = spec, NextSpecID(e.Job)
	if !e.ed.cfg.Unkept {
		e.ed.rec.AddSpec(e.Job.SpecID, spec)
	}
}

// NextSpecID numbers the next revision of a job's spec; see core.SpecOwner.
func NextSpecID(j *core.Job) core.JobID {
	if j.SpecID < 0 && core.SpecOwner(j.SpecID) == j.ID && core.SpecOwner(j.SpecID-1) == j.ID {
		return j.SpecID - 1
	}
	return -j.ID * core.SpecRevisions
}
