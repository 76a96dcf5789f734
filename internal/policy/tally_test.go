package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
)

// counted is a limitWorld's jobs in a Tally.
type counted struct {
	*Tally
	q      QOSPair
	now    core.Time
	shares *Tree
	uses   []*Use
	passes int64
}

func (w *limitWorld) tally(t interface{ Fatal(...any) }) *counted {
	var list []Assoc
	for _, a := range w.assocs {
		list = append(list, *a)
	}
	var qos []*core.QOS
	for _, q := range []*QOS{w.q.Job, w.q.Partition} {
		if q != nil {
			qos = append(qos, q.QOS)
		}
	}
	r, err := NewRules(Setting{Totals: w.totals, Safe: w.safe}, list, qos, true)
	if err != nil {
		t.Fatal(err)
	}
	x := &counted{Tally: NewTally(r), q: w.q, now: core.Time(1e15), shares: w.shares(t)}
	for _, a := range list {
		if a.Used.Wall+float64(len(a.Used.TRES)) > 0 { // one of its users has used it all
			m := &Meter{Project: a.Project, User: "zoe", At: x.now, All: Reading{Wall: a.Used.Wall}}
			for _, u := range a.Used.TRES {
				m.All.TRES = append(m.All.TRES, Flow{Name: u.Name, Seconds: u.Seconds})
			}
			x.SetMeter(m)
		}
	}
	for i := range w.before {
		x.start(&w.before[i], x.now.Add(3600e9))
	}
	for i := range w.waits {
		x.Submit(x.gate(&w.waits[i]), max(1, w.waits[i].Tasks))
	}
	return x
}

// shares gives ann the fair-share that the job has.
func (w *limitWorld) shares(t interface{ Fatal(...any) }) *Tree {
	tree, err := NewTree([]Assoc{{Project: w.job.Project}, {Project: w.job.Project, User: w.job.User}})
	if err != nil {
		t.Fatal(err)
	}
	tree.find(w.job.Project, w.job.User).factor = w.job.FairShare
	return tree
}

func (x *counted) gate(j *Job) *Gate {
	w := Who{Project: j.Project, User: j.User}
	if x.q.Job != nil {
		w.QOS = x.q.Job.Name
	}
	if x.q.Partition != nil {
		w.PartitionQOS = x.q.Partition.Name
	}
	return x.Gate(w)
}

func (x *counted) request(j *Job) *Request {
	a := x.rules.Request(j.TRES, j.PerNode, "")
	if i, ok := slices.BinarySearch(x.rules.names, "billing"); ok {
		a.count[i] = j.TRES.Count("billing")
	}
	return a
}

func (x *counted) start(j *Job, end core.Time) {
	g := x.gate(j)
	x.Submit(g, 1)
	x.uses = append(x.uses, x.Start(g, x.request(j), end))
}

func (x *counted) check(j *Job) (core.Reason, string) {
	g := x.gate(j)
	if g == nil {
		return "", ""
	}
	a, b := x.Why(g, x.request(j), j.length(), x.now, x.shares)
	c, d, _ := x.View(x.now, x.shares).Check(g.Who, x.request(j), j.length())
	if a != c || b != d || x.blocks(j) != (a != "") {
		return core.Reason(fmt.Sprintf("%s, in a view %s", a, c)), b + d
	}
	return a, b
}

func (x *counted) blocks(j *Job) bool {
	x.passes++
	return x.Blocks(x.gate(j), x.request(j), j.length(), x.now, x.shares, x.passes)
}

func (x *counted) submit(j *Job) (core.Reason, string) {
	g := x.gate(j)
	if g == nil {
		return "", ""
	}
	if reason, text := x.Admit(g, max(1, j.Tasks)); reason != "" {
		return reason, text
	}
	return x.Never(g, x.request(j), j.length())
}

