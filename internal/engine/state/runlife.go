package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/runlife"
)

// GPUUnused says that a GPU of a job has been used less than its run's rule asks for, without a break since a moment.
// Reply: nil.
type GPUUnused struct {
	Job     core.JobID
	Attempt int32
	Node    core.NodeName
	Unit    int32
	Since   core.Time
}

func (*GPUUnused) input() {}

// apply ends a run that leaves a GPU unused for as long as its rule allows.
func (in *GPUUnused) apply(s *State) (None, error) {
	j, ok := s.rec.Job(in.Job)
	if !ok || j.Attempt != in.Attempt {
		return none, nil
	}
	if message := runlife.Unused(j, in.Node, in.Unit, in.Since, s.rec.Now()); message != "" {
		edit := s.editJob(j)
		edit.end(core.Cancelled, core.ReasonUtilization, message)
		edit.commit()
	}
	return none, nil
}

// runExpired ends a run whose time to wait or to be idle is over. One that comes by a schedule and found no nodes waits
// for its next trigger.
func (e *jobEdit) runExpired() {
	waited := e.job.State == core.Pending
	st, why, message := runlife.Ending(e.job)
	if waited {
		e.job.Start = e.s.rec.Now() // as of all that ends without having started
	}
	if e.end(st, why, message); !waited || len(e.job.Spec.Rules().Schedule) == 0 {
		e.commit()
		return
	}
	e.job.Attempt++ // no agent has heard of it, but clients count it
	e.job.Remember()
	e.requeueNow()
}
