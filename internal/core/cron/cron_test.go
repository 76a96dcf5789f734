package cron

import (
	"errors"
	"testing"
	"time"

	_ "time/tzdata"

	"pgregory.net/rapid"
)

const layout = "2006-01-02T15:04 MST"

func next(t *testing.T, text string, dialect Dialect, after time.Time, n int) []string {
	t.Helper()
	s, err := Parse(text, dialect)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for range n {
		var ok bool
		if after, ok = s.Next(after); !ok {
			return append(out, "never")
		}
		out = append(out, after.Format(layout))
	}
	return out
}

func TestNext(t *testing.T) {
	t.Parallel()
	sunday := time.Date(2026, 11, 15, 6, 29, 40, 0, time.UTC)
	for text, want := range map[string][2]string{
		"* * * * *":         {"2026-11-15T06:30 UTC", "2026-11-15T06:31 UTC"},
		"*/15 * * * *":      {"2026-11-15T06:30 UTC", "2026-11-15T06:45 UTC"},
		"5,35 7-8 * * *":    {"2026-11-15T07:05 UTC", "2026-11-15T07:35 UTC"},
		"0 0 1 1 *":         {"2027-01-01T00:00 UTC", "2028-01-01T00:00 UTC"},
		"0 0 29 2 *":        {"2028-02-29T00:00 UTC", "2032-02-29T00:00 UTC"},
		"0 12 13 * fri":     {"2026-11-20T12:00 UTC", "2026-11-27T12:00 UTC"},
		"0 12 * * mon-fri":  {"2026-11-16T12:00 UTC", "2026-11-17T12:00 UTC"},
		"0 12 * * fri-sun":  {"2026-11-15T12:00 UTC", "2026-11-20T12:00 UTC"},
		"0 12 * * 7":        {"2026-11-15T12:00 UTC", "2026-11-22T12:00 UTC"},
		"0 12 * * 0":        {"2026-11-15T12:00 UTC", "2026-11-22T12:00 UTC"},
		"0 0 31 * *":        {"2026-12-31T00:00 UTC", "2027-01-31T00:00 UTC"},
		"0 0 1-31/10 MAR *": {"2027-03-01T00:00 UTC", "2027-03-11T00:00 UTC"},
		"@hourly":           {"2026-11-15T07:00 UTC", "2026-11-15T08:00 UTC"},
		"@Daily":            {"2026-11-16T00:00 UTC", "2026-11-17T00:00 UTC"},
		"@weekly":           {"2026-11-22T00:00 UTC", "2026-11-29T00:00 UTC"},
		"@monthly":          {"2026-12-01T00:00 UTC", "2027-01-01T00:00 UTC"},
		"@teatime":          {"2026-11-15T16:00 UTC", "2026-11-16T16:00 UTC"},
	} {
		if got := next(t, text, Crontab, sunday, 2); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if got := next(t, "0 0 30 2 *", Crontab, sunday, 1); got[0] != "never" {
		t.Errorf("30 February comes on %s", got[0])
	}
	for text, want := range map[string][2]string{
		"0 12 * * 0":       {"2026-11-16T12:00 UTC", "2026-11-23T12:00 UTC"},
		"0 12 * * 6":       {"2026-11-15T12:00 UTC", "2026-11-22T12:00 UTC"},
		"0 12 * * sun":     {"2026-11-15T12:00 UTC", "2026-11-22T12:00 UTC"},
		"0 12 * * sat-sun": {"2026-11-15T12:00 UTC", "2026-11-21T12:00 UTC"},
		"0 12 13 * fri":    {"2027-08-13T12:00 UTC", "2028-10-13T12:00 UTC"},
		"0 0 last * *":     {"2026-11-30T00:00 UTC", "2026-12-31T00:00 UTC"},
		"0 0 LAST feb *":   {"2027-02-28T00:00 UTC", "2028-02-29T00:00 UTC"},
	} {
		if got := next(t, text, Monday, sunday, 2); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("Monday %s: %v, want %v", text, got, want)
		}
	}
}

