package state

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/limits"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
)

// limitChaos is a small cluster under limits that come and go, with what its jobs have cost counted by hand.
type limitChaos struct {
	*chaos
	cost map[usage.Key]float64
	cpus map[usage.Key]float64
	wall map[core.QOSName]float64
}

// TestLimitLaws: whatever happens, no start is against a limit, the state counts as it would from the records alone,
// and what was charged is what ran: over restarts, suspensions, changes of what a QOS costs and any cut of time.
func TestLimitLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		choose := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 9)).IntN
		cfg := Config{
			Safe: choose(3) == 0,
			Partitions: []core.Partition{
				{Name: "main", Nodes: "ALL", Default: true},
				{Name: "small", Nodes: "n[1-2]", QOS: "q0"},
			},
		}
		cfg.Charges.Billing = map[core.PartitionName][]policy.Weight{"main": {
			{Name: "cpu", Per: 3},
			{Name: "gres/gpu", Per: 7},
		}}
		if choose(2) == 0 {
			cfg.Priority = &Priority{Config: policy.Config{Weights: policy.Weights{
				Age: 1000, FairShare: 1000, QOS: 100,
				Assoc: 100,
			}}, Period: 600}
		}

		w := &limitChaos{
			chaos: &chaos{world: newWorld(rt, cfg), choose: choose}, cost: map[usage.Key]float64{},
			cpus: map[usage.Key]float64{}, wall: map[core.QOSName]float64{},
		}
		w.onStart = w.allowed
		for i, u := range []string{"alice", "bob"} {
			w.must(&EnsureUser{UID: uint32(1000 + i), UnixName: u})
		}
		w.register()
		w.register()
		w.policy()
		acts := []func(){
			w.send, w.send, w.send, w.send, w.plan, w.plan, w.plan, w.exit, w.exit, w.done, w.done, w.cancel, w.requeue,
			w.suspend,
			w.nodeState, w.register, w.pass1, w.pass1, w.pass1, w.again, w.policy, w.update,
		}
		for i := range 80 {
			acts[choose(len(acts))]()
			w.conserved()
			if i%10 == 9 {
				w.check()
				w.counted()
			}
		}
	})
}

// pass1 lets time go on, counting what it costs.
func (w *limitChaos) pass1() {
	d := time.Duration(w.choose(100)) * time.Minute
	v := w.st.Snapshot()
	for j := range v.Jobs() {
		if j.State != core.Running || j.End != 0 {
			continue
		}
		factor, bill, cpus := 1.0, int64(0), int64(0)
		for i := range j.Alloc.Nodes {
			na := &j.Alloc.Nodes[i]
			cpus += int64(na.CPUs)
			if j.Alloc.Partition != "main" {
				bill += int64(na.CPUs)
				continue
			}
			bill += 3 * int64(na.CPUs)
			for _, g := range na.Gres {
				bill += 7 * int64(len(g.Units))
			}
		}
		q, ok := v.QOS(j.Spec.QOS)
		factor = q.Factor()
		if ok {
			w.wall[q.Name] += factor * d.Seconds()
		}
		if _, there := v.QOS("q0"); there && j.Alloc.Partition == "small" && j.Spec.QOS != "q0" {
			w.wall["q0"] += factor * d.Seconds()
		}
		k := usage.Key{Project: j.Spec.Project, User: j.Spec.User}
		w.cost[k] += factor * float64(bill) * d.Seconds()
		w.cpus[k] += factor * float64(cpus) * d.Seconds()
	}
	w.now = w.now.Add(d)
	w.st.Advance(w.now)
	_, _ = w.do(&Tick{})
}

// conserved holds what was charged against what was counted by hand.
func (w *limitChaos) conserved() {
	w.t.Helper()
	v := w.st.Snapshot()
	same := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6*(1+want) }
	seen := map[usage.Key]bool{}
	for _, m := range v.Usage().List() {
		k, cpus := usage.Key{Project: m.Project, User: m.User}, 0.0
		seen[k] = true
		now := v.Usage().Decay.Read(m, w.now)
		for _, f := range now.All.TRES {
			if f.Name == "cpu" {
				cpus = f.Seconds
			}
		}
		if !same(now.All.Raw, w.cost[k]) || !same(cpus, w.cpus[k]) {
			w.t.Fatalf("%v was charged %v and %v CPU-seconds for %v and %v", k, now.All.Raw, cpus, w.cost[k], w.cpus[k])
		}
	}
	for k, want := range w.cost {
		if !seen[k] && want > 0 {
			w.t.Fatalf("%v was charged nothing for %v", k, want)
		}
	}
	for name, u := range v.QOSUsage() {
		if want := w.wall[name]; math.Abs(u.Wall-want) > 1e-6*(1+want) {
			w.t.Fatalf("QOS %s has %v seconds, not %v", name, u.Wall, want)
		}
	}
}

// allowed holds a start against the limits, counting all else that runs from the records.
func (w *limitChaos) allowed(id core.JobID) {
	w.t.Helper()
	j, _ := w.st.rec.Job(id)
	rules := w.st.limits.BuildRules(w.st.rec.QOSByName())
	if !rules.Any() {
		return
	}
	tally, uses := policy.NewTally(rules), map[core.JobID]*policy.Use{}
	for _, m := range w.st.rec.Usage().List() {
		tally.SetMeter(m)
	}
	for o := range w.st.Snapshot().Jobs() {
		if o.ID != id {
			w.st.limits.CountJob(tally, rules, uses, nil, o)
		}
	}
	g := w.st.limits.GateIn(tally, j.Spec, j.Alloc.Partition)
	if g == nil {
		return
	}
	if reason, text := tally.Why(g, limits.RequestOf(rules, j.Alloc), jobs.TimeLimitOf(j.Spec), w.now, nil); reason != "" {
		w.t.Fatalf("job %d started against %s: %s", id, reason, text)
	}
}

