//go:build e2e

package faults

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// A node that is cut off continues with its jobs, and what ended is told when the wire is whole.
func TestCutOff(t *testing.T) {
	t.Parallel()
	b, w := throughWireCut(t, cluster.Options{Set: []string{"timers.silent_after=400ms"}})
	node := b.Nodes()[0]
	o := &order{name: "cut", sleep: 1500 * time.Millisecond, code: 6, requeue: true}
	id := b.submit(o)
	b.started(o, 1)
	w.sever()
	b.WaitNode(node, "silent", func(n *client.Node) bool { return n.Flags.Has(core.NodeSilent) })
	b.ended(o)
	if j := b.Job(id); j.State != core.Running {
		t.Errorf("the job of a node that is cut off is %v: %q", j.State, j.Message)
	}
	w.mend()
	wantEnd(t, b.WaitEnd(id), core.Failed, core.Exit{Code: 6}, 1)
	b.marks(o, 1)
}

// With a fence the agent kills what runs after so much silence, and the server starts it again one margin later.
func TestFence(t *testing.T) {
	t.Parallel()
	b, w := throughWireCut(t, cluster.Options{Set: []string{
		"timers.silent_after=400ms", "timers.fence=1500ms", "timers.fence_margin=1500ms",
	}})
	o := &order{name: "fenced", sleep: time.Minute, requeue: true}
	last := &order{name: "last", sleep: time.Minute}
	id, lastID := b.submit(o), b.submit(last)
	b.started(o, 1)
	b.started(last, 1)
	w.sever()
	b.Eventually("the agent has killed the jobs", func() (bool, string) { return !b.held(o) && !b.held(last), "they run" })
	if j := b.Job(id); j.State != core.Running || j.Attempt != 1 {
		t.Errorf("before the margin the job is %v in attempt %d: %q", j.State, j.Attempt, j.Message)
	}
	b.WaitState(id, core.Pending)
	if j := b.WaitEnd(lastID); j.State != core.NodeFail {
		t.Errorf("the job that may not run again ended %v: %q", j.State, j.Message)
	}
	w.mend()
	b.started(o, 2)
	b.cancel(id)
	b.marks(o, 2)
	b.marks(last, 1)
}

// A job may have a fence of its own where the cluster has none.
func TestFenceOfOneJob(t *testing.T) {
	t.Parallel()
	b, w := throughWireCut(t, cluster.Options{Set: []string{"timers.silent_after=400ms", "timers.fence_margin=1s"}})
	fenced := &order{name: "own", sleep: time.Minute, requeue: true}
	free := &order{name: "free", sleep: time.Minute, requeue: true}
	fencedID := b.submit(fenced, func(s *core.Spec) { s.Extra = &core.Extra{Fence: 1} })
	freeID := b.submit(free)
	b.started(fenced, 1)
	b.started(free, 1)
	w.sever()
	b.Eventually("the agent has killed the fenced job", func() (bool, string) { return !b.held(fenced), "it runs" })
	b.WaitState(fencedID, core.Pending)
	if j := b.Job(freeID); j.State != core.Running || !b.held(free) {
		t.Errorf("the job without a fence is %v", j.State)
	}
	w.mend()
	b.started(fenced, 2)
	if j := b.Job(freeID); j.State != core.Running || j.Attempt != 1 {
		t.Errorf("the job without a fence is %v in attempt %d", j.State, j.Attempt)
	}
	for _, id := range []string{fencedID, freeID} {
		b.cancel(id)
	}
	b.marks(fenced, 2)
	b.marks(free, 1)
}
