package state

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestRunLife: a run is changed in place by its owner, ends as failed when no node could ever serve it, and is deleted
// after its end only.
func TestRunLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node := coretest.Node("n1").Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	w.must(&EnsureUser{UID: 1001, UnixName: "bob"})
	alice, bob := core.Identity{User: "alice", UID: 1000}, core.Identity{User: "bob", UID: 1001}
	submit := func(name string, cpus int32) *Submit {
		spec := coretest.Job().Set(func(s *core.Spec) {
			s.User, s.UID, s.Hold = "alice", 1000, true
			s.Shape.CPUsPerTask = cpus
		}).Spec()
		return &Submit{By: alice, Spec: spec, Run: &core.Run{Name: name, ID: "id-" + name}, Strict: true, FailUnfit: true}
	}
	id := w.must(submit("one", 1)).(*Submitted).ID
	run := func(name string) *core.Run {
		r, _ := w.st.Snapshot().Run("main", name)
		return r
	}
	project := w.st.Snapshot().Runs()[0].Project
	edit := &EditRun{By: bob, Project: project, Name: "one", Priority: 7}
	if _, err := w.do(edit); core.CodeOf(err) != core.Denied {
		t.Fatalf("another's run: %v", err)
	}
	edit.By, edit.ID = alice, "id-other"
	if _, err := w.do(edit); core.CodeOf(err) != core.NotFound {
		t.Fatalf("a run that was replaced: %v", err)
	}
	edit.ID = "id-one"
	if r := w.must(edit).(*core.Run); r.Updates != 1 {
		t.Fatalf("%+v", r)
	}
	if j, _ := w.st.Snapshot().Job(id); j.Spec.More().RunPriority != 7 {
		t.Fatalf("priority %d", j.Spec.More().RunPriority)
	}
	open, _ := w.st.Snapshot().Run(project, "one")
	if _, err := w.do(&DeleteRun{By: alice, Run: open}); core.ReasonOf(err) != "run_active" {
		t.Fatalf("an open run: %v", err)
	}

	// No node could ever hold it: there is a record, and nothing waits.
	unfit := w.must(submit("vast", 1000)).(*Submitted).ID
	if _, live := w.st.Snapshot().Job(unfit); live || run("vast") != nil {
		t.Fatal("it waits")
	}
	ended := *open
	ended.Name, ended.ID, ended.Ended = "vast", "id-vast", w.st.Snapshot().Now()
	if _, err := w.do(&DeleteRun{By: bob, Run: &ended}); core.CodeOf(err) != core.Denied {
		t.Fatalf("another's run: %v", err)
	}
	w.must(&DeleteRun{By: alice, Run: &ended})
	// Other refusals stay refusals.
	bad := submit("bad", 1)
	bad.Spec.Partition = core.ListPartitions("nowhere")
	if _, err := w.do(bad); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Fatalf("a partition that is not there: %v", err)
	}
}

// TestRunOfArray: a run of an array is open until its last task has ended, whichever that is, and knows the first that
// failed and the first that was stopped.
func TestRunOfArray(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node := coretest.Node("n1").CPUs(4).Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	alice := core.Identity{User: "alice", UID: 1000}
	spec := coretest.Job().Set(func(s *core.Spec) { s.User, s.UID, s.Array = "alice", 1000, "0-3" }).Spec()
	base := w.must(&Submit{By: alice, Spec: spec, Run: &core.Run{Name: "sweep", ID: "id-sweep"}}).(*Submitted).ID
	w.pass()
	project := w.st.Snapshot().Runs()[0].Project
	open := func() *core.Run { r, _ := w.st.Snapshot().Run(project, "sweep"); return r }
	task := func(n int32) core.JobID {
		for _, j := range w.st.Snapshot().Tasks(base) {
			if j.Array.Task == n {
				return j.ID
			}
		}
		t.Fatalf("task %d is not live", n)
		return 0
	}
	exit := func(id core.JobID, code int32) {
		t.Helper()
		w.must(&Exited{Node: "n1", Job: id, Attempt: 1, Step: "batch", Exit: core.Exit{Code: code}, JobDone: true})
	}
	if task(3) != base {
		t.Fatalf("the last task is %d", task(3))
	}
	failed, stopped := task(1), task(2)
	exit(base, 0) // the task with the array's id ends first
	if r := open(); r == nil || r.FailedTask != 0 {
		t.Fatalf("%+v", r)
	}
	exit(failed, 3)
	if r := open(); r == nil || r.FailedTask != failed {
		t.Fatalf("%+v", r)
	}
	w.must(&Cancel{By: alice, Job: stopped})
	exit(stopped, 0)
	if r := open(); r == nil || r.StoppedTask != stopped || r.DecidingJob() != failed {
		t.Fatalf("%+v", r)
	}
	exit(task(0), 0)
	if r := open(); r != nil {
		t.Fatalf("it has ended: %+v", r)
	}
}

// TestAbortHastens: a job that is being stopped with its grace is ended at once when it is then aborted.
func TestAbortHastens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node := coretest.Node("n1").Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	alice := core.Identity{User: "alice", UID: 1000}
	spec := coretest.Job().Set(func(s *core.Spec) { s.User, s.UID = "alice", 1000 }).Spec()
	id := w.must(&Submit{By: alice, Spec: spec}).(*Submitted).ID
	w.pass()
	stop := func(abort bool) *core.Stop {
		w.must(&Cancel{By: alice, Job: id, Abort: abort})
		j, _ := w.st.Snapshot().Job(id)
		return j.Stop
	}
	if st := stop(false); st.Abort || st.Grace != 0 {
		t.Fatalf("%+v", st)
	}
	if st := stop(true); !st.Abort || st.Grace >= 0 {
		t.Fatalf("%+v", st)
	}
	if st := stop(false); !st.Abort {
		t.Fatalf("a stop takes nothing back: %+v", st)
	}
}
