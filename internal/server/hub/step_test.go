package hub

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestNoteStep: a step is new once; its changes are those of one that is known, until it has ended.
func TestNoteStep(t *testing.T) {
	t.Parallel()
	job := &tracked{job: &core.Job{Attempt: 2}}
	runs, ended := core.Step{ID: 1, Attempt: 2, State: core.Running}, core.Step{ID: 1, Attempt: 2, State: core.Completed}
	for i, tc := range []struct {
		of    *tracked
		step  core.Step
		known bool
		left  int
	}{
		{job, core.Step{ID: 1, Attempt: 1, State: core.Running}, false, 0}, // an earlier attempt's
		{nil, runs, false, 0},
		{job, runs, false, 1},
		{job, runs, true, 1},
		{job, ended, true, 0},
		{job, ended, false, 0},
	} {
		if known := tc.of.noteStep(&tc.step, true); known != tc.known || len(job.steps) != tc.left {
			t.Errorf("%d: known %v, %d steps", i, known, len(job.steps))
		}
	}
}
