package jobs

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func TestJobExit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job  core.Job
		want int
	}{
		"done":      {core.Job{State: core.Completed}, 0},
		"failed":    {core.Job{State: core.Failed, Exit: core.Exit{Code: 3}}, 3},
		"signal":    {core.Job{State: core.Failed, Exit: core.Exit{Signal: 9}}, 137},
		"timeout":   {core.Job{State: core.Timeout}, 1},
		"node lost": {core.Job{State: core.NodeFail}, 1},
		"memory":    {core.Job{State: core.OutOfMemory, Reason: core.ReasonOutOfMemory, Exit: core.ExitOOM}, 1},
		"no image":  {core.Job{State: core.Failed, Reason: core.ReasonLaunchFailure, Exit: core.ExitLaunch}, 1},
		"real-time": {core.Job{State: core.Failed, Reason: core.ReasonNonZeroExit, Exit: core.Exit{Signal: 53}}, 181},
	} {
		if got := jobExit(&client.Job{Job: tc.job}); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
