package hub

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/sqlite"
	"bireme.dev/bireme/internal/wire"
)

// patience is how long a test waits for anything before it fails.
const patience = time.Minute

// lab is a hub with an engine and a store of its own. Its agents are ends of pipes: what the hub writes waits until the
// test reads it, so that a test can act between any two frames.
type lab struct {
	t      *testing.T
	hub    *Hub
	engine *engine.Engine
	store  *failing

	mu   sync.Mutex
	held bool // the hub is not to learn of commits yet
	kept []*engine.Published
}

// publish tells the hub of a commit, or keeps it for release.
func (l *lab) publish(p *engine.Published) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		l.kept = append(l.kept, p)
		return
	}
	l.hub.Publish(p)
}

// hold keeps commits from the hub until release.
func (l *lab) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

func (l *lab) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	for _, p := range l.kept {
		l.hub.Publish(p)
	}
	l.kept = nil
}

// failing is a store that may report a commit as failed that it has written.
type failing struct {
	store.Store
	mu   sync.Mutex
	lies bool
}

func (f *failing) Commit(ctx context.Context, epoch int64, c *core.Changes) error {
	err := f.Store.Commit(ctx, epoch, c)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.lies && len(c.Steps) > 0 {
		f.lies = false
		return errors.New("the answer was lost")
	}
	return err
}

func newLab(t *testing.T, change ...func(*engine.Config)) *lab {
	t.Helper()
	inner, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "bireme.db"))
	if err != nil {
		t.Fatal(err)
	}
	st := &failing{Store: inner}
	log := slog.New(slog.DiscardHandler)
	logs := logstore.New(t.TempDir())
	var cfg engine.Config
	for _, f := range change {
		f(&cfg)
	}
	l := &lab{t: t, store: st, engine: engine.New(st, cfg, log)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.engine.Run(ctx) })
	<-l.engine.Leading()
	l.hub = New(Config{
		SilentAfter: patience / 20, Heartbeat: time.Second,
		Env: Env{
			Batch: func(*core.Job, int) []string { return nil },
			Step:  func([]slurm.StepPart) []string { return nil },
			Task:  func([]slurm.StepPart, int, int, int) []string { return nil },
		},
	}, l.engine, st.Blob, logs, log)
	l.engine.Subscribe(l.publish)
	l.hub.Load(l.engine.Snapshot())
	running, stop := context.WithCancel(ctx)
	wg.Go(func() { _ = l.hub.Run(running) })
	t.Cleanup(func() {
		stop()
		over, now := context.WithCancel(context.Background())
		now()
		l.hub.Shutdown(over)
		cancel()
		wg.Wait()
		if err := errors.Join(logs.Close(), inner.Close()); err != nil {
			t.Error(err)
		}
	})
	do(l, &state.EnsureUser{UID: 1000, UnixName: "ann"})
	return l
}

func do[R any](l *lab, in state.Command[R]) R {
	l.t.Helper()
	reply, err := engine.Do(l.t.Context(), l.engine, in)
	if err != nil {
		l.t.Fatalf("%T: %v", in, err)
	}
	return reply
}

// await waits until f holds, looking again after every commit.
func (l *lab) await(what string, f func() bool) {
	l.t.Helper()
	news := make(chan struct{}, 1)
	defer l.engine.Subscribe(func(*engine.Published) {
		select {
		case news <- struct{}{}:
		default:
		}
	})()
	late := time.After(patience)
	for !f() {
		select {
		case <-news:
		case <-time.After(10 * time.Millisecond): // what the hub knows changes without a commit
		case <-late:
			l.t.Fatalf("waiting for %s", what)
		}
	}
}

// ann is who acts.
var ann = core.Identity{User: "ann", UID: 1000}

// submit makes a job of ann's on n1: an allocation without a script.
func (l *lab) submit(kind core.JobKind) core.JobID {
	l.t.Helper()
	spec := coretest.Job().User("ann").Set(func(s *core.Spec) { s.UID, s.Kind = 1000, kind }).Spec()
	return do(l, &state.Submit{By: ann, Spec: spec}).ID
}

func (l *lab) awaitState(id core.JobID, want core.JobState) *core.Job {
	l.t.Helper()
	var j *core.Job
	l.await("job "+want.String(), func() bool {
		j, _ = l.engine.Snapshot().Job(id)
		return j != nil && j.State == want
	})
	return j
}

// makeStep makes a step of one task.
func (l *lab) makeStep(id core.JobID) []slurm.StepPart {
	l.t.Helper()
	made := do(l, &state.CreateStep{
		By: ann, Step: &core.Step{Job: id, Name: "x"},
		Request: &core.StepRequest{Tasks: 1, CPUsPerTask: 1, MaxTasksPerNode: 512, Overlap: true},
	})
	return []slurm.StepPart{{
		Job: made.Jobs[0], Step: made.Steps[0], Ranks: [][]int32{{0}}, Ask: &client.NewStep{Argv: []string{"true"}},
	}}
}

func (l *lab) launch(all []slurm.StepPart) {
	l.t.Helper()
	if away, err := l.hub.LaunchStep(all, 0, "token"); err != nil || len(away) > 0 {
		l.t.Fatalf("launch: %v, %v are away", err, away)
	}
}

// stepState is the state of a step now.
func (l *lab) stepState(st *core.Step) core.JobState {
	for _, s := range l.engine.Snapshot().Steps(st.Job) {
		if s.ID == st.ID {
			return s.State
		}
	}
	return 0
}

// agent is a node's end of its connection.
type agent struct {
	l    *lab
	c    net.Conn
	w    *wire.Conn
	done chan struct{}
}

// dial connects node n1 with what it runs, and returns when the hub has it. Nothing is read yet: the hub cannot get
// past its welcome.
func (l *lab) dial(running ...wire.Key) *agent {
	l.t.Helper()
	near, far := net.Pipe()
	a := &agent{l: l, c: near, w: wire.NewConn(near), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		_ = l.hub.Serve(context.Background(), far, ca.Node{Name: "n1", Roles: core.Compute})
	}()
	l.t.Cleanup(a.close)
	n := coretest.Node("n1").Build()
	if err := a.w.Send(wire.TypeNodeHello, wire.NodeHello{
		Protocol: wire.AgentProtocol, Node: "n1", Hardware: n.Hardware, Host: n.Host, Running: running,
	}); err != nil {
		l.t.Fatal(err)
	}
	l.await("the connection", func() bool { return l.hub.Live("n1").Connected })
	return a
}

func (a *agent) close() {
	_ = a.c.Close()
	<-a.done
}

// next reads a frame that is no acknowledgement.
func (a *agent) next() wire.Frame {
	a.l.t.Helper()
	if err := a.c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		a.l.t.Fatal(err)
	}
	for {
		f, err := a.w.Next()
		if err != nil {
			a.l.t.Fatal(err)
		}
		if f.Type != wire.TypePong && f.Type != wire.TypeAckExit {
			return f
		}
	}
}

// want reads a frame and fails unless it is of a type.
func (a *agent) want(typ wire.Type) wire.Frame {
	a.l.t.Helper()
	f := a.next()
	if f.Type != typ {
		a.l.t.Fatalf("a frame of type %d, not %d: %s", f.Type, typ, f.Header)
	}
	return f
}

// welcomed reads the welcome: from here on the hub compares what the node has with what it should have.
func (a *agent) welcomed() *agent {
	a.l.t.Helper()
	a.want(wire.TypeWelcome)
	return a
}
