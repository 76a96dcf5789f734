package core

import (
	"testing"
	"time"
)

func TestMeets(t *testing.T) {
	t.Parallel()
	at := func(text string) Time {
		v, err := time.Parse("Mon 2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return At(v)
	}
	now := at("Mon 2026-03-02 00:00")
	resv := func(from, to string, f ReserveFlag) *AdvanceReservation {
		return &AdvanceReservation{Start: at(from), End: at(to), Created: now, Flags: f}
	}
	for name, tc := range map[string]struct {
		a, b *AdvanceReservation
		want bool
	}{
		"apart": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 09:00", 0),
			resv("Mon 2026-03-02 09:00", "Mon 2026-03-02 10:00", 0), false,
		},
		"together": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 09:01", 0),
			resv("Mon 2026-03-02 09:00", "Mon 2026-03-02 10:00", 0), true,
		},
		"a later day of a daily": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 09:00", ReserveDaily),
			resv("Thu 2026-05-14 08:30", "Thu 2026-05-14 08:40", 0), true,
		},
		"beside a daily": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 09:00", ReserveDaily),
			resv("Thu 2026-05-14 09:30", "Thu 2026-05-14 10:40", 0), false,
		},
		"a weekend of weekdays": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 09:00", ReserveWeekday),
			resv("Sat 2026-03-07 08:00", "Sat 2026-03-07 09:00", ReserveWeekend), false,
		},
		"a daily and a weekend": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 09:00", ReserveDaily),
			resv("Sat 2026-03-07 08:59", "Sat 2026-03-07 09:10", ReserveWeekend), true,
		},
		"two weeklies apart": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 09:00", ReserveWeekly),
			resv("Tue 2026-03-03 08:00", "Tue 2026-03-03 09:00", ReserveWeekly), false,
		},
		"an hourly meets all": {
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 08:10", ReserveHourly),
			resv("Sun 2026-04-05 10:00", "Sun 2026-04-05 11:00", 0), true,
		},
		"one that is over": {
			resv("Sun 2026-03-01 08:00", "Sun 2026-03-01 09:00", 0),
			resv("Mon 2026-03-02 08:00", "Mon 2026-03-02 08:10", ReserveHourly), false,
		},
		"one that floats": {
			resv("Mon 2026-03-02 01:00", "Mon 2026-03-02 02:00", ReserveTimeFloat),
			resv("Mon 2026-03-02 00:30", "Mon 2026-03-02 00:50", 0), false,
		},
		"one that floats and ends": {
			resv("Mon 2026-03-02 01:00", "Mon 2026-03-02 02:00", ReserveTimeFloat),
			resv("Mon 2026-03-02 00:30", "Mon 2026-03-02 01:50", 0), true,
		},
	} {
		if got := tc.a.Meets(tc.b, now, nil); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := tc.b.Meets(tc.a, now, nil); got != tc.want {
			t.Errorf("%s, the other way round: %v", name, got)
		}
	}
}
