package steplayout

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestShareIsDealtInRounds holds what share works out against tasks dealt out one by one.
func TestShareIsDealtInRounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 5))
	for range 20_000 {
		pool := make([]core.NodeAlloc, rng.IntN(5))
		for i := range pool {
			pool[i].CPUs = []int32{0, 1, 2, 3, 7, math.MaxInt32}[rng.IntN(6)]
		}
		want, perTask, perNode := rng.Int32N(30), 1+rng.Int32N(3), rng.Int32N(4)
		tasks, left := make([]int32, len(pool)), want
		for dealt := true; dealt && left > 0; {
			dealt = false
			for i := range pool {
				if left > 0 && int64(tasks[i]+1)*int64(perTask) <= int64(pool[i].CPUs) && (perNode == 0 || tasks[i] < perNode) {
					tasks[i]++
					left--
					dealt = true
				}
			}
		}
		got, rest := share(pool, want, perTask, perNode)
		if !slices.Equal(got, tasks) || rest != left {
			t.Fatalf("%d tasks of %d CPUs, %d a node, on %+v: %v and %d left, want %v and %d", want, perTask, perNode, pool, got,
				rest, tasks, left)
		}
	}
}
