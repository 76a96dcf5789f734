package state

import (
	"maps"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// apply sends a job that runs back to the queue; its attempt is ended first.
func (in *Requeue) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil && in.Ended != nil && in.Ended.ID == in.Job {
		return none, in.revive(s)
	}
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
	edit.MarkRequeue(in.By.User, false, "")
	in.setHold(edit.Job)
	edit.Commit()
	return none, nil
}

// setHold marks a job as held when it comes back.
func (in *Requeue) setHold(next *core.Job) {
	if !in.Hold {
		return
	}
	if in.By.Admin && in.By.User != next.Spec.User {
		next.Flags |= core.HeldAdmin
	} else {
		next.Flags |= core.HeldUser
	}
	if in.Reason != "" {
		next.Reason = in.Reason
	}
	if in.Special {
		next.Flags |= core.SpecialExit
	}
}

// revive puts a job that has ended back into the queue, if it would be let in today. What it waited for once is not
// waited for again.
func (in *Requeue) revive(s *State) error {
	j := in.Ended
	if err := s.rec.AuthorizeJob(in.By, j); err != nil {
		return err
	}
	switch {
	case !j.State.Final() || j.Spec.Kind != core.Batch || j.Spec.Run != "" || j.Spec.More().Het != nil || j.IsArray():
		return core.Errorf(core.Conflict, "job %d has ended and cannot be requeued", j.ID).Because("job_finished")
	case !j.Spec.Requeue:
		return core.Errorf(core.Denied, "job %d was submitted with --no-requeue", j.ID).Because("no_requeue")
	}
	next := jobs.Clone(j)
	next.Needs = nil
	if err := in.readmit(s, next); err != nil {
		return err
	}
	if s.revived.isStale(j) {
		return core.Errorf(core.Conflict, "job %d was requeued meanwhile", j.ID).Because("job_finished")
	}
	s.revived.note(j, s.rec.Now())
	edit := s.jobs.EditRecord(next)
	in.setHold(next)
	edit.RequeueEnded()
	return nil
}

// revivals are the ended jobs that were requeued lately. The record of an ended job comes with the command, read from
// the store before: one that was requeued by another command since, and has run and ended again, must not come back as
// it was before that.
type revivals map[core.JobID]revival

type revival struct {
	attempt int32
	ended   core.Time // the end of the attempt, which was taken back
	at      core.Time
}

// revivalMemory is for longer than a command may be on its way with the record of an ended job.
const revivalMemory = time.Hour

// isStale reports whether the record of an ended job is from before its last revival.
func (r revivals) isStale(j *core.Job) bool {
	last, ok := r[j.ID]
	return ok && (j.Attempt < last.attempt || j.Attempt == last.attempt && j.End <= last.ended)
}

// note remembers that an ended job is requeued now.
func (r *revivals) note(j *core.Job, now core.Time) {
	if *r == nil {
		*r = revivals{}
	}
	// At powers of two: whoever requeues very many within the hour does not have all looked at for each.
	if n := len(*r); n >= 1024 && n&(n-1) == 0 {
		maps.DeleteFunc(*r, func(_ core.JobID, v revival) bool { return now.Sub(v.at) > revivalMemory })
	}
	(*r)[j.ID] = revival{j.Attempt, j.End, now}
}

// readmit refuses an ended job whose record is unsound, whose user, project, QOS or partition is gone, or that is one
// too many: it counted for nothing since its end.
func (in *Requeue) readmit(s *State, j *core.Job) error {
	if why := speccheck.Stored(j); why != "" {
		return core.Errorf(core.Conflict, "job %d: the stored record cannot be used (%s)", j.ID, why).Because("job_state")
	}
	if err := s.admission.Readmit(&admit.Request{By: in.By}, j.Spec); err != nil {
		return err
	}
	one := jobs.Clone(j)
	one.Array = nil // a task that comes back is a job of its own
	if err := s.counts.Admit(in.By, one, nil); err != nil {
		return err
	}
	return s.limits.Admit(j)
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
