package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// apply ends a job, an array, or some tasks of it. What waits ends at once; what runs is marked and the hub sees to
// it.
func (in *Cancel) apply(s *State) (None, error) {
	j, live := s.rec.Job(in.Job)
	started := s.cluster.Tasks(in.Job)
	if !live && len(started) == 0 {
		return none, core.Errorf(core.NotFound, "there is no live job %d", in.Job).Because("invalid_job_id")
	}
	if !in.Tasks.Empty() {
		return none, in.cancelTasks(s, j, started)
	}
	if live {
		if ref := j.Spec.More().Het; ref != nil && ref.Offset > 0 && j.State == core.Pending {
			return none, jobs.ErrHetComponent(j, ref, "cancelled")
		}
	}
	// An array's id stands for its record and every started task; a task's own id for itself.
	targets := []core.JobID{}
	if live {
		targets = append(targets, in.Job)
	}
	if !live || j.Array != nil && j.Array.Base == in.Job {
		for _, id := range started {
			if id != in.Job {
				targets = append(targets, id)
			}
		}
	}
	return none, in.cancelAll(s, targets)
}

func (in *Cancel) cancelTasks(s *State, j *core.Job, started map[int32]core.JobID) error {
	var targets []core.JobID
	var waiting taskset.Set
	for t, id := range started { // those that are over by now are left out: a range often names some
		if in.Tasks.Contains(int(t)) {
			targets = append(targets, id)
		}
	}
	if j != nil && j.IsArray() {
		waiting = j.Array.Tasks.Intersect(in.Tasks)
	}
	if len(targets)+waiting.Len() == 0 {
		return core.Errorf(core.NotFound, "there is no such live task of array %d", in.Job).Because("invalid_job_id")
	}
	if err := in.authorizeAll(s, targets); err != nil {
		return err
	}
	if !waiting.Empty() {
		if err := s.rec.AuthorizeJob(in.By, j); err != nil {
			return err
		}
		if containsState(in.States, core.Pending) {
			in.cancelPendingTasks(s, j, waiting)
		}
	}
	return in.cancelAll(s, targets)
}

// cancelPendingTasks splits tasks that have not started off an array, as one record that has ended.
func (in *Cancel) cancelPendingTasks(s *State, j *core.Job, gone taskset.Set) {
	rest := j.Array.Tasks.Minus(gone)
	ended := s.jobs.Edit(j)
	if rest.Len() > 0 {
		left := s.jobs.Edit(j)
		ref := *j.Array
		ref.Tasks = rest
		left.Job.Array = &ref
		left.CommitSilently()
		ended.Job.ID = s.rec.TakeJobID()
	}
	ref := *j.Array
	ref.Tasks = gone
	if gone.Len() == 1 {
		ref.Task = int32(gone.Min())
	}
	ended.Job.Array = &ref
	ended.CancelPending(in.stop(s.rec.Now()))
}

// stop is the wish in the record of a job that it ends.
func (in *Cancel) stop(now core.Time) *core.Stop {
	st := &core.Stop{By: in.By.User, UID: in.By.UID, At: now, As: core.Cancelled}
	if in.Abort {
		st.Abort, st.Grace = true, -1
	}
	return st
}

func (in *Cancel) cancelAll(s *State, ids []core.JobID) error {
	slices.Sort(ids)
	if err := in.authorizeAll(s, ids); err != nil {
		return err
	}
	for _, id := range ids {
		j, ok := s.rec.Job(id)
		if !ok || !containsState(in.States, j.State) {
			continue
		}
		in.cancelOne(s, j)
	}
	return nil
}

func containsState(list []core.JobState, st core.JobState) bool {
	return list == nil || slices.Contains(list, st)
}

func (in *Cancel) cancelOne(s *State, j *core.Job) {
	edit := s.jobs.Edit(j)
	next := edit.Job
	switch {
	case j.State.Final() && !j.Flags.Has(core.Requeueing):
		return
	case j.Flags.Has(core.Requeueing): // on its way back: it ends instead
		next.Flags &^= core.Requeueing | core.RequeueHold
		next.Stop = in.stop(s.rec.Now())
		edit.End(core.Cancelled, "", "")
		edit.Commit()
	case j.State == core.Pending:
		edit.CancelPending(in.stop(s.rec.Now()))
	default:
		next.Stop = in.stop(s.rec.Now())
		next.Flags |= core.CancelAsked
		edit.End(core.Cancelled, "", "")
		edit.Commit()
	}
}

