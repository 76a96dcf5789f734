package sched

import (
	"math/rand/v2"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestWatchedClasses lets nodes go down and come up, up to a half of them: each class is judged as by a planner that
// never saw another state.
func TestWatchedClasses(t *testing.T) {
	t.Parallel()
	l := newLoad(t, 60, 600)
	p := l.planner()
	r := rand.New(rand.NewPCG(3, 4))
	flips := 0
	for i := range 300 {
		var c Changes
		for range 1 + r.IntN(3) {
			k := r.IntN(len(l.Nodes))
			n := *l.Nodes[k]
			if n.Flags ^= core.NodeDown; r.IntN(600) < i && r.IntN(2) == 0 {
				n.Flags |= core.NodeDown
			}
			l.Nodes[k] = &n
			c.Nodes = append(c.Nodes, &n)
		}
		p.Apply(c)
		cold := l.planner()
		for key, class := range p.classes.byKey {
			for k := range class.partitions {
				is, want := class.partitions[k].reason == nil, cold.classes.byKey[key].partitions[k].reason == nil
				if is != want {
					t.Fatalf("change %d: a class could start is %v, built cold %v: %+v", i, is, want, key)
				}
				if !is {
					flips++
				}
			}
		}
	}
	if flips == 0 {
		t.Error("no class was ever too big for the nodes that are up")
	}
}
