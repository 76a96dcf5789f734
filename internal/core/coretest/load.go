package coretest

import (
	"fmt"
	"math/rand/v2"

	"bireme.dev/bireme/internal/core"
)

// Load is the seeded bench load: a cluster of four kinds of nodes in ten overlapping partitions, 95 % full with two
// running jobs a node, some of them on many nodes, and a long queue of many shapes, of 500 users in 20 accounts under
// limits.
type Load struct {
	Partitions []core.Partition
	Nodes      []*core.Node
	Running    []*core.Job
	Pending    []*core.Job
	Projects   []*core.Project // the accounts, with their members
	Shapes     []core.Spec     // what people ask for
	NextID     core.JobID      // the last one that was given
}

// LoadNow is the time on that cluster.
const LoadNow = core.Time(1_700_000_000) * 1_000_000

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

// NewLoad makes one: the same for the same sizes.
func NewLoad(nodes, pending int) *Load {
	r := rand.New(rand.NewPCG(uint64(nodes), uint64(pending)))
	l := &Load{}
	for k := range 10 { // the first has all nodes, the others overlapping windows of a third
		p := core.Partition{Name: core.PartitionName(fmt.Sprintf("p%d", k)), Nodes: "ALL", PriorityTier: 1}
		if k > 0 {
			from := 1 + (k-1)*nodes/14
			p.Nodes = fmt.Sprintf("n[%05d-%05d]", from, min(nodes, from+nodes/3))
		}
		l.Partitions = append(l.Partitions, p)
	}
	for i := range nodes {
		cpus, mem, gres, features := kindOf(i)
		l.Nodes = append(l.Nodes, &core.Node{
			ID: int64(i + 1), Name: core.NodeName(fmt.Sprintf("n%05d", i+1)), Roles: core.Compute, Features: features,
			Hardware: core.Hardware{CPUs: cpus, Memory: mem, Gres: gres}, Host: core.Host{Root: true},
		})
	}
	l.fill(r)
	l.limit(r)
	l.Shapes = make([]core.Spec, max(60, pending*7/100)) // people send the same again and again
	for i := range l.Shapes {
		l.Shapes[i] = kind(r, nodes)
	}
	for range pending {
		l.Pending = append(l.Pending, l.Draw(r, LoadNow-core.Time(r.IntN(86400))*1e6))
	}
	return l
}

// Draw makes a job that somebody submits.
func (l *Load) Draw(r *rand.Rand, at core.Time) *core.Job {
	l.NextID++
	s := l.Shapes[r.IntN(len(l.Shapes))]
	s.User, s.Project = loadUser(r)
	s.TimeLimit = core.Seconds(600 * (1 + r.IntN(144)))
	return &core.Job{ID: l.NextID, State: core.Pending, Priority: uint32(r.IntN(100_000)), Submit: at, Spec: &s}
}

func loadUser(r *rand.Rand) (core.UserName, core.ProjectName) {
	u := r.IntN(500)
	return core.UserName(fmt.Sprintf("u%03d", u)), core.ProjectName(fmt.Sprintf("a%02d", u%20))
}

// fill lets jobs run: each node is given away in quarters, every fifth node has one left. One job in twenty is on 2 to
// 64 nodes, a quarter of each.
func (l *Load) fill(r *rand.Rand) {
	used := make([]int32, len(l.Nodes))
	free := func(i int) int32 {
		if i%5 == 0 {
			return 3 - used[i]
		}
		return 4 - used[i]
	}
	take := func(i int) core.NodeAlloc {
		h := &l.Nodes[i].Hardware
		na := core.NodeAlloc{Node: l.Nodes[i].Name, CPUs: h.CPUs / 4, Mem: h.Memory / 4, Tasks: 1}
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
		l.NextID++
		s := &core.Spec{Partition: core.ListPartitions("p0"), TimeLimit: core.Seconds(10_800 + 60*r.IntN(2700))}
		s.User, s.Project = loadUser(r)
		s.Shape = core.Shape{
			NodesMin: int32(len(nodes)), NodesMax: int32(len(nodes)), Tasks: int32(len(nodes)),
			CPUsPerTask: nodes[0].CPUs, MemPerNode: nodes[0].Mem,
		}
		l.Running = append(l.Running, &core.Job{
			ID: l.NextID, State: core.Running, Submit: LoadNow - 9e9, Start: LoadNow - core.Time(r.IntN(3600))*1e6, Spec: s,
			Alloc: &core.Alloc{Partition: "p0", Nodes: nodes},
		})
	}
	for range len(l.Nodes) / 11 {
		size := min(2<<r.IntN(6), len(l.Nodes)/8)
		var nodes []core.NodeAlloc
		for i := r.IntN(len(l.Nodes)); len(nodes) < size; i = (i + 1) % len(l.Nodes) {
			if free(i) > 0 {
				nodes = append(nodes, take(i))
			}
		}
		run(nodes...)
	}
	for i := range l.Nodes {
		for free(i) > 0 {
			run(take(i))
		}
	}
}

// limit puts everybody under limits: a good part of the users may run no more than they do, and some accounts.
func (l *Load) limit(r *rand.Rand) {
	cpus := map[core.ProjectName]int64{}
	jobs := map[core.UserName]int64{}
	for _, j := range l.Running {
		jobs[j.Spec.User]++
		for i := range j.Alloc.Nodes {
			cpus[j.Spec.Project] += int64(j.Alloc.Nodes[i].CPUs)
		}
	}
	for a := range 20 {
		name := core.ProjectName(fmt.Sprintf("a%02d", a))
		p := &core.Project{Name: name}
		p.Assoc.Limits.GrpTRES = core.TRES{{Name: "cpu", Count: cpus[name] * int64(100+r.IntN(40)) / 100}}
		l.Projects = append(l.Projects, p)
	}
	for u := range 500 {
		m := core.Member{User: core.UserName(fmt.Sprintf("u%03d", u)), Role: core.RoleUser}
		most := jobs[m.User] * int64(80+r.IntN(120)) / 100
		m.Assoc.Limits.MaxJobs = &most
		p := l.Projects[u%20]
		p.Members = append(p.Members, m)
	}
}

// kind draws one thing that people ask for: a fifth on 2 to 512 nodes, some with GPUs, 3 % with constraints.
func kind(r *rand.Rand, nodes int) core.Spec {
	s := core.Spec{
		Partition: core.ParsePartitions(fmt.Sprintf("p%d", r.IntN(10))),
		Shape: core.Shape{
			NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: int32(1 + r.IntN(48)),
			MemPerNode: core.Bytes(1+r.IntN(160)) * core.GiB,
		},
	}
	switch r.IntN(10) {
	case 0, 1:
		n := min(int32(2)<<r.IntN(9), int32(nodes/4))
		s.Shape.NodesMin, s.Shape.NodesMax, s.Shape.Tasks, s.Shape.CPUsPerTask = n, n, n*int32(1+r.IntN(4)),
			int32(1+r.IntN(12))
	case 2:
		s.Shape.Gres = []core.Gres{{Name: "gpu", Count: int64(1 + r.IntN(4))}}
	}
	if r.IntN(100) < 3 {
		features := []string{"ib", "fat", "gpu&ib", "thin"}[r.IntN(4)]
		s.Extra = &core.Extra{Constraint: Constraint(features)}
	}
	return s
}