// apply changes what may be changed after submission.
func (in *UpdateJob) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if err := in.authorizeUpdate(s, j); err != nil {
		return none, err
	}
	if err := s.unusable.check(j); err != nil {
		return none, err
	}
	if j.State.Final() {
		return none, core.Errorf(core.Conflict, "job %d has ended", j.ID).Because("job_finished")
	}
	if in.Priority != nil && *in.Priority == 0 { // as Slurm: a hold
		hold, yes := *in, true
		hold.Priority, hold.Hold, hold.AdminHold = nil, &yes, in.By.User != j.Spec.User
		in = &hold
	}
	if ref := j.Spec.More().Het; ref != nil && changesAllComponents(in) {
		if ref.Offset > 0 && !in.part {
			return none, jobs.ErrHetComponent(j, ref, "held, released or put in another order")
		}
		if ref.Offset == 0 {
			defer in.updateComponents(s, j, ref)
		}
	}
	next, tasks, err := in.split(s, j)
	if err != nil {
		return none, err
	}
	if err := in.updateHold(s, next); err != nil {
		return none, err
	}
	if in.Priority != nil {
		if !in.By.Admin && *in.Priority > j.Priority {
			return none, core.Errorf(core.Denied, "only an administrator may raise a priority").Because("access_denied")
		}
		next.Priority = *in.Priority
		next.Flags |= core.FixedPriority
	}
	if err := in.updateSpec(s, next); err != nil {
		return none, err
	}
	if err := in.checkpoint(s, next); err != nil {
		return none, err
	}
	if !tasks.Empty() {
		in.putSplitTasks(s, j, next, tasks)
		return none, nil
	}
	edit := s.jobs.EditRecord(next)
	edit.CommitWith(core.JobUpdated, core.Event{By: in.By.User})
	if in.Dependency != nil && next.Needs != nil {
		s.dependencies.EvaluateNew(next.ID, in.Ended)
	}
	return none, nil
}

// updateSpec replaces the spec when a part of it changes. Tasks that share the old one keep it.
func (in *UpdateJob) updateSpec(s *State, next *core.Job) error {
	if in.TimeLimit == nil && in.Nice == nil && in.Name == nil && in.Partition == nil && in.Comment == nil &&
		in.Dependency == nil &&
		in.QOS == nil && in.Site == nil && in.Run == nil && !in.Wish.Any() && !in.Spec.Any() {
		return nil
	}
	spec := *next.Spec
	if in.TimeLimit != nil {
		if next.State != core.Pending && *in.TimeLimit > spec.TimeLimit && !in.By.Admin {
			return core.Errorf(core.Denied, "only an administrator may raise the time limit of a running job").Because(
				"access_denied")
		}
		if *in.TimeLimit <= 0 || *in.TimeLimit > speccheck.MaxSeconds && *in.TimeLimit != core.Forever {
			return core.Errorf(core.Invalid, "the time limit must be more than 0 and at most %d seconds",
				int64(speccheck.MaxSeconds)).Because("time_limit")
		}
		spec.TimeLimit = *in.TimeLimit
	}
	if in.Nice != nil {
		if *in.Nice < spec.Nice && !in.By.Admin {
			return core.Errorf(core.Denied, "only an administrator may lower nice").Because("access_denied")
		}
		spec.Nice = *in.Nice
	}
	if err := in.updateRank(s, next, &spec); err != nil {
		return err
	}
	if in.Name != nil {
		spec.Name = *in.Name
	}
	if in.Comment != nil {
		x := *spec.More()
		x.Comment = *in.Comment
		spec.Extra = &x
	}
	if in.Partition != nil {
		if next.State != core.Pending {
			return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
		}
		spec.Partition = *in.Partition
		if err := s.admission.Shape(&admit.Request{By: in.By, Groups: in.Groups}, &spec); err != nil {
			return err
		}
	}
	if err := in.updateConditions(s, next, &spec); err != nil {
		return err
	}
	if err := in.updateRequest(s, next, &spec); err != nil {
		return err
	}
	if in.Dependency != nil {
		if err := s.dependencies.Update(next, &spec, *in.Dependency, &depend.Lookup{
			User: spec.User, Ended: in.Ended, Seen: in.Seen, Hidden: in.Hidden, Strict: in.Strict,
		}); err != nil {
			return err
		}
	}
	if err := speccheck.Spec(&spec); err != nil {
		return err
	}
	if c := spec.More().Container; c != nil && !c.Bounded &&
		(spec.Partition != next.Spec.Partition || spec.Project != next.Spec.Project) { // its rights may have been theirs
		if err := s.admission.Runtime(in.By, &spec); err != nil {
			return err
		}
	}
	if reranks := in.Nice != nil || in.QOS != nil || in.Site != nil || in.Run != nil || in.Spec.AskChange.Any(); reranks &&
		next.Priority != 0 && in.Priority == nil &&
		(s.cfg.Priority == nil || !next.Flags.Has(core.FixedPriority)) {
		next.Priority = s.ranking.PriorityOf(next, &spec)
	}
	next.Spec = &spec
	next.SpecID = jobs.NextSpecID(next)
	s.rec.AddSpec(next.SpecID, &spec)
	return nil
}

// updateRank changes what a job's priority and its limits go by.
func (in *UpdateJob) updateRank(s *State, next *core.Job, spec *core.Spec) error {
	if in.QOS != nil {
		if next.State != core.Pending {
			return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
		}
		spec.QOS = *in.QOS
		if err := s.admission.QOS(spec); err != nil {
			return err
		}
		if _, err := s.admission.UsablePartitions(&admit.Request{By: in.By, Groups: in.Groups}, spec); err != nil {
			return err
		}
	}
	if in.Site == nil && in.Run == nil {
		return nil
	}
	x := *spec.More()
	if in.Site != nil {
		if err := people.AdminOnly(in.By, "may set a site factor"); err != nil {
			return err
		}
		x.Site = *in.Site
	}
	if in.Run != nil {
		if *in.Run < 0 || *in.Run > 100 {
			return core.Errorf(core.Invalid, "priority: %d must be from 0 to 100", *in.Run).Because("invalid_priority")
		}
		x.RunPriority = *in.Run
	}
	spec.Extra = &x
	return nil
}

