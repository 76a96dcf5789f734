package sched

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/policy"
)

// load is the seeded bench load: a cluster of four kinds of nodes in ten overlapping partitions, 95 % full with two running
// jobs a node, some of them on many nodes, and a long queue of many shapes, of 500 users in 20 accounts under limits.
type load struct {
	cfg     Config
	policy  *Policy
	nodes   []*core.Node
	running []*core.Job
	pending []*core.Job
	shapes  int
	nextID  core.JobID
	kinds   []core.Spec
}

const loadNow = core.Time(1_700_000_000) * 1_000_000

func kindOf(i int) (cpus int32, mem core.Bytes, gres []core.Gres, features []string) {
	switch i % 20 {
	case 0, 1, 2:
		return 64, 1024 * core.GiB, nil, []string{"fat", "ib"}
	case 3, 4:
		return 64, 512 * core.GiB, []core.Gres{{Name: "gpu", Type: "a100", Count: 4}}, []string{"gpu", "ib"}
	case 5:
		return 128, 1024 * core.GiB, []core.Gres{{Name: "gpu", Type: "h100", Count: 8}}, []string{"gpu", "ib", "fast"}
	}
	return 48, 192 * core.GiB, nil, []string{"thin"}
}

func newLoad(tb testing.TB, nodes, pending int) *load {
	r := rand.New(rand.NewPCG(uint64(nodes), uint64(pending)))
	cache := map[string]map[core.NodeName]bool{}
	l := &load{cfg: Config{Names: func(list string) map[core.NodeName]bool {
		if list == "" {
			return nil
		}
		if set, ok := cache[list]; ok {
			return set
		}
		names, err := hostlist.Expand(list, 1<<20)
		if err != nil {
			tb.Fatal(err)
		}
		set := make(map[core.NodeName]bool, len(names))
		for _, n := range names {
			set[core.NodeName(n)] = true
		}
		cache[list] = set
		return set
	}}}
	for k := range 10 { // the first has all nodes, the others overlapping windows of a third
		p := core.Partition{Name: core.PartitionName(fmt.Sprintf("p%d", k)), Nodes: "ALL", PriorityTier: 1}
		if k > 0 {
			from := 1 + (k-1)*nodes/14
			p.Nodes = fmt.Sprintf("n[%05d-%05d]", from, min(nodes, from+nodes/3))
		}
		l.cfg.Partitions = append(l.cfg.Partitions, p)
	}
	for i := range nodes {
		cpus, mem, gres, features := kindOf(i)
		l.nodes = append(l.nodes, &core.Node{
			ID: int64(i + 1), Name: core.NodeName(fmt.Sprintf("n%05d", i+1)), Roles: core.Compute, Features: features,
			Hardware: core.Hardware{CPUs: cpus, Memory: mem, Gres: gres},
		})
	}
	l.fill(r)
	l.limit(tb, r)
	keys := map[Key]bool{}
	l.kinds = make([]core.Spec, max(60, pending*7/100)) // people send the same again and again
	for i := range l.kinds {
		l.kinds[i] = kind(r, nodes)
		keys[KeyOf(&l.kinds[i])] = true
	}
	for range pending {
		l.pending = append(l.pending, l.draw(r, loadNow-core.Time(r.IntN(86400))*1e6))
	}
	l.shapes = len(keys)
	return l
}

// draw makes a job that somebody submits.
func (l *load) draw(r *rand.Rand, at core.Time) *core.Job {
	l.nextID++
	s := l.kinds[r.IntN(len(l.kinds))]
	s.User, s.Project = loadUser(r)
	s.TimeLimit = core.Seconds(600 * (1 + r.IntN(144)))
	return &core.Job{ID: l.nextID, State: core.Pending, Priority: uint32(r.IntN(100_000)), Submit: at, Spec: &s}
}

func loadUser(r *rand.Rand) (core.UserName, core.ProjectName) {
	u := r.IntN(500)
	return core.UserName(fmt.Sprintf("u%03d", u)), core.ProjectName(fmt.Sprintf("a%02d", u%20))
}

