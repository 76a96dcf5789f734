package hub

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/wire"
)

// allocation returns a node that is connected and an allocation on it.
func allocation(t *testing.T) (*lab, *agent, core.JobID) {
	t.Helper()
	l := newLab(t)
	a := l.dial().welcomed()
	id := l.submit(core.Interactive)
	l.awaitState(id, core.Running)
	return l, a, id
}

// wantStep reads the launch of a step, and what opens its streams.
func (a *agent) wantStep(all []slurm.StepPart) {
	a.l.t.Helper()
	launch, err := wire.DecodeLaunch(a.want(wire.TypeLaunch))
	if err != nil || bare(launch.Key) != stepKey(all[0].Step) {
		a.l.t.Fatalf("launch of %v: %v", launch.Key, err)
	}
	a.want(wire.TypeOpenStream)
}

// exchange has the hub take all that the agent sent and was sent before.
func (a *agent) exchange() {
	a.l.t.Helper()
	if err := a.w.Send(wire.TypeHeartbeat, wire.Heartbeat{}); err != nil {
		a.l.t.Fatal(err)
	}
	for {
		f, err := a.w.Next()
		if err != nil {
			a.l.t.Fatal(err)
		}
		if f.Type == wire.TypePong {
			return
		}
		if f.Type != wire.TypeAckExit {
			a.l.t.Fatalf("a frame of type %d: %s", f.Type, f.Header)
		}
	}
}

// A step that is made between the node's connection and its welcome is launched, once, and not taken for one that was
// lost with an earlier connection.
func TestStepMadeWhileItsNodeRegistersIsLaunched(t *testing.T) {
	t.Parallel()
	l, first, id := allocation(t)
	first.close()
	a := l.dial()
	all := l.makeStep(id)
	l.launch(all)
	a.welcomed().wantStep(all)
	a.exchange()
	do(l, &state.EnsureUser{UID: 1001, UnixName: "bob"}) // behind whatever the hub reported
	if st := l.stepState(all[0].Step); st != core.Running {
		t.Errorf("the step is %s", st)
	}
}

// A step that was made before its node connected, and is launched after the hub has looked at what the node has, is not
// lost: whoever made it has yet to launch it.
func TestStepMadeBeforeItsNodeRegistersAndLaunchedAfter(t *testing.T) {
	t.Parallel()
	l, first, id := allocation(t)
	all := l.makeStep(id)
	first.close()
	a := l.dial().welcomed()
	a.exchange()
	l.launch(all)
	a.wantStep(all)
	a.exchange()
	do(l, &state.EnsureUser{UID: 1001, UnixName: "bob"})
	if st := l.stepState(all[0].Step); st != core.Running {
		t.Errorf("the step is %s", st)
	}
}

// A step that was sent over a connection which broke before the node had it is lost, and ends.
func TestStepLostWithItsConnectionEnds(t *testing.T) {
	t.Parallel()
	l, first, id := allocation(t)
	all := l.makeStep(id)
	l.launch(all)
	first.close()
	l.dial().welcomed()
	l.await("the end of the step", func() bool { return l.stepState(all[0].Step) == core.Failed })
}

// A step that the node has goes on.
func TestStepThatTheNodeHasGoesOn(t *testing.T) {
	t.Parallel()
	l, first, id := allocation(t)
	all := l.makeStep(id)
	l.launch(all)
	first.wantStep(all)
	first.close()
	a := l.dial(stepKey(all[0].Step)).welcomed()
	a.want(wire.TypeSetLimit)
	a.want(wire.TypeSuspend)
	a.exchange()
	do(l, &state.EnsureUser{UID: 1001, UnixName: "bob"})
	if st := l.stepState(all[0].Step); st != core.Running {
		t.Errorf("the step is %s", st)
	}
}

// What is asked of a job after its launch reaches it after its launch, also when both are queued while its node
// registers.
func TestOrdersKeepTheirPlaceWhileANodeRegisters(t *testing.T) {
	t.Parallel()
	l, first, _ := allocation(t)
	first.close()
	a := l.dial()
	id := l.submit(core.Batch)
	j := l.awaitState(id, core.Running)
	l.await("the hub to know", func() bool {
		l.hub.mu.Lock()
		defer l.hub.mu.Unlock()
		return l.hub.jobs[id] != nil
	})
	if err := l.hub.Signal(j, wire.Signal{Number: 10}); err != nil {
		t.Fatal(err)
	}
	a.welcomed()
	launch, err := wire.DecodeLaunch(a.want(wire.TypeLaunch))
	if err != nil || launch.Key.Job != core.JobID(id) {
		t.Fatalf("launch of %v: %v", launch.Key, err)
	}
	a.want(wire.TypeSignal)
	a.exchange()
}

