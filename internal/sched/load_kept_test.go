package sched

import (
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// TestLoadIsKept lets the bench load, at a small size, go on for a while: after every event the plan is that of a
// planner built cold, which goes through every job and every ending.
func TestLoadIsKept(t *testing.T) {
	t.Parallel()
	l := newLoad(t, 120, 1200)
	s := l.settle()
	s.p.classWalkMinJobs = 8
	render := func(p *Plan) string {
		out := fmt.Sprintf("heads %v expected %v\n", p.heads, p.expected)
		for _, st := range p.Starts {
			out += fmt.Sprintf("%d %+v\n", st.Job, *st.Alloc)
		}
		return out
	}
	starts, behind := 0, 0
	var held *Plan
	for i := range 250 {
		c, what := s.event()
		s.p.Apply(c)
		plan := s.p.Pass(s.now)
		cold := New(l.cfg)
		cold.nodes.TrackMinNodes, cold.classWalkMinJobs = 1<<30, 1<<30
		cold.Apply(Changes{Nodes: s.Nodes, Policy: l.policy})
		for id := core.JobID(1); id <= l.NextID; id++ {
			if j := s.is[id]; j != nil && j.Live() {
				cold.Apply(Changes{Jobs: []*core.Job{j}})
			}
		}
		if a, b := render(plan), render(cold.Pass(s.now)); a != b {
			t.Fatalf("event %d (%s): kept up to date:\n%s\nbuilt cold:\n%s", i, what, a, b)
		}
		starts += len(plan.Starts)
		if held == nil && i%4 == 3 { // the engine is a pass behind
			held = plan
			s.now += 1e6
			continue
		}
		if held != nil {
			plan, held = s.still(held), nil
			behind += len(plan.Starts)
		}
		s.start(plan)
	}
	if behind < 5 {
		t.Errorf("only %d jobs started after the next plan", behind)
	}
	if starts < 50 {
		t.Errorf("only %d jobs started", starts)
	}
}

// still is what of an older plan can start yet.
func (s *settled) still(old *Plan) *Plan {
	plan := &Plan{Now: s.now}
	on := map[core.NodeName]bool{}
	for _, st := range old.Starts {
		j := s.is[st.Job]
		ok := j.State == core.Pending
		for i := range st.Alloc.Nodes {
			na := &st.Alloc.Nodes[i]
			ok = ok && !on[na.Node] && s.p.ledger.Nodes[na.Node].Record.Usable() && s.p.ledger.Nodes[na.Node].CanAllocate(na,
				alloc.TermsOf(j.Spec, st.Alloc))
		}
		if ok {
			for i := range st.Alloc.Nodes {
				on[st.Alloc.Nodes[i].Node] = true
			}
			plan.Starts = append(plan.Starts, st)
		}
	}
	return plan
}
