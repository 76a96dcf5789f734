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

// PreemptOf and StartOf are the inputs that carry a plan out.
func PreemptOf(p *sched.Preempt) *Preempt {
	return &Preempt{Job: p.Job, For: p.For, Partition: p.Partition, Room: p.Starts, Nodes: p.Nodes}
}

// StartOf is the input of a start.
func StartOf(s *sched.Start) *Start {
	in := &Start{Job: s.Job, Task: s.Task, Alloc: s.Alloc, Limit: s.TimeLimit, Aside: s.Suspends}
	for i := range s.Rest {
		in.Rest = append(in.Rest, *StartOf(&s.Rest[i]))
	}
	return in
}

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

// checkpoint notes that a job has saved its work.
func (in *UpdateJob) checkpoint(s *State, next *core.Job) error {
	if in.Checkpoint == nil {
		return nil
	}
	at := *in.Checkpoint
	if next.State != core.Running && next.State != core.Suspended {
		return core.Errorf(core.Conflict, "job %d %s and has no work to save", next.ID,
			next.State.Phrase()).Because("job_state")
	}
	if at == 0 {
		at = s.rec.Now()
	}
	if at < next.Start || at > s.rec.Now() {
		return core.Errorf(core.Invalid, "checkpoint: the time must be between the start of the job and now").Because(
			"checkpoint")
	}
	next.Checkpoint = at
	return nil
}