// fill lets jobs run: each node is given away in quarters, every fifth node has one left. One job in twenty is on 2 to 64
// nodes, a quarter of each.
func (l *load) fill(r *rand.Rand) {
	used := make([]int32, len(l.nodes))
	free := func(i int) int32 {
		if i%5 == 0 {
			return 3 - used[i]
		}
		return 4 - used[i]
	}
	take := func(i int) core.NodeAlloc {
		h := &l.nodes[i].Hardware
		na := core.NodeAlloc{Node: l.nodes[i].Name, CPUs: h.CPUs / 4, Mem: h.Memory / 4, Tasks: 1}
		for c := range na.CPUs {
			na.Cores = append(na.Cores, used[i]*na.CPUs+c)
		}
		for _, g := range h.Gres {
			ga := core.GresAlloc{Name: g.Name, Type: g.Type}
			for u := range int32(g.Count / 4) {
				ga.Units = append(ga.Units, used[i]*int32(g.Count/4)+u)
			}
			na.Gres = append(na.Gres, ga)
		}
		used[i]++
		return na
	}
	run := func(nodes ...core.NodeAlloc) {
		l.nextID++
		s := &core.Spec{Partition: "p0", TimeLimit: core.Seconds(10_800 + 60*r.IntN(2700))}
		s.User, s.Project = loadUser(r)
		s.Shape = core.Shape{NodesMin: int32(len(nodes)), NodesMax: int32(len(nodes)), Tasks: int32(len(nodes)), CPUsPerTask: nodes[0].CPUs, MemPerNode: nodes[0].Mem}
		l.running = append(l.running, &core.Job{
			ID: l.nextID, State: core.Running, Submit: loadNow - 9e9, Start: loadNow - core.Time(r.IntN(3600))*1e6, Spec: s,
			Alloc: &core.Alloc{Partition: "p0", Nodes: nodes},
		})
	}
	for range len(l.nodes) / 11 {
		size := min(2<<r.IntN(6), len(l.nodes)/8)
		var nodes []core.NodeAlloc
		for i := r.IntN(len(l.nodes)); len(nodes) < size; i = (i + 1) % len(l.nodes) {
			if free(i) > 0 {
				nodes = append(nodes, take(i))
			}
		}
		run(nodes...)
	}
	for i := range l.nodes {
		for free(i) > 0 {
			run(take(i))
		}
	}
}

// limit puts everybody under limits: a good part of the users may run no more than they do, and some accounts.
func (l *load) limit(tb testing.TB, r *rand.Rand) {
	cpus := map[core.ProjectName]int64{}
	jobs := map[core.UserName]int64{}
	for _, j := range l.running {
		jobs[j.Spec.User]++
		for i := range j.Alloc.Nodes {
			cpus[j.Spec.Project] += int64(j.Alloc.Nodes[i].CPUs)
		}
	}
	list := []policy.Assoc{{Account: policy.Root}}
	for a := range 20 {
		name := core.ProjectName(fmt.Sprintf("a%02d", a))
		list = append(list, policy.Assoc{Account: name, Limits: core.Limits{GrpTRES: core.TRES{{Name: "cpu", Count: cpus[name] * int64(100+r.IntN(40)) / 100}}}})
	}
	for u := range 500 {
		name := core.UserName(fmt.Sprintf("u%03d", u))
		most := jobs[name] * int64(80+r.IntN(120)) / 100
		list = append(list, policy.Assoc{Account: core.ProjectName(fmt.Sprintf("a%02d", u%20)), User: name, Limits: core.Limits{MaxJobs: &most}})
	}
	rules, err := policy.NewRules(policy.Setting{}, list, nil, true)
	if err != nil {
		tb.Fatal(err)
	}
	l.policy = &Policy{Rules: rules}
}

