package advance

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// EndTimes returns until when a job that starts now would like to run, and until when it must be able to. They differ
// for jobs whose time limit may be shortened (--time-min). A job without a time limit runs until its deadline, or the
// end of its advance reservation. ok is false if the job cannot start now.
func EndTimes(s *core.Spec, own *Reservation, now core.Time) (end, least core.Time, ok bool) {
	end = alloc.AddTime(now, alloc.TimeLimit(s))
	least = end
	x := s.More()
	if x.TimeMin > 0 {
		least = alloc.AddTime(now, alloc.MinTime(s))
	}
	if x.Deadline > 0 {
		if end = min(end, x.Deadline); x.TimeMin == 0 && least == alloc.Never {
			least = end
		}
		if least > end || end < now+1e6 {
			return 0, 0, false
		}
	}
	if own.IsOver() {
		return 0, 0, false
	}
	if own.ConfinesTime() {
		must := least
		if x.Fill {
			must = now + alloc.MinFillTime
		}
		w, fits := own.WindowFor(now, must)
		if !fits {
			return 0, 0, false
		}
		if end = min(end, w.End); x.Fill {
			least = end
		}
	}
	return end, least, true
}

// PlannedTime returns how long a job is planned to run, in an advance reservation or outside of any; a job that fills
// its window (Fill) runs longer.
func PlannedTime(s *core.Spec, own *Reservation, now core.Time) core.Time {
	n := alloc.MinTime(s)
	x := s.More()
	if x.Fill && own.ConfinesTime() {
		return min(n, alloc.MinFillTime)
	}
	if n == alloc.Never && x.Deadline > now {
		return x.Deadline - now
	}
	return n
}

// MustAvoid reports whether a job that runs in own must keep away from what r has reserved. own is nil for a job that
// runs in none.
func (own *Reservation) MustAvoid(r *Reservation) bool {
	return r != own && (own == nil || own.Flags&(core.ReserveMaint|core.ReserveOverlap) == 0)
}

// AllowedDelay returns how far a job may reach into r, if it may delay advance reservations.
func (r *Reservation) AllowedDelay(mayDelay bool) core.Time {
	if !mayDelay {
		return 0
	}
	return core.Time(r.MaxDelay) * 1e6
}
