package server_test

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// A node that is removed is forgotten with its key; its jobs are waited for, or ended as on a node that is set down.
func TestRemoveNode(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(nil)
	key := n.AwaitLaunch(id, 1, wire.BatchStep)
	if _, err := s.Call("DELETE", "/api/v1/nodes/n1", "", nil, nil); err == nil || err.Reason != "node_busy" {
		t.Fatalf("a node with jobs was removed: %v", err)
	}
	if _, err := s.Call("DELETE", "/api/v1/nodes/nope", "", nil, nil); err == nil || err.Code != core.NotFound {
		t.Fatalf("a node that is not there: %v", err)
	}
	if _, err := s.Call("DELETE", "/api/v1/nodes/n1?now=1", s.Token(core.User{Name: "bob"}), nil, nil); err == nil ||
		err.Code != core.Denied {
		t.Fatalf("anybody removes nodes: %v", err)
	}
	var out client.RemovedNode
	s.Must("DELETE", "/api/v1/nodes/n1?drain=1", nil, &out)
	if out.Gone {
		t.Fatal("it is gone with a job on it")
	}
	n.End(key, nil)
	s.AwaitState(id, core.Completed)
	n.AwaitCut()
	if err := n.TryConnect(); err == nil {
		t.Fatal("a node that was removed is back with its old certificate")
	}
	if err := n.Renew(nil, false); core.CodeOf(err) != core.Denied {
		t.Fatalf("a node that was removed got a certificate: %v", err)
	}

	// The name may come again, with a new key; the old one is of no use.
	again := s.Join("n1", core.Compute, false)
	again.Connect()
	if err := n.TryConnect(); err == nil {
		t.Fatal("the old key works for the new node")
	}
	id = s.Submit(nil)
	key = again.AwaitLaunch(id, 1, wire.BatchStep)
	s.Must("DELETE", "/api/v1/nodes/n1?now=1", nil, &out)
	again.AwaitKill(key)
	again.End(key, nil)
	again.AwaitCut()
	if _, err := s.Call("GET", "/api/v1/nodes/n1", "", nil, nil); err == nil || err.Code != core.NotFound {
		t.Fatalf("the node is still there: %v", err)
	}
	var j client.JobList
	s.Must("GET", "/api/v1/jobs/"+idText(id), nil, &j)
	if len(j.Jobs) != 1 || j.Jobs[0].State == core.Running {
		t.Errorf("its job: %+v", j.Jobs)
	}
}