// kind draws one thing that people ask for: a fifth on 2 to 512 nodes, some with GPUs, 3 % with constraints.
func kind(r *rand.Rand, nodes int) core.Spec {
	s := core.Spec{
		Partition: core.PartitionName(fmt.Sprintf("p%d", r.IntN(10))),
		Shape:     core.Shape{NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: int32(1 + r.IntN(48)), MemPerNode: core.Bytes(1+r.IntN(160)) * core.GiB},
	}
	switch r.IntN(10) {
	case 0, 1:
		n := min(int32(2)<<r.IntN(9), int32(nodes/4))
		s.Shape.NodesMin, s.Shape.NodesMax, s.Shape.Tasks, s.Shape.CPUsPerTask = n, n, n*int32(1+r.IntN(4)), int32(1+r.IntN(12))
	case 2:
		s.Shape.Gres = []core.Gres{{Name: "gpu", Count: int64(1 + r.IntN(4))}}
	}
	if r.IntN(100) < 3 {
		s.Extra = &core.Extra{Constraint: []string{"ib", "fat", "gpu&ib", "thin"}[r.IntN(4)]}
	}
	return s
}

func (l *load) planner() *Planner {
	p := New(l.cfg)
	p.Apply(Changes{Nodes: l.nodes, Policy: l.policy})
	p.Apply(Changes{Jobs: l.running})
	p.Apply(Changes{Jobs: l.pending})
	return p
}

// started gives the records of what a plan starts.
func (l *load) started(plan *Plan, byID map[core.JobID]*core.Job) (jobs []*core.Job) {
	for _, s := range plan.Starts {
		j := *byID[s.Job]
		j.State, j.Start, j.Alloc = core.Running, plan.Now, s.Alloc
		jobs = append(jobs, &j)
	}
	return jobs
}

// sizes of the bench load.
var sizes = []struct{ nodes, pending int }{{1000, 10_000}, {10_000, 100_000}}

// BenchmarkColdPass is the first pass over every pending job: EASY, no depth cut-off. Must reach: 1 s at 10,000 nodes and
// 100,000 pending.
func BenchmarkColdPass(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			l := newLoad(b, size.nodes, size.pending)
			starts := 0
			for b.Loop() {
				b.StopTimer()
				p := l.planner()
				b.StartTimer()
				starts = len(p.Pass(loadNow).Starts)
			}
			b.ReportMetric(float64(starts), "starts")
			b.ReportMetric(float64(l.shapes), "shapes")
		})
	}
}

// BenchmarkIncrementalPass is a pass after one event on a cluster that has been planned: a job ends and what the plan starts
// takes its place, jobs are submitted and cancelled, priorities change, nodes go down and come up. Must reach: 5 ms, 99
// times of 100.
func BenchmarkIncrementalPass(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			runtime.LockOSThread() // for cpuTime
			defer runtime.UnlockOSThread()
			l := newLoad(b, size.nodes, size.pending)
			s := l.settle()
			var times, cpu []int64
			starts := 0
			for b.Loop() {
				b.StopTimer()
				c, what := s.event()
				b.StartTimer()
				began, used := time.Now(), cpuTime()
				s.p.Apply(c)
				plan := s.p.Pass(s.now)
				took := time.Since(began)
				times, cpu = append(times, int64(took)), append(cpu, int64(cpuTime()-used))
				b.StopTimer()
				starts += len(plan.Starts)
				s.took(what, time.Duration(cpu[len(cpu)-1]))
				s.start(plan)
				b.StartTimer()
			}
			reportP99(b, times)
			reportTimes(b, "cpu-", cpu)
			b.ReportMetric(float64(starts)/float64(b.N), "starts/op")
			s.report(b)
		})
	}
}

// settled is a load that is planned and goes on.
type settled struct {
	*load
	p       *Planner
	r       *rand.Rand
	now     core.Time
	run     []*core.Job // that run, or have ended
	waiting []*core.Job // that wait, or have not for some time
	is      map[core.JobID]*core.Job
	down    []int // nodes
	ends    deadlines
	byKind  map[string][]time.Duration
}

// settle plans until nothing more starts.
func (l *load) settle() *settled {
	s := &settled{load: l, p: l.planner(), r: rand.New(rand.NewPCG(1, 2)), now: loadNow, is: map[core.JobID]*core.Job{}, byKind: map[string][]time.Duration{}}
	s.run, s.waiting = slices.Clone(l.running), slices.Clone(l.pending)
	for _, j := range slices.Concat(l.running, l.pending) {
		s.is[j.ID] = j
	}
	for _, j := range l.running {
		heap.Push(&s.ends, deadline{endOf(j), j.ID})
	}
	for range 3 {
		s.start(s.p.Pass(s.now))
	}
	return s
}

