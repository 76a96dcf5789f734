package state

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// checkTransitions holds every change of a job, a step and a run against the tables of transitions.go. Every test that
// drives a world does so.
func (w *world) checkTransitions(jobs []*core.Job, steps []*core.Step, runs []*core.Run) {
	w.t.Helper()
	if w.jobStates == nil {
		w.jobStates, w.stepStates = map[core.JobID]core.JobState{}, map[[2]int64]core.JobState{}
		w.runStates = map[string]runState{}
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
	for _, r := range runs {
		key := fmt.Sprintf("%s/%s/%s", r.Project, r.Name, r.ID)
		if was, is := w.runStates[key], runStateOf(r); !slices.Contains(runTransitions[was], is) {
			w.t.Fatalf("run %s went from %d to %d", key, was, is)
		}
		w.runStates[key] = runStateOf(r)
	}
}

// nodeFlags is the flags of all nodes.
func (w *world) nodeFlags() map[core.NodeName]core.NodeFlag {
	out := map[core.NodeName]core.NodeFlag{}
	for n := range w.st.rec.Nodes() {
		out[n.Name] = n.Flags
	}
	return out
}

// checkNodeFlags holds the flags that an input set and cleared against nodeFlagCauses. Every input of a world is held
// so.
func (w *world) checkNodeFlags(in Input, before map[core.NodeName]core.NodeFlag) {
	w.t.Helper()
	cause := reflect.TypeOf(in).Elem().Name()
	if u, ok := in.(*UpdateNode); ok {
		cause = string(u.State)
	}
	for n := range w.st.rec.Nodes() {
		changed := before[n.Name] ^ n.Flags
		for flag := core.NodeFlag(1); changed != 0 && flag != 0; flag <<= 1 {
			if !changed.Has(flag) {
				continue
			}
			how, allowed := "cleared", nodeFlagCauses[flag].cleared
			if n.Flags.Has(flag) {
				how, allowed = "set", nodeFlagCauses[flag].set
			}
			isEmpty := len(w.st.cluster.OnNode(n.Name)) == 0
			if !slices.Contains(allowed, cause) && !(isEmpty && slices.Contains(allowed, nodeIsEmpty)) {
				w.t.Fatalf("node %s: %s was %s by %s; only %q do that", n.Name, flag, how, cause, allowed)
			}
		}
	}
}

// TestNodeFlagCausesAreInputs keeps the names of the table to those of inputs and of what can be asked of a node.
func TestNodeFlagCausesAreInputs(t *testing.T) {
	t.Parallel()
	asked := []string{string(core.VerbRebootFailed), string(core.VerbResumeFailed), nodeIsEmpty}
	for _, v := range core.NodeVerbs {
		asked = append(asked, string(v))
	}
	for flag, c := range nodeFlagCauses {
		for _, cause := range append(slices.Clone(c.set), c.cleared...) {
			if kindByName[cause] == nil && !slices.Contains(asked, cause) {
				t.Errorf("%s: there is no input %q", flag, cause)
			}
		}
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
