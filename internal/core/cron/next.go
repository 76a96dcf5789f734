package cron

import "time"

// horizon is how far Next looks: 29 February on a given weekday comes at least once in 40 years.
const horizon = 41

// Next returns the first moment after the given one at which s is due, on a whole minute in the zone of
// after; ok is false when there is none (30 February).
func (s Schedule) Next(after time.Time) (next time.Time, ok bool) {
	t, ok := s.walk(after)
	if s.anyHour {
		return t, ok
	}
	if gap, found := s.inGap(after, t, ok); found {
		return gap, true
	}
	return t, ok
}

// walk goes from minute to minute, by months, days and hours where nothing fits.
func (s Schedule) walk(after time.Time) (time.Time, bool) {
	loc := after.Location()
	end := after.AddDate(horizon, 0, 0)
	t := after.Truncate(time.Minute).Add(time.Minute)
	for t.Before(end) {
		y, mon, d := t.Date()
		h, mi, _ := t.Clock()
		switch {
		case !has(s.month, int(mon)):
			t = later(t, time.Date(y, mon+1, 1, 0, 0, 0, 0, loc))
		case !s.dayFits(t):
			t = later(t, time.Date(y, mon, d+1, 0, 0, 0, 0, loc))
		case !has(s.hour, h):
			t = t.Add(time.Duration(60-mi) * time.Minute)
		case !has(s.minute, mi) || !s.anyHour && repeated(t):
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

// later guards the jumps: midnight may not exist where a clock changes there, and Date may then
// answer with a moment that is not ahead.
func later(t, jump time.Time) time.Time {
	if jump.After(t) {
		return jump
	}
	return t.Add(time.Minute)
}

func has(bits uint64, n int) bool { return bits>>n&1 != 0 }

func (s Schedule) dayFits(t time.Time) bool {
	day := has(s.day, t.Day()) || s.lastDay && t.AddDate(0, 0, 1).Day() == 1
	weekday := has(s.weekday, int(t.Weekday())) || t.Weekday() == time.Sunday && has(s.weekday, 7)
	if s.dialect == Crontab && !s.anyDay && !s.anyWeekday {
		return day || weekday
	}
	return day && weekday
}

// repeated reports whether the clock showed the same minute once before, in the zone offset before this.
func repeated(t time.Time) bool {
	start, _ := t.ZoneBounds()
	if start.IsZero() {
		return false
	}
	_, now := t.Zone()
	_, before := start.Add(-time.Second).Zone()
	back := time.Duration(before-now) * time.Second
	return back > 0 && t.Before(start.Add(back))
}

// inGap looks for minutes the clock skipped between after and the next regular moment; the first
// moment behind such a gap is due if one of them was.
func (s Schedule) inGap(after, next time.Time, bounded bool) (time.Time, bool) {
	limit := after.AddDate(horizon, 0, 0)
	if bounded {
		limit = next
	}
	for t := after; ; {
		_, end := t.ZoneBounds()
		if end.IsZero() || !end.Before(limit) {
			return time.Time{}, false
		}
		_, before := end.Add(-time.Second).Zone()
		_, behind := end.Zone()
		// The skipped minutes, written as if the old offset had gone on.
		old := end.In(time.FixedZone("", before))
		for m := range (behind - before) / 60 {
			w := old.Add(time.Duration(m) * time.Minute)
			h, mi, _ := w.Clock()
			if has(s.month, int(w.Month())) && s.dayFits(w) && has(s.hour, h) && has(s.minute, mi) && end.After(after) {
				return end, true
			}
		}
		t = end
	}
}
