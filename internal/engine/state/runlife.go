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
		edit := s.jobs.Edit(j)
		edit.End(core.Cancelled, core.ReasonUtilization, message)
		edit.Commit()
	}
	return none, nil
}
