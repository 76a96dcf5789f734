package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// load is the seeded bench load: a cluster of four kinds of nodes in ten overlapping partitions, 95 % full, with two
// running jobs a node and a long queue of many shapes.
type load struct {
	cfg     Config
	nodes   []*core.Node
	running []*core.Job
	pending []*core.Job
	shapes  int
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
	id := core.JobID(0)
	for i := range nodes {
		cpus, mem, gres, features := kindOf(i)
		n := &core.Node{
			ID: int64(i + 1), Name: core.NodeName(fmt.Sprintf("n%05d", i+1)), Roles: core.Compute, Features: features,
			Hardware: core.Hardware{CPUs: cpus, Memory: mem, Gres: gres},
		}
		l.nodes = append(l.nodes, n)
		first := int32(0)
		for k := range 2 { // two jobs a node; every tenth node has half of itself free
			take := cpus / 2
			if k == 1 && i%10 == 0 {
				continue
			}
			id++
			na := core.NodeAlloc{Node: n.Name, CPUs: take, Mem: mem / 2, Tasks: 1}
			for c := range take {
				na.Cores = append(na.Cores, first+c)
			}
			for _, g := range gres {
				ga := core.GresAlloc{Name: g.Name, Type: g.Type}
				for u := range int32(g.Count / 2) {
					ga.Units = append(ga.Units, int32(k)*int32(g.Count/2)+u)
				}
				na.Gres = append(na.Gres, ga)
			}
			first += take
			l.running = append(l.running, &core.Job{
				ID: id, State: core.Running, Submit: loadNow - 9e9, Start: loadNow - core.Time(r.IntN(3600))*1e6,
				Spec:  &core.Spec{Partition: "p0", TimeLimit: core.Seconds(10_800 + 60*r.IntN(2700)), Shape: core.Shape{Tasks: 1, CPUsPerTask: take, MemPerNode: mem / 2}},
				Alloc: &core.Alloc{Partition: "p0", Nodes: []core.NodeAlloc{na}},
			})
		}
	}
	keys := map[Key]bool{}
	kinds := make([]core.Spec, max(60, pending*7/100)) // people send the same again and again
	for i := range kinds {
		kinds[i] = kind(r, nodes)
		keys[KeyOf(&kinds[i])] = true
	}
	for range pending {
		id++
		s := kinds[r.IntN(len(kinds))]
		s.User, s.TimeLimit = core.UserName(fmt.Sprintf("u%03d", r.IntN(500))), core.Seconds(600*(1+r.IntN(144)))
		l.pending = append(l.pending, &core.Job{ID: id, State: core.Pending, Priority: uint32(r.IntN(100_000)), Submit: loadNow - core.Time(r.IntN(86400))*1e6, Spec: &s})
	}
	l.shapes = len(keys)
	return l
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
	p.Apply(Changes{Nodes: l.nodes})
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

// BenchmarkIncrementalPass is a pass after one event on a cluster that has been planned: a job ends, and what the plan
// starts then takes its place. Must reach: 5 ms, 99 times of 100.
func BenchmarkIncrementalPass(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			l := newLoad(b, size.nodes, size.pending)
			p := l.planner()
			byID := map[core.JobID]*core.Job{}
			for _, j := range l.pending {
				byID[j.ID] = j
			}
			run := append([]*core.Job(nil), l.running...)
			now := loadNow
			for range 3 { // until nothing more starts
				jobs := l.started(p.Pass(now), byID)
				p.Apply(Changes{Jobs: jobs})
				run = append(run, jobs...)
			}
			r := rand.New(rand.NewPCG(1, 2))
			var times []int64
			starts := 0
			for b.Loop() {
				b.StopTimer()
				k := r.IntN(len(run))
				e := *run[k]
				run[k] = run[len(run)-1]
				run = run[:len(run)-1]
				e.State, e.End = core.Completed, now
				b.StartTimer()
				began := b.Elapsed()
				p.Apply(Changes{Jobs: []*core.Job{&e}})
				plan := p.Pass(now)
				times = append(times, int64(b.Elapsed()-began))
				b.StopTimer()
				starts += len(plan.Starts)
				jobs := l.started(plan, byID)
				p.Apply(Changes{Jobs: jobs})
				run = append(run, jobs...)
				now += 1e6
				b.StartTimer()
			}
			reportP99(b, times)
			b.ReportMetric(float64(starts)/float64(b.N), "starts/op")
		})
	}
}

func reportP99(b *testing.B, times []int64) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100])/1e6, "p99-ms")
	b.ReportMetric(float64(times[len(times)/2])/1e6, "p50-ms")
}
