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
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
)

const loadNow = coretest.LoadNow

// load is the seeded bench load, as a planner hears of it.
type load struct {
	*coretest.Load
	cfg    Config
	policy *Policy
	shapes int
}

func newLoad(tb testing.TB, nodes, pending int) *load {
	cache := map[string]map[core.NodeName]bool{}
	l := &load{Load: coretest.NewLoad(nodes, pending)}
	l.cfg = Config{Partitions: l.Partitions, Hosts: func(list string) map[core.NodeName]bool {
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
	}}
	keys := map[fit.Key]bool{}
	for i := range l.Shapes {
		keys[fit.KeyOf(&l.Shapes[i])] = true
	}
	l.shapes = len(keys)
	list := []policy.Assoc{{Project: policy.Root}}
	for _, p := range l.Projects {
		list = append(list, policy.Assoc{Project: p.Name, Limits: p.Assoc.Limits})
	}
	for u := range 500 {
		p := l.Projects[u%20]
		m := &p.Members[u/20]
		list = append(list, policy.Assoc{Project: p.Name, User: m.User, Limits: m.Assoc.Limits})
	}
	rules, err := policy.NewRules(policy.Setting{}, list, nil, true)
	if err != nil {
		tb.Fatal(err)
	}
	l.policy = &Policy{Rules: rules}
	return l
}

func (l *load) planner() *Planner {
	p := New(l.cfg)
	p.Apply(Changes{Nodes: l.Nodes, Policy: l.policy})
	p.Apply(Changes{Jobs: l.Running})
	p.Apply(Changes{Jobs: l.Pending})
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

// BenchmarkColdPass is the first pass over every pending job: EASY, no depth cut-off. Must reach: 1 s at 10,000 nodes
// and 100,000 pending.
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

// BenchmarkIncrementalPass is a pass after one event on a cluster that has been planned: a job ends and what the plan
// starts takes its place, jobs are submitted and canceled, priorities change, nodes go down and come up. Must reach: 5
// ms, 99 times of 100.
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

// released is a load that is planned and goes on.
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
	s := &settled{
		load: l, p: l.planner(), r: rand.New(rand.NewPCG(1, 2)), now: loadNow, is: map[core.JobID]*core.Job{},
		byKind: map[string][]time.Duration{},
	}
	s.run, s.waiting = slices.Clone(l.Running), slices.Clone(l.Pending)
	for _, j := range slices.Concat(l.Running, l.Pending) {
		s.is[j.ID] = j
	}
	for _, j := range l.Running {
		heap.Push(&s.ends, deadline{alloc.LatestEnd(j), j.ID})
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
		heap.Push(&s.ends, deadline{alloc.LatestEnd(j), j.ID})
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
	if j, late := s.late(); late { // no job runs longer than it may
		j.State, j.End = core.Completed, s.now
		return put(j), "end"
	}
	switch x := s.r.IntN(100); {
	case x < 50:
		j := s.pick(&s.run, core.Running)
		j.State, j.End = core.Completed, s.now
		return put(j), "end"
	case x < 75:
		j := s.Draw(s.r, s.now)
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
		n := *s.Nodes[i]
		s.Nodes[i] = &n
		n.Flags &^= core.NodeDown
		return Changes{Nodes: []*core.Node{&n}}, "up"
	}
	i := s.r.IntN(len(s.Nodes))
	if s.Nodes[i].Flags != 0 {
		return Changes{}, "none"
	}
	s.down = append(s.down, i)
	n := *s.Nodes[i]
	s.Nodes[i] = &n
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
		b.Logf("%-9s %5d: p50 %v p90 %v p99 %v max %v", what, len(t), t[len(t)/2], t[len(t)*9/10], t[len(t)*99/100],
			t[len(t)-1])
	}
}

func reportP99(b *testing.B, times []int64) { reportTimes(b, "", times) }

func reportTimes(b *testing.B, kind string, times []int64) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100])/1e6, kind+"p99-ms")
	b.ReportMetric(float64(times[len(times)/2])/1e6, kind+"p50-ms")
}
