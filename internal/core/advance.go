package core

import (
	"strings"
	"time"
)

// After gives the occurrence that follows the one from start to end; false: it does not come again. Days are those of
// zone (nil: UTC), so that what begins at nine in the morning does so whatever the clocks do.
func (r *AdvanceReservation) After(start, end Time, zone *time.Location) (Time, Time, bool) {
	if zone == nil {
		zone = time.UTC
	}
	from := start.Go().In(zone)
	switch {
	case r.Flags&ReserveHourly != 0:
		from = from.Add(time.Hour)
	case r.Flags&ReserveDaily != 0:
		from = from.AddDate(0, 0, 1)
	case r.Flags&ReserveWeekly != 0:
		from = from.AddDate(0, 0, 7)
	case r.Flags&ReserveWeekday != 0:
		for from = from.AddDate(0, 0, 1); weekend(from); {
			from = from.AddDate(0, 0, 1)
		}
	case r.Flags&ReserveWeekend != 0:
		for from = from.AddDate(0, 0, 1); !weekend(from); {
			from = from.AddDate(0, 0, 1)
		}
	default:
		return 0, 0, false
	}
	return At(from), At(from).Add(end.Sub(start)), true
}

func weekend(t time.Time) bool { return t.Weekday() == time.Saturday || t.Weekday() == time.Sunday }

// Current gives the occurrence that goes on at now or comes next; of one that is over and does not come again, the
// last.
func (r *AdvanceReservation) Current(now Time, zone *time.Location) (start, end Time) {
	start, end = r.Start, r.End
	for end <= now {
		from, to, again := r.After(start, end, zone)
		if !again {
			break
		}
		start, end = from, to
	}
	return start, end
}

// Admits reports whether a user's job may use the reservation. in reports whether the job's project is an account or
// below it. Where both users and accounts are listed, both must let the job in.
func (r *AdvanceReservation) Admits(user UserName, in func(ProjectName) bool) bool {
	return listed(r.Users, func(u UserName) bool { return u == user }) && listed(r.Projects, in)
}

// listed reports whether a list of names, or of names not wanted, lets one in. An empty list lets everybody in.
func listed[N ~string](list []N, is func(N) bool) bool {
	if len(list) == 0 {
		return true
	}
	allow, only := false, false
	for _, n := range list {
		if not, ok := strings.CutPrefix(string(n), "-"); ok {
			if is(N(not)) {
				return false
			}
			continue
		}
		only = true
		allow = allow || is(n)
	}
	return allow || !only
}
