package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sim"
	"bireme.dev/bireme/internal/store/open"
)

// TestReplayDecidesAsTheServer: what a real engine over a real store did, with jobs, arrays, ends, a drained node, a
// policy, a reservation and other settings, over a restart, comes out of its recording again, pass by pass.
func TestReplayDecidesAsTheServer(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "db")
	var recording bytes.Buffer
	recorded(t, url, &recording, 1)
	recorded(t, url, &recording, 2)

	out, err := sim.Replay("recording", bytes.NewReader(recording.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if out.Different != 0 {
		t.Errorf("%d passes decide otherwise; %s", out.Different, out.First)
	}
	if out.Inputs < 200 || out.Starts < 60 || out.Batches < 10 {
		t.Errorf("too little happened: %+v", out)
	}
	if strings.Contains(recording.String(), "c2VjcmV0") { // "secret", as JSON writes bytes
		t.Error("a script is in the recording")
	}

	// A decision that was another one is seen.
	other := bytes.Replace(recording.Bytes(), []byte(`"cpus":2,"cores":[0,1]`), []byte(`"cpus":2,"cores":[6,7]`), 1)
	if bytes.Equal(other, recording.Bytes()) {
		t.Fatal("no start to change")
	}
	if out, err := sim.Replay("recording", bytes.NewReader(other)); err != nil || out.Different == 0 ||
		!strings.HasPrefix(out.First, "recording:") {
		t.Errorf("a changed recording: %+v, %v", out, err)
	}
	if _, err := sim.Replay("recording", strings.NewReader("{\"now\":1,\"kind\":\"Tick\"}\n")); err == nil {
		t.Error("a recording without a beginning is replayed")
	}
}

// must carries out a command.
func must[R any](t *testing.T, e *engine.Engine, in state.Command[R]) R {
	t.Helper()
	reply, err := engine.Do(t.Context(), e, in)
	if err != nil {
		t.Fatalf("%T: %v", in, err)
	}
	return reply
}

// recorded runs an engine for a while.
func recorded(t *testing.T, url string, w *bytes.Buffer, seed uint64) {
	t.Helper()
	st, err := open.Store(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ctx, cancel := context.WithCancel(t.Context())
	e := engine.New(st, engine.Config{Record: w}, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	<-e.Leading()
	must(t, e, &state.EnsureUser{UID: 1000, UnixName: "ann"})
	for i := range 3 {
		n := coretest.Node(core.NodeName(fmt.Sprintf("n%d", i+1))).CPUs(8).Mem(16 * core.GiB).Build()
		must(t, e, &state.Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	by, root := core.Identity{User: "ann", UID: 1000}, core.Identity{User: "root", Admin: true}
	for i := range 60 {
		b := coretest.Job().User("ann").CPUs(1 + rng.Int32N(8)).Time(time.Duration(1+rng.IntN(90)) * time.Minute).Set(
			func(s *core.Spec) { s.UID = 1000 })
		if i%10 == 0 {
			b.CPUs(2).Array("1-5", 2)
		}
		must(t, e, &state.Submit{By: by, Spec: b.Spec(), Script: []byte("secret"), Key: fmt.Sprintf("%d/%d", seed, i)})
		if i == 30 {
			must(t, e, &state.UpdateNode{By: root, Node: "n2", State: "drain", Reason: "test"})
		}
		switch i {
		case 20:
			few := int64(2)
			must(t, e, &state.ApplyPolicy{By: root, Policy: core.Policy{
				QOS:      []core.QOS{{Name: "normal", Priority: 5}},
				Projects: []core.Project{{Name: "default", Assoc: core.Association{Limits: core.Limits{GrpJobs: &few}}}},
			}, Force: true})
		case 25:
			now := e.Snapshot().Now()
			name := fmt.Sprintf("r%d", seed)
			must(t, e, &state.PutReservation{By: root, Reservation: &core.AdvanceReservation{
				Name: name, Start: now, End: now.Add(time.Hour), Nodes: "n3", Users: []core.UserName{"ann"},
				Flags: core.ReserveIgnoreJobs | core.ReserveOverlap,
			}})
		case 35:
			must(t, e, &state.ApplyPolicy{By: root, Policy: core.Policy{Projects: []core.Project{{Name: "default"}}}})
			must(t, e, &state.DropReservation{By: root, Name: fmt.Sprintf("r%d", seed)})
		case 45:
			parts := []core.Partition{{Name: "main", Nodes: "n[1,3]", Default: true, MaxTime: 3600}, {Name: "fast", Nodes: "n2"}}
			must(t, e, &state.Reconfigure{
				By:     root,
				Config: state.Config{Partitions: parts, Licenses: []core.License{{Name: "matlab", Total: 2}}},
			})
		}
		for j := range e.Snapshot().Jobs() {
			if j.State == core.Running && rng.IntN(3) == 0 {
				for k := range j.Alloc.Nodes {
					n := j.Alloc.Nodes[k].Node
					must(t, e, &state.Exited{Node: n, Job: j.ID, Attempt: j.Attempt, Step: "batch", JobDone: true})
				}
			}
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
