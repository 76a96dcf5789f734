package server_test

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// TestSkewAndFaults: a clock that is off, and what a node finds by itself, drain it; a warning does not; it is back
// when nothing is left, unless somebody else has drained it meanwhile.
func TestSkewAndFaults(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "health.skew=drain", "health.max_skew=1m")
	a := s.Join("n1", core.Compute, false)
	a.Mute = true // its heartbeats are the test's
	a.Connect()
	tells := func(off time.Duration, faults ...core.NodeFault) {
		a.Send(wire.TypeHeartbeat, wire.Heartbeat{Now: core.At(time.Now().Add(off))}, nil)
		a.Send(wire.TypeHealth, wire.Health{Faults: faults}, nil)
	}
	node := func() *client.Node {
		var n client.Node
		s.Must("GET", "/api/v1/nodes/n1", nil, &n)
		return &n
	}
	tells(-time.Hour, core.NodeFault{Check: "memory", Text: "little memory"})
	s.Await("the clock to drain it", func() bool {
		n := node()
		return n.State == "IDLE+DRAIN" && n.Reason == "its clock is off by more than 1m0s" && n.ReasonBy == "bireme" &&
			len(n.Faults) == 1
	})
	tells(0, core.NodeFault{Check: "disk", Text: "/tmp is full", Drain: true})
	s.Await("the disk to", func() bool { n := node(); return n.State == "IDLE+DRAIN" && n.Reason == "/tmp is full" })
	tells(0)
	s.Await("it to be back", func() bool { n := node(); return n.State == "IDLE" && n.Reason == "" })

	tells(0, core.NodeFault{Check: "disk", Text: "/tmp is full", Drain: true})
	s.Await("the disk to drain it again", func() bool { return node().State == "IDLE+DRAIN" })
	s.Must("PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "drain", Reason: "new disk"}, nil)
	tells(0)
	s.Await("the fault to be gone", func() bool { return len(node().Faults) == 0 })
	if n := node(); n.State != "IDLE+DRAIN" || n.Reason != "new disk" || n.ReasonBy == "bireme" {
		t.Errorf("what an administrator drained came back: %s %q by %s", n.State, n.Reason, n.ReasonBy)
	}
}

// TestWakeOfOneThatNeverSlept: a node whose agent stayed connected all the time is up again when it has said hello once
// more.
func TestWakeOfOneThatNeverSlept(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	a := s.Join("n1", core.Compute, false)
	a.Connect()
	s.Must("PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "power_down"}, nil)
	if got := nodeState(s, "n1"); got != "IDLE+POWERED_DOWN" {
		t.Errorf("asleep: %s", got)
	}
	s.Must("PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "power_up"}, nil)
	a.AwaitCut()
	if got := nodeState(s, "n1"); got != "IDLE+POWERING_UP" {
		t.Errorf("waking: %s", got)
	}
	a.Connect()
	if got := nodeState(s, "n1"); got != "IDLE" {
		t.Errorf("up: %s", got)
	}
}
