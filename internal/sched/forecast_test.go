package sched

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// finish runs a forecast to its end in slices of a size.
func finish(f *Forecast, slice int) *Forecast {
	for !f.Step(slice) {
	}
	return f
}

// playOut lets everything that waits start as planned and run to its limit, and tells when each started.
func playOut(t testing.TB, p *Planner, jobs map[core.JobID]*core.Job, now core.Time) map[core.JobID]core.Time {
	started := map[core.JobID]core.Time{}
	var running []*core.Job
	for id := range jobs {
		if jobs[id].State == core.Running {
			running = append(running, jobs[id])
		}
	}
	for {
		plan := p.Pass(now)
		for _, s := range plan.Starts {
			j := *jobs[s.Job]
			j.State, j.Start, j.Alloc = core.Running, now, s.Alloc
			started[j.ID] = now
			running = append(running, &j)
			p.Apply(Changes{Jobs: []*core.Job{&j}})
		}
		if len(running) == 0 {
			return started
		}
		next := alloc.Never
		for _, j := range running {
			next = min(next, alloc.LatestEnd(j))
		}
		if plan.WakeAt > now {
			next = min(next, plan.WakeAt)
		}
		now = next
		running = slices.DeleteFunc(running, func(j *core.Job) bool {
			if alloc.LatestEnd(j) > now {
				return false
			}
			e := *j
			e.State, e.End = core.Completed, now
			p.Apply(Changes{Jobs: []*core.Job{&e}})
			return true
		})
	}
}

// TestForecastAgrees holds forecasts against what then happens: everything runs to its limit and nothing more arrives.
func TestForecastAgrees(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		nodes, pending int
		mean           float64 // how far off a forecast may be on average, as a part of the mean wait
	}{{1, 40, 0.1}, {4, 100, 0.15}, {40, 400, 0.15}, {200, 2000, 0.15}} {
		t.Run(fmt.Sprintf("nodes=%d/pending=%d", tc.nodes, tc.pending), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(tc.nodes)))
			p := New(Config{
				Partitions: []core.Partition{{Name: "main"}},
				Hosts:      func(string) map[core.NodeName]bool { return nil },
			})
			var nodes []*core.Node
			for i := range tc.nodes {
				nodes = append(nodes, &core.Node{
					ID: int64(i + 1), Name: core.NodeName(fmt.Sprintf("n%03d", i)),
					Roles: core.Compute, Hardware: core.Hardware{CPUs: 32, Memory: 128 * core.GiB},
				})
			}
			p.Apply(Changes{Nodes: nodes})
			jobs := map[core.JobID]*core.Job{}
			for id := core.JobID(1); id <= core.JobID(tc.pending); id++ {
				s := &core.Spec{Partition: core.ListPartitions("main"), TimeLimit: core.Seconds(60 * (1 + r.IntN(120)))}
				s.Shape = core.Shape{
					NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: int32(1) << r.IntN(6),
					MemPerNode: core.Bytes(1+r.IntN(32)) * core.GiB,
				}
				if n := int32(1 + r.IntN(1+tc.nodes/4)); r.IntN(8) == 0 {
					s.Shape.NodesMin, s.Shape.NodesMax, s.Shape.Tasks = n, n, n
				}
				jobs[id] = &core.Job{ID: id, State: core.Pending, Submit: loadNow + core.Time(id), Spec: s}
				p.Apply(Changes{Jobs: []*core.Job{jobs[id]}})
			}
			plan := p.Pass(loadNow)
			f := finish(p.Forecast(plan), 100)
			plan = plan.WithForecast(f)
			if again := finish(p.Forecast(plan), 1_000_000); !reflect.DeepEqual(f.table, again.table) {
				t.Error("the forecast depends on the size of its slices")
			}
			started := playOut(t, p, jobs, loadNow)
			var wait, off, bias, last float64
			for id, at := range started {
				said, estimate, ok := plan.Expected(id)
				if !ok {
					t.Fatalf("nothing is said of job %d", id)
				}
				if !estimate && at > said {
					t.Errorf("job %d is promised %d and starts at %d", id, said-loadNow, at-loadNow)
				}
				d := float64(said - at)
				wait += float64(at - loadNow)
				bias += d
				off += max(d, -d)
				last = max(last, float64(at-loadNow))
			}
			n := float64(len(started))
			t.Logf("mean wait %.0f s, last start %.0f s; forecasts are off by %.1f %% of it on average, bias %.1f %%",
				wait/n/1e6, last/1e6, 100*off/wait, 100*bias/wait)
			if off > tc.mean*wait {
				t.Errorf("forecasts are off by %.1f %% of the mean wait", 100*off/wait)
			}
		})
	}
}

// BenchmarkForecast is one forecast of every pending job, beside the plan.
func BenchmarkForecast(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", size.nodes, size.pending), func(b *testing.B) {
			l := newLoad(b, size.nodes, size.pending)
			p := l.planner()
			plan := p.Pass(loadNow)
			var times []int64
			var f *Forecast
			for b.Loop() {
				f = p.Forecast(plan)
				for done := false; !done; {
					began := b.Elapsed()
					done = f.Step(20_000)
					times = append(times, int64(b.Elapsed()-began))
				}
			}
			b.ReportMetric(float64(len(times))/float64(b.N), "slices/op")
			b.ReportMetric(float64(slices.Max(times))/1e6, "longest-slice-ms")
			b.ReportMetric(float64(f.table.Len()), "told")
			reportP99(b, times)
		})
	}
}
