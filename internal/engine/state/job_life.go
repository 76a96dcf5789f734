package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
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

// apply takes the report of a step's end. It may come twice, late, or for an attempt that is long over.
func (in *Exited) apply(s *State) (None, error) {
	j, ok := s.rec.Job(in.Job)
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil || !jobs.HoldsNode(j, in.Node) {
		return none, nil // over and recorded, or never ours: the agent may forget it
	}
	clean := in.JobDone
	report := (*jobs.ExitReport)(in)
	if in.Cause == jobs.CauseUnkillable {
		s.nodes.Drain(in.Node, "Kill task failed")
		clean = true // what is left is the administrator's; the node takes nothing new until then
	}
	prologFailed := func() {
		if in.Cause == jobs.CauseProlog {
			s.nodes.Drain(in.Node, "Prolog error")
		}
	}
	edit := s.jobs.Edit(j)
	next := edit.Job
	switch in.Step {
	case "batch":
		if j.Usage == (core.Usage{}) && j.Exit == (core.Exit{}) {
			next.Exit, next.Usage, next.Image = in.Exit, in.Usage, in.Image
		}
		if !jobs.IsOver(j) {
			prologFailed()
			edit.BatchExited(report)
		}
	case "extern":
		if !jobs.IsOver(j) {
			prologFailed()
			edit.ContainerExited(report)
		}
	default:
		s.jobs.StepExited(j, report)
		if !jobs.IsOver(j) {
			prologFailed()
			edit.StepExited(report)
			runlife.Disconnected(next, s.rec.LiveSteps(j.ID), s.rec.Now())
		}
	}
	if clean && jobs.IsOver(next) { // a job that goes on is not done, whatever a step's end says
		edit.NodeClean(in.Node)
		return none, nil
	}
	edit.CommitIfChanged(j)
	return none, nil
}

// endRunOf closes the run of a job that has ended.
func (s *State) endRunOf(j *core.Job) {
	if j.Spec.Run == "" {
		return
	}
	if r, ok := s.rec.Run(j.Spec.Project, j.Spec.Run); ok && slices.Contains(r.Jobs, j.ID) {
		done := *r
		done.Ended = s.rec.Now()
		s.rec.PutRun(&done)
	}
}

// apply takes an agent's word that a node is clean of a job.
func (in *NodeDone) apply(s *State) (None, error) {
	j, ok := s.rec.Job(in.Job)
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil {
		return none, nil
	}
	if !jobs.IsOver(j) || !jobs.HoldsNode(j, in.Node) {
		return none, nil // a job that goes on is not done, whatever a late message says
	}
	edit := s.jobs.Edit(j)
	edit.NodeClean(in.Node)
	return none, nil
}

// apply ends an interactive job that its creator gives back.
func (in *AllocDone) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if err := s.rec.AuthorizeJob(in.By, j); err != nil {
		return none, err
	}
	if j.Spec.Kind != core.Interactive {
		return none, core.Errorf(core.Invalid, "job %d is a batch job; it ends with its script", j.ID)
	}
	if j.State.Final() {
		return none, nil
	}
	edit := s.jobs.Edit(j)
	next := edit.Job
	next.Exit = in.Exit
	st := core.Completed
	why := core.ReasonNone
	switch in.Exit {
	case core.Exit{}:
	case core.ExitOOM:
		st, why = core.OutOfMemory, core.ReasonOutOfMemory
	default:
		st, why = core.Failed, core.ReasonNonZeroExit
	}
	if j.State == core.Pending {
		st = core.Cancelled
	}
	edit.End(st, why, "")
	edit.Commit()
	return none, nil
}

// apply ends interactive jobs whose time is up or that nobody ever used, and jobs that miss their deadline or whose
// minutes have run out, and works priorities out anew when they are due.
func (*Tick) apply(s *State) (None, error) {
	for _, id := range s.deadlines.Due() {
		j, ok := s.rec.Job(id)
		if !ok || !s.deadlines.Has(id) { // another component of its job has taken it along
			continue
		}
		edit := s.jobs.Edit(j)
		if at := jobs.DeadlineOf(j); at != 0 && at <= s.rec.Now() {
			edit.MissDeadline()
			edit.Commit()
			continue
		}
		if at := runlife.Due(j); at != 0 && at <= s.rec.Now() {
			edit.RunExpired()
			continue
		}
		why, message := core.ReasonTimeLimit, ""
		if at := s.deadlines.IdleEnd(j); at != 0 && at <= s.rec.Now() {
			why, message = core.ReasonInactive,
				fmt.Sprintf("no step was started in it within %v; whoever asked for it is gone", s.cfg.InteractiveIdle.Duration())
		}
		if at := s.limits.OwnMinutesEnd(j); at != 0 && at <= s.rec.Now() {
			message = s.limits.OwnMinutesText(id)
		}
		edit.End(core.Timeout, why, message)
		edit.Commit()
	}
	s.limits.EndJobsOutOfMinutes(s.jobs)
	s.reservations.RunTimers()
	s.nodes.RunTimers()
	s.ranking.Run()
	return none, nil
}

// recheck checks again what a start takes beside nodes: licenses, time, and its right to be there.
func (in *Start) recheck(s *State, j *core.Job) error {
	for _, l := range in.Alloc.Licenses() {
		if s.cluster.LicensesUsed[l.Name]+l.Total > s.cluster.LicenseTotals[l.Name] {
			return core.Errorf(core.Conflict, "job %d: licence %s is in use", j.ID, l.Name)
		}
	}
	spec := j.Spec
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
