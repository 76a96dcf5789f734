package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// checkTransitions holds every change of a job and a step against the tables of transitions.go. Every test that drives
// a world does so.
func (w *world) checkTransitions(jobs []*core.Job, steps []*core.Step) {
	w.t.Helper()
	if w.jobStates == nil {
		w.jobStates, w.stepStates = map[core.JobID]core.JobState{}, map[[2]int64]core.JobState{}
	}
	for _, j := range jobs {
		if was, ok := w.jobStates[j.ID]; ok && !jobMayMove(was, j.State) {
			w.t.Fatalf("job %d went from %s to %s", j.ID, was, j.State)
		}
		w.jobStates[j.ID] = j.State
	}
	for _, st := range steps {
		key := [2]int64{int64(st.Job), int64(st.ID)}
		if was, ok := w.stepStates[key]; ok && !stepMayMove(was, st.State) {
			w.t.Fatalf("step %d.%d went from %s to %s", st.Job, st.ID, was, st.State)
		}
		w.stepStates[key] = st.State
	}
}

func TestTransitionsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to core.JobState
		can      bool
	}{
		{core.Pending, core.Running, true},
		{core.Running, core.Pending, true},
		{core.Completed, core.Pending, true},
		{core.Pending, core.Suspended, false},
		{core.Completed, core.Running, false},
		{core.Failed, core.Suspended, false},
	} {
		if got := jobMayMove(c.from, c.to); got != c.can {
			t.Errorf("%s to %s: %v", c.from, c.to, got)
		}
	}
	if stepMayMove(core.Completed, core.Running) || !stepMayMove(core.Running, core.Failed) {
		t.Error("a step ends once")
	}
}
