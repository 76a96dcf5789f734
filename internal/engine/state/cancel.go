package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/jobs"
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
		if in.Abort && j.Flags.Has(core.Completing) && j.Stop != nil && !j.Stop.Abort { // its grace ends now
			next.Stop = in.stop(s.rec.Now())
			next.Stop.As = j.Stop.As
			edit.CommitSilently()
		}
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
