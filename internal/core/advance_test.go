package core

import (
	"testing"
	"time"
)

func TestOccurrences(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("this machine has no time zones")
	}
	at := func(text string) Time {
		v, err := time.ParseInLocation("Mon 2006-01-02 15:04", text, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return At(v)
	}
	for _, c := range []struct {
		flags      ReserveFlag
		start, now string
		want       string
	}{
		{0, "Fri 2026-03-27 09:00", "Mon 2026-03-30 08:00", "Fri 2026-03-27 09:00"},
		{ReserveDaily, "Fri 2026-03-27 09:00", "Fri 2026-03-27 10:59", "Fri 2026-03-27 09:00"},
		{ReserveDaily, "Fri 2026-03-27 09:00", "Fri 2026-03-27 11:00", "Sat 2026-03-28 09:00"},
		// the clocks change on the 29th
		{ReserveDaily, "Fri 2026-03-27 09:00", "Mon 2026-03-30 08:00", "Mon 2026-03-30 09:00"},
		{ReserveWeekly, "Fri 2026-03-27 09:00", "Mon 2026-03-30 08:00", "Fri 2026-04-03 09:00"},
		{ReserveWeekday, "Fri 2026-03-27 09:00", "Fri 2026-03-27 12:00", "Mon 2026-03-30 09:00"},
		{ReserveWeekend, "Sun 2026-03-29 09:00", "Sun 2026-03-29 12:00", "Sat 2026-04-04 09:00"},
		{ReserveHourly, "Fri 2026-03-27 09:00", "Fri 2026-03-27 13:30", "Fri 2026-03-27 12:00"},
	} {
		r := AdvanceReservation{Start: at(c.start), End: at(c.start).Add(2 * time.Hour), Flags: c.flags}
		start, end := r.Current(at(c.now), berlin)
		if start != at(c.want) || end.Sub(start) != 2*time.Hour {
			t.Errorf("%x from %s is, on %s, from %v to %v, not from %s", c.flags, c.start, c.now, start.Go(), end.Go(), c.want)
		}
	}
}

func TestAdmits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		users    []UserName
		accounts []ProjectName
		want     bool
	}{
		{nil, nil, true},
		{[]UserName{"alice"}, nil, true},
		{[]UserName{"bob"}, nil, false},
		{[]UserName{"-alice"}, nil, false},
		{[]UserName{"-bob"}, nil, true},
		{nil, []ProjectName{"physics"}, true},
		{nil, []ProjectName{"-physics"}, false},
		{[]UserName{"alice"}, []ProjectName{"art"}, false},
		{[]UserName{"bob", "alice"}, []ProjectName{"art", "physics"}, true},
	} {
		r := AdvanceReservation{Users: c.users, Projects: c.accounts}
		if got := r.Admits("alice", func(p ProjectName) bool { return p == "physics" }); got != c.want {
			t.Errorf("users %v, accounts %v: %v", c.users, c.accounts, got)
		}
	}
}
