package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

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
