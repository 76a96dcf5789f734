package storetest

import (
	"fmt"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/store"
)

// purge calls Purge until it says that nothing is left, and gives the sum.
func (w *world) purge(keep store.Retention) (removed int) {
	w.t.Helper()
	for calls := 0; ; calls++ {
		n, more, err := w.Purge(w.ctx, w.epoch, keep, w.now)
		if err != nil {
			w.t.Fatal(err)
		}
		if more && n == 0 || calls > 10_000 {
			w.t.Fatalf("call %d removed %d and still has more", calls, n)
		}
		removed += n
		if !more {
			return removed
		}
	}
}

func testPurgeEvents(t *testing.T, w *world) {
	w.lead()
	for range 5 {
		c := &core.Changes{}
		for range 1000 {
			c.Events = append(c.Events, core.Event{Kind: core.JobUpdated})
		}
		w.commit(c)
	}
	w.same(w.purge(store.Retention{}), 0)
	n, more, err := w.Purge(w.ctx, w.epoch, store.Retention{MaxEvents: 1500}, w.now)
	if err != nil || n >= 3500 || !more {
		t.Fatalf("one purge removed %d (more: %v), %v; want a bounded batch", n, more, err)
	}
	w.same(n+w.purge(store.Retention{MaxEvents: 1500}), 3500)
	_, err = w.Events(w.ctx, 0, 10)
	w.wantErr(err, store.ErrGone)
	_, err = w.Events(w.ctx, 3499, 10)
	w.wantErr(err, store.ErrGone)
	got, err := w.Events(w.ctx, 3500, 1)
	if err != nil || len(got) != 1 || got[0].Seq != 3501 {
		t.Fatalf("first after the purge: %v, %v", got, err)
	}
	// By age: commits are a second apart, so what is younger than a second is the last commit's.
	w.same(w.purge(store.Retention{Events: time.Second / 2}), 500)
	w.now = w.now.Add(time.Hour)
	w.same(w.purge(store.Retention{Events: time.Minute, MaxEvents: 1 << 40}), 1000)
	_, err = w.Events(w.ctx, w.seq-1, 10)
	w.wantErr(err, store.ErrGone)
	if got, err := w.Events(w.ctx, w.seq, 10); err != nil || len(got) != 0 {
		t.Fatalf("after the last: %v, %v", got, err)
	}
	w.commit(&core.Changes{}) // the sequence continues without a gap
	if got, err := w.Events(w.ctx, w.seq-1, 10); err != nil || len(got) != 1 {
		t.Fatalf("the next one: %v, %v", got, err)
	}
}

func testPurgeJobs(t *testing.T, w *world) {
	c := &core.Changes{}
	for id := core.JobID(1); id <= 900; id++ {
		s := spec(id, "ann")
		j := &core.Job{ID: id, SpecID: id, Spec: s, State: core.Completed, Submit: w.now, End: w.now.Add(time.Duration(id))}
		if id%300 == 0 {
			j.State, j.End = core.Running, 0
		}
		c.Jobs = append(c.Jobs, j)
		c.Specs = append(c.Specs, core.SpecRow{ID: id, Spec: s})
		c.Blobs = append(c.Blobs, blobsOf(id)...)
		c.Steps = append(c.Steps, &core.Step{Job: id, Attempt: 1})
	}
	w.commit(c)
	w.now = w.now.Add(time.Hour)
	young := w.ended(901, "ann", core.Failed)
	before := w.load()
	w.same(w.purge(store.Retention{Jobs: 2 * time.Hour}), 0)
	n, more, err := w.Purge(w.ctx, w.epoch, store.Retention{Jobs: time.Minute}, w.now)
	if err != nil || n == 0 || n >= 897 || !more {
		t.Fatalf("one purge removed %d (more: %v), %v; want a bounded batch", n, more, err)
	}
	w.same(n+w.purge(store.Retention{Jobs: time.Minute}), 897)
	w.same(w.load(), before)
	w.same(w.jobs(store.JobQuery{}), []*core.Job{young})
	w.wantIDs(store.JobQuery{Live: true}, 300, 600, 900, 901)
	w.wantBlob("script 300")
	w.wantBlob("env 901")
	for _, id := range []int{1, 299, 301, 512, 899} {
		w.wantNoBlob(fmt.Sprintf("script %d", id))
		w.wantNoBlob(fmt.Sprintf("env %d", id))
	}
	steps, err := w.Steps(w.ctx, []core.JobID{1, 300, 512})
	if err != nil || len(steps) != 1 || steps[0].Job != 300 {
		t.Fatalf("steps %v, %v; want those of job 300", steps, err)
	}
}

