package advance

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// maxStartInPast is how far in the past a reservation may begin: clocks and hands are slow.
const maxStartInPast = core.Time(60 * 1e6)

// complete checks a reservation and chooses what it leaves open. old is the one it replaces, or nil.
func (a *Reservations) complete(r, old *core.AdvanceReservation) error {
	if !named.IsValid(r.Name) {
		return core.Errorf(core.Invalid, "%q is not a valid reservation name", r.Name).Because("invalid_name")
	}
	if err := cmp.Or(a.checkTimes(r, old), speccheck.Reservation(r), a.checkAccess(r),
		a.checkLicenses(r)); err != nil {
		return err
	}
	chosen, err := a.chooseNodes(r)
	if err != nil {
		return err
	}
	if o := a.findCollision(r); o != nil {
		return core.Errorf(core.Conflict, "reservation %s overlaps with %s on %s; the flag overlap allows that", r.Name,
			o.Name, a.commonNodes(r, o)).Because("reservation_overlap")
	}
	if chosen || r.Flags&core.ReserveIgnoreJobs != 0 || old != nil && r.Nodes == old.Nodes && r.Start >= old.Start {
		return nil
	}
	for _, n := range a.nodesOf(r) {
		if id, until := a.busyUntil(n.Name); until > r.Start {
			return core.Errorf(core.Conflict,
				"node %s is in use by job %d past %s; the flag ignore_jobs allows that",
				n.Name, id, timeText(r.Start)).Because("nodes_busy")
		}
	}
	return nil
}

func timeText(t core.Time) string { return t.Go().UTC().Format("2006-01-02T15:04:05Z") }

func (a *Reservations) checkTimes(r, old *core.AdvanceReservation) error {
	again := r.Flags & core.ReserveRepeats
	switch {
	case r.End <= r.Start:
		return checkRecurrence(r)
	case (old == nil || old.Start != r.Start) && r.Start < a.rec.Now()-maxStartInPast &&
		(again == 0 || r.Flags&core.ReserveForceStart == 0):
		return errTimes("reservation %s would start in the past, at %s", r.Name, timeText(r.Start))
	case r.End <= a.rec.Now() && again == 0:
		return errTimes("reservation %s would already have ended at %s", r.Name, timeText(r.End))
	case r.PurgeComp < 0 || r.MaxDelay < 0:
		return errTimes("times must not be negative")
	}
	return checkRecurrence(r)
}

// checkAccess looks at whom a reservation is for: somebody, all of them known, and wanted or not wanted but
// not both.
func (a *Reservations) checkAccess(r *core.AdvanceReservation) error {
	if len(r.Users)+len(r.Projects)+len(r.Groups) == 0 {
		return core.Errorf(core.Invalid, "reservation %s is for nobody: give users, projects or groups",
			r.Name).Because("reservation_empty")
	}
	for _, u := range r.Users {
		name := core.UserName(strings.TrimPrefix(string(u), "-"))
		if _, ok := a.rec.User(name); !ok {
			return core.Errorf(core.Invalid, "there is no user %q%s", name,
				named.Hint(name, a.people.UsersByName())).Because("invalid_user")
		}
	}
	for _, x := range r.Projects {
		name := core.ProjectName(strings.TrimPrefix(string(x), "-"))
		if _, ok := a.rec.Project(name); !ok {
			return core.Errorf(core.Invalid, "there is no project %q%s", name,
				named.Hint(name, a.people.ProjectsByName())).Because("invalid_account")
		}
	}
	if mixesNegated(r.Users) || mixesNegated(r.Projects) {
		return core.Errorf(core.Invalid,
			"reservation %s: a list must name either those allowed or, with -, those not allowed",
			r.Name).Because("invalid_user")
	}
	return nil
}

func mixesNegated[N ~string](list []N) bool {
	not := func(n N) bool { return strings.HasPrefix(string(n), "-") }
	return slices.ContainsFunc(list, not) && slices.ContainsFunc(list, func(n N) bool { return !not(n) })
}

func (a *Reservations) checkLicenses(r *core.AdvanceReservation) error {
	for _, l := range r.Licenses {
		i := slices.IndexFunc(a.cfg.Licenses, func(o core.License) bool { return o.Name == l.Name })
		if i < 0 {
			return core.Errorf(core.Invalid, "there is no license %q", l.Name).Because("invalid_license")
		}
		left := a.cfg.Licenses[i].Total
		for _, o := range a.rec.ReservationsByName() {
			if o.Name == r.Name || !r.Meets(o, a.rec.Now(), a.cfg.Zone.Location) {
				continue
			}
			for _, has := range o.Licenses {
				if has.Name == l.Name {
					left -= has.Total
				}
			}
		}
		if l.Total <= 0 || l.Total > left {
			return core.Errorf(core.Conflict, "%d of license %s: other reservations leave %d", l.Total, l.Name,
				left).Because("invalid_license")
		}
	}
	r.Licenses = slices.SortedFunc(slices.Values(r.Licenses),
		func(x, y core.License) int { return cmp.Compare(x.Name, y.Name) })
	return nil
}
