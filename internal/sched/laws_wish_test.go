package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// wishful makes a law world whose nodes have features and a network, and whose jobs have wishes.
func wishful(t *rapid.T, rule core.Rule, seed uint64, parts int) *lawWorld {
	w := newLawWorld(t, rule, seed, parts)
	for i, n := range w.nodes {
		m := *n
		for _, f := range []string{"x", "y", "z"} {
			if w.r.IntN(2) == 0 {
				m.Features = append(m.Features, f)
			}
		}
		m.Weight = int32(w.r.IntN(2))
		w.nodes[i] = &m
	}
	switch w.r.IntN(4) {
	case 0:
		w.cfg.Topology = &core.Topology{Kind: core.TopologyTree, Switches: []core.Switch{
			{Name: "s1", Nodes: "a,b"},
			{Name: "s2", Nodes: "c,d"},
			{Name: "top", Switches: "s1,s2"},
		}}
	case 1:
		w.cfg.Topology = &core.Topology{Kind: core.TopologyTree, Switches: []core.Switch{
			{Name: "s1", Nodes: "a,c"},
			{Name: "s2", Nodes: "b"},
			{Name: "s3", Nodes: "d,e"},
			{Name: "top", Switches: "s1,s2,s3"},
		}}
	case 2:
		w.cfg.Topology = &core.Topology{Kind: core.TopologyBlock, Blocks: []core.Switch{
			{Name: "b1", Nodes: "a,b"},
			{Name: "b2", Nodes: "c,d,e"},
		}, BlockSizes: []int32{2, 4}}
	}
	w.cfg.MaxSwitchWait = 60
	w.cfg.Partitions[0].LLN = w.r.IntN(4) == 0
	w.cfg.Partitions[len(w.cfg.Partitions)-1].ExclusiveUser = w.r.IntN(4) == 0
	w.wish = w.anyWish
	w.p = New(w.cfg)
	w.p.Apply(Changes{Nodes: w.nodes})
	return w
}

// anyWish lets one job in two ask for something of its nodes as a whole.
func (w *lawWorld) anyWish(s *core.Spec) {
	pick := func(list ...string) string { return list[w.r.IntN(len(list))] }
	constraint := func() string {
		return pick("x|y", "[x|y]", "x*1", "y*2", "[x*1&y*1]", "[x*1&y*1&z*1]", "(x|z)&y", "[(x&y)*1&z*2]", "[x|y]&z*1", "x")
	}
	x := core.Extra{}
	switch w.r.IntN(14) {
	case 0, 1:
		x.Constraint = coretest.Constraint(constraint())
		if w.r.IntN(3) == 0 {
			s.Shape.NodesMin, s.Shape.NodesMax, s.Shape.Tasks = 0, 0, 1
		}
	case 2:
		x.Prefer = coretest.Constraint(constraint())
		x.Constraint = coretest.Constraint(pick("", constraint()))
	case 3:
		x.Contiguous = true
	case 4:
		x.Switches = coretest.Switches(pick("1", "1@0:30", "2", "1@0", "2@1:00"))
	case 5, 6:
		s.Shape.NodesMax += int32(1 + w.r.IntN(3))
		s.Shape.Given = core.ShapeGiven(w.r.IntN(2)) * core.GivenTasks
		if w.r.IntN(3) == 0 {
			s.Shape.More = &core.ShapeMore{UseMinNodes: true}
		}
		x.Contiguous = w.r.IntN(4) == 0
	case 7:
		s.Shape.More = &core.ShapeMore{SpreadJob: true}
	case 8:
		x.Segment = s.Shape.NodesMin
	case 9:
		x.NodeList = pick("a", "b", "ab")
	case 10:
		s.User = core.UserName(pick("u", "v"))
		s.Shape.More = &core.ShapeMore{ExclusiveUser: true}
	default:
		return
	}
	s.Extra = &x
}

