package sched

import (
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
)

// splits splits some nodes and has some jobs take whole blocks.
func (w *lawWorld) splits() {
	for i, n := range w.nodes {
		split := *n
		split.Blocks = []int32{0, 1, 1, 2, 3}[w.r.IntN(5)]
		w.nodes[i] = &split
	}
	w.p.Apply(Changes{Nodes: w.nodes})
	w.dress = func(s *core.Spec) {
		if w.r.IntN(2) == 0 {
			s.Shape.Tasks, s.Shape.TasksPerNode, s.Shape.Blocks = s.Shape.NodesMin, 1, true
		}
	}
}

// TestPromisesInBlocks: the law of TestReservationsHold where nodes are split into blocks.
func TestPromisesInBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newLawWorld(rt, core.RuleEASY, rapid.Uint64().Draw(rt, "seed"), 1)
		w.splits()
		for range 5 + w.r.IntN(30) {
			w.submit()
		}
		w.keepsPromises()
	})
}

// TestPlansInBlocks: nothing is given twice where jobs of both kinds share nodes that are split, jobs over several
// nodes have them whole, and a planner kept up to date plans as one built cold.
func TestPlansInBlocks(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleConservative} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 3)
				w.splits()
				w.started = func(j *core.Job, al *core.Alloc) {
					for i := range al.Nodes {
						a := w.p.ledger.Nodes[al.Nodes[i].Node]
						if !j.Spec.Shape.Blocks || a.Blocks == nil || j.Spec.Shape.Exclusive {
							continue
						}
						if cpus := al.Nodes[i].CPUs; len(al.Nodes) > 1 && cpus < a.Blocks.Cpus*a.Blocks.Count || cpus < a.Blocks.Cpus {
							w.t.Fatalf("job %d has %d CPUs of node %s with %d blocks of %d", j.ID, cpus, a.Record.Name, a.Blocks.Count,
								a.Blocks.Cpus)
						}
					}
				}
				for range 40 {
					switch w.r.IntN(3) {
					case 0:
						w.end()
					default:
						w.submit()
					}
					w.pass()
				}
			})
		})
	}
}