// A signal to a job whose launch was lost with an earlier connection follows the launch that replaces it.
func TestSignalFollowsALaunchThatIsSentAgain(t *testing.T) {
	t.Parallel()
	l, first, _ := allocation(t)
	id := l.submit(core.Batch)
	j := l.awaitState(id, core.Running)
	first.want(wire.TypeLaunch)
	first.close()
	a := l.dial()
	if err := l.hub.Signal(j, wire.Signal{Number: 10}); err != nil {
		t.Fatal(err)
	}
	a.welcomed()
	a.want(wire.TypeLaunch)
	a.want(wire.TypeSignal)
	a.exchange()
}

// A job that is canceled while its node registers is not launched any more.
func TestJobCanceledWhileItsNodeRegistersIsNotLaunched(t *testing.T) {
	t.Parallel()
	l, first, _ := allocation(t)
	first.close()
	a := l.dial()
	id := l.submit(core.Batch)
	l.awaitState(id, core.Running)
	do(l, &state.Cancel{By: ann, Job: id})
	l.await("the hub to know", func() bool {
		l.hub.mu.Lock()
		defer l.hub.mu.Unlock()
		return l.hub.jobs[id] != nil && over(l.hub.jobs[id].job)
	})
	a.welcomed()
	a.want(wire.TypeFinish)
	a.want(wire.TypeKill)
	a.exchange()
}

// Who makes a step is answered before the hub is told of the commit: the launch waits for that, and does not take a job
// that has just started for one that has ended.
func TestLaunchWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	l, a, _ := allocation(t)
	l.hold()
	id := l.submit(core.Interactive)
	l.awaitState(id, core.Running)
	all := l.makeStep(id)
	launched := make(chan struct{})
	go func() {
		defer close(launched)
		if away, err := l.hub.LaunchStep(all, 0, "token"); err != nil || len(away) > 0 {
			t.Errorf("launch: %v, %v are away", err, away)
		}
	}()
	l.release()
	a.wantStep(all)
	<-launched
}

// A step of a job of whose end the hub has heard is not launched after the kill.
func TestLaunchOfAnEndedJobIsRefused(t *testing.T) {
	t.Parallel()
	l, a, _ := allocation(t)
	l.hold()
	id := l.submit(core.Interactive)
	l.awaitState(id, core.Running)
	all := l.makeStep(id)
	do(l, &state.Cancel{By: ann, Job: id})
	l.release()
	a.want(wire.TypeKill)
	if _, err := l.hub.LaunchStep(all, 0, "token"); core.CodeOf(err) != core.Conflict {
		t.Errorf("launch: %v", err)
	}
	a.exchange()
}

// A step that was recorded by a commit which was reported as failed has nobody who launches it: it ends.
func TestStepOfACommitWithAnUnknownOutcomeEnds(t *testing.T) {
	t.Parallel()
	l, _, id := allocation(t)
	l.store.mu.Lock()
	l.store.lies = true
	l.store.mu.Unlock()
	_, err := engine.Do(t.Context(), l.engine, &state.CreateStep{
		By: ann, Step: &core.Step{Job: id, Name: "x"},
		Request: &core.StepRequest{Tasks: 1, CPUsPerTask: 1, MaxTasksPerNode: 512},
	})
	if core.CodeOf(err) != core.Unavailable {
		t.Fatalf("create: %v", err)
	}
	l.await("the end of the step", func() bool {
		list := l.engine.Snapshot().Steps(id)
		return len(list) == 1 && list[0].State == core.Failed
	})
}

// A step whose end cannot be recorded is ended later.
func TestAbandonedStepEnds(t *testing.T) {
	t.Parallel()
	l, _, id := allocation(t)
	all := l.makeStep(id)
	l.hub.Abandoned.Add(all[0].Step, "nobody wants it")
	l.await("the end of the step", func() bool { return l.stepState(all[0].Step) == core.Failed })
}

// A step that was to end while its node was away is ended when the node is back with it, and once it has ended the
// order is forgotten.
func TestKillOfAStepWaitsForItsNode(t *testing.T) {
	t.Parallel()
	l, first, id := allocation(t)
	all := l.makeStep(id)
	l.launch(all)
	first.wantStep(all)
	first.close()
	l.await("disconnected", func() bool { return l.hub.Connected() == 0 })
	step := stepKey(all[0].Step)
	j := l.awaitState(id, core.Running)
	if err := l.hub.KillStep(j, wire.Kill{Step: step.Step, Reason: wire.ReasonForsaken}); err == nil {
		t.Error("a node that is away was told")
	}
	step.Node = "n1"
	a := l.dial(step)
	for {
		f := a.next()
		if f.Type != wire.TypeKill {
			continue
		}
		var k wire.Kill
		if err := f.Decode(&k); err != nil || k.Step != step.Step || k.Reason != wire.ReasonForsaken {
			t.Fatalf("%+v: %v", k, err)
		}
		break
	}
	do(l, &state.Exited{
		Node: "n1", Job: id, Attempt: step.Attempt, Step: step.Step, Cause: state.CauseCancelled,
	})
	l.await("forgotten", func() bool {
		l.hub.mu.Lock()
		defer l.hub.mu.Unlock()
		return len(l.hub.jobs[id].kills) == 0
	})
}
