package view

import (
	"testing"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/engine/state"
)

func TestSentencesNameNoHiddenJobs(t *testing.T) {
	t.Parallel()
	v := &Viewer{Snap: emptySnapshot(t), Visibility: Visibility{User: "mallory", Private: config.PrivateJobs}}
	for text, want := range map[string]string{
		"job 12 is ahead of it in partition main": "another job is ahead of it in " +
			"partition main",
		"it was preempted: jobs 12, 13 use its CPUs, and it goes on": "it was preempted: other jobs " +
			"use its CPUs, and it goes on",
		"run x is there already (job 5); stop it first": "run x is there already (another " +
			"job); stop it first",
		"job 7 waits for job 8_3": "job 7 waits for another job",
		"there are 12 jobs in the queue, which is 3 hours long; its job script 12": "there are 12 jobs in the queue, " +
			"which is 3 hours long; its job script 12",
	} {
		if got := v.Sentence(text, 7); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func emptySnapshot(t *testing.T) *state.Snapshot {
	t.Helper()
	return state.New(state.Config{}, &state.Image{}).Snapshot()
}
