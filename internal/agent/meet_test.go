package agent

import (
	"strconv"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// TestMeetsThatWait: a keeper repeats what srun does not answer, and this does not pile up while srun does not read.
func TestMeetsThatWait(t *testing.T) {
	t.Parallel()
	st := &stepStream{a: &Agent{id: &identity{name: "n1"}}, wake: make(chan struct{}, 1)}
	for i := range 100 {
		st.meet(wire.Meet{Op: "fence/all/0", Nodes: 2}, []byte("part"+strconv.Itoa(i)))
	}
	if n := len(st.queue); n > 2 || string(st.queue[n-1].payload) != "part99" {
		t.Errorf("%d messages wait, the last is %q", n, st.queue[n-1].payload)
	}
	st.queue = append(st.queue, make([]item, 1<<16)...)
	n := len(st.queue)
	if st.meet(wire.Meet{Op: "fence/all/1"}, nil); len(st.queue) > n {
		t.Error("a queue that is too long grows")
	}
}
