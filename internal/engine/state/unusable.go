package state

import (
	"cmp"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/advance"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// UnusableRecord is a record that was read from the store and that admission would not have let in: written by a build
// without today's checks, or by somebody else. Its job is not planned; one that waits is held until it is canceled. An
// advance reservation reserves nothing until an administrator updates or deletes it.
type UnusableRecord struct {
	Job         core.JobID // 0: it is a reservation
	Reservation string
	Why         string
}

// unusableHeld begins the message of a job that is held because of its record.
const unusableHeld = "its stored record cannot be used, and it is held until it is cancelled: "

// PlannerFailed says that the planner failed and begins again with all there is, and on which job it failed again and
// again, if that is known: that one is held. Reply: nil.
type PlannerFailed struct {
	Job core.JobID
	Why string
}

func (*PlannerFailed) input() {}

// plannerHeld begins the message of a job that the planner cannot deal with.
const plannerHeld = "the scheduler fails on it, and it is held; `scontrol release` by an administrator tries again: "

func (in *PlannerFailed) apply(s *State) (None, error) {
	if j, ok := s.rec.Job(in.Job); ok && j.State == core.Pending && !j.Flags.Has(core.HeldAdmin) {
		edit := s.jobs.Edit(j)
		next := edit.Job
		next.Flags |= core.HeldAdmin
		next.Reason, next.Message, next.Priority, next.Room = core.ReasonHeldAdmin, plannerHeld+in.Why, 0, nil
		edit.CommitWith(core.JobUpdated, core.Event{})
	}
	s.resendAll()
	return none, nil
}

// unusableRecords are the jobs and reservations whose stored record cannot be used, and why.
type unusableRecords struct {
	jobs         map[core.JobID]string
	reservations map[string]string
}

// usable gives the record to begin with: the one there is, or one that can do no harm in its place. What is
// stored stays as it is until the job changes.
func (u *unusableRecords) usable(j *core.Job) *core.Job {
	why := speccheck.Stored(j)
	if why == "" {
		return j
	}
	if u.jobs == nil {
		u.jobs = map[core.JobID]string{}
	}
	u.jobs[j.ID] = why
	next := *j
	next.Spec = speccheck.PlaceholderSpec(j.Spec)
	next.Needs, next.Room, next.Attempt, next.Steps = nil, nil, max(0, j.Attempt), max(0, j.Steps)
	if a := next.Array; a != nil && (a.Base <= 0 || !next.IsArray() && a.Task < 0) {
		next.Array = nil
	}
	if j.State > core.OutOfMemory || j.Alloc == nil && (j.State == core.Running || j.State == core.Suspended) {
		next.State = core.Pending
	}
	next.Alloc = speccheck.PlaceholderAlloc(j.Alloc)
	if next.State == core.Pending {
		next.Alloc = nil
		next.Flags |= core.HeldAdmin
		next.Reason, next.Message, next.Priority = core.ReasonHeldAdmin, unusableHeld+why, 0
	}
	return &next
}

// usableReservation returns the reservation to begin with: the stored one, or a placeholder.
func (u *unusableRecords) usableReservation(r *core.AdvanceReservation) *core.AdvanceReservation {
	why := advance.Stored(r)
	if why == "" {
		return r
	}
	if u.reservations == nil {
		u.reservations = map[string]string{}
	}
	u.reservations[r.Name] = why
	return advance.Placeholder(r, why)
}

// check refuses changes of a job whose record is not: it can only be canceled.
func (u *unusableRecords) check(j *core.Job) error {
	if why := u.jobs[j.ID]; why != "" {
		return core.Errorf(core.Conflict, "job %d: the stored record cannot be used (%s); it can only be cancelled", j.ID,
			why).Because("job_state")
	}
	return nil
}

// UnusableRecords lists the records that could not be used as they were: jobs by number, then reservations by name.
func (s *State) UnusableRecords() []UnusableRecord {
	out := make([]UnusableRecord, 0, len(s.unusable.jobs)+len(s.unusable.reservations))
	for id, why := range s.unusable.jobs {
		out = append(out, UnusableRecord{Job: id, Why: why})
	}
	slices.SortFunc(out, func(a, b UnusableRecord) int { return cmp.Compare(a.Job, b.Job) })
	for _, name := range slices.Sorted(maps.Keys(s.unusable.reservations)) {
		out = append(out, UnusableRecord{Reservation: name, Why: s.unusable.reservations[name]})
	}
	return out
}
