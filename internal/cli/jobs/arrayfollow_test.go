package jobs

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// TestDecidingTask: an array is judged by its first task that failed, else by the first that was stopped.
func TestDecidingTask(t *testing.T) {
	t.Parallel()
	task := func(n int32, state core.JobState, code int32, end core.Time) client.Job {
		return client.Job{Job: core.Job{
			State: state, Exit: core.Exit{Code: code}, End: end, Array: &core.ArrayRef{Base: 5, Task: n, Count: 4},
		}}
	}
	for name, tc := range map[string]struct {
		tasks []client.Job
		code  int
		text  string
	}{
		"all done": {[]client.Job{task(0, core.Completed, 0, 1), task(1, core.Completed, 0, 2)}, 0, "2 tasks completed"},
		"the first to fail, not the last": {
			[]client.Job{task(0, core.Failed, 7, 9), task(1, core.Failed, 3, 4), task(2, core.Completed, 0, 12)},
			3,
			"1 task completed, 2 tasks failed; first 5_1: failed, exit status 3",
		},
		"a failure counts more than a stop": {
			[]client.Job{task(0, core.Cancelled, 0, 1), task(1, core.Failed, 2, 4)},
			2,
			"1 task cancelled, 1 task failed; first 5_1: failed, exit status 2",
		},
		"stopped": {
			[]client.Job{task(0, core.Completed, 0, 1), task(1, core.Cancelled, 0, 4)},
			1,
			"1 task completed, 1 task cancelled; first 5_1: cancelled",
		},
	} {
		code := 0
		if j := decidingTask(tc.tasks); j != nil {
			code = jobExit(j)
		}
		if text := arrayEnding(tc.tasks); code != tc.code || text != tc.text {
			t.Errorf("%s: %d, %q", name, code, text)
		}
	}
}
