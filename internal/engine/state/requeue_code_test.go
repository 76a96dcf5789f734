package state

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestRequeueByExitCode: exit codes that the settings name send a batch job back to the queue, or hold it there, and it
// does not start again before its time.
func TestRequeueByExitCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[int32]struct {
		state core.JobState
		flags core.JobFlag
	}{
		0: {core.Completed, 0}, 3: {core.Pending, 0}, 4: {core.Failed, 0},
		7: {core.Pending, core.HeldUser | core.SpecialExit},
	} {
		w := newWorld(t, Config{RequeueExit: []int32{3}, RequeueExitHold: []int32{7}, RequeueDelay: 120})
		w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
		n := coretest.Node("n1").Build()
		w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
		spec := coretest.Job().User("alice").Set(func(s *core.Spec) { s.UID = 1000 }).Spec() // also with --no-requeue
		id := w.must(&Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: spec}).(*Submitted).ID
		w.pass()
		w.must(&Exited{
			Job: id, Attempt: 1, Step: "batch", Node: "n1", Exit: core.Exit{Code: code}, JobDone: true,
		})
		j := w.disk.jobs[id]
		if j.State != want.state || j.Flags&(core.HeldUser|core.SpecialExit) != want.flags {
			t.Errorf("exit code %d: %v, flags %v", code, j.State, j.Flags)
		}
		if want.state != core.Pending {
			continue
		}
		if wait := j.Eligible.Sub(w.st.rec.Now()); wait != 2*time.Minute {
			t.Errorf("exit code %d: it may start again after %v", code, wait)
		}
		w.pass()
		if again := w.disk.jobs[id]; again.State != core.Pending {
			t.Errorf("exit code %d: it started at once", code)
		}
		w.check()
	}
}
