package state

import (
	"cmp"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/runlife"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/advance"
)

// apply applies one placement of a plan, after checking it again: the plan was made beside us and the world moved on.
func (in *Start) apply(s *State) (*Started, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return nil, err
	}
	if ref := j.Spec.More().Het; ref != nil {
		if err := in.checkHet(s, ref); err != nil {
			return nil, err
		}
	}
	first, err := in.start(s)
	for i := range in.Rest {
		_, failed := in.Rest[i].start(s)
		core.Assert(failed == nil, "component %d could start beside the others, and could not after them: %v",
			in.Rest[i].Job, failed)
	}
	return first, err
}

func (in *Start) start(s *State) (*Started, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return nil, err
	}
	if j.State != core.Pending || sched.IsBlocked(j) || j.Eligible > s.rec.Now() {
		return nil, core.Errorf(core.Conflict, "job %d does not wait to start", j.ID)
	}
	if s.cluster.Partitions[in.Alloc.Partition] == nil {
		return nil, core.Errorf(core.Conflict, "partition %s no longer exists", in.Alloc.Partition)
	}
	if j.IsArray() && !j.Array.Tasks.Contains(int(in.Task)) {
		return nil, core.Errorf(core.Conflict, "task %d of array %d does not wait", in.Task, j.ID)
	}
	if j.Array != nil && j.Spec.Throttle > 0 && s.cluster.RunningTasks(j.Array.Base) >= int(j.Spec.Throttle) {
		return nil, core.Errorf(core.Conflict, "as many tasks of array %d run as its limit allows", j.Array.Base)
	}
	if err := s.limits.CheckStart(j, in.Alloc); err != nil {
		return nil, err
	}
	if err := in.recheck(s, j); err != nil {
		return nil, err
	}
	run := *j
	if j.IsArray() && j.Array.Tasks.Len() > 1 { // the last task takes the array's own id
		run.ID = s.rec.NextJob()
	}
	lenders, err := s.preemption.LendersFor(j, in.Alloc.Partition, in.Aside, run.ID)
	if err != nil {
		return nil, err
	}
	if !s.preemption.FreeWith(j, in.Alloc, lenders) {
		return nil, core.Errorf(core.Conflict, "job %d: what the plan gives it is not free", j.ID)
	}
	if j.IsArray() {
		run.Array = &core.ArrayRef{
			Base: j.Array.Base, Task: in.Task, Count: j.Array.Count, Min: j.Array.Min,
			Max: j.Array.Max, Step: j.Array.Step,
		}
		if run.ID != j.ID {
			rest := *j
			ref := *j.Array
			ref.Tasks = ref.Tasks.Remove(int(in.Task))
			rest.Array = &ref
			if rest.Room != nil {
				room := *rest.Room
				if rest.Room = &room; room.Starts <= 1 {
					rest.Room = nil
				}
				room.Starts--
			}
			edit := s.jobs.EditRecord(&rest)
			edit.CommitSilently() // the start of the task tells
			s.rec.TakeJobID()
		}
	}
	edit := s.jobs.EditRecord(&run)
	if in.Limit != 0 {
		edit.ShortenTimeLimit(in.Limit)
	}
	run.Room, run.Checkpoint = nil, 0
	s.preemption.SuspendLenders(lenders)
	run.State, run.Start, run.Alloc, run.Reason, run.Message = core.Running, s.rec.Now(), in.Alloc, "", ""
	run.Attempt++
	runlife.Started(&run)
	edit.CommitWith(core.JobStarted, core.Event{Data: s.rec.EventData(live.StartedData, &run)})
	return &Started{ID: run.ID}, nil
}

// recheck checks again what a start takes beside nodes: licenses, time, and its right to be there.
func (in *Start) recheck(s *State, j *core.Job) error {
	for _, l := range in.Alloc.Licenses() {
		if v := storage.OfLicense(l.Name); v != "" {
			if s.cluster.LicensesUsed[l.Name] > 0 {
				return core.Errorf(core.Conflict, "job %d: another job has volume %s", j.ID, v)
			}
			continue
		}
		if s.cluster.LicensesUsed[l.Name]+l.Total > s.cluster.LicenseTotals[l.Name] {
			return core.Errorf(core.Conflict, "job %d: license %s is in use", j.ID, l.Name)
		}
	}
	spec := j.Spec
	for i := range in.Alloc.Nodes {
		n, ok := s.rec.Node(in.Alloc.Nodes[i].Node)
		if ok && n.Project != "" && n.Project != spec.Project {
			return core.Errorf(core.Conflict, "job %d: node %s runs jobs of project %s only", j.ID, n.Name, n.Project)
		}
	}
	if x := spec.Extra; x != nil && x.Deadline != 0 { // time has gone on since the plan was made
		if s.rec.Now() > jobs.LatestStart(spec) {
			return core.Errorf(core.Conflict, "job %d would not end before its deadline", j.ID)
		}
		if left := core.Seconds(x.Deadline.Sub(s.rec.Now()) / time.Second); left < cmp.Or(in.Limit, spec.TimeLimit) {
			in.Limit = left
		}
	}
	if in.Limit != 0 {
		if in.Limit < max(1, spec.More().TimeMin) || in.Limit > spec.TimeLimit {
			return core.Errorf(core.Conflict, "job %d is not to run for %v", j.ID, in.Limit.Duration())
		}
		cut := *spec
		cut.TimeLimit = in.Limit
		spec = &cut
	}
	if len(s.rec.ReservationsByName()) == 0 && in.Alloc.Inside() == "" {
		return nil
	}
	why := advance.Conflict(s.rec.Reservations(), spec, in.Alloc, s.rec.Now(), s.cluster.Expand, s.cfg.Zone.Location)
	if why != "" {
		return core.Errorf(core.Conflict, "job %d: %s", j.ID, why)
	}
	return nil
}

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
