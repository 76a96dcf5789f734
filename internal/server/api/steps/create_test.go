package steps

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/stream"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/store/sqlite"
)

// A caller that is gone when its step has been made leaves no step behind that nobody launches and nobody ends. Here
// the node is not connected, so that the launch fails and the step must end.
func TestStepOfACallerThatLeftEnds(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "bireme.db"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	e := engine.New(st, engine.Config{}, log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	<-e.Leading()
	running := make(chan struct{})
	h := hub.New(hub.Config{Env: hub.Env{
		Step: func([]slurm.StepPart) []string { return nil },
		Task: func([]slurm.StepPart, int, int, int) []string { return nil },
	}}, e, st.Blob, logstore.New(t.TempDir()), log)
	e.Subscribe(h.Publish)
	e.Subscribe(func(p *engine.Published) {
		for _, j := range p.Changes.Jobs {
			if j.State == core.Running && j.Steps == 0 {
				close(running)
			}
		}
	})
	a := &Steps{Base: &call.Base{Engine: e, Store: st, Log: log}, Hub: h, Streams: stream.New(stream.Patience{})}
	a.StoreConfig(config.Default())
	n := coretest.Node("n1").Build()
	ann := core.Identity{User: "ann", UID: 1000}
	if _, err := engine.Do(ctx, e, &state.EnsureUser{UID: 1000, UnixName: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Do(ctx, e, &state.Register{
		Node: n.Name, Hardware: n.Hardware, Host: n.Host,
		Roles: n.Roles,
	}); err != nil {
		t.Fatal(err)
	}
	made, err := engine.Do(ctx, e, &state.Submit{By: ann, Spec: coretest.Job().User("ann").Set(func(s *core.Spec) {
		s.UID, s.Kind = 1000, core.Interactive
	}).Spec()})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-running:
	case <-time.After(20 * time.Second):
		t.Fatal("the job does not start")
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(`{"argv":["true"],"tasks":1}`))
	r.SetPathValue("id", strconv.FormatInt(int64(made.ID), 10))
	gone, leave := context.WithCancel(r.Context())
	leave()
	_, err = a.Create(nil, r.WithContext(gone), &call.Caller{Identity: ann})
	if core.CodeOf(err) != core.Unavailable || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("create: %v", err)
	}
	list := e.Snapshot().Steps(made.ID)
	if len(list) != 1 || list[0].State != core.Failed || !strings.Contains(list[0].Message, "not connected") {
		t.Errorf("steps: %+v", list)
	}
}
