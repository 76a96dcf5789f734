package sim

import (
	"bytes"
	"encoding/json"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// recording is a server's engine as far as a recording tells: what is put in, what the planner is told and decides.
type recording struct {
	t    *testing.T
	st   *state.State
	plan *sched.Planner
	out  bytes.Buffer
	now  core.Time
	seen int64
	root core.Identity
}

func (r *recording) line(rec *state.Record) {
	r.t.Helper()
	b, err := json.Marshal(rec)
	if err != nil {
		r.t.Fatal(err)
	}
	r.out.Write(append(b, '\n'))
}

func (r *recording) do(in state.Input) {
	r.t.Helper()
	rec, err := state.RecordInput(in, r.st.Advance(r.now))
	if err != nil {
		r.t.Fatal(err)
	}
	r.line(rec)
	if _, err := r.st.Apply(in); err != nil {
		r.t.Fatal(err)
	}
	r.line(&state.Record{Told: true})
	r.plan.Apply(r.st.PlannerChanges())
	r.seen++
}

// pass plans, writes that down and carries it out.
func (r *recording) pass() *sched.Plan {
	r.t.Helper()
	p := r.plan.Pass(r.now)
	r.line(&state.Record{Now: r.now, Pass: &state.Passed{
		Now: r.now, Seen: r.seen, Starts: p.Starts,
		Preempts: p.Preempts,
	}})
	for i := range p.Preempts {
		if _, err := r.st.Apply(state.PreemptOf(&p.Preempts[i])); err != nil {
			r.t.Fatal(err)
		}
	}
	for i := range p.Starts {
		if _, err := r.st.Apply(state.StartOf(&p.Starts[i])); err != nil {
			r.t.Fatal(err)
		}
	}
	if len(p.Starts)+len(p.Preempts) > 0 {
		r.plan.Apply(r.st.PlannerChanges())
		r.seen++
	}
	r.line(&state.Record{Seal: true})
	r.st.Flush()
	return p
}

// TestReplayOfPreemption: what was decided about jobs that make room for others is decided again.
func TestReplayOfPreemption(t *testing.T) {
	t.Parallel()
	for _, mode := range []core.PreemptMode{core.PreemptRequeue, core.PreemptSuspend} {
		cfg := state.Config{Preemption: core.Preemption{Type: core.PreemptByQOS, Mode: mode}}
		uid := uint32(1000)
		img := &state.Image{
			Users:    []*core.User{{Name: "alice", UnixName: "alice", UID: &uid, Role: core.RoleUser, Default: "default"}},
			Projects: []*core.Project{{Name: "default", Members: []core.Member{{User: "alice", Role: core.RoleUser}}}},
			Now:      epoch, Nodes: []*core.Node{coretest.Node("n1").ID(1).CPUs(4).Build()},
			QOS: []*core.QOS{{Name: "low", Priority: 1}, {Name: "high", Priority: 9, Preempt: []core.QOSName{"low"}}},
		}
		r := &recording{t: t, now: epoch, root: core.Identity{User: "root", Admin: true}}
		r.line(&state.Record{Load: &state.Loaded{Config: cfg, Image: img}})
		r.st = state.New(cfg, img)
		r.plan = sched.New(state.PlannerConfig(cfg))
		r.plan.Apply(r.st.All())
		submit := func(qos core.QOSName) {
			s := coretest.Job().Name(string(qos)).CPUs(4).Set(func(s *core.Spec) { s.QOS, s.Requeue = qos, true }).Spec()
			r.do(&state.Submit{By: r.root, Spec: s})
		}
		submit("low")
		r.pass()
		r.now += 60e6
		submit("high")
		p := r.pass()
		if mode == core.PreemptSuspend && (len(p.Starts) != 1 || len(p.Starts[0].Suspends) != 1) ||
			mode == core.PreemptRequeue && len(p.Preempts) != 1 {
			t.Fatalf("%s: planned %+v %+v", mode, p.Starts, p.Preempts)
		}
		r.now += 1e6
		if mode == core.PreemptRequeue {
			r.do(&state.Exited{Node: "n1", Job: 1, Attempt: 1, Step: "batch", Cause: state.CauseCancelled, JobDone: true})
			if p := r.pass(); len(p.Starts) != 1 || p.Starts[0].Job != 2 {
				t.Fatalf("started %+v", p.Starts)
			}
		}
		r.now += 60e6
		r.do(&state.Exited{Node: "n1", Job: 2, Attempt: 1, Step: "batch", JobDone: true})
		r.pass()
		got, err := Replay("recording", &r.out)
		if err != nil || got.Different != 0 ||
			got.Starts != int64(map[core.PreemptMode]int{core.PreemptRequeue: 3, core.PreemptSuspend: 2}[mode]) {
			t.Errorf("%s: replayed as %+v, %v", mode, got, err)
		}
	}
}