// TestWishesHold: jobs with wishes start whole, on nodes that are enough, never on what another has, no later than was
// promised; a planner kept up to date plans as one built cold.
func TestWishesHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := wishful(rt, core.RuleEASY, rapid.Uint64().Draw(rt, "seed"), 1)
		for range 5 + w.r.IntN(20) {
			w.submit()
		}
		promised := map[core.JobID]core.Time{}
		for range 1000 {
			plan := w.pass()
			for _, s := range plan.Starts {
				w.whole(s)
				if at, ok := promised[s.Job]; ok && w.now > at {
					rt.Fatalf("job %d starts at %d and was promised %d", s.Job, w.now, at)
				}
			}
			for id := range plan.expected {
				if at, _, ok := plan.Expected(id); ok {
					promised[id] = at
				}
			}
			switch {
			case plan.WakeAt != 0:
				w.later(plan.WakeAt - w.now)
				if w.now < plan.WakeAt {
					w.end()
				} else {
					clear(promised) // a job that was not in line for want of switches may come before all others now
				}
			case len(w.endings) > 0:
				w.end()
			case len(plan.Starts) == 0:
				for _, id := range w.order {
					if j := w.jobs[id]; j.State == core.Pending && w.p.pending[id].class.reason() == nil {
						rt.Fatalf("job %d never starts: %+v %+v", id, j.Spec.Shape, j.Spec.Extra)
					}
				}
				return
			}
		}
		rt.Fatal("it does not end")
	})
}

// TestWishesComeAndGo is the same while jobs arrive, on partitions that share nodes.
func TestWishesComeAndGo(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleEASYSJBF, core.RuleConservative} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := wishful(rt, rule, rapid.Uint64().Draw(rt, "seed"), 3)
				for range 40 {
					switch w.r.IntN(4) {
					case 0:
						w.end()
					case 1:
						w.later(core.Time(w.r.IntN(40)) * 1e6)
					default:
						w.submit()
					}
					for _, s := range w.pass().Starts {
						w.whole(s)
					}
				}
			})
		})
	}
}

// later lets time pass, but no further than to the next end.
func (w *lawWorld) later(d core.Time) {
	to := w.now + d
	for _, at := range w.endings {
		to = min(to, at)
	}
	w.now = max(w.now, to)
}

// whole holds a start against what the job asked for.
func (w *lawWorld) whole(st Start) {
	j := w.jobs[st.Job]
	n := fit.RequestOf(j.Spec, w.cfg.Hosts)
	part := w.p.classes.partitions[st.Alloc.Partition]
	n.ApplyPartition(&part.Partition)
	n.BindLedger(w.p.ledger, nil, part.LLN)
	var cands []fit.Candidate
	tasks := int32(0)
	for i := range st.Alloc.Nodes {
		na := &st.Alloc.Nodes[i]
		a := w.p.ledger.Nodes[na.Node]
		if na.Tasks < 1 {
			w.t.Fatalf("job %d has no task on %s", j.ID, na.Node)
		}
		tasks += na.Tasks
		cands = append(cands, fit.Candidate{Node: a, Tasks: na.Tasks, Required: n.Required[na.Node]})
	}
	if n.Set != nil && n.Set.TasksPerNode > 0 {
		if tasks != n.Set.TasksPerNode*int32(len(cands)) {
			w.t.Fatalf("job %d has %d tasks on %d nodes", j.ID, tasks, len(cands))
		}
	} else if tasks != n.Tasks {
		w.t.Fatalf("job %d has %d tasks of %d", j.ID, tasks, n.Tasks)
	}
	w.p.ledger.AssignPositions()
	if !allowed(&n, cands) {
		w.t.Fatalf("job %d may not be on %+v: %+v %+v", j.ID, st.Alloc.Nodes, j.Spec.Shape, j.Spec.Extra)
	}
}

// allowed says plainly whether a set of nodes is one that a job may have.
func allowed(n *fit.Request, set []fit.Candidate) bool {
	if len(set) < int(n.NodesMin) || len(set) > int(n.NodesMax) {
		return false
	}
	room, must := int64(0), 0
	for _, k := range set {
		room += int64(k.Tasks)
		if k.Required {
			must++
		}
	}
	if room < int64(n.Tasks) || must < len(n.Required) {
		return false
	}
	w := n.Set
	if w == nil {
		return true
	}
	if w.Contiguous {
		lines := make([]int, 0, len(set))
		for _, k := range set {
			lines = append(lines, int(k.Node.Position.Line))
		}
		if slices.Max(lines)-slices.Min(lines) != len(set)-1 {
			return false
		}
	}
	return w.Constraint == nil && w.Preferred == nil || meets(w.Constraint, set) || w.Preferred != nil &&
		meets(w.Preferred, set)
}

func meets(c *grammar.Constraint, set []fit.Candidate) bool {
	if c == nil {
		return true
	}
	count := func(f *grammar.Features) (n int) {
		for _, k := range set {
			if f.Has(k.Node.Record.Features) {
				n++
			}
		}
		return n
	}
	if c.All != nil && count(c.All) < len(set) {
		return false
	}
	for i := range c.Counts {
		if count(c.Counts[i].Of) < int(c.Counts[i].Count) {
			return false
		}
	}
	for _, f := range c.Either {
		if count(f) == len(set) {
			return true
		}
	}
	return len(c.Either) == 0
}

