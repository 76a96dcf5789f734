package sched

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
)

// limitLaw gives a lawWorld users, accounts, QOS and limits drawn by chance.
type limitLaw struct {
	*lawWorld
	assocs []policy.Assoc
	qos    []*core.QOS
	rules  *policy.Rules
	meters []*policy.Meter
}

func count(v int) *int64 { n := int64(v); return &n }

func (w *limitLaw) tres(most int) core.TRES {
	var t core.TRES
	for _, n := range []string{"cpu", "mem", "node", "gres/gpu"} {
		if w.r.IntN(3) == 0 {
			t = t.Plus(core.TRES{{Name: n, Count: int64(w.r.IntN(most)) * map[bool]int64{true: 1024, false: 1}[n == "mem"]}}, 1)
		}
	}
	return t
}

func (w *limitLaw) limits() (l core.Limits) {
	switch w.r.IntN(5) {
	case 0:
		l.GrpJobs, l.MaxJobs = count(w.r.IntN(4)), count(w.r.IntN(3))
	case 1:
		l.GrpTRES = w.tres(12)
	case 2:
		l.MaxTRESPerJob, l.MaxTRESPerNode = w.tres(5), w.tres(5)
	case 3:
		l.GrpTRESRunMins = w.tres(12)
	case 4:
		l.GrpTRESMins = w.tres(20)
	}
	return l
}

// rule makes new limits, of the same people.
func (w *limitLaw) rule() {
	w.assocs = []policy.Assoc{
		{Project: policy.Root},
		{Project: "a", Limits: w.limits()},
		{
			Project: "b", Parent: "a",
			Limits: w.limits(),
		},
		{Project: "a", User: "u0", Limits: w.limits()},
		{Project: "b", User: "u1", Limits: w.limits()},
		{
			Project: "b",
			User:    "u2",
		},
	}
	w.qos = nil
	for i := range 2 {
		q := &core.QOS{Name: core.QOSName(fmt.Sprint("q", i)), Limits: w.limits(), MaxTRESPerUser: w.tres(8)}
		q.Flags = []core.QOSFlag{0, 0, core.OverPartQOS, core.NoReserve}[w.r.IntN(4)]
		w.qos = append(w.qos, q)
	}
	set := policy.Setting{Safe: w.r.IntN(3) == 0, HalfLife: []core.Seconds{0, 60}[w.r.IntN(2)]}
	rules, err := policy.NewRules(set, w.assocs, w.qos, true)
	if err != nil {
		w.t.Fatal(err)
	}
	w.rules = rules
	w.p.Apply(Changes{Policy: &Policy{Rules: rules}})
}

// use tells that somebody has used something.
func (w *limitLaw) use() {
	m := &policy.Meter{Project: "b", User: core.UserName(fmt.Sprint("u", w.r.IntN(4))), At: w.now}
	m.All.TRES = []policy.Flow{{Name: "cpu", Seconds: float64(w.r.IntN(1500)), Rate: int64(w.r.IntN(3)) * policy.Micro}}
	w.meters = append(w.meters, m)
	w.p.Apply(Changes{Meters: []*policy.Meter{m}})
}

// toggle drains a node, or takes it back.
func (w *limitLaw) toggle() {
	i := w.r.IntN(len(w.nodes))
	n := *w.nodes[i]
	n.Flags ^= core.NodeDrain
	w.nodes[i] = &n
	w.p.Apply(Changes{Nodes: []*core.Node{&n}})
}

// told is what a cold planner is told beside nodes and jobs.
func (w *limitLaw) told() Changes { return Changes{Policy: &Policy{Rules: w.rules}, Meters: w.meters} }

func newLimitLaw(t *rapid.T, rule core.Rule, seed uint64) *limitLaw {
	w := &limitLaw{lawWorld: newLawWorld(t, rule, seed, 3)}
	for i := range w.cfg.Partitions {
		w.cfg.Partitions[i].QOS = []core.QOSName{"", "", "q0"}[i]
	}
	w.p = New(w.cfg)
	w.p.nodes.TrackMinNodes, w.p.classWalkMinJobs = 0, 0
	w.p.Apply(Changes{Nodes: w.nodes})
	w.also = w.told
	w.dress = func(s *core.Spec) {
		s.User, s.Project = core.UserName(fmt.Sprint("u", w.r.IntN(4))), []core.ProjectName{"a", "b", "none"}[w.r.IntN(3)]
		s.QOS = []core.QOSName{"", "q0", "q1"}[w.r.IntN(3)]
		if w.r.IntN(4) == 0 {
			s.Partition = core.ParsePartitions(string([]core.PartitionName{"p1,p0", "p2,p1", "p0,p2"}[w.r.IntN(3)]))
		}
	}
	w.rule()
	return w
}

