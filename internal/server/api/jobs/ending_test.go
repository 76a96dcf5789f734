package jobs

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

func TestEndingOfSuspended(t *testing.T) {
	t.Parallel()
	lent := func(to ...core.JobID) *core.Pushed {
		p := &core.Pushed{}
		for _, id := range to {
			p.Lent = append(p.Lent, core.Lent{To: id, Node: "n1", CPUs: 1})
		}
		return p
	}
	for want, pushed := range map[string]*core.Pushed{
		"an administrator suspended it": nil,
		"it was preempted: job 7 uses its CPUs, and it resumes when they are free again":           lent(7, 7),
		"it was preempted: jobs 7, 9 use its CPUs, and it resumes when all of them are free again": lent(7, 9, 7),
	} {
		if got := ending(&core.Job{State: core.Suspended, Pushed: pushed}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
