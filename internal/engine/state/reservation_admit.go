package state

import (
	"cmp"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/advance"
)

// admitReservationsAndLicenses checks the reservations and licenses a job asks for.
func (s *State) admitReservationsAndLicenses(in *Submit, spec *core.Spec) error {
	x := spec.Extra
	if x == nil {
		return nil
	}
	if x.Reservation != "" {
		for name := range strings.SplitSeq(x.Reservation, ",") {
			r, ok := s.rec.ReservationsByName()[name]
			if !ok || r.Flags&core.ReserveTimeFloat != 0 {
				return core.Errorf(core.Invalid, "there is no reservation %q that jobs can run in",
					name).Because("invalid_reservation")
			}
			if !s.reservations.MayUse(r, in.Groups, spec) {
				return core.Errorf(core.Denied, "reservation %s is not for %s in project %s", name, spec.User,
					spec.Project).Because("reservation_access")
			}
		}
	}
	if x.Licenses != "" {
		return s.admitLicenses(x.Licenses)
	}
	return nil
}

// admitLicenses refuses what can never be given: names that are not known, and more than there is.
func (s *State) admitLicenses(text string) error {
	list, any, err := grammar.ParseLicenses(text)
	if err != nil {
		return core.Errorf(core.Invalid, "%v", err).Because("invalid_license")
	}
	possible := false
	for _, l := range list {
		total, ok := s.cluster.LicenseTotals[l.Name]
		switch {
		case !ok:
			return core.Errorf(core.Invalid, "there is no license %q", l.Name).Because("invalid_license")
		case l.Count <= total:
			possible = true
		case !any:
			return core.Errorf(core.Invalid, "the job requests %d of license %s; there are %d", l.Count, l.Name,
				total).Because("invalid_license")
		}
	}
	if !possible {
		return core.Errorf(core.Invalid, "there are not enough licenses for any of %q", text).Because("invalid_license")
	}
	return nil
}

// admitDeadline checks the shortest time and the deadline of a job, once its limit is known.
func (s *State) admitDeadline(spec *core.Spec) error {
	x := spec.Extra
	if x == nil || x.TimeMin == 0 && x.Deadline == 0 {
		return nil
	}
	if x.TimeMin < 0 || x.TimeMin > spec.TimeLimit {
		return core.Errorf(core.Invalid, "time_min: %v exceeds the time limit %v", x.TimeMin.Duration(),
			spec.TimeLimit.Duration()).Because("time_limit")
	}
	if x.Deadline != 0 && jobs.LatestStart(spec) < max(s.rec.Now(), spec.Begin) {
		return core.Errorf(core.Invalid, "deadline: the job could not end before %s",
			x.Deadline.Go().UTC().Format("2006-01-02T15:04:05Z")).Because("time_limit")
	}
	return nil
}

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
func (s *State) updateConditions(in *UpdateJob, next *core.Job, spec *core.Spec) error {
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
	if err := s.admitReservationsAndLicenses(&Submit{By: in.By, Groups: in.Groups}, spec); err != nil {
		return err
	}
	return s.admitDeadline(spec)
}
