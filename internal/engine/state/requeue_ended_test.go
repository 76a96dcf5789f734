package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// TestEndedJobsComeBackWithinLimits: a job that is requeued after its end is held against what holds for a submission
// today: how many jobs its user may have, and that the user, the project and the partition are still there.
func TestEndedJobsComeBackWithinLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{MaxJobs: 100, JobsPerUser: 2})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	n := coretest.Node("n1").Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	by := core.Identity{User: "alice", UID: 1000}
	submit := func() core.JobID {
		spec := coretest.Job().User("alice").Set(func(s *core.Spec) { s.UID, s.Requeue = 1000, true }).Spec()
		return w.must(&Submit{By: by, Spec: spec}).(*Submitted).ID
	}
	id := submit()
	w.pass()
	w.end(id)
	ended := jobs.Clone(w.disk.jobs[id])
	if ended.Spec = w.disk.specs[id]; !ended.State.Final() {
		t.Fatalf("job %d has not ended: %+v", id, ended)
	}
	again := &Requeue{By: by, Job: id, Ended: ended}

	full := []core.JobID{submit(), submit()}
	if _, err := w.do(again); core.ReasonOf(err) != "jobs_per_user" {
		t.Errorf("beyond the user's number of jobs: %v", err)
	}
	for _, x := range full {
		w.must(&Cancel{By: by, Job: x})
	}
	moved, spec := jobs.Clone(ended), *ended.Spec
	moved.Spec, spec.Partition = &spec, core.ParsePartitions("gone")
	if _, err := w.do(&Requeue{By: by, Job: id, Ended: moved}); core.ReasonOf(err) != "invalid_partition" {
		t.Errorf("of a partition that is gone: %v", err)
	}
	broken := jobs.Clone(ended)
	broken.Steps = -1
	if _, err := w.do(&Requeue{By: by, Job: id, Ended: broken}); core.ReasonOf(err) != "job_state" {
		t.Errorf("of an unsound record: %v", err)
	}
	w.must(again)
	if j, ok := w.st.rec.Job(id); !ok || j.State != core.Pending {
		t.Fatalf("it does not wait: %+v", j)
	}
	w.must(&Cancel{By: by, Job: id})
	w.must(&DropUser{By: root, Name: "alice"})
	if _, err := w.do(&Requeue{By: root, Job: id, Ended: ended}); core.ReasonOf(err) != "invalid_user" {
		t.Errorf("of a user who was deleted: %v", err)
	}
	w.check()
}

// Two commands that requeue the same ended job come with the same record. The second finds the job in the queue, or
// running; if the job has ended again by then, the record is from before that and is refused.
func TestEndedJobIsRequeuedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	n := coretest.Node("n1").Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	by := core.Identity{User: "alice", UID: 1000}
	spec := coretest.Job().User("alice").Set(func(s *core.Spec) { s.UID, s.Requeue = 1000, true }).Spec()
	id := w.must(&Submit{By: by, Spec: spec}).(*Submitted).ID
	record := func() *core.Job {
		t.Helper()
		j := jobs.Clone(w.disk.jobs[id])
		if j.Spec = w.disk.specs[id]; !j.State.Final() {
			t.Fatalf("job %d has not ended: %+v", id, j)
		}
		return j
	}
	w.pass()
	w.end(id)
	first := record()
	w.must(&Requeue{By: by, Job: id, Ended: first})
	if _, err := w.do(&Requeue{By: by, Job: id, Ended: first}); core.CodeOf(err) != core.Conflict {
		t.Errorf("of one that waits: %v", err)
	}
	w.pass()
	w.end(id)
	second := record()
	if second.Attempt <= first.Attempt {
		t.Fatalf("attempt %d after %d", second.Attempt, first.Attempt)
	}
	if _, err := w.do(&Requeue{By: by, Job: id, Ended: first}); core.CodeOf(err) != core.Conflict {
		t.Errorf("with the record of before: %v", err)
	}
	w.must(&Requeue{By: by, Job: id, Ended: second})
	w.pass()
	if j, ok := w.st.rec.Job(id); !ok || j.Attempt <= second.Attempt {
		t.Errorf("it comes back as attempt %d after %d", j.Attempt, second.Attempt)
	}
	w.check()
}