// drawn makes a world of limits by chance.
func drawn(r *rand.Rand) *limitWorld {
	w := newLimitWorld()
	names := []string{"cpu", "mem", "node", "gres/gpu"}
	tres := func(scale int) (t TRES) {
		for _, n := range names {
			if r.IntN(3) == 0 {
				t = t.Plus(TRES{{Name: n, Count: int64(r.IntN(scale))}}, 1)
			}
		}
		return t
	}
	some := func(most int) *int64 {
		if r.IntN(3) != 0 {
			return nil
		}
		return n(int64(r.IntN(most)))
	}
	limits := func() Limits {
		var l Limits
		switch r.IntN(6) {
		case 0:
			l = Limits{GrpJobs: some(4), GrpSubmit: some(6), MaxJobs: some(3), MaxSubmit: some(5)}
		case 1:
			l.GrpTRES = tres(40)
		case 2:
			l.MaxTRESPerJob, l.MaxTRESPerNode = tres(12), tres(8)
		case 3:
			l.GrpTRESRunMins, l.GrpTRESMins = tres(2000), tres(600)
		case 4:
			l.MaxTRESMinsPerJob, l.MaxWall, l.GrpWall = tres(900), some(120), some(100)
		}
		return l
	}
	for _, k := range slices.Sorted(maps.Keys(w.assocs)) {
		w.assocs[k].Limits = limits()
	}
	qos := func(name core.QOSName) *QOS {
		q := &core.QOS{
			Name: name, Limits: limits(), MaxJobsPerProject: some(4), MaxSubmitPerProject: some(6),
			LimitFactor: float64(r.IntN(3)),
		}
		switch r.IntN(4) {
		case 0:
			q.MaxTRESPerUser, q.MaxTRESPerProject = tres(40), tres(40)
		case 1:
			q.MaxRunMinsPerUser, q.MaxRunMinsPerAcct = tres(2000), tres(2000)
		case 2:
			q.MinTRESPerJob = tres(8)
		}
		q.Flags = []core.QOSFlag{0, core.DenyOnLimit, core.OverPartQOS, core.Relative}[r.IntN(4)]
		return &QOS{QOS: q}
	}
	w.q = QOSPair{}
	if r.IntN(4) > 0 {
		w.q.Job = qos("normal")
	}
	if r.IntN(3) == 0 {
		w.q.Partition = qos("part")
	}
	w.safe, w.totals = r.IntN(3) == 0, Of(Amount{Name: "cpu", Count: 50}, Amount{Name: "mem", Count: 90000},
		Amount{Name: "node", Count: 10}, Amount{Name: "gres/gpu", Count: 8})
	job := func() Job {
		j := Job{
			User:    []core.UserName{"ann", "bob", "zoe"}[r.IntN(3)],
			Project: []core.ProjectName{"physics", "lab"}[r.IntN(2)], Limit: core.Seconds(60 * (1 + r.IntN(120))),
		}
		j.TRES = Of(Amount{Name: "cpu", Count: int64(1 + r.IntN(12))}, Amount{Name: "mem", Count: int64(r.IntN(8))},
			Amount{Name: "node", Count: int64(1 + r.IntN(3))}, Amount{Name: "gres/gpu", Count: int64(r.IntN(3))})
		j.PerNode = j.TRES
		return j
	}
	w.job = job()
	for range r.IntN(6) {
		w.before = append(w.before, job())
	}
	for range r.IntN(4) {
		w.waits = append(w.waits, job())
	}
	return w
}

// TestGatesAgreeWithTheModel: what a gate answers is what the rules say as they are told.
func TestGatesAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawn(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)))
		var list []Assoc
		for _, a := range w.assocs {
			list = append(list, *a)
		}
		tree, err := NewTree(list)
		if err != nil {
			rt.Fatal(err)
		}
		r := NewRunning(core.Time(1e15))
		r.Safe, r.Totals = w.safe, w.totals
		for i := range w.before {
			r.Submit(&w.before[i], tree, w.q, 1)
			r.Start(&w.before[i], tree, w.q, r.Now.Add(3600e9))
		}
		for i := range w.waits {
			r.Submit(&w.waits[i], tree, w.q, 1)
		}
		x := w.tally(rt)
		want, _ := Check(&w.job, tree, w.q, r)
		if got, text := x.check(&w.job); got != want {
			rt.Fatalf("%q (%s), the model says %q", got, text, want)
		}
		want, _ = CheckSubmit(&w.job, tree, w.q, r)
		if got, text := x.submit(&w.job); got != want {
			rt.Fatalf("at submit %q (%s), the model says %q", got, text, want)
		}
	})
}

