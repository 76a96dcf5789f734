package grammar

import (
	"errors"
	"testing"
	"time"
)

var present = time.Date(2026, 11, 15, 6, 29, 40, 0, time.UTC) // a Sunday

// The answers are the EligibleTime Slurm 22.05.8 gave at that moment, where it took the text.
func TestMoment(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"now":                 "2026-11-15T06:29:40",
		"NOW":                 "2026-11-15T06:29:40",
		"now+1hour":           "2026-11-15T07:29:40",
		"now+90":              "2026-11-15T06:31:10",
		"now+2minutes":        "2026-11-15T06:31:40",
		"now + 3 days":        "2026-11-18T06:29:40",
		"now+1week":           "2026-11-22T06:29:40",
		"now-1hour":           "2026-11-15T05:29:40",
		"now+1h":              "2026-11-15T07:29:40",
		"now+5min":            "2026-11-15T06:34:40",
		"16:00":               "2026-11-15T16:00:00",
		"16:00:30":            "2026-11-15T16:00:30",
		"4:00PM":              "2026-11-15T16:00:00",
		"12:00AM":             "2026-11-16T00:00:00",
		"12:30PM":             "2026-11-15T12:30:00",
		"04:20":               "2026-11-16T04:20:00",
		"0420":                "2027-04-20T00:00:00",
		"042027":              "2027-04-20T00:00:00",
		"04/20":               "2027-04-20T00:00:00",
		"4/2/28":              "2028-04-02T00:00:00",
		"04/20/99":            "2099-04-20T00:00:00",
		"11/15":               "2027-11-15T00:00:00",
		"11/15-23:00":         "2026-11-15T23:00:00",
		"12/24":               "2026-12-24T00:00:00",
		"04/20-16:00":         "2027-04-20T16:00:00",
		"04.20.27":            "2027-04-20T00:00:00",
		"2027-01-20":          "2027-01-20T00:00:00",
		"2027-01-20T":         "2027-01-20T00:00:00",
		"2027-01-20T12:34":    "2027-01-20T12:34:00",
		"2027-01-20T12:34:56": "2027-01-20T12:34:56",
		"2010-01-20T12:34:00": "2010-01-20T12:34:00",
		"midnight":            "2026-11-16T00:00:00",
		"noon":                "2026-11-15T12:00:00",
		"Noon":                "2026-11-15T12:00:00",
		"elevenses":           "2026-11-15T11:00:00",
		"fika":                "2026-11-15T15:00:00",
		"teatime":             "2026-11-15T16:00:00",
		"today":               "2026-11-15T00:00:00",
		"tomorrow":            "2026-11-16T00:00:00",
		"tomorrow18:00":       "2026-11-16T18:00:00",
		"18:00tomorrow":       "2026-11-16T18:00:00",
		"todaynoon":           "2026-11-15T12:00:00",
		"today05:00":          "2026-11-15T05:00:00",
		"2027-01-20noon":      "2027-01-20T12:00:00",
		"noon2027-01-20":      "2027-01-20T12:00:00",
		"2027-01-20teatime":   "2027-01-20T16:00:00",
		"02/29":               "2028-02-29T00:00:00",
	} {
		got, err := ParseMoment(in, present, Upcoming)
		if s := got.Format("2006-01-02T15:04:05"); err != nil || s != want {
			t.Errorf("%q = %s, %v, want %s", in, s, err, want)
		}
	}
	for in, want := range map[string]string{
		"04:20": "2026-11-15T04:20:00", "16:00": "2026-11-15T16:00:00", "0420": "2026-04-20T00:00:00",
		"02/29": "2024-02-29T00:00:00",
	} {
		got, err := ParseMoment(in, present, Recent)
		if s := got.Format("2006-01-02T15:04:05"); err != nil || s != want {
			t.Errorf("recent %q = %s, %v, want %s", in, s, err, want)
		}
	}
}

func TestMomentZone(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("X", 5*3600)
	got, err := ParseMoment("tomorrow", present.In(zone), Upcoming)
	if want := time.Date(2026, 11, 16, 0, 0, 0, 0, zone); err != nil || !got.Equal(want) {
		t.Errorf("tomorrow in another zone = %s, %v, want %s", got, err, want)
	}
}

// The positions are those Slurm 22.05.8 prints as (pos=N); -1 where it takes the text or counts otherwise.
func TestMomentErrors(t *testing.T) {
	t.Parallel()
	for in, pos := range map[string]int{
		"":                -1,
		"yesterdayish":    0,
		"now+":            3,
		"now+1x":          -1,
		"now+1hourx":      -1,
		"4pm":             1,
		"16":              0,
		"25:00":           0,
		"12:60":           3,
		"13:00pm":         5,
		"16:00am":         5,
		"1:5":             3,
		"01:5":            4,
		"05:06:7":         7,
		"2010-13-01":      5,
		"2010-02-30":      -1,
		"99/99":           0,
		"2010-01-20T12":   13,
		"uptime":          0,
		"2027-1-2":        -1,
		"tomorrownow":     -1,
		"now+2147483648":  -1,
		"now+2147483647w": -1,
		"04/20-16":        -1,
		"04/20-":          -1,
		"nownow":          -1,
	} {
		_, err := ParseMoment(in, present, Upcoming)
		wantError(t, in, err)
		var e *Error
		if errors.As(err, &e) && pos >= 0 && e.Pos != pos {
			t.Errorf("%q fails at %d, want %d: %v", in, e.Pos, pos, err)
		}
	}
}

func FuzzMoment(f *testing.F) {
	for _, s := range []string{"now+1hour", "16:00pm", "04/20/27-12:00", "2027-01-20T12:34:56", "tomorrowfika", "042027"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseMoment(s, present, Upcoming)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(s) {
				t.Fatalf("%q: bad error %#v", s, err)
			}
			return
		}
		if y := got.Year(); y < 1970 || y > 9999 {
			return // reached by now±N only; the long form does not go there
		}
		const layout = "2006-01-02T15:04:05"
		again, err := ParseMoment(got.Format(layout), present, Upcoming)
		if err != nil || !again.Equal(got) {
			t.Fatalf("%q is %s, which reads as %s: %v", s, got, again, err)
		}
	})
}
