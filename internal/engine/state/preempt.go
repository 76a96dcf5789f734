package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/preemption"
	"bireme.dev/bireme/internal/sched"
)

// Preempt is the planner's wish to push a job aside, so that another can start when it is gone; it is checked again.
// Reply: nil. A job that is only suspended is so with the other one's Start.
type Preempt struct {
	Job       core.JobID
	For       core.JobID
	Partition core.PartitionName // the other one would start in
	Room      int32              // starts of the other one that jobs make room for
	Nodes     []core.NodeName    // where this is
}

func (*Preempt) input() {}

// apply pushes a job aside: it ends as PREEMPTED, or goes back to the queue.
func (in *Preempt) apply(s *State) (None, error) {
	v, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if v.Spec.More().Het != nil && jobs.IsOver(v) {
		return none, nil // it went with another component
	}
	j, err := s.rec.LiveJob(in.For)
	if err != nil {
		return none, err
	}
	if j.State != core.Pending || sched.IsBlocked(j) || j.Eligible > s.rec.Now() {
		return none, core.Errorf(core.Conflict, "job %d does not wait to start", j.ID)
	}
	return none, s.preemption.Preempt(preemption.Request{
		Victim: v, For: j, Partition: in.Partition, Starts: in.Room, Nodes: in.Nodes,
	})
}
