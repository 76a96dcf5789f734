package state

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestJobsThatComeAgain: a job with a schedule waits for its time, goes back for the next however it ended and however
// often, and is gone only when somebody ends it.
func TestJobsThatComeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{MaxRequeues: 2})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	n := coretest.Node("n1").Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	day := core.At(time.Date(2026, 11, 15, 1, 7, 0, 0, time.UTC))
	w.advance(day)
	by := core.Identity{User: "alice", UID: 1000}
	submit := func(plan string) (any, error) {
		extra := &core.Extra{Kept: &core.KeptOptions{Schedule: plan}}
		spec := coretest.Job().Set(func(s *core.Spec) { s.Extra = extra }).Spec()
		return w.do(&Submit{By: by, Spec: spec})
	}
	for _, bad := range []string{"61 * * * *", "0 0 31 2 *"} {
		if _, err := submit(bad); core.ReasonOf(err) != "invalid_time_value" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	made, err := submit("0 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	id := made.(*Submitted).ID
	for hour := 2; hour < 8; hour++ {
		due := core.At(time.Date(2026, 11, 15, hour, 0, 0, 0, time.UTC))
		j, ok := w.st.rec.Job(id)
		if !ok || j.State != core.Pending || j.Eligible != due || j.Flags.Held() {
			t.Fatalf("hour %d: %+v, want it to wait until %v", hour, j, due)
		}
		if started := w.pass(); len(started) != 0 {
			t.Fatalf("hour %d: it starts too early", hour)
		}
		w.advance(due)
		if started := w.pass(); len(started) != 1 {
			t.Fatalf("hour %d: it does not start", hour)
		}
		j, _ = w.st.rec.Job(id)
		w.must(&Exited{
			Node: "n1", Job: id, Attempt: j.Attempt, Step: "batch", Exit: core.Exit{Code: int32(hour % 2)},
			JobDone: true,
		})
	}
	w.must(&Cancel{By: by, Job: id})
	if _, ok := w.st.rec.Job(id); ok {
		t.Error("it is there after it was cancelled")
	}
}
