package server_test

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// A job that is tried is told when and where it would start. Nothing waits afterwards, but its number is gone.
func TestTry(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	try := func(change func(*client.Submit)) client.Trial {
		in := &client.Submit{Spec: core.Spec{Name: "t", IO: core.IO{WorkDir: "/"}}, Script: "#!/bin/sh\n"}
		change(in)
		var out client.Trials
		s.Must("POST", "/api/v1/jobs/try", in, &out)
		return out.Trials[0]
	}
	if got := try(func(*client.Submit) {}); got.ID != 1 || got.Start == 0 || got.Nodes != "n1" || got.CPUs == 0 ||
		got.Partition != "main" {
		t.Errorf("on an idle cluster: %+v", got)
	}
	id := s.Submit(func(in *client.Submit) { in.Spec.Shape.Exclusive, in.Spec.TimeLimit = true, 600 })
	if id != 2 {
		t.Errorf("the next job has number %d", id)
	}
	n.AwaitLaunch(id, 1, wire.BatchStep)
	j := s.AwaitState(id, core.Running)
	if got := try(func(in *client.Submit) { in.Spec.TimeLimit = 60 }); got.Start != j.Start+600e6 ||
		got.Nodes != "n1" || got.Waiting != core.ReasonResources {
		t.Errorf("behind a job that started at %v: %+v", j.Start, got)
	}
	if got := try(func(in *client.Submit) { in.Spec.Shape.NodesMin = 7 }); got.Start != 0 || got.Why == "" {
		t.Errorf("more than there is: %+v", got)
	}
	_, err := s.Call("POST", "/api/v1/jobs/try", "",
		&client.Submit{Spec: core.Spec{Partition: core.ListPartitions("nope")}, Script: "#!/bin/sh\n"}, nil)
	if err == nil || err.Reason != "invalid_partition" {
		t.Errorf("an unknown partition: %v", err)
	}
	var list client.JobList
	s.Must("GET", "/api/v1/jobs", nil, &list)
	if len(list.Jobs) != 1 {
		t.Errorf("%d jobs are there", len(list.Jobs))
	}
}
