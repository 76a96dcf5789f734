package engine

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/sqlite"
)

// planned is the bench load in a database, with an engine over it.
type planned struct {
	*running
	*coretest.Load
}

// stored writes the load into a database.
func stored(b *testing.B, l *coretest.Load) store.Store {
	b.Helper()
	st, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bireme.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	})
	epoch, err := st.Lead(b.Context(), "bireme", 0, 0, coretest.LoadNow)
	if err != nil {
		b.Fatal(err)
	}
	first := &core.Changes{
		Now: coretest.LoadNow, NextJob: l.NextID + 1, NextNode: int64(len(l.Nodes) + 1), Nodes: l.Nodes,
		Projects: l.Projects,
	}
	for u := range 500 {
		uid := uint32(1000 + u)
		first.Users = append(first.Users,
			&core.User{
				Name: core.UserName(fmt.Sprintf("u%03d", u)), UnixName: fmt.Sprintf("u%03d", u), UID: &uid,
				Role: core.RoleUser,
			})
	}
	all := []*core.Changes{first}
	for part := range slices.Chunk(slices.Concat(l.Running, l.Pending), 5000) {
		c := &core.Changes{Now: coretest.LoadNow, NextJob: first.NextJob, NextNode: first.NextNode, Jobs: part}
		for _, j := range part {
			j.SpecID = j.ID
			c.Specs = append(c.Specs, core.SpecRow{ID: j.ID, Spec: j.Spec})
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := st.Commit(b.Context(), epoch, c); err != nil {
			b.Fatal(err)
		}
	}
	return st
}

// BenchmarkSubmitWhilePlanned is a durable submission by one of several clients while a cluster of 10,000 nodes with
// 100,000 jobs in its queue is planned without a pause: at first cold, then after each job that ends. Must reach: 20
// ms, 99 times of 100.
func BenchmarkSubmitWhilePlanned(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("nodes=10000/pending=100000/clients=%d", clients),
			func(b *testing.B) { submitWhilePlanned(b, clients) })
	}
}

func submitWhilePlanned(b *testing.B, clients int) {
	l := coretest.NewLoad(10_000, 100_000)
	began := time.Now()
	e := planned{start(b, stored(b, l), Config{
		State: state.Config{Partitions: l.Partitions, MaxJobs: 1 << 40},
		Now:   func() time.Time { return coretest.LoadNow.Go().Add(time.Since(began)) },
	}), l}
	<-e.Leading()
	over := make(chan struct{})
	var work sync.WaitGroup
	var passes atomic.Int64
	work.Go(func() { passes.Store(e.churn(b, over)) })
	times := make([][]time.Duration, clients)
	turn := make(chan struct{})
	var submits sync.WaitGroup
	for c := range clients {
		submits.Go(func() { times[c] = e.submits(b, uint64(c), turn) })
	}
	for b.Loop() {
		turn <- struct{}{}
	}
	close(turn)
	submits.Wait()
	close(over)
	work.Wait()
	all := slices.Concat(times...)
	if b.Failed() {
		return
	}
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "p99-ms")
	b.ReportMetric(float64(passes.Load())/b.Elapsed().Seconds(), "plans/s")
}

// submits sends what one client has to send, one after the other.
func (e *planned) submits(b *testing.B, seed uint64, turn <-chan struct{}) (times []time.Duration) {
	r := rand.New(rand.NewPCG(seed, 7))
	i := 0
	for range turn {
		i++
		spec := e.Shapes[r.IntN(len(e.Shapes))]
		if len(spec.Shape.Gres) > 0 || spec.Shape.NodesMin > 1 {
			spec.Extra = nil // else it may be what no node has, and would be refused
		}
		u := r.IntN(500)
		spec.User, spec.UID, spec.Project = core.UserName(fmt.Sprintf("u%03d", u)), uint32(1000+u),
			core.ProjectName(fmt.Sprintf("a%02d", u%20))
		spec.TimeLimit = core.Seconds(600 * (1 + r.IntN(144)))
		began := time.Now()
		_, err := Do(b.Context(), e.Engine,
			&state.Submit{By: core.Identity{User: spec.User, UID: spec.UID}, Spec: &spec, Key: fmt.Sprintf("%d-%d", seed, i)})
		if err != nil {
			b.Error(err)
		}
		times = append(times, time.Since(began))
	}
	return times
}

// churn ends a job whenever a new plan is there, and tells how many plans there were.
func (e *planned) churn(b *testing.B, over <-chan struct{}) (plans int64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	last := e.Plan()
	k := 0
	for {
		select {
		case <-over:
			return plans
		case <-tick.C:
		}
		if p := e.Plan(); p == last || p == nil {
			continue
		} else {
			last = p
		}
		plans++
		for k < len(e.Running) && len(e.Running[k].Alloc.Nodes) > 1 {
			k++
		}
		if k == len(e.Running) {
			continue
		}
		j := e.Running[k]
		k++
		if _, err := Do(b.Context(), e.Engine,
			&state.Exited{
				Node: j.Alloc.Nodes[0].Node, Job: j.ID, Attempt: j.Attempt, Step: "batch",
				JobDone: true,
			}); err != nil {
			b.Error(err)
			return plans
		}
	}
}
