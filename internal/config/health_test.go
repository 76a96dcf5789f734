package config

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// A node is unreachable when two heartbeats are missed, before the third is due.
func TestTwoMissedHeartbeats(t *testing.T) {
	t.Parallel()
	if c := Default().Timers; c.SilentAfter <= 2*c.Heartbeat || c.SilentAfter >= 3*c.Heartbeat {
		t.Errorf("silent after %s with heartbeats every %s", c.SilentAfter, c.Heartbeat)
	}
}

func TestHealthFaults(t *testing.T) {
	t.Parallel()
	_, err := Parse("site.yml", []byte("health:\n  program: check.sh\n  states: [idle, busy]\n  disk: maybe\n  "+
		"disk_percent: 101\n  mounts: [scratch]\nreboot:\n  program: reboot\n"))
	var got []string
	for _, f := range core.FaultsOf(err) {
		got = append(got, f.Path[strings.LastIndex(f.Path, " ")+1:])
	}
	want := "health.program reboot.program health.mounts health.states health.disk health.disk_percent"
	if strings.Join(got, " ") != want {
		t.Errorf("faults of %q, want %q: %v", got, want, err)
	}
}