// start does what a plan says; a second goes by.
func (s *settled) start(plan *Plan) {
	jobs := s.started(plan, s.is)
	for _, j := range jobs {
		s.is[j.ID] = j
		heap.Push(&s.ends, deadline{endOf(j), j.ID})
	}
	s.p.Apply(Changes{Jobs: jobs})
	s.run = append(s.run, jobs...)
	s.now += 1e6
}

// pick takes a job of a list that is still in a state.
func (s *settled) pick(list *[]*core.Job, state core.JobState) core.Job {
	for {
		k := s.r.IntN(len(*list))
		j := s.is[(*list)[k].ID]
		if j.State == state {
			return *j
		}
		(*list)[k] = (*list)[len(*list)-1]
		*list = (*list)[:len(*list)-1]
	}
}

// late finds a job whose time is over.
func (s *settled) late() (core.Job, bool) {
	for len(s.ends) > 0 && s.ends[0].at <= s.now {
		e := heap.Pop(&s.ends).(deadline)
		if j := s.is[e.id]; j.State == core.Running {
			return *j, true
		}
	}
	return core.Job{}, false
}

type deadline struct {
	at core.Time
	id core.JobID
}

type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, k int) bool { return d[i].at < d[k].at }
func (d deadlines) Swap(i, k int)      { d[i], d[k] = d[k], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	x := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return x
}

// event is the next thing that happens.
func (s *settled) event() (c Changes, what string) {
	put := func(j core.Job) Changes {
		s.is[j.ID] = &j
		return Changes{Jobs: []*core.Job{&j}}
	}
	if j, late := s.late(); late { // nobody runs longer than he may
		j.State, j.End = core.Completed, s.now
		return put(j), "end"
	}
	switch x := s.r.IntN(100); {
	case x < 50:
		j := s.pick(&s.run, core.Running)
		j.State, j.End = core.Completed, s.now
		return put(j), "end"
	case x < 75:
		j := s.draw(s.r, s.now)
		s.waiting = append(s.waiting, j)
		return put(*j), "submit"
	case x < 85:
		j := s.pick(&s.waiting, core.Pending)
		j.Priority = uint32(s.r.IntN(100_000))
		return put(j), "priority"
	case x < 95:
		j := s.pick(&s.waiting, core.Pending)
		j.State, j.End = core.Cancelled, s.now
		return put(j), "cancel"
	}
	if len(s.down) > 20 || len(s.down) > 0 && s.r.IntN(2) == 0 {
		i := s.down[0]
		s.down = s.down[1:]
		n := *s.nodes[i]
		s.nodes[i] = &n
		n.Flags &^= core.NodeDown
		return Changes{Nodes: []*core.Node{&n}}, "up"
	}
	i := s.r.IntN(len(s.nodes))
	if s.nodes[i].Flags != 0 {
		return Changes{}, "none"
	}
	s.down = append(s.down, i)
	n := *s.nodes[i]
	s.nodes[i] = &n
	n.Flags |= core.NodeDown
	return Changes{Nodes: []*core.Node{&n}}, "down"
}

func (s *settled) took(what string, d time.Duration) { s.byKind[what] = append(s.byKind[what], d) }

// report tells of each kind of event in verbose runs.
func (s *settled) report(b *testing.B) {
	if !testing.Verbose() {
		return
	}
	for _, what := range slices.Sorted(maps.Keys(s.byKind)) {
		t := s.byKind[what]
		slices.Sort(t)
		b.Logf("%-9s %5d: p50 %v p90 %v p99 %v max %v", what, len(t), t[len(t)/2], t[len(t)*9/10], t[len(t)*99/100], t[len(t)-1])
	}
}

func reportP99(b *testing.B, times []int64) { reportTimes(b, "", times) }

func reportTimes(b *testing.B, kind string, times []int64) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100])/1e6, kind+"p99-ms")
	b.ReportMetric(float64(times[len(times)/2])/1e6, kind+"p50-ms")
}
