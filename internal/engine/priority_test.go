package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// TestPrioritiesGrowByThemselves: nobody has to ask, and nothing is written for it.
func TestPrioritiesGrowByThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &state.Priority{Period: 60}
		p.Weights.Age, p.MaxAge = 1000, 10*3600
		f := newFakestore()
		e := start(t, f, Config{State: state.Config{Priority: p}})
		e.people(1)
		whole := func(s *core.Spec) { s.Hold, s.Shape.CPUsPerTask = false, 4 }
		must(e, submit(0, "runs", whole))
		id := idOf(t, must(e, submit(1, "waits", whole)))
		synctest.Wait()
		_, before, _ := f.count()
		for hours := range 12 {
			time.Sleep(time.Hour) // in a bubble: nobody waits
			synctest.Wait()
			j, ok := e.Snapshot().Job(id)
			want := min(1000, 100*(hours+1))
			// The last calculation was less than a period ago, in which a priority grows by 1.7.
			if !ok || j.State != core.Pending || int(j.Priority) > want || int(j.Priority) < want-2 {
				t.Fatalf("after %d hours: %+v, want a priority of %d", hours+1, j, want)
			}
		}
		if _, after, _ := f.count(); after != before {
			t.Errorf("%d commits for that", after-before)
		}
	})
}
