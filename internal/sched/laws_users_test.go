package sched

import (
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
)

// TestNodesOfUsers lets nodes become one user's and anybody's again while jobs of several users come and go: no job
// starts on a node that is kept to another, and a planner kept up to date plans as one built cold.
func TestNodesOfUsers(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleFCFS, core.RuleSJFEASY, core.RuleConservative} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 1+rapid.IntRange(0, 2).Draw(rt, "partitions"))
				w.dress = func(s *core.Spec) { s.UID = uint32(1000 + w.r.IntN(3)) }
				w.started = func(j *core.Job, al *core.Alloc) {
					for i := range al.Nodes {
						if a := w.p.ledger.Nodes[al.Nodes[i].Node]; a.Record.Host.KeptTo() != 0 && a.Record.Host.KeptTo() != j.Spec.UID {
							w.t.Fatalf("job %d of user %d starts on %s, which is %d's", j.ID, j.Spec.UID, a.Record.Name,
								a.Record.Host.KeptTo())
						}
					}
				}
				for range 40 {
					if w.r.IntN(4) > 0 {
						w.upset()
					} else {
						i := w.r.IntN(len(w.nodes))
						n := *w.nodes[i]
						n.Host = core.Host{Root: w.r.IntN(3) == 0, UID: uint32(1000 + w.r.IntN(3))}
						w.nodes[i] = &n
						w.p.Apply(Changes{Nodes: w.nodes[i : i+1]})
					}
					w.pass()
				}
			})
		})
	}
}

// TestNodesOfProjects does the same with nodes of projects.
func TestNodesOfProjects(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleFCFS, core.RuleSJFEASY, core.RuleConservative} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 1+rapid.IntRange(0, 2).Draw(rt, "partitions"))
				names := []core.ProjectName{"red", "blue", "green"}
				w.dress = func(s *core.Spec) { s.Project = names[w.r.IntN(len(names))] }
				w.started = func(j *core.Job, al *core.Alloc) {
					for i := range al.Nodes {
						n := w.p.ledger.Nodes[al.Nodes[i].Node].Record
						if n.Project != "" && n.Project != j.Spec.Project {
							w.t.Fatalf("job %d of project %s starts on %s of %s", j.ID, j.Spec.Project, n.Name, n.Project)
						}
					}
				}
				for range 40 {
					if w.r.IntN(4) > 0 {
						w.upset()
					} else {
						i := w.r.IntN(len(w.nodes))
						n := *w.nodes[i]
						if n.Project = ""; w.r.IntN(3) > 0 {
							n.Project = names[w.r.IntN(len(names))]
						}
						w.nodes[i] = &n
						w.p.Apply(Changes{Nodes: w.nodes[i : i+1]})
					}
					w.pass()
				}
			})
		})
	}
}