// testPurgeSharedBlobs: a blob stays while any spec refers to it.
func testPurgeSharedBlobs(t *testing.T, w *world) {
	submit := func(id core.JobID) *core.Job {
		s := spec(id, "ann")
		s.Script, s.Extra = hash("shared"), &core.Extra{Files: hash("files")}
		j := &core.Job{ID: id, SpecID: id, Spec: s, Submit: w.now}
		w.commit(&core.Changes{
			Jobs: []*core.Job{j}, Specs: []core.SpecRow{{ID: id, Spec: s}},
			Blobs: []core.Blob{blob("shared"), blobsOf(id)[1], blob("files")},
		})
		return j
	}
	old, near, far := submit(1), submit(2), submit(3000)
	w.finish(old, core.Completed)
	w.now = w.now.Add(time.Hour)
	keep := store.Retention{Jobs: time.Minute}
	w.same(w.purge(keep), 1)
	w.wantNoBlob("env 1")
	w.wantBlob("shared")
	w.finish(near, core.Completed)
	w.now = w.now.Add(time.Hour)
	w.same(w.purge(keep), 1)
	w.wantBlob("shared")
	w.wantBlob("files")
	w.wantBlob("env 3000")
	w.finish(far, core.Completed)
	w.now = w.now.Add(time.Hour)
	w.same(w.purge(keep), 1)
	w.wantNoBlob("shared")
	// It may come back.
	submit(3001)
	w.wantBlob("shared")
}

// testPurgeArrays: the spec of an array stays until its last task has gone.
func testPurgeArrays(t *testing.T, w *world) {
	s := spec(1, "ann")
	ref := core.ArrayRef{Base: 1, Count: 2, Max: 1, Step: 1, Tasks: taskset.Of(0, 1)}
	w.commit(&core.Changes{
		Jobs:  []*core.Job{{ID: 1, SpecID: 1, Spec: s, Array: &ref}},
		Specs: []core.SpecRow{{ID: 1, Spec: s}}, Blobs: blobsOf(1),
	})
	r0, r1 := ref, ref
	r0.Tasks, r1.Tasks, r1.Task = taskset.Set{}, taskset.Set{}, 1
	running := &core.Job{ID: 2, SpecID: 1, Spec: s, Array: &r0, State: core.Running, Start: w.now}
	w.commit(&core.Changes{Jobs: []*core.Job{running}})
	w.finish(&core.Job{ID: 1, SpecID: 1, Spec: s, Array: &r1}, core.Completed)
	w.now = w.now.Add(time.Hour)
	keep := store.Retention{Jobs: time.Minute}
	w.same(w.purge(keep), 1)
	w.same(w.load().Jobs, []*core.Job{running})
	w.wantBlob("script 1")
	w.finish(running, core.Completed)
	w.now = w.now.Add(time.Hour)
	w.same(w.purge(keep), 1)
	w.wantNoBlob("script 1")
	w.wantIDs(store.JobQuery{Live: true})
}

