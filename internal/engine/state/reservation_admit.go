package state

import (
	"cmp"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched/advance"
)

// recheckStart checks again what a start takes beside nodes: licenses, time, and its right to be there.
func (s *State) recheckStart(j *core.Job, in *Start) error {
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