// check holds what runs against the limits, counting from the records alone. A limit that was lowered may be below what
// runs: then nothing more may have been started.
func (w *limitLaw) check(plan *Plan) {
	tally := policy.NewTally(w.rules)
	for _, m := range w.meters {
		tally.SetMeter(m)
	}
	started := map[core.JobID]bool{}
	for i := range plan.Starts {
		started[plan.Starts[i].Job] = true
	}
	start := func(j *core.Job) {
		who := policy.Who{
			Project: j.Spec.Project, User: j.Spec.User, QOS: j.Spec.QOS,
			PartitionQOS: w.p.classes.partitions[j.Alloc.Partition].QOS,
		}
		all, node := alloc.AllocatedTRES(j.Alloc)
		ask := w.rules.Request(all, node, j.Alloc.Partition)
		g := tally.Gate(who)
		if g == nil {
			return
		}
		if reason, text := tally.Why(g, ask, alloc.TimeLimit(j.Spec), w.now, nil); started[j.ID] && reason != "" {
			w.t.Fatalf("job %d started against %s: %s", j.ID, reason, text)
		}
		end := alloc.LatestEnd(j)
		if end == alloc.Never {
			end = 0
		}
		tally.Start(g, ask, end)
	}
	for _, id := range w.order {
		if j := w.jobs[id]; j.State == core.Running && !started[id] {
			start(j)
		}
	}
	for i := range plan.Starts {
		start(w.jobs[plan.Starts[i].Job])
	}
}

// TestLimitsHold: whatever starts, no limit is exceeded; a planner kept up to date plans and explains as one built
// cold.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleFCFS, core.RuleEASYSJBF, core.RuleConservative} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLimitLaw(rt, rule, rapid.Uint64().Draw(rt, "seed"))
				for range 40 {
					switch w.r.IntN(8) {
					case 0, 1:
						w.end()
					case 2:
						if w.use(); w.r.IntN(3) == 0 {
							w.toggle()
						}
					case 3:
						if w.r.IntN(3) == 0 {
							w.rule()
						}
					default:
						w.submit()
					}
					w.check(w.pass())
				}
			})
		})
	}
}

// TestLimitedJobsBlockNobody: a job that a limit keeps waiting is not first, and those behind it start.
func TestLimitedJobsBlockNobody(t *testing.T) {
	t.Parallel()
	rules, err := policy.NewRules(policy.Setting{}, []policy.Assoc{{
		Project: "a",
		Limits:  core.Limits{MaxJobs: count(1)},
	}}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{Partitions: []core.Partition{{Name: "p"}}, Hosts: func(string) map[core.NodeName]bool { return nil }})
	n := &core.Node{ID: 1, Name: "n", Roles: core.Compute, Hardware: core.Hardware{CPUs: 4, Memory: core.GiB}}
	job := func(id core.JobID, user core.UserName, cpus int32) *core.Job {
		return &core.Job{ID: id, State: core.Pending, Spec: &core.Spec{
			User: user, Project: "a", Partition: core.ListPartitions("p"),
			TimeLimit: 600,
			Shape:     core.Shape{NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: cpus},
		}}
	}
	jobs := []*core.Job{job(1, "ann", 1), job(2, "ann", 1), job(3, "bob", 4), job(4, "eve", 1)}
	p.Apply(Changes{Nodes: []*core.Node{n}, Policy: &Policy{Rules: rules}, Jobs: jobs})
	plan := p.Pass(1e15)
	if len(plan.Starts) != 2 || plan.Starts[0].Job != 1 || plan.Starts[1].Job != 4 {
		t.Fatalf("starts %+v", plan.Starts)
	}
	for i, want := range []core.Reason{"", "AssocMaxJobsLimit", core.ReasonResources} {
		if got := plan.Reason(jobs[i]); got.Code != want {
			t.Errorf("job %d: %+v, want %s", i+1, got, want)
		}
	}
}
