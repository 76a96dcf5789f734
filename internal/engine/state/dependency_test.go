package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/taskset"
)

// TestEndingsFromTheStore: after a restart memory does not know how jobs ended; a submission brings what the store
// knows.
func TestEndingsFromTheStore(t *testing.T) {
	t.Parallel()
	task := func(id core.JobID, k int32, st core.JobState) *core.Job {
		return &core.Job{ID: id, State: st, Array: &core.ArrayRef{Base: 10, Task: k}}
	}
	for name, tc := range map[string]struct {
		dependency string
		ended      []*core.Job
		want       core.Reason
	}{
		"well":             {"afterok:3", []*core.Job{{ID: 3, State: core.Completed}}, core.ReasonNone},
		"badly":            {"afterok:3", []*core.Job{{ID: 3, State: core.Failed}}, core.ReasonDependencyNever},
		"badly, as wanted": {"afternotok:3", []*core.Job{{ID: 3, State: core.Timeout}}, core.ReasonNone},
		"well, unwanted":   {"afternotok:3", []*core.Job{{ID: 3, State: core.Completed}}, core.ReasonDependencyNever},
		"purged":           {"afterok:3", nil, core.ReasonNone},
		"an array": {
			"afterok:10",
			[]*core.Job{task(10, 1, core.Completed), task(11, 0, core.Completed)},
			core.ReasonNone,
		},
		"an array with one bad": {
			"afterok:10",
			[]*core.Job{task(10, 1, core.Completed), task(11, 0, core.Failed)},
			core.ReasonDependencyNever,
		},
		"the good task of it": {
			"afterok:10_1",
			[]*core.Job{task(10, 1, core.Completed), task(11, 0, core.Failed)},
			core.ReasonNone,
		},
		"the bad task of it": {
			"afterok:10_0",
			[]*core.Job{task(10, 1, core.Completed), task(11, 0, core.Failed)},
			core.ReasonDependencyNever,
		},
		"tasks that never started": {
			"afterok:10_4",
			[]*core.Job{{ID: 12, State: core.Cancelled, Array: &core.ArrayRef{Base: 10, Tasks: taskset.Of(3, 4)}}},
			core.ReasonDependencyNever,
		},
		"one of two is enough": {
			"afterok:3?afterok:4",
			[]*core.Job{{ID: 3, State: core.Failed}, {ID: 4, State: core.Completed}},
			core.ReasonNone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Config{})
			w.st, w.before = New(Config{}, &Image{NextJob: 20, Seq: 500}), 500
			w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
			n := coretest.Node("n1").Build()
			w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
			in := func(seen int64) *Submit {
				x := &core.Extra{Dependency: coretest.Dependency(tc.dependency)}
				spec := coretest.Job().Set(func(s *core.Spec) { s.Extra = x }).Spec()
				return &Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: spec, Ended: tc.ended, Seen: seen}
			}
			if _, err := w.do(in(499)); core.CodeOf(err) != core.Unavailable {
				t.Fatalf("what was looked up before the state was loaded is used: %v", err)
			}
			id := w.must(in(500)).(*Submitted).ID
			if j, ok := w.st.rec.Job(id); !ok || j.Reason != tc.want {
				t.Fatalf("the job waits because %q (%v), want %q", j.Reason, j.Needs, tc.want)
			}
		})
	}
}
