package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReloaded(t *testing.T) {
	t.Parallel()
	old, err := Parse("a.yml", []byte("cluster: one\njobs: {max_requeues: 5}\npartitions: [{name: a, nodes: ALL}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := Parse("b.yml", []byte("cluster: two\njobs: {max_requeues: 7}\ntimers: {fence: 5m, interactive_idle: "+
		"90s}\npartitions: [{name: a, nodes: ALL}, {name: b, nodes: n1}]\nadmins: [ann]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cluster", "admins", "partitions", "jobs.max_requeues", "timers.fence", "timers.interactive_idle"}
	if d := cmp.Diff(want, old.Differences(file)); d != "" {
		t.Errorf("differences (-want +got)\n%s", d)
	}
	got := old.Reloaded(file)
	if got.Cluster != "one" || got.Timers.Fence != 0 || got.Jobs.MaxRequeues != 7 || len(got.Partitions) != 2 ||
		got.Timers.InteractiveIdle.String() != "90s" {
		t.Errorf("reloaded: %+v", got)
	}
	if file.Cluster != "two" {
		t.Error("the file's own was changed")
	}
	if d := cmp.Diff([]string{"cluster", "timers.fence"}, got.Differences(file)); d != "" {
		t.Errorf("left (-want +got)\n%s", d)
	}
	if got, want := file.Text("timers.fence")+" "+file.Text("admins")+" "+file.Text("partitions"),
		"5m [ann] "; got != want {
		t.Errorf("texts: %q", got)
	}
}
