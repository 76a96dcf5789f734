package alloc

import "bireme.dev/bireme/internal/core"

// Never is the end of an allocation without a time limit. It is later than every other time.
const Never core.Time = 1<<63 - 1

// OverdueDelay is when a job that should have ended already is expected to end, counted from now.
const OverdueDelay core.Time = 1e6

// MinFillTime is the shortest rest of an advance reservation that a job without a time limit of its own starts in.
const MinFillTime core.Time = 60e6

// AddTime adds a duration to a time. The sum is Never if it would overflow.
func AddTime(t, d core.Time) core.Time {
	if d >= Never-t {
		return Never
	}
	return t + d
}

// Overlaps reports whether a job that ends at end still runs at moment. A job that ends Never runs at every moment.
func Overlaps(moment, end core.Time) bool { return moment < end || end == Never }

// TimeLimit is how long a job may run, in microseconds; Never if it has no limit.
func TimeLimit(s *core.Spec) core.Time {
	if s.TimeLimit <= 0 || s.TimeLimit >= core.Seconds(Never/4e6) {
		return Never
	}
	return core.Time(s.TimeLimit) * 1e6
}

// MinTime is the time a job must be able to run: its --time-min if it has one, else its time limit.
func MinTime(s *core.Spec) core.Time {
	n := TimeLimit(s)
	if x := s.Extra; x != nil && x.TimeMin > 0 {
		n = min(n, core.Time(x.TimeMin)*1e6)
	}
	return n
}

// MustFitTime is the time that must be free before a job may start. A job without a limit that runs until its deadline
// or to the end of its advance reservation needs next to nothing.
func MustFitTime(s *core.Spec) core.Time {
	if x := s.Extra; x != nil && (x.Deadline > 0 && x.TimeMin == 0 || x.Fill) {
		return 1
	}
	return MinTime(s)
}

// NewTimeLimit is the limit a job starts with if it must end earlier than its own limit says, else 0.
func NewTimeLimit(s *core.Spec, now, end core.Time) core.Seconds {
	if end == Never || AddTime(now, TimeLimit(s)) == end {
		return 0
	}
	return core.Seconds((end - now) / 1e6)
}

// IsOver reports whether a job has ended, so that its nodes only have to be cleaned up.
func IsOver(j *core.Job) bool { return j.State.Final() || j.Flags.Has(core.Requeueing) }

// LatestEnd is when a job that holds nodes releases them at the latest. A job that a person suspended may hold them
// forever.
func LatestEnd(j *core.Job) core.Time {
	switch {
	case IsOver(j): // it is being cleaned up
		if j.Pushed != nil {
			return max(j.End, j.Pushed.Until)
		}
		return j.End
	case j.State == core.Running:
		return AddTime(j.Start+core.Time(j.PausedFor.Microseconds()), TimeLimit(j.Spec))
	case j.Parked():
		return resumedEnd(j)
	}
	return Never
}

// resumedEnd is LatestEnd of a job that is suspended because others borrow its CPUs: it resumes when the last of them
// ends.
func resumedEnd(j *core.Job) core.Time {
	back := core.Time(0)
	for i := range j.Pushed.Lent {
		l := &j.Pushed.Lent[i]
		if l.Until == 0 {
			return Never
		}
		back = max(back, l.Until)
	}
	n := TimeLimit(j.Spec)
	if n == Never {
		return Never
	}
	ran := core.Time(j.Elapsed(j.Paused).Microseconds())
	return AddTime(back, max(0, n-ran))
}
