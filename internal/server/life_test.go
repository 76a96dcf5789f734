package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

func TestSubmitLaunchExitHistory(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(func(in *client.Submit) {
		in.Script = "#!/bin/sh\necho \"ä < \\ \t\n"
		in.Env = []string{"A=1", "B=two\nlines"}
		in.Spec.TimeLimit = 600
		in.Spec.Args = []string{"x", "y"}
	})
	key := n.AwaitLaunch(id, 1, wire.BatchStep)
	l, err := wire.DecodeLaunch(n.AwaitFrame(wire.TypeLaunch))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(l.Script); got != "#!/bin/sh\necho \"ä < \\ \t\n" {
		t.Errorf("script %q", got)
	}
	env := strings.Join(l.Environ(), "|")
	for _, want := range []string{"A=1", "B=two\nlines", "SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n1"} {
		if !strings.Contains(env, want) {
			t.Errorf("environment lacks %q: %q", want, env)
		}
	}
	if l.Time.Limit.Seconds() != 600 || !l.EndsJob || len(l.Program.Argv) != 2 || l.Limits.CPUs == "" {
		t.Errorf("launch %+v", l)
	}
	n.Send(wire.TypeLogChunk, wire.LogChunk{Key: key, Offset: 0, Tail: true, End: true}, []byte("hello\n"))
	n.End(key, func(x *wire.Exited) { x.LogSize = 6 })
	n.AwaitAck(key)
	j := s.AwaitState(id, core.Completed)
	if j.Usage.User.Seconds() != 2 || j.Exit != (core.Exit{}) || j.End == 0 {
		t.Errorf("job %+v", j.Job)
	}
	var live, all client.JobList
	s.Must("GET", "/api/v1/jobs", nil, &live)
	s.Must("GET", "/api/v1/jobs?history=1", nil, &all)
	if len(live.Jobs) != 0 || len(all.Jobs) != 1 || all.Jobs[0].ID != id {
		t.Errorf("live %d, all %d", len(live.Jobs), len(all.Jobs))
	}
	var log, script []byte
	s.Must("GET", "/api/v1/jobs/1/logs?follow=1", nil, &log)
	s.Must("GET", "/api/v1/jobs/1/script", nil, &script)
	if string(log) != "hello\n" || string(script) != string(l.Script) {
		t.Errorf("log %q, script %q", log, script)
	}
}

func TestHowJobsEnd(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	cases := map[string]struct {
		exit  func(*wire.Exited)
		state core.JobState
		why   string
	}{
		"exit code": {func(x *wire.Exited) { x.ExitCode = 3 }, core.Failed, "exit code 3"},
		"signal":    {func(x *wire.Exited) { x.Signal = 11 }, core.Failed, "signal 11"},
		"oom":       {func(x *wire.Exited) { x.Cause, x.Signal = wire.CauseOOM, 9 }, core.OutOfMemory, "memory"},
		"timeout":   {func(x *wire.Exited) { x.Cause, x.Signal = wire.CauseTimeout, 15 }, core.Timeout, "time limit"},
		"no output": {func(x *wire.Exited) {
			x.Cause, x.Message = wire.CauseLaunchFailed, "/x/y.out: permission denied"
		}, core.Failed, "/x/y.out: permission denied"},
		"no login": {func(x *wire.Exited) {
			x.Cause, x.Message = wire.CauseEnvFailed, "login environment of ann: killed"
		}, core.Failed, "of ann: killed"},
		"keeper":     {func(x *wire.Exited) { x.Cause = wire.CauseKeeperLost }, core.NodeFail, "node"},
		"ended well": {nil, core.Completed, "exit code 0"},
	}
	for name, tc := range cases {
		id := s.Submit(nil)
		k := n.AwaitLaunch(id, 1, wire.BatchStep)
		n.End(k, tc.exit)
		j := s.AwaitState(id, tc.state)
		var why client.Why
		s.Must("GET", "/api/v1/jobs/"+idText(id)+"/why", nil, &why)
		if !strings.Contains(why.Why, tc.why) {
			t.Errorf("%s: why %q wants %q (%+v)", name, why.Why, tc.why, j.Job)
		}
	}
}

// A filter without a word in it must not cancel everything that the other filters let pass.
func TestCancelRefusesEmptyFilters(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	id := s.Submit(nil)
	for _, in := range []client.Cancel{
		{Users: []string{"root"}, Names: []string{""}},
		{Users: []string{" , "}},
		{Users: []string{"root"}, Nodes: []string{""}},
	} {
		if status, err := s.Call("POST", "/api/v1/jobs/cancel", "", in, nil); status != 400 {
			t.Errorf("%+v: %d %v", in, status, err)
		}
	}
	if j := s.Job(id); j.State != core.Pending {
		t.Errorf("the job is %s", j.State)
	}
}

