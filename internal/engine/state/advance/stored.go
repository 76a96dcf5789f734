package advance

import (
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// Stored returns why a reservation read from the store cannot be used, or "". It repeats the checks of admission that
// do not depend on the time, the nodes or the people there are.
func Stored(r *core.AdvanceReservation) string {
	if err := speccheck.Reservation(r); err != nil {
		return err.Error()
	}
	switch {
	case r.NodeCount < 0 || r.CoreCount < 0:
		return "counts must not be negative"
	case r.Created < 0 || r.Created > speccheck.MaxMoment || r.IdleSince < 0 || r.IdleSince > speccheck.MaxMoment:
		return "created and idle_since must be times"
	}
	for _, l := range r.Licenses {
		if l.Total <= 0 {
			return "licenses: " + l.Name + " must be positive"
		}
	}
	if err := checkRecurrence(r); err != nil {
		return err.Error()
	}
	if err := r.Features.Fault(); err != nil {
		return "features: " + err.Error()
	}
	if r.Nodes != "" {
		if _, err := hostlist.Expand(r.Nodes, hostlist.MaxRequest); err != nil {
			return "nodes: " + err.Error()
		}
	}
	return ""
}

// Placeholder takes the place of a stored reservation that cannot be used: it has its name and number, reserves
// nothing and never begins. An administrator sees it, and can update or delete it; what is stored stays until then.
func Placeholder(r *core.AdvanceReservation, why string) *core.AdvanceReservation {
	const most = 1000 // bytes of the comment
	comment := "the stored record cannot be used; update or delete this reservation: " + why
	return &core.AdvanceReservation{
		Name: r.Name, ID: max(0, r.ID), Start: speccheck.MaxMoment - core.Time(time.Second/time.Microsecond),
		End: speccheck.MaxMoment, Flags: core.ReserveAnyNodes, Comment: comment[:min(len(comment), most)],
	}
}

// checkRecurrence checks the times of a reservation by themselves and against the interval at which it recurs.
func checkRecurrence(r *core.AdvanceReservation) error {
	again := r.Flags & core.ReserveRepeats
	length := r.End.Sub(r.Start)
	switch {
	case r.End <= r.Start:
		return errTimes("reservation %s would end before it starts", r.Name)
	case again&(again-1) != 0:
		return errTimes("reservation %s would recur in two ways: %s", r.Name, again)
	case again == core.ReserveHourly && length > time.Hour, again == core.ReserveWeekly && length > 7*24*time.Hour,
		again&(core.ReserveDaily|core.ReserveWeekday|core.ReserveWeekend) != 0 && length > 24*time.Hour:
		return errTimes("reservation %s lasts longer than the interval at which it recurs (%s)", r.Name, again)
	case again != 0 && r.Flags&core.ReserveTimeFloat != 0:
		return errTimes("reservation %s cannot both float and recur", r.Name)
	}
	return nil
}

func errTimes(format string, args ...any) error {
	return core.Errorf(core.Invalid, format, args...).Because("invalid_time_value")
}
