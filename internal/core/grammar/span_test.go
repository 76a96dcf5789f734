package grammar

import "testing"

func TestSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"90": 5400, "1:30": 90, "1:30:00": 5400, "2-00:00:00": 172800, "36h": 129600, "2d": 172800, "90s": 90,
		"1w": 604800, "0": 0,
	} {
		if got, err := ParseSpan(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "-5h", "-1", "unlimited", "5x", "1h30m"} {
		if got, err := ParseSpan(text); err == nil {
			t.Errorf("%q reads as %d", text, got)
		}
	}
}