func TestCancelKillsThenFrees(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(nil)
	k := n.AwaitLaunch(id, 1, wire.BatchStep)
	waiting := s.Submit(func(in *client.Submit) { in.Spec.Hold = true })
	var out client.Cancelled
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(id), idText(waiting), "999", "x"}}, &out)
	var codes []core.Code
	for _, r := range out.Results {
		if r.Error == nil {
			codes = append(codes, "")
		} else {
			codes = append(codes, r.Error.Code)
		}
	}
	if got := codesText(codes); got != "not_found invalid - -" {
		t.Errorf("results %q: %+v", got, out.Results)
	}
	n.AwaitFrame(wire.TypeKill)
	if j := s.Job(id); j.State != core.Cancelled || !j.Flags.Has(core.Completing) {
		t.Errorf("job %+v", j.Job)
	}
	n.End(k, func(x *wire.Exited) { x.Cause, x.Signal = wire.CauseCancelled, 15 })
	n.AwaitAck(k)
	s.Await("the job to leave its node", func() bool { return !s.Job(id).Flags.Has(core.Completing) })
	if j := s.Job(waiting); j.State != core.Cancelled {
		t.Errorf("waiting job %+v", j.Job)
	}
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(id)}}, &out)
	if e := out.Results[0].Error; e == nil || e.Reason != "job_finished" {
		t.Errorf("second cancel: %+v", e)
	}
}

func TestSignalSuspendLimit(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(func(in *client.Submit) { in.Spec.TimeLimit = 3600 })
	n.AwaitLaunch(id, 1, wire.BatchStep)
	var out client.Cancelled
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(id)}, Signal: 10, Full: true}, &out)
	var sig wire.Signal
	if err := n.AwaitFrame(wire.TypeSignal).Decode(&sig); err != nil || sig.Number != 10 || !sig.Full ||
		out.Results[0].Error != nil {
		t.Errorf("signal %+v, %+v", sig, out)
	}
	yes, no, limit := true, false, core.Seconds(60)
	s.Must("PATCH", "/api/v1/jobs/"+idText(id), client.Update{Suspend: &yes}, nil)
	n.AwaitFrame(wire.TypeSuspend)
	s.Must("PATCH", "/api/v1/jobs/"+idText(id), client.Update{Suspend: &no, TimeLimit: &limit}, nil)
	var set wire.SetLimit
	if err := n.AwaitFrame(wire.TypeSetLimit).Decode(&set); err != nil || set.Limit.Seconds() != 60 {
		t.Errorf("limit %+v", set)
	}
}

func TestMultiNodeJobIsFinishedEverywhere(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	agents := map[core.NodeName]*servertest.Agent{}
	for _, name := range []core.NodeName{"n1", "n2", "n3"} {
		agents[name] = s.Join(name, core.Compute, false)
		agents[name].Connect()
	}
	id := s.Submit(func(in *client.Submit) { in.Spec.Shape.NodesMin, in.Spec.Shape.NodesMax = 3, 3 })
	j := s.AwaitState(id, core.Running)
	first := agents[j.Alloc.Nodes[0].Node]
	k := first.AwaitLaunch(id, 1, wire.BatchStep)
	first.End(k, nil)
	for _, na := range j.Alloc.Nodes[1:] {
		agents[na.Node].AwaitFrame(wire.TypeFinish)
		if n := agents[na.Node].Launches(k); n != 0 {
			t.Errorf("%s got %d launches", na.Node, n)
		}
	}
	s.Await("the job to leave its nodes", func() bool { return !s.Job(id).Live() })
}

func TestRequeueAfterReboot(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(func(in *client.Submit) { in.Spec.Requeue = true })
	n.AwaitLaunch(id, 1, wire.BatchStep)
	n.Crash("boot-2")
	n.Connect()
	k := n.AwaitLaunch(id, 2, wire.BatchStep)
	n.End(k, nil)
	if j := s.AwaitState(id, core.Completed); j.Attempt != 2 {
		t.Errorf("attempt %d", j.Attempt)
	}
}

// A restarted node may still bring ends that its keeper recorded before. Nothing starts there between those and the
// word that it was restarted: it would be lost at once, run twice, or fail for nothing.
func TestEndsOfARestartedNode(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	whole := func(requeue bool) func(*client.Submit) {
		return func(in *client.Submit) { in.Spec.Requeue, in.Spec.Shape.Exclusive = requeue, true }
	}
	for round := range 20 {
		id := s.Submit(whole(true))
		k := n.AwaitLaunch(id, 1, wire.BatchStep)
		waits := s.Submit(whole(false))
		n.Disconnect()
		n.Boot = fmt.Sprint("boot-", round+2)
		n.End(k, func(x *wire.Exited) { x.Cause = wire.CauseKeeperLost })
		n.Connect()
		n.End(n.AwaitLaunch(waits, 1, wire.BatchStep), nil) // it has waited longer than the one that comes back
		s.AwaitState(waits, core.Completed)
		n.End(n.AwaitLaunch(id, 2, wire.BatchStep), nil)
		if j := s.AwaitState(id, core.Completed); j.Attempt != 2 {
			t.Fatalf("round %d: the job needed %d attempts", round, j.Attempt)
		}
	}
}

