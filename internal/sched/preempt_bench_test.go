package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/preempt"
)

// mayPush lets a fiftieth of the jobs that wait preempt a third of those that run.
func (l *load) mayPush() {
	l.cfg.Preemption = preempt.NewRules(core.Preemption{Type: core.PreemptByQOS, Mode: core.PreemptRequeue},
		l.cfg.Partitions, []*core.QOS{
			{Name: "low", Priority: 1}, {Name: "high", Priority: 10, Preempt: []core.QOSName{"low"}},
		})
	r := rand.New(rand.NewPCG(3, 4))
	give := func(list []*core.Job, one int, qos core.QOSName) {
		for i, j := range list {
			if r.IntN(one) == 0 {
				next, s := *j, *j.Spec
				s.QOS = qos
				next.Spec = &s
				list[i] = &next
			}
		}
	}
	give(l.Running, 3, "low")
	give(l.Pending, 50, "high")
}

// preempt does to those who run what a plan says; those of the last one are gone.
func (s *settled) preempt(plan *Plan, leaving []*core.Job) (left []*core.Job) {
	var c Changes
	for _, j := range leaving {
		next := *j
		next.State, next.Flags = core.Preempted, 0
		c.Jobs = append(c.Jobs, &next)
		s.is[next.ID] = &next
	}
	for i, pr := range plan.Preempts {
		v, j := *s.is[pr.Job], *s.is[pr.For]
		v.State, v.Flags, v.End, v.Pushed = core.Preempted, core.Completing, s.now, &core.Pushed{
			For: pr.For, At: s.now,
			Until: s.now,
		}
		j.Room = &core.Room{Seq: int64(plan.Now) + int64(i), Starts: pr.Starts, By: s.now, Nodes: pr.Nodes}
		c.Jobs = append(c.Jobs, &v, &j)
		s.is[v.ID], s.is[j.ID] = &v, &j
		left = append(left, &v)
	}
	s.p.Apply(c)
	return left
}

// BenchmarkPreemptingPass is BenchmarkIncrementalPass where jobs may push others aside.
func BenchmarkPreemptingPass(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			l := newLoad(b, size.nodes, size.pending)
			l.mayPush()
			s := l.settle()
			var times []int64
			var leaving []*core.Job
			pushes := 0
			for range 20 { // the first passes push the most aside
				plan := s.p.Pass(s.now)
				leaving = s.preempt(plan, leaving)
				s.start(plan)
			}
			for b.Loop() {
				b.StopTimer()
				c, _ := s.event()
				b.StartTimer()
				began := time.Now()
				s.p.Apply(c)
				plan := s.p.Pass(s.now)
				times = append(times, int64(time.Since(began)))
				b.StopTimer()
				pushes += len(plan.Preempts)
				leaving = s.preempt(plan, leaving)
				s.start(plan)
				b.StartTimer()
			}
			reportP99(b, times)
			b.ReportMetric(float64(pushes)/float64(b.N), "pushes/op")
		})
	}
}