// TestChoiceIsComplete: on a small cluster, what a search through all sets of nodes finds, a choice finds too, and no
// other.
func TestChoiceIsComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		l := ledger.New()
		for i := range 1 + r.IntN(9) {
			n := &core.Node{
				ID: int64(i + 1), Name: core.NodeName(fmt.Sprint("n", i+1)), Roles: core.Compute,
				Weight: int32(r.IntN(2)), Hardware: core.Hardware{CPUs: int32(1 + r.IntN(4)), Memory: core.GiB},
			}
			for _, f := range []string{"x", "y", "z", "u", "v"} {
				if r.IntN(2) == 0 {
					n.Features = append(n.Features, f)
				}
			}
			if l.SetNode(n); r.IntN(5) == 0 {
				l.ForceAllocate(&core.NodeAlloc{Node: n.Name, CPUs: n.Hardware.CPUs}, alloc.Terms{})
			}
		}
		term := func() string { return []string{"x", "y", "z", "u", "v", "(x|y)", "(y&z)"}[r.IntN(7)] }
		s := &core.Spec{Extra: &core.Extra{Contiguous: r.IntN(3) == 0}}
		s.Shape = core.Shape{
			NodesMin: int32(1 + r.IntN(3)), Tasks: int32(1 + r.IntN(8)), CPUsPerTask: 1,
			Given: core.GivenTasks,
		}
		s.Shape.NodesMax = s.Shape.NodesMin + int32(r.IntN(3))
		s.Shape.Tasks = max(s.Shape.Tasks, s.Shape.NodesMax)
		switch r.IntN(5) {
		case 0:
			s.Extra.Constraint = coretest.Constraint(fmt.Sprintf("%s*%d", term(), 1+r.IntN(3)))
		case 1, 2:
			var terms []string
			for range 2 + r.IntN(3) {
				terms = append(terms, fmt.Sprintf("%s*%d", term(), 1+r.IntN(2)))
			}
			s.Extra.Constraint = coretest.Constraint("[" + strings.Join(terms, "&") + "]")
		case 3:
			s.Extra.Constraint = coretest.Constraint("[" + term() + "|" + term() + "]")
		}
		s.Shape.More = &core.ShapeMore{UseMinNodes: r.IntN(3) == 0}
		if r.IntN(3) == 0 {
			s.Extra.NodeList = "n1"
		}
		n := fit.RequestOf(s, func(list string) map[core.NodeName]bool {
			if list == "" {
				return nil
			}
			return map[core.NodeName]bool{core.NodeName(list): true}
		})
		n.BindLedger(l, nil, r.IntN(3) == 0)
		l.AssignPositions()

		var all []fit.Candidate
		for _, a := range l.Order {
			if room := n.TasksIn(a, &a.Free); room > 0 {
				all = append(all, fit.Candidate{Node: a, Tasks: room, Required: n.Required[a.Record.Name]})
			}
		}
		possible, set := false, []fit.Candidate(nil)
		for bits := range 1 << len(all) {
			set = set[:0]
			for i := range all {
				if bits&(1<<i) != 0 {
					set = append(set, all[i])
				}
			}
			possible = possible || allowed(&n, set)
		}
		picks := n.Choose(ledger.View{Nodes: l.Order}, nil)
		if possible != (picks != nil) {
			rt.Fatalf("possible %v, found %v: %+v %+v on %s", possible, picks, s.Shape, *s.Extra, nodesText(l))
		}
		set = set[:0]
		for _, p := range picks {
			set = append(set, fit.Candidate{Node: p.Node, Tasks: p.Capacity, Required: n.Required[p.Node.Record.Name]})
			if p.Tasks < 1 || p.Tasks > p.Capacity {
				rt.Fatalf("%d tasks where there is room for %d", p.Tasks, p.Capacity)
			}
		}
		if picks != nil && !allowed(&n, set) {
			rt.Fatalf("not allowed: %v: %+v %+v on %s", picks, s.Shape, *s.Extra, nodesText(l))
		}
	})
}

func nodesText(l *ledger.Ledger) (t string) {
	for _, a := range l.Order {
		t += fmt.Sprintf("%s(%d %v weight %d) ", a.Record.Name, a.Free.Cpus, a.Record.Features, a.Record.Weight)
	}
	return t
}