// After any loss of the connection, or of the server, the agent is the truth about what runs and the engine about what
// should: nothing is launched twice, no end is lost, what nobody wants is killed.
func TestReconciliation(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	one := func(in *client.Submit) { in.Spec.Shape.Tasks = 1 }
	runs, ends, dies, lost := s.Submit(one), s.Submit(one), s.Submit(one), s.Submit(one)
	var keys []wire.Key
	for _, id := range []core.JobID{runs, ends, dies, lost} {
		keys = append(keys, n.AwaitLaunch(id, 1, wire.BatchStep))
	}
	n.Disconnect()
	n.End(keys[1], func(x *wire.Exited) { x.ExitCode = 7 }) // while nobody listens
	n.Forget(keys[3])                                       // as if its launch had been lost on the way
	var out client.Cancelled
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(dies)}}, &out)

	s.Stop() // the server goes too
	s.Start()
	n.Connect()
	n.AwaitAck(keys[1])
	if j := s.AwaitState(ends, core.Failed); j.Exit.Code != 7 {
		t.Errorf("the end that came late: %+v", j.Job)
	}
	n.AwaitKill(keys[2])
	n.End(keys[2], func(x *wire.Exited) { x.Cause = wire.CauseCancelled })
	n.AwaitAck(keys[2])
	n.AwaitLaunches(keys[3], 2) // told again
	for i, want := range []int{1, 1, 1} {
		if got := n.Launches(keys[i]); got != want {
			t.Errorf("job %d was launched %d times", keys[i].Job, got)
		}
	}
	if j := s.Job(runs); j.State != core.Running || j.Attempt != 1 {
		t.Errorf("the job that ran on: %+v", j.Job)
	}
	n.End(keys[0], nil)
	n.End(keys[3], nil)
	s.AwaitState(runs, core.Completed)
	s.AwaitState(lost, core.Completed)
	n.AwaitAck(keys[0])
	n.AwaitAck(keys[3])
}

func TestSilentNodeKeepsItsJobs(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "timers.silent_after=300ms", "timers.heartbeat=50ms")
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(nil)
	k := n.AwaitLaunch(id, 1, wire.BatchStep)
	n.Disconnect()
	s.Await("the node to be silent", func() bool { return strings.Contains(nodeState(s, "n1"), "NOT_RESPONDING") })
	if j := s.Job(id); j.State != core.Running {
		t.Errorf("job %+v", j.Job)
	}
	n.Connect()
	s.Await("the node to be back", func() bool { return nodeState(s, "n1") == "MIXED" })
	n.End(k, nil)
	s.AwaitState(id, core.Completed)
}

func TestFenceRequeuesOneMarginLater(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "timers.silent_after=200ms", "timers.heartbeat=50ms", "timers.fence=300ms",
		"timers.fence_margin=200ms")
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	if n.Welcome().Fence.Milliseconds() != 300 {
		t.Errorf("the agent was not told its fence: %+v", n.Welcome())
	}
	id := s.Submit(func(in *client.Submit) { in.Spec.Requeue = true })
	n.AwaitLaunch(id, 1, wire.BatchStep)
	n.Disconnect()
	s.Await("the job to be requeued", func() bool { return s.Job(id).State == core.Pending })
}

func TestHalfOpenConnectionIsCut(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "timers.silent_after=1s", "timers.heartbeat=50ms")
	n := s.Join("n1", core.Compute, false)
	n.Mute = true
	n.Connect()
	s.Await("the node to be silent", func() bool { return strings.Contains(nodeState(s, "n1"), "NOT_RESPONDING") })
	n.AwaitCut()
}

func TestProblemDrains(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	n.Send(wire.TypeProblem, wire.Problem{Drain: true, Reason: "Kill task failed"}, nil)
	s.Await("the node to drain", func() bool { return nodeState(s, "n1") == "IDLE+DRAIN" })
	var node client.Node
	s.Must("GET", "/api/v1/nodes/n1", nil, &node)
	if node.Reason != "Kill task failed" {
		t.Errorf("reason %q", node.Reason)
	}
	s.Must("PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "resume"}, nil)
	if st := nodeState(s, "n1"); st != "IDLE" {
		t.Errorf("state %s", st)
	}
}

func TestArrayTasksAreLaunched(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Auto = true
	n.Connect()
	id := s.Submit(func(in *client.Submit) { in.Spec.Array = "1-20" })
	s.Await("all tasks to end", func() bool {
		var list client.JobList
		s.Must("GET", "/api/v1/jobs/"+idText(id), nil, &list)
		done := 0
		for _, j := range list.Jobs {
			if j.State == core.Completed && j.Array != nil && j.Array.Base == id {
				done++
			}
		}
		return done == 20
	})
	if status, err := s.Call("GET", "/api/v1/jobs/"+idText(id)+"_21", "", nil, nil); status != http.StatusNotFound ||
		err.Reason != "invalid_job_id" {
		t.Errorf("a task that never was: %d %v", status, err)
	}
	var one client.JobList
	s.Must("GET", "/api/v1/jobs/"+idText(id)+"_7", nil, &one)
	if len(one.Jobs) != 1 || one.Jobs[0].Array.Task != 7 {
		t.Errorf("task 7: %+v", one.Jobs)
	}
}
