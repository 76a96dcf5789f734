package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestDecay(t *testing.T) {
	const week = 7 * 24 * 3600
	day := 24 * time.Hour
	near(t, "a period", Decay(week, 300*time.Second), 0.99965631, 5e-9)
	near(t, "a day", Decay(week, day), 0.9057, 5e-5)
	near(t, "a week", Decay(week, 7*day), 0.50007, 5e-6)
	near(t, "two weeks", Decay(week, 14*day), 0.25007, 5e-6)
	near(t, "no half-life", Decay(0, 14*day), 1, 0)
}

// TestUsageIsConserved: what a job is charged does not depend on how its time is cut, with usage factor and all.
func TestUsageIsConserved(t *testing.T) {
	at := func(s int64) core.Time { return core.Time(1e15 + s*1e6) }
	set := Setting{}
	m := &Meter{At: at(100)}
	m.All.Adjust(Of(Amount{Name: "mem", Count: 2048}, Amount{Name: "cpu", Count: 4}), 4, 2, 1)
	whole, parts := set.Read(m, at(900)), m
	for s := int64(170); s < 900; s += 70 {
		parts = set.Read(parts, at(s))
	}
	parts = set.Read(parts, at(900))
	near(t, "usage", whole.All.Raw, 800*4*2, 1e-9)
	near(t, "usage in periods", parts.All.Raw, whole.All.Raw, 1e-6)
	if u := parts.All.Usage(at(900)); u.Minutes("cpu") != 106 || u.Wall != 1600 {
		t.Errorf("CPU minutes: %d, seconds of jobs: %v", u.Minutes("cpu"), u.Wall)
	}
	parts.All.Adjust(Of(Amount{Name: "mem", Count: 2048}, Amount{Name: "cpu", Count: 4}), 4, 2, -1)
	if r := parts.All; r.RawRate != 0 || r.WallRate != 0 || r.TRES[0].Rate != 0 {
		t.Errorf("a rate is left: %+v", r)
	}
}

func TestResetPeriods(t *testing.T) {
	day := func(s string) core.Time {
		d, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return core.At(d)
	}
	for _, c := range []struct {
		period    string
		last, now string
		due       bool
	}{
		{"none", "2026-01-01 00:00", "2027-01-01 00:00", false},
		{"daily", "2026-11-15 00:00", "2026-11-15 23:59", false},
		{"daily", "2026-11-15 23:59", "2026-11-16 00:00", true},
		{"weekly", "2026-11-15 00:00", "2026-11-21 23:59", false}, // Sunday to Saturday
		{"weekly", "2026-11-21 23:59", "2026-11-22 00:00", true},
		{"monthly", "2026-10-31 12:00", "2026-11-01 00:00", true},
		{"quarterly", "2026-10-01 00:00", "2026-12-31 00:00", false},
		{"quarterly", "2026-12-31 00:00", "2027-01-01 00:00", true},
		{"yearly", "2026-01-01 00:00", "2026-12-31 00:00", false},
	} {
		p, err := ParseResetPeriod(c.period)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Began(day(c.now)) > day(c.last); got != c.due {
			t.Errorf("%s %s to %s: %v", c.period, c.last, c.now, got)
		}
	}
}

