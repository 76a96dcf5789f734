package state

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestRefusedShrink: a change that is refused gives no node back and ends no step, whatever else it asks for.
func TestRefusedShrink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	for _, name := range []core.NodeName{"n1", "n2"} {
		n := coretest.Node(name).Build()
		w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	}
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	alice := core.Identity{User: "alice", UID: 1000}
	id := w.must(&Submit{By: alice, Spec: coretest.Job().Interactive().Set(func(s *core.Spec) {
		s.Shape.NodesMin, s.Shape.NodesMax, s.Shape.Tasks = 2, 2, 2
	}).Spec()}).(*Submitted).ID
	w.pass()
	w.must(&CreateStep{By: alice, Step: &core.Step{
		Job: id, Name: "s", Nodes: []core.NodeName{"n1", "n2"}, Tasks: []int32{1, 1},
	}})
	shrink := func(change func(*UpdateJob)) error {
		up := &UpdateJob{By: alice, Job: id}
		up.Spec.Nodes = &core.NodeCount{Min: 1}
		change(up)
		_, err := w.do(up)
		return err
	}
	have := func() (nodes, steps int) {
		j, ok := w.st.rec.Job(id)
		if !ok || j.Alloc == nil {
			t.Fatalf("job %d does not run: %+v", id, j)
		}
		for _, st := range w.st.rec.LiveSteps(id) {
			if !st.State.Final() {
				steps++
			}
		}
		return len(j.Alloc.Nodes), steps
	}
	long := strings.Repeat("x", 1<<20)
	for name, change := range map[string]func(*UpdateJob){
		"a long name":  func(up *UpdateJob) { up.Name = &long },
		"a checkpoint": func(up *UpdateJob) { at := core.Time(-1); up.Checkpoint = &at },
		"more tasks":   func(up *UpdateJob) { n := int32(9); up.Spec.Tasks = &n },
	} {
		err := shrink(change)
		if nodes, steps := have(); err == nil || nodes != 2 || steps != 1 {
			t.Errorf("with %s: %v; %d nodes, %d steps", name, err, nodes, steps)
		}
	}
	w.check() // of what follows it would say that the job has fewer nodes than it asked for
	if err := shrink(func(*UpdateJob) {}); err != nil {
		t.Fatal(err)
	}
	if nodes, steps := have(); nodes != 1 || steps != 0 {
		t.Errorf("%d nodes, %d steps", nodes, steps)
	}
	if j, _ := w.st.rec.Job(id); j.Spec.Shape.NodesMin != 1 || j.Spec.Shape.NodesMax != 1 {
		t.Errorf("it asks for %d to %d nodes", j.Spec.Shape.NodesMin, j.Spec.Shape.NodesMax)
	}
}
