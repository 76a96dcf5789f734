package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

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
	in.drop = nil
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
	if in.ResetAge && next.State == core.Pending {
		next.Released = s.rec.Now()
	}
	if err := in.checkpoint(s, next); err != nil {
		return none, err
	}
	if err := in.updateSpec(s, next); err != nil { // the last that may be refused: it records the spec
		return none, err
	}
	if !tasks.Empty() {
		in.putSplitTasks(s, j, next, tasks)
		return none, nil
	}
	edit := s.jobs.EditRecord(next)
	for _, node := range in.drop {
		edit.DropNode(node, "its job has given node "+string(node)+" back")
	}
	edit.CommitWith(core.JobUpdated, core.Event{By: in.By.User})
	if in.Dependency != nil && next.Needs != nil {
		s.dependencies.EvaluateNew(next.ID, in.Ended)
	}
	return none, nil
}

// authorizeUpdate refuses changes of somebody else's job. A manager of its project may hold it, release it and let
// others go first, as coordinators in Slurm; all else would be written into a job that runs as its owner.
func (in *UpdateJob) authorizeUpdate(s *State, j *core.Job) error {
	if err := s.rec.AuthorizeJob(in.By, j); err != nil || in.By.Admin || in.By.User == j.Spec.User {
		return err
	}
	if in.TimeLimit == nil && in.Name == nil && in.Partition == nil && in.QOS == nil && in.Site == nil && in.Run == nil &&
		in.Inactivity == nil && in.Comment == nil &&
		in.Dependency == nil && in.Checkpoint == nil && !in.Wish.Any() && !in.Spec.Any() {
		return nil
	}
	return core.Errorf(core.Denied,
		"job %d belongs to %s: a manager of project %s may stop, hold, release and requeue it and lower its priority, "+
			"but not change what it asks for or where it writes", j.ID, j.Spec.User, j.Spec.Project).Because("access_denied")
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
	next.Flags &^= core.HeldUser | core.HeldAdmin | core.HeldRequeues | core.SpecialExit
	next.Reason, next.Message = depend.Reason(next), ""
	if next.Priority == 0 {
		next.Released = s.rec.Now()
		next.Flags &^= core.FixedPriority
		next.Priority = s.ranking.PriorityOf(next, next.Spec)
	}
	return nil
}

// updateSpec replaces the spec when a part of it changes. Tasks that share the old one keep it.
func (in *UpdateJob) updateSpec(s *State, next *core.Job) error {
	if in.TimeLimit == nil && in.Nice == nil && in.Name == nil && in.Partition == nil && in.Comment == nil &&
		in.Dependency == nil &&
		in.QOS == nil && in.Site == nil && in.Run == nil && in.Inactivity == nil && !in.Wish.Any() && !in.Spec.Any() {
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
	if err := s.counts.AdmitTexts(in.By, next, &spec); err != nil {
		return err
	}
	if c := spec.More().Container; c != nil && !c.Bounded &&
		(!spec.Partition.Equal(next.Spec.Partition) || spec.Project != next.Spec.Project) { // its rights may have been theirs
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
	if in.Site == nil && in.Run == nil && in.Inactivity == nil {
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
	if in.Inactivity != nil {
		s.updateInactivity(*in.Inactivity, next, &x)
	}
	spec.Extra = &x
	return nil
}

// updateConditions changes what a pending job asks for beside nodes.
func (in *UpdateJob) updateConditions(s *State, next *core.Job, spec *core.Spec) error {
	if !in.Wish.Any() {
		return nil
	}
	if next.State != core.Pending {
		return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
	}
	x := *spec.More()
	speccheck.SetIf(&x.Reservation, in.Wish.Reservation)
	speccheck.SetIf(&x.Licenses, in.Wish.Licenses)
	speccheck.SetIf(&x.Deadline, in.Wish.Deadline)
	speccheck.SetIf(&x.TimeMin, in.Wish.TimeMin)
	spec.Extra = &x
	if in.Wish.Begin != nil {
		spec.Begin = *in.Wish.Begin
		if spec.Begin < 0 || spec.Begin > speccheck.MaxMoment {
			return speccheck.Invalid("begin", "%d is not between 0 and %d", spec.Begin, int64(speccheck.MaxMoment))
		}
		// one that waits for others hears of it when they are done
		if next.Needs == nil && max(spec.Begin, next.Eligible) > s.rec.Now() {
			next.Eligible = max(s.rec.Now(), spec.Begin)
		}
	}
	if err := speccheck.Spec(spec); err != nil {
		return err
	}
	if err := s.admission.ReservationsAndLicenses(&admit.Request{By: in.By, Groups: in.Groups}, spec); err != nil {
		return err
	}
	return s.admission.Deadline(spec)
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
