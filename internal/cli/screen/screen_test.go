package screen

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
)

// TestWanted: what runs ask for, as configurations write it.
func TestWanted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`: "cpu=2.. mem=8GB.. disk=100GB.. gpu=0..",
		`{"cpu":"arm:4","memory":"64MB..","gpu":"A100:80GB:2","disk":"..1TB"}`: "cpu=arm:4 mem=64MB.. disk=..1024GB " +
			"gpu=A100:80GB:2",
		`{"cpu":"2..8","memory":"1.5GB","gpu":"amd:1..4","disk":null}`: "cpu=2..8 mem=1.5GB gpu=amd:1..4",
	} {
		c, err := config.ReadJSON([]byte(`{"type":"task","commands":["a"],"resources":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := Wanted(&c.Run().Resources); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestCells: prices, durations and times as dstack words them.
func TestCells(t *testing.T) {
	t.Parallel()
	for d, want := range map[wire.Dollars]string{0: "$0", 0.5: "$0.5", 12.34567: "$12.3457", 3: "$3"} {
		if got := Price(d); got != want {
			t.Errorf("%v dollars are %q, want %q", float64(d), got, want)
		}
	}
	for s, want := range map[int64]string{0: "0s", 90: "90s", 300: "5m", 7200: "2h", 86400: "1d", 604800: "1w"} {
		if got := Duration(s); got != want {
			t.Errorf("%d seconds are %q, want %q", s, got, want)
		}
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for back, want := range map[time.Duration]string{
		time.Second: "now", 12 * time.Second: "12 sec ago", time.Minute: "1 min ago", 3 * time.Hour: "3 hours ago",
		30 * time.Hour: "yesterday", 72 * time.Hour: "3 days ago", 21 * 24 * time.Hour: "3 weeks ago",
	} {
		if got := Ago(now.Add(-back).Format(time.RFC3339), now); got != want {
			t.Errorf("%v back is %q, want %q", back, got, want)
		}
	}
	gpus := []wire.InstanceGPU{{Name: "A100", MemoryMiB: 81920}, {Name: "A100", MemoryMiB: 81920}, {Name: "T4"}}
	if got := GPUs(gpus); got != "A100:80GB:2,T4:1" {
		t.Error(got)
	}
}

// TestChanges: what differs is told by its path, but for what may be secret.
func TestChanges(t *testing.T) {
	t.Parallel()
	read := func(text string) *convert.Spec {
		s, err := convert.Stored([]byte(`{"run_name":"r","configuration":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	was := read(`{"type":"task","commands":["a"],"env":{"A":"1","B":"2"},"resources":{"cpu":2},"priority":1}`)
	now := read(`{"type":"task","commands":["b"],"env":{"A":"3","C":"4"},"resources":{"cpu":4},"priority":1}`)
	want := []string{
		`commands: ["a"] → ["b"]`, "env.A: changed", "env.B: removed", "env.C: added", "resources.cpu.count.max: 2 → 4",
		"resources.cpu.count.min: 2 → 4",
	}
	if diff := cmp.Diff(want, Changes(was, now)); diff != "" {
		t.Error(diff)
	}
	if got := Changes(was, was); len(got) != 0 {
		t.Errorf("nothing differs, and it is told: %v", got)
	}
	same := *was // by another client, which sends a profile without a word in it
	same.Profile = &config.Profile{Name: "default"}
	if got := Changes(was, &same); len(got) != 0 {
		t.Errorf("nothing differs, and it is told: %v", got)
	}
	now = read(`{"type":"task","commands":["a"],"env":{"A":"1","B":"2"},"resources":{"cpu":2},"priority":1}`)
	now.FileArchives = []wire.FileArchiveTarget{{ID: "x", Path: "y"}}
	if diff := cmp.Diff([]string{"files: changed"}, Changes(was, now)); diff != "" {
		t.Error(diff)
	}
}