func TestClockChanges(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// 2026-03-29 02:00 became 03:00, 2026-10-25 03:00 became 02:00.
	spring := time.Date(2026, 3, 28, 12, 0, 0, 0, berlin)
	autumn := time.Date(2026, 10, 24, 12, 0, 0, 0, berlin)
	night := time.Date(2026, 10, 25, 0, 30, 0, 0, berlin)
	for _, tc := range []struct {
		text  string
		after time.Time
		want  []string
	}{
		{"30 2 * * *", spring, []string{"2026-03-29T03:00 CEST", "2026-03-30T02:30 CEST"}},
		{"30 3 * * *", spring, []string{"2026-03-29T03:30 CEST", "2026-03-30T03:30 CEST"}},
		{"30 2 * * *", autumn, []string{"2026-10-25T02:30 CEST", "2026-10-26T02:30 CET"}},
		{"0 * * * *", night, []string{
			"2026-10-25T01:00 CEST", "2026-10-25T02:00 CEST", "2026-10-25T02:00 CET",
			"2026-10-25T03:00 CET",
		}},
		{"30 * * * *", spring.Add(13 * time.Hour), []string{"2026-03-29T01:30 CET", "2026-03-29T03:30 CEST"}},
	} {
		got := next(t, tc.text, Crontab, tc.after, len(tc.want))
		for i := range tc.want {
			if got[i] != tc.want[i] {
				t.Errorf("%s after %s: %v, want %v", tc.text, tc.after, got, tc.want)
				break
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		"":              "",
		"* * * *":       "",
		"* * * * * *":   "",
		"@reboot":       "",
		"60 * * * *":    "minute",
		"* 24 * * *":    "hour",
		"* * 0 * *":     "day of month",
		"* * last * *":  "day of month",
		"* * * 13 *":    "month",
		"* * * janu *":  "month",
		"* * * * 8":     "weekday",
		"*/0 * * * *":   "minute",
		"*/x * * * *":   "minute",
		"5/10 * * * *":  "minute",
		"30-10 * * * *": "minute",
		"1,,2 * * * *":  "minute",
		"-1 * * * *":    "minute",
		"1-2-3 * * * *": "minute",
		"* * ? * *":     "day of month",
	} {
		_, err := Parse(text, Crontab)
		var e *Error
		if !errors.As(err, &e) || e.Field != field || e.Msg == "" || e.Pos > len(text) {
			t.Errorf("%q: %#v, want a fault in %q", text, err, field)
		}
	}
	for _, text := range []string{"@daily", "* * * * 7", "* * last-31 * *", "* * L * *"} {
		if _, err := Parse(text, Monday); err == nil {
			t.Errorf("Monday %q was accepted", text)
		}
	}
}

// TestNextIsFirst compares Next with trying every minute.
func TestNextIsFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(\*/[1-9]|[0-5][0-9]|\*) (\*|[01][0-9]|[0-9]-1[0-9]/2) (\*|[12][0-9]|[1-9],28) `+
			`\* (\*|[0-7]|1-5)`).Draw(t, "text")
		s, err := Parse(text, Crontab)
		if err != nil {
			t.Fatal(err)
		}
		after := time.Unix(rapid.Int64Range(1.7e9, 1.9e9).Draw(t, "after"), 0).UTC()
		got, ok := s.Next(after)
		if !ok {
			t.Fatalf("%s is never due", text)
		}
		want := after.Truncate(time.Minute).Add(time.Minute)
		for !fits(s, want) {
			want = want.Add(time.Minute)
		}
		if !got.Equal(want) {
			t.Fatalf("%s after %s: %s, want %s", text, after, got, want)
		}
	})
}

func fits(s Schedule, t time.Time) bool {
	return has(s.minute, t.Minute()) && has(s.hour, t.Hour()) && has(s.month, int(t.Month())) && s.dayFits(t)
}

func FuzzParse(f *testing.F) {
	f.Add("*/5 1-7 1,15 jan mon-fri", true)
	f.Add("@daily", false)
	f.Add("0 0 last * 6", true)
	f.Fuzz(func(t *testing.T, text string, monday bool) {
		dialect := Crontab
		if monday {
			dialect = Monday
		}
		s, err := Parse(text, dialect)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(text) {
				t.Fatalf("bad error %#v", err)
			}
			return
		}
		after := time.Date(2026, 11, 15, 6, 29, 40, 0, time.UTC)
		if got, ok := s.Next(after); ok && (!got.After(after) || !fits(s, got)) {
			t.Fatalf("%q: %s is not due", text, got)
		}
		if again, err := Parse(s.String(), dialect); err != nil || again != s {
			t.Fatalf("%q does not read back: %v", text, err)
		}
	})
}
