package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bireme.dev/bireme/internal/core"
)

// TestForecastGoesWithThePlan fills a cluster: the first job that waits has a reservation, those behind it a forecast,
// and the forecast stays with the plan while others are made.
func TestForecastGoesWithThePlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := start(t, newFakestore(), Config{})
		e.people(1)
		node, _ := e.Snapshot().Node("n1")
		whole := func(s *core.Spec) { s.Hold, s.Shape.CPUsPerTask, s.TimeLimit = false, node.Hardware.CPUs, 3600 }
		var ids []core.JobID
		for i := range 4 {
			ids = append(ids, idOf(t, must(e, submit(1, fmt.Sprint("k", i), whole))))
		}
		time.Sleep(time.Second) // of the test's own clock: more than the rest between forecasts
		synctest.Wait()
		j, _ := e.Snapshot().Job(ids[0])
		for i, id := range ids[1:] {
			at, estimate, ok := e.Plan().Expected(id)
			if want := j.Start.Add(time.Duration(i+1) * time.Hour); !ok || at < want || at > want+1e6 || estimate != (i > 0) {
				t.Errorf("job %d is expected at %v, estimate %v, known %v; want %v", id, at.Sub(j.Start), estimate, ok,
					want.Sub(j.Start))
			}
		}
		if on := e.Plan().Nodes(ids[1]); len(on) != 1 || on[0] != "n1" {
			t.Errorf("the reserved job is planned on %v", on)
		}
	})
}
