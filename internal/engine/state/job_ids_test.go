package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// A node that knows of ids which were not given out moves the next one past them, in the store too; one that lies
// wastes a bounded number of ids, however often it comes.
func TestNodesMoveTheNextJobID(t *testing.T) {
	node := &Register{
		Node: "n1", Hardware: core.Hardware{CPUs: 4, Memory: 1 << 30}, Host: core.Host{BootID: "b"},
		Roles: core.Compute,
	}
	st := New(Config{}, &Image{NextJob: 7})
	register := func(running, ended core.JobID) (*Reconciled, *core.Changes) {
		t.Helper()
		in := *node
		in.Running = []StepRef{{Job: running, Attempt: 1, Step: "batch"}}
		in.Ended = []Exited{{Node: "n1", Job: ended, Attempt: 1, Step: "batch"}}
		reply, err := st.Apply(&in)
		if err != nil {
			t.Fatal(err)
		}
		return reply.(*Reconciled), st.Flush()
	}
	register(3, 4)
	if next := st.Snapshot().NextJob(); next != 7 {
		t.Errorf("ids that were given out moved the next one to %d", next)
	}
	r, c := register(20, 31)
	if c.NextJob != 32 || c.Empty() {
		t.Errorf("a node runs 20 and ran 31: the next id is %d, committed: %t; want 32, true", c.NextJob, !c.Empty())
	}
	if len(r.Kill) != 1 || r.Kill[0].Job != 20 {
		t.Errorf("killed is %v, want what runs under the unknown id 20", r.Kill)
	}
	for _, id := range []core.JobID{7 + maxSeenAhead - 1, 7 + maxSeenAhead, 7 + 2*maxSeenAhead, 1 << 62, 1<<63 - 1, -5} {
		register(id, id)
	}
	if next := st.Snapshot().NextJob(); next != 7+maxSeenAhead {
		t.Errorf("lies moved the next id to %d, want %d", next, 7+maxSeenAhead)
	}
}
