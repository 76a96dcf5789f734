package sched

import (
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// busy is a cluster of full nodes with jobs waiting: half of them alike, the others of a thousand shapes.
func busy(nodes, pending int) (p *Planner, running []*core.Job) {
	p = New(Config{
		Partitions: []core.Partition{{Name: "main", Default: true}},
		Hosts:      func(string) map[core.NodeName]bool { return nil },
	})
	var c Changes
	for i := range nodes {
		n := coretest.Node(core.NodeName(fmt.Sprintf("n%05d", i+1))).ID(int64(i + 1)).CPUs(64).Mem(256 * core.GiB).Build()
		c.Nodes = append(c.Nodes, n)
		cores := make([]int32, 64)
		for k := range cores {
			cores[k] = int32(k)
		}
		j := coretest.Job().ID(core.JobID(i + 1)).Partition("main").CPUs(64).Running(&core.Alloc{
			Partition: "main", Nodes: []core.NodeAlloc{{Node: n.Name, CPUs: 64, Cores: cores, Tasks: 1}},
		}).Build()
		running = append(running, j)
	}
	c.Jobs = append(c.Jobs, running...)
	for i := range pending {
		b := coretest.Job().ID(core.JobID(nodes + i +
			1)).Partition("main").CPUs(4).Priority(uint32(10_000 - i%7)).Submitted(core.Time(i))
		if i%2 == 0 {
			b.CPUs(int32(1 + i%60)).MemPerCPU(core.Bytes(1+i%17) * core.MiB)
		}
		c.Jobs = append(c.Jobs, b.Build())
	}
	p.Apply(c)
	return p, running
}

func ended(j *core.Job) *core.Job {
	e := *j
	e.State = core.Completed
	return &e
}

// BenchmarkPass is a pass after one event (a job ended, so that others start) over 100,000 waiting jobs. The budget is
// 1 ms.
func BenchmarkPass(b *testing.B) {
	for _, nodes := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			p, running := busy(nodes, 100_000)
			started := 0
			for i := 0; b.Loop(); i++ {
				j := running[i%len(running)]
				p.Apply(Changes{Jobs: []*core.Job{ended(j)}})
				plan := p.Pass(core.Time(1 << 40))
				started += len(plan.Starts)
				p.Apply(Changes{Jobs: []*core.Job{j}})
			}
			if started == 0 {
				b.Fatal("nothing started")
			}
		})
	}
}

// BenchmarkIdlePass is a pass in which nothing can start.
func BenchmarkIdlePass(b *testing.B) {
	p, _ := busy(100, 100_000)
	for b.Loop() {
		p.Pass(core.Time(1 << 40))
	}
}

// BenchmarkNodeChange is a node that goes and comes, over 100,000 waiting jobs.
func BenchmarkNodeChange(b *testing.B) {
	p, _ := busy(100, 100_000)
	up := coretest.Node("n00001").ID(1).CPUs(64).Mem(256 * core.GiB)
	down := up.Build()
	down.Flags = core.NodeDrain
	for i := 0; b.Loop(); i++ {
		n := up.Build()
		if i%2 == 0 {
			n = down
		}
		p.Apply(Changes{Nodes: []*core.Node{n}})
		p.Pass(core.Time(1 << 40))
	}
}

// BenchmarkCold builds a planner over 100,000 waiting jobs and plans once, as after a restart.
func BenchmarkCold(b *testing.B) {
	for b.Loop() {
		p, _ := busy(100, 100_000)
		p.Pass(core.Time(1 << 40))
	}
}