// TestTallyGoesBackToNothing: what starts and ends leaves no trace, and a view does not change.
func TestTallyGoesBackToNothing(t *testing.T) {
	t.Parallel()
	w := newLimitWorld()
	w.assocs["lab"].Limits = Limits{
		GrpTRES:        Of(Amount{Name: "cpu", Count: 16}),
		GrpTRESRunMins: Of(Amount{Name: "cpu", Count: 960}),
	}
	x := w.tally(t)
	for range 3 {
		x.start(&w.job, x.now.Add(3600e9))
		x.start(&w.job, x.now.Add(3600e9))
		v := x.View(x.now, nil)
		if got, _ := x.check(&w.job); got != "AssocGrpCpuLimit" {
			t.Errorf("beside two that run: %q", got)
		}
		for _, s := range x.uses {
			x.End(s)
			x.Submit(s.gate, -1)
		}
		x.uses = nil
		if got, _ := x.check(&w.job); got != "" {
			t.Errorf("after their end: %q", got)
		}
		if got, _, _ := v.Check(x.gate(&w.job).Who, x.request(&w.job), w.job.length()); got != "AssocGrpCpuLimit" {
			t.Errorf("in the view of before: %q", got)
		}
	}
	for _, p := range x.pages {
		for i, v := range p {
			if v != 0 {
				t.Errorf("value %d is left at %d", i, v)
			}
		}
	}
}

// TestMetersDoNotMindHowTimeIsCut: decay, growth and resets come out the same in one step and in many.
func TestMetersDoNotMindHowTimeIsCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		s := Setting{
			HalfLife: []core.Seconds{0, 3600, 7 * 86400}[r.IntN(3)],
			Reset:    []ResetPeriod{ResetNone, ResetDaily, ResetWeekly, ResetMonthly}[r.IntN(4)],
		}
		m := &Meter{At: core.Time(1.7e15)}
		m.All.Adjust(Of(Amount{Name: "cpu", Count: int64(1 + r.IntN(100))}), 7, 0.3, 1)
		end := m.At + core.Time(r.IntN(40*86400))*1e6
		cut := m
		for cut.At < end {
			cut = s.Read(cut, min(end, cut.At+core.Time(1+r.IntN(3*86400))*1e6))
		}
		a, b := s.Read(m, end).All, cut.All
		if x, y := a.TRES[0].Seconds, b.TRES[0].Seconds; x-y > 1e-6*(1+x) || y-x > 1e-6*(1+x) {
			rt.Fatalf("%v in one step, %v in many", x, y)
		}
	})
}

func BenchmarkShut(b *testing.B) {
	w := newLimitWorld()
	w.assocs["lab"].Limits = Limits{GrpTRES: Of(Amount{Name: "cpu", Count: 1600}), GrpJobs: n(10), MaxJobs: n(10)}
	w.assocs["physics"].Limits = Limits{GrpTRES: Of(Amount{Name: "cpu", Count: 1600}, Amount{Name: "gres/gpu", Count: 10})}
	w.q.Job.Limits = Limits{MaxJobs: n(5), MaxTRESPerJob: Of(Amount{Name: "cpu", Count: 100}), GrpJobs: n(5)}
	x := w.tally(b)
	g, a := x.gate(&w.job), x.request(&w.job)
	b.ReportAllocs()
	for b.Loop() {
		if x.Blocks(g, a, w.job.length(), x.now, nil, 1) {
			b.Fatal("blocked")
		}
	}
}