func TestBilling(t *testing.T) {
	weights, err := ParseWeights("CPU=1.0,Mem=0.25G,GRES/gpu=2.0,license/a=1.5")
	if err != nil {
		t.Fatal(err)
	}
	cpu, gpu, lic := Amount{Name: "cpu", Count: 1}, Amount{Name: "gres/gpu", Count: 1}, Amount{Name: "license/a", Count: 1}
	gib := func(n int64) Amount { return Amount{Name: "mem", Count: n * 1024} }
	for _, c := range []struct {
		tres  TRES
		flags Flag
		want  int64
	}{
		{Of(cpu, gib(8)), 0, 3},
		{Of(cpu, gib(8), lic), 0, 4},
		{Of(cpu, gib(10), lic), 0, 5},
		{Of(cpu, gib(8)), MaxTRES, 2},
		{Of(cpu, gib(8), lic), MaxTRES, 3},
		{Of(cpu, gib(8), gpu), MaxTRESGres, 4},
		{Of(cpu, gib(8), Amount{Name: "gres/gpu:a100", Count: 4}), 0, 3}, // a type needs a weight of its own
	} {
		if got := Bill(c.tres, weights, c.flags); got != c.want {
			t.Errorf("%s with flags %b: %d, want %d", c.tres, c.flags, got, c.want)
		}
	}
	if got := Bill(Of(Amount{Name: "cpu", Count: 6}, gib(8)), nil, 0); got != 6 {
		t.Errorf("without weights: %d", got)
	}
	for _, bad := range []string{"cpu", "cpu=x", "gres=2", "cpu=1,CPU=2", "wishes=3", "mem=-x", "cpu=1G"} {
		if _, err := ParseWeights(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestPriorityOfExample(t *testing.T) {
	cl := &Cluster{Nodes: 8, CPUs: 512, MaxPart: 20}
	j := &Job{TRES: Of(Amount{Name: "node", Count: 2}, Amount{Name: "cpu", Count: 16}), Limit: 3600}
	size := func(small bool, flags Flag) (float64, uint32) {
		c := Config{Weights: Weights{JobSize: 1000}, FavorSmall: small, Flags: flags}
		f := c.Factors(j, cl, 0)
		return f.JobSize, c.Priority(&f, 0, 0)
	}
	for _, c := range []struct {
		small  bool
		flags  Flag
		factor float64
		prio   uint32
	}{
		{false, 0, .140625, 140},
		{true, 0, .859375, 859},
		{false, SmallRelativeToTime, .0041667, 4},
		{true, SmallRelativeToTime, .9958333, 995},
	} {
		f, p := size(c.small, c.flags)
		near(t, "size", f, c.factor, 1e-7)
		if p != c.prio {
			t.Errorf("priority %d, want %d", p, c.prio)
		}
	}
	day := core.Time(86400 * 1e6)
	aged := Config{Weights: Weights{Age: 1000}}
	f := aged.Factors(&Job{Accrues: day}, cl, 2*day)
	if p := aged.Priority(&f, 0, 0); p != 142 {
		t.Errorf("a day of age: %d", p)
	}
	if p := aged.Priority(&f, 0, 100); p != 42 {
		t.Errorf("nice: %d", p)
	}
	if p := aged.Priority(&f, 0, 1000); p != 1 {
		t.Errorf("a priority below 1: %d", p)
	}
	if f := aged.Factors(&Job{Accrues: day}, cl, 20*day); f.Age != 1 {
		t.Errorf("age beyond the most: %v", f.Age)
	}
	if f := aged.Factors(&Job{Submit: day}, cl, 20*day); f.Age != 0 {
		t.Errorf("age of a job that does not accrue: %v", f.Age)
	}
	always := Config{Weights: aged.Weights, Flags: AccrueAlways}
	if f := always.Factors(&Job{Submit: day}, cl, 20*day); f.Age != 1 {
		t.Errorf("age with ACCRUE_ALWAYS: %v", f.Age)
	}
	for _, c := range []struct {
		flags Flag
		a, b  uint32
	}{{0, 5000, 2500}, {NoNormalPart, 100000, 50000}, {NoNormalAll, 100000, 50000}} {
		part := Config{Weights: Weights{Partition: 5000}, Flags: c.flags}
		fa, fb := part.Factors(&Job{PartPrio: 20}, cl, 0), part.Factors(&Job{PartPrio: 10}, cl, 0)
		if a, b := part.Priority(&fa, 0, 0), part.Priority(&fb, 0, 0); a != c.a || b != c.b {
			t.Errorf("partitions with flags %b: %d and %d", c.flags, a, b)
		}
	}
}

func TestPriorityTRESCapAndIncrease(t *testing.T) {
	c := Config{Weights: Weights{TRES: []Weight{{Name: "cpu", Per: 1000}, {Name: "gres/gpu", Per: 500}}}}
	j := &Job{
		TRES:     Of(Amount{Name: "cpu", Count: 16}, Amount{Name: "gres/gpu", Count: 1}),
		PartTRES: Of(Amount{Name: "cpu", Count: 64}),
	}
	f := c.Factors(j, &Cluster{}, 0)
	if p := c.Priority(&f, 7, 0); p != 257 {
		t.Errorf("TRES and site: %d", p)
	}
	c.Flags = NoNormalTRES
	f = c.Factors(j, &Cluster{}, 0)
	if p := c.Priority(&f, 0, 0); p != 16500 {
		t.Errorf("raw TRES: %d", p)
	}
	if p := c.Priority(&f, math.MaxInt64/2, 0); p != math.MaxUint32 {
		t.Errorf("cap: %d", p)
	}
	if c.Next(9, 5) != 5 {
		t.Error("a priority may fall")
	}
	c.Flags |= IncrOnly
	if c.Next(9, 5) != 9 {
		t.Error("a priority fell with INCR_ONLY")
	}
	if _, err := ParseFlags("max_tres, NO_NORMAL_ALL"); err != nil {
		t.Error(err)
	}
	if _, err := ParseFlags("MAX_TRESS"); err == nil {
		t.Error("an unknown flag was taken")
	}
}

func acct(name, parent core.ProjectName, shares int64, used float64) Assoc {
	return Assoc{Project: name, Parent: parent, Shares: shares, Used: Usage{Raw: used}}
}

func user(account core.ProjectName, name core.UserName, shares int64, used float64) Assoc {
	return Assoc{Project: account, User: name, Shares: shares, Used: Usage{Raw: used}}
}

func exampleTree() []Assoc {
	return []Assoc{
		acct("A", "", 40, 450), acct("D", "root", 60, 250), acct("B", "A", 30, 200), acct("C", "A", 10, 250),
		acct("E", "D", 25, 250), acct("F", "D", 35, 0),
		user("B", "u1", 1, 200), user("C", "u2", 1, 250), user("C", "u3", 1, 0), user("E", "u4", 1, 250),
		user("F", "u5", 1, 0),
	}
}

func mustTree(t *testing.T, list []Assoc) *Tree {
	t.Helper()
	tree, err := NewTree(list)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestFairTreeOfExample(t *testing.T) {
	tree := mustTree(t, exampleTree())
	tree.FairShare(0, 1)
	inf := math.Inf(1)
	levels := map[core.ProjectName]float64{"A": .6222, "D": 1.68, "B": 1.6875, "C": .45, "E": .4167, "F": inf}
	factors := map[core.UserName]float64{"u5": 1, "u4": .8, "u1": .6, "u3": .4, "u2": .2}
	found := 0
	for _, s := range tree.Standings() {
		if want, ok := levels[s.Project]; ok && s.User == "" && s.Level != want {
			near(t, "level of "+string(s.Project), s.Level, want, 5e-5)
		}
		if want, ok := factors[s.User]; ok {
			found++
			near(t, string(s.User), s.Factor, want, 1e-9)
		}
	}
	if found != 5 {
		t.Errorf("%d users", found)
	}
}

func TestClassicFairShareOfExample(t *testing.T) {
	tree := mustTree(t, exampleTree())
	tree.FairShare(NoFairTree, 1)
	want := map[string][3]float64{
		"A": {.4, .6429, .3282}, "D": {.6, .3571, .6619}, "u1": {.3, .5536, .2783}, "u2": {.05, .3929, .0043},
		"u3": {.05, .2143, .0513}, "u4": {.25, .3571, .3715}, "u5": {.35, .2083, .6619},
	}
	for _, s := range tree.Standings() {
		name := string(s.User)
		if name == "" {
			name = string(s.Project)
		}
		if w, ok := want[name]; ok {
			near(t, name+" S", s.Norm, w[0], 5e-5)
			near(t, name+" UE", s.Effective, w[1], 5e-5)
			near(t, name+" F", s.Factor, w[2], 5e-5)
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}

func TestDepthObliviousTreatsDepthAlike(t *testing.T) {
	// Two users with half the shares and half the usage each: one directly below, one behind three accounts.
	tree := mustTree(t, []Assoc{
		acct("flat", "", 1, 100), user("flat", "f", 1, 100),
		acct("a", "", 1, 100), acct("b", "a", 1, 100), acct("c", "b", 1, 100), user("c", "deep", 1, 100),
	})
	tree.FairShare(DepthOblivious, 1)
	for _, u := range [][2]string{{"flat", "f"}, {"c", "deep"}} {
		got, _ := tree.Factor(core.ProjectName(u[0]), core.UserName(u[1]))
		near(t, u[1], got, .5, 1e-9)
	}
	tree = mustTree(t, exampleTree())
	tree.FairShare(DepthOblivious, 1)
	// R of A is .6429/.4; of B r = (.2857/.3)/(.6429/.4) < 1 while ln R > 0, so r counts less.
	over := (450. / 700) / .4
	r := (200. / 700 / .3) / over
	k := 1 / (1 + 25*math.Pow(math.Log(over), 2))
	got, _ := tree.Factor("B", "u1")
	near(t, "u1", got, math.Exp2(-over*math.Pow(r, k)), 1e-9)
	if got, _ := tree.Factor("F", "u5"); got != 1 {
		t.Errorf("a user without usage: %v", got)
	}
}

func TestFairTreeTies(t *testing.T) {
	for _, c := range []struct {
		name string
		list []Assoc
		want map[core.UserName]float64 // rank
	}{
		{"equal users share a rank and the next one skips", []Assoc{
			acct("a", "", 1, 100), user("a", "x", 1, 0), user("a", "y", 1, 0), user("a", "z", 1, 100),
		}, map[core.UserName]float64{"x": 3, "y": 3, "z": 1}},
		{"equal accounts are merged", []Assoc{
			acct("a", "", 1, 100), acct("b", "", 1, 100),
			user("a", "a1", 1, 90), user("a", "a2", 1, 10), user("b", "b1", 1, 70), user("b", "b2", 1, 30),
		}, map[core.UserName]float64{"a2": 4, "b2": 3, "b1": 2, "a1": 1}},
		{"a user equal to an account ranks as its best", []Assoc{
			acct("a", "", 1, 50), user("root", "x", 1, 50), user("a", "a1", 1, 10), user("a", "a2", 1, 40),
		}, map[core.UserName]float64{"x": 3, "a1": 3, "a2": 1}},
		{"an account without users changes nothing", []Assoc{
			acct("a", "", 1, 50), acct("empty", "a", 1, 0), user("root", "x", 1, 50), user("a", "a1", 1, 50),
		}, map[core.UserName]float64{"x": 2, "a1": 2}},
		{"no shares, no rank", []Assoc{
			acct("a", "", 1, 10), user("a", "x", 0, 0), user("a", "y", 1, 10),
		}, map[core.UserName]float64{"x": 0, "y": 2}},
		{"children of an account with Fairshare=parent stand beside its siblings", []Assoc{
			{Project: "p", ShareParent: true, Used: Usage{Raw: 60}},
			acct("q", "", 1, 40),
			user("p", "p1", 1, 60), user("p", "p2", 1, 0), user("q", "q1", 1, 40),
		}, map[core.UserName]float64{"p2": 3, "q1": 2, "p1": 1}},
		{"users with Fairshare=parent are their account", []Assoc{
			acct("a", "", 1, 10), acct("b", "", 1, 90), user("b", "b1", 1, 90),
			{Project: "a", User: "x", ShareParent: true, Used: Usage{Raw: 10}},
			{Project: "a", User: "y", ShareParent: true},
		}, map[core.UserName]float64{"x": 3, "y": 3, "b1": 1}},
	} {
		tree := mustTree(t, c.list)
		tree.FairShare(0, 1)
		for _, s := range tree.Standings() {
			if s.User != "" {
				near(t, c.name+": "+string(s.User), s.Factor*float64(len(c.want)), c.want[s.User], 1e-9)
			}
		}
	}
}

func TestFairShareDoesNotDependOnOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var list []Assoc
	for a := range 12 {
		name, parent := core.ProjectName(fmt.Sprintf("a%02d", a)), core.ProjectName("")
		if a > 3 {
			parent = core.ProjectName(fmt.Sprintf("a%02d", rng.IntN(a)))
		}
		x := acct(name, parent, int64(rng.IntN(4)), float64(rng.IntN(5)*10))
		x.ShareParent = rng.IntN(6) == 0
		list = append(list, x)
		for u := range rng.IntN(4) {
			list = append(list, user(name, core.UserName(fmt.Sprint("u", u)), int64(rng.IntN(3)), float64(rng.IntN(3)*10)))
		}
	}
	for _, flags := range []Flag{0, NoFairTree, DepthOblivious} {
		tree := mustTree(t, list)
		tree.FairShare(flags, 1)
		want := tree.Standings()
		for range 20 {
			rng.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
			again := mustTree(t, list)
			again.FairShare(flags, 1)
			if got := again.Standings(); !reflect.DeepEqual(got, want) {
				t.Fatalf("flags %b: another order, other shares:\n%v\n%v", flags, got, want)
			}
		}
		for _, s := range want {
			if !(s.Factor >= 0 && s.Factor <= 1) {
				t.Errorf("flags %b: %s %s has %v", flags, s.Project, s.User, s.Factor)
			}
		}
	}
}

func TestTreeRefusesWhatIsNoTree(t *testing.T) {
	for _, list := range [][]Assoc{
		{acct("a", "b", 1, 0), acct("b", "a", 1, 0)},
		{acct("a", "nowhere", 1, 0)},
		{user("nowhere", "x", 1, 0)},
		{acct("a", "", 1, 0), acct("a", "", 1, 0)},
	} {
		if _, err := NewTree(list); err == nil {
			t.Errorf("taken: %v", list)
		}
	}
}

func TestGrowthAndDecay(t *testing.T) {
	grown := func(raw float64, rate int64, half core.Seconds, d time.Duration) float64 {
		return growth(half, d).of(raw, rate*Micro)
	}
	for _, half := range []core.Seconds{0, 1, 3600, 604800} {
		want := grown(1e6, 40, half, 36000*time.Second)
		got := 1e6
		for range 120 {
			got = grown(got, 40, half, 300*time.Second)
		}
		near(t, "in steps", got, want, 1e-6*want)
	}
	near(t, "in the end charge and decay are even", grown(0, 10, 3600, 1e6*time.Second), 10*3600/.693, 10)
	near(t, "a period charges nearly all of it", grown(0, 10, 604800, 300*time.Second), 3000, 1)
}
