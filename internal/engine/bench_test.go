package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// nullstore takes everything at once and keeps nothing but people and nodes: what is left is the engine.
type nullstore struct{ *fakestore }

func (n nullstore) Commit(_ context.Context, _ int64, c *core.Changes) error {
	if len(c.Nodes)+len(c.Users) > 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.write(c)
	}
	return nil
}

// BenchmarkSubmits is submissions end to end by many clients over a store that costs nothing; the jobs wait.
func BenchmarkSubmits(b *testing.B) {
	for _, clients := range []int{2, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			e := start(b, nullstore{newFakestore()}, Config{State: state.Config{MaxJobs: 1 << 40}})
			e.people(1)
			b.SetParallelism(max(1, clients/2))
			var n atomic.Int64
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					if _, err := Do(b.Context(), e.Engine, submit(int(i%8), fmt.Sprintf("key-%d", i))); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
			b.ReportMetric(float64(e.Stats().Inputs)/float64(e.Stats().Batches), "inputs/batch")
		})
	}
}