// testPurgeRevisions: a revised spec stays while a task has it, and goes with the first one.
func testPurgeRevisions(t *testing.T, w *world) {
	const revised = -core.SpecRevisions // of array 1
	s, longer := spec(1, "ann"), spec(1, "ann")
	longer.TimeLimit = 77
	ref := core.ArrayRef{Base: 1, Count: 2, Max: 1, Step: 1, Tasks: taskset.Of(0, 1)}
	w.commit(&core.Changes{
		Jobs:  []*core.Job{{ID: 1, SpecID: 1, Spec: s, Array: &ref}},
		Specs: []core.SpecRow{{ID: 1, Spec: s}}, Blobs: blobsOf(1),
	})
	r0, r1 := ref, ref
	r0.Tasks, r1.Tasks, r1.Task = taskset.Set{}, taskset.Set{}, 1
	running := &core.Job{ID: 2, SpecID: revised, Spec: longer, Array: &r0, State: core.Running, Start: w.now}
	w.commit(&core.Changes{Jobs: []*core.Job{running}, Specs: []core.SpecRow{{ID: revised, Spec: longer}}})
	w.finish(&core.Job{ID: 1, SpecID: revised, Spec: longer, Array: &r1}, core.Completed)
	w.now = w.now.Add(time.Hour)
	keep := store.Retention{Jobs: time.Minute}
	w.same(w.purge(keep), 1)
	w.same(w.load().Jobs, []*core.Job{running})
	w.wantBlob("script 1")
	w.finish(running, core.Completed)
	w.now = w.now.Add(time.Hour)
	w.same(w.purge(keep), 1)
	w.wantNoBlob("script 1")
}

func testPurgeKeys(t *testing.T, w *world) {
	c := &core.Changes{}
	for id := core.JobID(1); id <= 3000; id++ {
		c.Keys = append(c.Keys, core.SubmitKey{
			Key: fmt.Sprint("k", id), Job: id,
			At: w.now.Add(time.Duration(id) * time.Second),
		})
	}
	w.commit(c)
	w.now = w.now.Add(2000*time.Second + time.Minute)
	w.same(w.purge(store.Retention{Jobs: time.Second}), 0)
	w.same(w.purge(store.Retention{Keys: time.Minute}), 2000)
	keys := w.load().Keys
	if len(keys) != 1000 {
		t.Fatalf("%d keys left, want 1000", len(keys))
	}
	_, err := w.SubmitKey(w.ctx, "k2000")
	w.wantErr(err, store.ErrNotFound)
	if id, err := w.SubmitKey(w.ctx, "k2001"); err != nil || id != 2001 {
		t.Fatalf("got %d, %v", id, err)
	}
}

func testPurgeRuns(t *testing.T, w *world) {
	w.commit(&core.Changes{
		Runs: []*core.Run{
			{ID: "1", Name: "a", Created: w.now, Ended: w.now, Config: hash("one")},
			{ID: "2", Name: "b", Created: w.now, Ended: w.now, Config: hash("both")},
			{ID: "3", Name: "c", Created: w.now, Config: hash("both")},
		},
		Blobs: []core.Blob{blob("one"), blob("both")},
	})
	w.now = w.now.Add(time.Hour)
	w.same(w.purge(store.Retention{Events: time.Nanosecond}) > 0, true)
	w.same(w.purge(store.Retention{Jobs: time.Minute}), 2)
	w.wantNoBlob("one")
	w.wantBlob("both")
	runs, err := w.Runs(w.ctx, store.RunQuery{})
	if err != nil || len(runs) != 1 || runs[0].ID != "3" {
		t.Fatalf("got %v, %v", runs, err)
	}
}

func testPurgeStale(t *testing.T, w *world) {
	j := w.ended(1, "ann", core.Completed)
	old := w.epoch
	w.lead()
	_, _, err := w.Purge(w.ctx, old, store.Retention{Jobs: 1, MaxEvents: 1, Keys: 1}, w.now.Add(time.Hour))
	w.wantErr(err, store.ErrStale)
	w.same(w.jobs(store.JobQuery{}), []*core.Job{j})
}
