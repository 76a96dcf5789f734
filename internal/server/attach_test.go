package server_test

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// A step is watched by way of its srun, which hears that somebody is there, and when they have left.
func TestStepIsWatchedThroughItsSrun(t *testing.T) {
	t.Parallel()
	s, agents, id := stepCluster(t)
	if _, err := s.Client().Attach(t.Context(), idText(id), "0"); core.CodeOf(err) != core.NotFound {
		t.Errorf("a step that is not there: %v", err)
	}
	var made client.StepMade
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/steps", client.NewStep{Argv: []string{"x"}, Tasks: 1, NodeList: "n2"},
		&made)
	raw, err := s.Client().Stream(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	srun := wire.NewConn(raw)
	defer srun.Close()
	agents["n2"].AwaitLaunch(id, 1, "0")
	if raw, err = s.Client().Attach(t.Context(), idText(id), "0"); err != nil {
		t.Fatal(err)
	}
	watcher := wire.NewConn(raw)
	next := func(c *wire.Conn, want wire.Type) wire.Frame {
		t.Helper()
		f, err := c.Next()
		if err != nil || f.Type != want {
			t.Fatalf("frame of type %d (want %d): %v", f.Type, want, err)
		}
		return f
	}
	var w wire.Watched
	if err := next(srun, wire.TypeWatched).Decode(&w); err != nil || w.Watchers != 1 {
		t.Errorf("%+v %v", w, err)
	}
	if err := srun.Send(wire.TypeIO, wire.IOHeader{Rank: 0, FD: 1}, []byte("seen")); err != nil {
		t.Fatal(err)
	}
	if f := next(watcher, wire.TypeIO); string(f.Payload) != "seen" {
		t.Errorf("the watcher saw %q", f.Payload)
	}
	for _, text := range []string{"", "typed"} { // the end of what they type is not the tasks'
		if err := watcher.Send(wire.TypeInput, wire.IOHeader{Rank: -1}, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if f := next(srun, wire.TypeInput); string(f.Payload) != "typed" {
		t.Errorf("srun got %q", f.Payload)
	}
	watcher.Close()
	if err := next(srun, wire.TypeWatched).Decode(&w); err != nil || w.Watchers != 0 {
		t.Errorf("%+v %v", w, err)
	}
	if raw, err = s.Client().Attach(t.Context(), idText(id), "0"); err != nil {
		t.Fatal(err)
	}
	watcher = wire.NewConn(raw)
	defer watcher.Close()
	next(srun, wire.TypeWatched)
	srun.Close() // the step has lost its root
	next(watcher, wire.TypeBye)
}
