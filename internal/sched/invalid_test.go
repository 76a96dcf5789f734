package sched

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// A restriction that cannot be read is not lifted: its job waits, says why, and keeps nobody else.
func TestUnreadableRequestsNeverStart(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*core.Spec){
		"constraint":      func(s *core.Spec) { s.Extra = &core.Extra{Constraint: coretest.Constraint("fast&&(")} },
		"separators only": func(s *core.Spec) { s.Extra = &core.Extra{Constraint: coretest.Constraint(",&")} },
		"preference":      func(s *core.Spec) { s.Extra = &core.Extra{Prefer: coretest.Constraint("[a|b")} },
		"both": func(s *core.Spec) {
			s.Extra = &core.Extra{Prefer: coretest.Constraint("a"), Constraint: coretest.Constraint("!b")}
		},
		"switches":           func(s *core.Spec) { s.Extra = &core.Extra{Switches: coretest.Switches("few")} },
		"node list":          func(s *core.Spec) { s.Extra = &core.Extra{NodeList: "n[1"} },
		"node list of blank": func(s *core.Spec) { s.Extra = &core.Extra{NodeList: " , "} },
		"nodes to avoid":     func(s *core.Spec) { s.Extra = &core.Extra{Exclude: "n[2-"} },
		"licenses":           func(s *core.Spec) { s.Extra = &core.Extra{Licenses: coretest.Licenses("a,b|c")} },
		"negative gres":      func(s *core.Spec) { s.Shape.Gres = []core.Gres{{Name: "gpu", Count: -1}} },
		"nameless gres":      func(s *core.Spec) { s.Shape.Gres = []core.Gres{{Count: 1}} },
	} {
		p := planner()
		bad := coretest.Job().ID(1).Partition("main").Set(spoil).Build()
		good := coretest.Job().ID(2).Partition("main").Build()
		p.Apply(Changes{Nodes: []*core.Node{coretest.Node("n1").ID(1).Build()}, Jobs: []*core.Job{bad, good}})
		plan := p.Pass(1)
		if len(plan.Starts) != 1 || plan.Starts[0].Job != good.ID {
			t.Errorf("%s: starts %+v", name, plan.Starts)
		}
		if w := plan.Reason(bad); w.Text == "" || w.Code == "" {
			t.Errorf("%s: it waits because %+v", name, w)
		}
		if out := p.Trial(bad, 1, 1<<30, nil); out.Start != 0 {
			t.Errorf("%s: it would start at %d", name, out.Start)
		}
	}
}