// counted holds what the state counted against a count from the records.
func (w *limitChaos) counted() {
	w.t.Helper()
	l := w.st.limits.Current()
	if l.Tally == nil {
		return
	}
	uses := map[core.JobID]*policy.Use{}
	fresh := w.st.limits.CountAllJobs(l.Rules, uses)
	if len(uses) != len(l.Uses) {
		w.t.Fatalf("%d jobs run by the count, %d by the records", len(l.Uses), len(uses))
	}
	for j := range w.st.Snapshot().Jobs() {
		g := w.st.limits.Gate(l.Tally, j)
		if g == nil {
			continue
		}
		all, node := alloc.RequestedTRES(j.Spec)
		ask := l.Rules.Request(all, node, "main")
		a, at := l.Tally.Why(g, ask, jobs.TimeLimitOf(j.Spec), w.now, w.st.limits.FairShares())
		b, bt := fresh.Why(w.st.limits.Gate(fresh, j), ask, jobs.TimeLimitOf(j.Spec), w.now, w.st.limits.FairShares())
		if a != b || at != bt {
			w.t.Fatalf("job %d: %s (%s), from the records %s (%s)", j.ID, a, at, b, bt)
		}
		a, at = l.Tally.Admit(g, 1)
		if b, bt = fresh.Admit(w.st.limits.Gate(fresh, j), 1); a != b || at != bt {
			w.t.Fatalf("one more like job %d: %s (%s), from the records %s (%s)", j.ID, a, at, b, bt)
		}
	}
}

func (w *limitChaos) send() {
	b := coretest.Job().CPUs(int32(1 + w.choose(3))).Partition(core.PartitionName(w.pick("main", "small",
		"small,main"))).Time(time.Duration(1+w.choose(120)) * time.Minute)
	by := []core.Identity{{User: "alice", UID: 1000}, {User: "bob", UID: 1001}}[w.choose(2)]
	b.User(by.User).Set(func(s *core.Spec) {
		s.UID, s.QOS, s.Project = by.UID, core.QOSName(w.pick("", "q0", "q1")), core.ProjectName(w.pick("default", "p", "c"))
		s.Requeue = w.choose(2) == 0
		if w.choose(5) == 0 {
			s.Array, s.Throttle = "0-4", int32(w.choose(3))
		}
		if w.choose(6) == 0 {
			s.Shape.Gres = []core.Gres{{Name: "gpu", Count: 1}}
		}
		if w.choose(10) == 0 {
			s.TimeLimit = core.Forever
		}
	})
	if w.choose(8) == 0 {
		b.Exclusive()
	}
	_, _ = w.do(&Submit{By: by, Spec: b.Spec()})
}

// policy changes some limits.
func (w *limitChaos) policy() {
	some := func(most int) *int64 {
		if w.choose(3) > 0 {
			return nil
		}
		n := int64(w.choose(most))
		return &n
	}
	tres := func(most int) (t core.TRES) {
		for _, n := range []string{"cpu", "node", "gres/gpu"} {
			if w.choose(3) == 0 {
				t = t.Plus(core.TRES{{Name: n, Count: int64(w.choose(most))}}, 1)
			}
		}
		return t
	}
	limits := core.Limits{GrpJobs: some(5), GrpSubmit: some(12), MaxJobs: some(4), MaxSubmit: some(9)}
	switch w.choose(5) {
	case 0:
		limits.GrpTRES = tres(8)
	case 1:
		limits.MaxTRESPerJob, limits.MaxWall = tres(4), some(100)
	case 2:
		limits.GrpTRESRunMins = tres(300)
	case 3:
		limits.GrpTRESMins, limits.GrpWall = tres(500), some(300)
	}
	var err error
	switch w.choose(4) {
	case 0:
		q := &core.QOS{
			Name: core.QOSName(w.pick("q0", "q1")), Limits: limits, MaxTRESPerUser: tres(6),
			UsageFactor: []*float64{nil, new(0.0), new(0.5), new(3.0)}[w.choose(4)], Priority: uint32(w.choose(5)),
		}
		q.Flags = []core.QOSFlag{0, core.DenyOnLimit, core.OverPartQOS, core.NoReserve, core.Relative}[w.choose(5)]
		_, err = w.do(&PutQOS{By: root, QOS: q})
	case 1:
		p := &core.Project{Name: core.ProjectName(w.pick("default", "p")), Assoc: core.Association{Limits: limits}}
		if old, ok := w.st.rec.Project(p.Name); ok {
			p.Members = old.Members
		}
		_, err = w.do(&PutProject{By: root, Project: p})
	case 2:
		_, err = w.do(&PutProject{
			By: root,
			Project: &core.Project{
				Name: "c", Parent: core.ProjectName(w.pick("p", "default", "")),
				Assoc: core.Association{Limits: limits},
			},
		})
	case 3:
		_, err = w.do(&PutMember{
			By: root, Project: core.ProjectName(w.pick("default", "p", "c")),
			User: core.UserName(w.pick("alice", "bob")), Role: core.RoleUser,
			Assoc: &core.Association{Limits: limits, Priority: uint32(w.choose(3))},
		})
	}
	if err != nil && core.CodeOf(err) != core.Invalid && core.CodeOf(err) != core.NotFound {
		w.t.Fatal(err)
	}
}