func (in *UpdateJob) updateHold(s *State, next *core.Job) error {
	if in.Hold == nil {
		return nil
	}
	if next.State != core.Pending {
		return core.Errorf(core.Conflict, "job %d is not pending", next.ID).Because("job_not_pending")
	}
	if *in.Hold {
		if in.AdminHold && in.By.Admin {
			next.Flags |= core.HeldAdmin
		} else {
			next.Flags |= core.HeldUser
		}
		next.Priority, next.Room = 0, nil
		next.Flags &^= core.FixedPriority
		return nil
	}
	if next.Flags.Has(core.HeldAdmin) && !in.By.Admin {
		return core.Errorf(core.Denied, "an administrator holds job %d", next.ID).Because("access_denied")
	}
	next.Flags &^= core.HeldUser | core.HeldAdmin | core.HeldRequeues
	next.Reason, next.Message = depend.Reason(next), ""
	if next.Priority == 0 {
		next.Released = s.rec.Now()
		next.Flags &^= core.FixedPriority
		next.Priority = s.ranking.PriorityOf(next, next.Spec)
	}
	return nil
}

// apply sends a job that runs back to the queue; its attempt is ended first.
func (in *Requeue) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if err := s.rec.AuthorizeJob(in.By, j); err != nil {
		return none, err
	}
	if err := s.unusable.check(j); err != nil {
		return none, err
	}
	if ref := j.Spec.More().Het; ref != nil && ref.Offset > 0 {
		return none, jobs.ErrHetComponent(j, ref, "requeued")
	}
	if !s.jobs.HetComplete(j) {
		return none, core.Errorf(core.Conflict, "a component of job %d has ended; the job cannot be requeued without it",
			j.ID).Because("job_state")
	}
	if j.State != core.Running && j.State != core.Suspended || j.Spec.Kind != core.Batch {
		return none, core.Errorf(core.Conflict, "job %d %s and cannot be requeued", j.ID,
			j.State.Phrase()).Because("job_pending")
	}
	if !j.Spec.Requeue {
		return none, core.Errorf(core.Denied, "job %d was submitted with --no-requeue", j.ID).Because("no_requeue")
	}
	edit := s.jobs.Edit(j)
	next := edit.Job
	edit.MarkRequeue(in.By.User, false, "")
	if in.Hold && in.By.Admin && in.By.User != j.Spec.User {
		next.Flags |= core.HeldAdmin
	} else if in.Hold {
		next.Flags |= core.HeldUser
	}
	edit.Commit()
	return none, nil
}

func (in *Suspend) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if !in.By.Admin {
		return none, core.Errorf(core.Denied, "only an administrator may suspend jobs").Because("access_denied")
	}
	if j.Flags.Has(core.Requeueing) {
		return none, core.Errorf(core.Conflict, "job %d is being requeued", j.ID).Because("job_state")
	}
	if ref := j.Spec.More().Het; ref != nil {
		if ref.Offset > 0 && !in.part {
			return none, jobs.ErrHetComponent(j, ref, "suspended and resumed")
		}
		defer in.suspendComponents(s, j, ref)
	}
	if in.Resume && j.Parked() {
		return none, core.Errorf(core.Conflict, "job %d resumes when job %d, which uses its CPUs, has ended", j.ID,
			j.Pushed.Lent[0].To).Because("job_state")
	}
	edit := s.jobs.Edit(j)
	next := edit.Job
	switch {
	case !in.Resume && j.State == core.Running:
		next.State, next.Paused = core.Suspended, s.rec.Now()
		next.Flags |= core.Shelved
	case in.Resume && j.State == core.Suspended:
		next.State = core.Running
		next.PausedFor += s.rec.Now().Sub(j.Paused)
		next.Paused = 0
		next.Flags &^= core.Shelved
		if !s.cluster.CanResume(j, next) {
			return none, core.Errorf(core.Conflict, "other jobs use the CPUs of job %d now", j.ID).Because("nodes_busy")
		}
	default:
		return none, core.Errorf(core.Conflict, "job %d %s", j.ID, j.State.Phrase()).Because("job_state")
	}
	edit.CommitWith(core.JobUpdated, core.Event{
		By:   in.By.User,
		Data: append(appendJSON([]byte(`{"state":`), next.State.String()), '}'),
	})
	return none, nil
}

// authorizeAll refuses to cancel jobs of which one is not the caller's to steer.
func (in *Cancel) authorizeAll(s *State, ids []core.JobID) error {
	for _, id := range ids {
		if j, ok := s.rec.Job(id); ok {
			if err := s.rec.AuthorizeJob(in.By, j); err != nil {
				return err
			}
		}
	}
	return nil
}
