package sched

import (
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// all are the jobs of starts, those of het jobs one by one.
func all(starts []Start) (out []Start) {
	for i := range starts {
		out = append(out, starts[i].Components()...)
	}
	return out
}

// submitHet sends a het job of two or three components.
func (w *lawWorld) submitHet() {
	ref := core.HetRef{Lead: w.nextID + 1, Count: int32(2 + w.r.IntN(2))}
	was := w.dress
	w.dress = func(s *core.Spec) {
		mine := ref
		mine.Offset = int32(w.nextID - ref.Lead)
		s.Extra = &core.Extra{Het: &mine, HetApart: ref.Lead%2 == 0}
	}
	for range ref.Count {
		w.submit()
	}
	w.dress = was
}

// TestHetAllOrNothing lets het jobs come and go among others: their components start at one moment or not at all,
// nothing is given twice, and a planner kept up to date, with nodes that go and come, plans as one built cold.
func TestHetAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, rule := range core.Rules {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 3)
				for range 20 {
					switch w.r.IntN(5) {
					case 0, 1:
						w.end()
					case 2:
						w.submit()
					case 3:
						w.submitHet()
					case 4:
						k := w.r.IntN(len(w.nodes))
						n := *w.nodes[k]
						n.Flags ^= core.NodeDrain
						w.nodes[k] = &n
						w.p.Apply(Changes{Nodes: []*core.Node{&n}})
					}
					w.pass()
					w.checkHets()
				}
			})
		})
	}
}

// checkHets: all components of a het job wait, or all started at one moment, each on nodes of its own.
func (w *lawWorld) checkHets() {
	for _, id := range w.order {
		j := w.jobs[id]
		ref := hetRefOf(j)
		if ref == nil {
			continue
		}
		if lead := w.jobs[ref.Lead]; (lead.State == core.Pending) != (j.State == core.Pending) || lead.Start != j.Start {
			w.t.Fatalf("component %d+%d is %s since %d; the first is %s since %d", ref.Lead, ref.Offset, j.State, j.Start,
				lead.State, lead.Start)
		}
		for k := ref.Lead; k < id && j.State == core.Running && j.Spec.Extra.HetApart; k++ {
			if node := sharedNode(j.Alloc, w.jobs[k].Alloc); node != "" {
				w.t.Fatalf("components %d and %d are both on %s", k, id, node)
			}
		}
	}
}

// sharedNode is a node of both allocations; "": there is none.
func sharedNode(a, b *core.Alloc) core.NodeName {
	for i := range a.Nodes {
		for k := range b.Nodes {
			if a.Nodes[i].Node == b.Nodes[k].Node {
				return a.Nodes[i].Node
			}
		}
	}
	return ""
}

// TestHetIsReservedFor: without new arrivals a het job at the head of its queue starts at last, and its reservation is
// not delayed by what is placed around it while nothing ends before its time.
func TestHetIsReservedFor(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleEASYSJBF, core.RuleSJFEASY} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 1)
				for range 4 + w.r.IntN(12) {
					if w.r.IntN(3) == 0 {
						w.submitHet()
					} else {
						w.submit()
					}
				}
				promised := map[core.JobID]core.Time{}
				for {
					plan := w.pass()
					w.checkHets()
					for id := range w.endings { // everything lasts as long as it may, if that is ever over
						if j := w.jobs[id]; j.Spec.TimeLimit != core.Forever {
							w.endings[id] = alloc.LatestEnd(j)
						}
					}
					for _, s := range all(plan.Starts) {
						if at, ok := promised[s.Job]; ok && w.now > at {
							rt.Fatalf("job %d starts at %d and was promised %d", s.Job, w.now-loadNow, at-loadNow)
						}
					}
					for id := range plan.expected {
						if at, _, ok := plan.Expected(id); ok {
							promised[id] = at
						}
					}
					if len(w.endings) == 0 {
						break
					}
					w.end()
				}
				for _, id := range w.order {
					j := w.jobs[id]
					if j.State != core.Pending {
						continue
					}
					if ref := hetRefOf(j); ref != nil && w.p.hets.byLead[ref.Lead].reason != nil || ref == nil &&
						w.p.pending[id].class.reason() != nil {
						continue
					}
					rt.Fatalf("job %d never starts", id)
				}
			})
		})
	}
}
