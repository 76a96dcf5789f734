package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/store"
)

// testImage: Load gives what was committed, and only the live part of it.
func testImage(t *testing.T, w *world) {
	w.ended(1, "ann", core.Completed)
	waiting := w.pending(2, "bob")
	running := w.run(w.pending(3, "ann"), "n1", "n2")
	uid := uint32(1000)
	c := &core.Changes{
		NextNode: 3,
		Nodes: []*core.Node{
			{ID: 1, Name: "n1", Hardware: core.Hardware{CPUs: 4, Memory: core.GiB}},
			{ID: 2, Name: "n2", Features: []string{"ib"}},
		},
		Users:    []*core.User{{Name: "ann", UID: &uid, Role: core.RoleUser}, {Name: "bob"}},
		Projects: []*core.Project{{Name: "physics", Members: []core.Member{{User: "ann", Role: core.RoleManager}}}},
		Tokens:   []*core.Token{{ID: "t1", Hash: hash("secret"), Kind: "user", User: "ann", Created: 5}},
		Runs: []*core.Run{
			{ID: "r1", Project: "physics", Name: "old", Ended: 9},
			{ID: "r2", Project: "physics", Name: "new", Jobs: []core.JobID{3}, Config: hash("yaml")},
		},
		Keys: []core.SubmitKey{{Key: "k2", Job: 2, At: 17, User: "bob"}},
		Steps: []*core.Step{
			{Job: 1, ID: 0, Name: "gone", State: core.Completed, Attempt: 1},
			{
				Job: 3, ID: 0, Name: "date", State: core.Completed, Nodes: []core.NodeName{"n1"}, Tasks: []int32{1}, CPUs: 1,
				Attempt: 1, Exit: core.Exit{Signal: 9},
			},
			{
				Job: 3, ID: 1, Name: "mpi", State: core.Running, Nodes: []core.NodeName{"n1", "n2"}, Tasks: []int32{2, 2}, CPUs: 4,
				Attempt: 1, Left: 2,
			},
		},
	}
	w.commit(c)
	w.same(w.load(), &store.Image{
		Seq: w.seq, NextJob: 4, NextNode: 3, Now: w.now, Jobs: []*core.Job{waiting, running}, Steps: c.Steps[1:],
		Nodes: c.Nodes,
		Users: c.Users, Projects: c.Projects, Tokens: c.Tokens, Runs: c.Runs[1:], Keys: c.Keys,
	})
}

// testEveryField: no field of a record is lost on the way.
func testEveryField(t *testing.T, w *world) {
	s := filled[core.Spec]()
	j := filled[core.Job]()
	j.ID, j.SpecID, j.Spec, j.State = 3, 3, s, core.Running
	j.Array.Tasks = taskset.Of(1, 2, 9)
	step := filled[core.Step]()
	step.Job = 3
	c := &core.Changes{
		Jobs: []*core.Job{j}, Specs: []core.SpecRow{{ID: 3, Spec: s}}, Steps: []*core.Step{step},
		Nodes: []*core.Node{filled[core.Node]()},
		Users: []*core.User{filled[core.User]()}, Projects: []*core.Project{filled[core.Project]()},
		Tokens: []*core.Token{filled[core.Token]()},
		Runs:   []*core.Run{filled[core.Run]()}, Spent: []*core.Spent{filled[core.Spent]()},
		Keys: []core.SubmitKey{*filled[core.SubmitKey]()},
		QOS:  []*core.QOS{filled[core.QOS]()}, Reservations: []*core.AdvanceReservation{filled[core.AdvanceReservation]()},
		Fleets:      []*core.Fleet{filled[core.Fleet]()},
		Credentials: []*core.Credential{filled[core.Credential]()},
		Volumes:     []*core.Volume{filled[core.Volume]()},
	}
	c.Runs[0].Ended = 0
	w.commit(c)
	w.same(w.load(), &store.Image{
		Seq: w.seq, NextJob: 4, NextNode: 1, Now: w.now, Jobs: c.Jobs, Steps: c.Steps, Nodes: c.Nodes, Users: c.Users,
		Projects: c.Projects, Spent: c.Spent, Tokens: c.Tokens, Runs: c.Runs, Keys: c.Keys, QOS: c.QOS,
		Reservations: c.Reservations,
		Fleets:       c.Fleets,
		Credentials:  c.Credentials,
		Volumes:      c.Volumes,
	})
	j2 := *j
	j2.State, j2.Flags = core.Timeout, core.CancelAsked
	w.commit(&core.Changes{Jobs: []*core.Job{&j2}})
	w.same(w.jobs(store.JobQuery{}), []*core.Job{&j2})
	steps, err := w.Steps(w.ctx, []core.JobID{3})
	if err != nil {
		t.Fatal(err)
	}
	w.same(steps, c.Steps)
}

// testHistory: a job is live until nothing of it is left on a node, then history; a requeue brings it back.
func testHistory(t *testing.T, w *world) {
	j := w.run(w.pending(1, "ann"), "n1")
	w.wantIDs(store.JobQuery{})
	w.wantIDs(store.JobQuery{IDs: []core.JobID{1}})
	w.wantIDs(store.JobQuery{Live: true}, 1)
	c := *j
	c.State, c.End, c.Flags = core.Failed, w.now, core.Completing
	w.commit(&core.Changes{Jobs: []*core.Job{&c}})
	w.same(w.load().Jobs, []*core.Job{&c})
	w.wantIDs(store.JobQuery{})
	d := c
	d.Flags = 0
	w.commit(&core.Changes{Jobs: []*core.Job{&d}})
	w.same(len(w.load().Jobs), 0)
	w.same(w.jobs(store.JobQuery{IDs: []core.JobID{1}}), []*core.Job{&d})
	e := d
	e.State, e.Start, e.End, e.Alloc = core.Pending, 0, 0, nil
	w.commit(&core.Changes{Jobs: []*core.Job{&e}})
	w.same(w.load().Jobs, []*core.Job{&e})
	w.wantIDs(store.JobQuery{})
}

// testArrays: the tasks of an array share a spec, also when the array's own record is history.
func testArrays(t *testing.T, w *world) {
	s := spec(1, "ann")
	s.Array = "0-3"
	ref := core.ArrayRef{Base: 1, Count: 4, Max: 3, Step: 1, Tasks: taskset.Of(0, 1, 2, 3)}
	base := &core.Job{ID: 1, SpecID: 1, Spec: s, Array: &ref}
	w.commit(&core.Changes{Jobs: []*core.Job{base}, Specs: []core.SpecRow{{ID: 1, Spec: s}}, Blobs: blobsOf(1)})
	task := func(id core.JobID, i int32, tasks taskset.Set) *core.Job {
		r := ref
		r.Task, r.Tasks = i, tasks
		return &core.Job{ID: id, SpecID: 1, Spec: s, Array: &r, State: core.Running, Attempt: 1, Start: w.now}
	}
	rest := task(1, 0, taskset.Of(2, 3))
	rest.State, rest.Attempt, rest.Start = core.Pending, 0, 0
	t0, t1 := task(2, 0, taskset.Set{}), task(3, 1, taskset.Set{})
	w.commit(&core.Changes{Jobs: []*core.Job{rest, t0, t1}})
	img := w.load()
	w.same(img.Jobs, []*core.Job{rest, t0, t1})
	if img.Jobs[1].Spec != img.Jobs[0].Spec || img.Jobs[2].Spec != img.Jobs[0].Spec {
		t.Fatal("tasks of one array were loaded with specs of their own")
	}
	// The array's record becomes its last task and ends; a task still runs.
	e1 := w.finish(task(1, 3, taskset.Set{}), core.Completed)
	e2 := w.finish(t0, core.Failed)
	w.same(w.load().Jobs, []*core.Job{t1})
	w.same(w.jobs(store.JobQuery{IDs: []core.JobID{1}}), []*core.Job{e1, e2})
	w.wantIDs(store.JobQuery{IDs: []core.JobID{2}}, 2)
	w.wantIDs(store.JobQuery{IDs: []core.JobID{1}, Live: true}, 1, 2, 3)
}

func testQueries(t *testing.T, w *world) {
	start := w.now
	var ends []core.Time
	states := []core.JobState{core.Completed, core.Failed, core.Timeout, core.Completed, core.Cancelled, core.Completed}
	for i, as := range states {
		user := []core.UserName{"ann", "bob", "cid"}[i%3]
		j := w.ended(core.JobID(i+1), user, as)
		ends = append(ends, j.End)
	}
	odd := w.pending(7, "dan")
	s := *odd.Spec
	s.Project, s.Partition, s.Name = "arts", core.ListPartitions("gpu"), "odd"
	c := *odd
	c.Spec = &s
	w.commit(&core.Changes{Jobs: []*core.Job{&c}, Specs: []core.SpecRow{{ID: 7, Spec: &s}}})
	w.finish(&c, core.Cancelled) // it never started
	w.pending(8, "ann")
	far := w.finish(w.run(w.pending(9, "ann"), "n2", "n3"), core.Completed)

	w.wantIDs(store.JobQuery{}, 1, 2, 3, 4, 5, 6, 7, 9)
	w.wantIDs(store.JobQuery{Live: true}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	w.wantIDs(store.JobQuery{IDs: []core.JobID{5, 2, 99, 8}}, 2, 5)
	w.wantIDs(store.JobQuery{Users: []core.UserName{"ann"}}, 1, 4, 9)
	w.wantIDs(store.JobQuery{Users: []core.UserName{"cid", "bob"}}, 2, 3, 5, 6)
	w.wantIDs(store.JobQuery{States: []core.JobState{core.Completed, core.Timeout}, Users: []core.UserName{"ann", "cid"}},
		1, 3, 4, 6, 9)
	w.wantIDs(store.JobQuery{Projects: []core.ProjectName{"arts"}}, 7)
	w.wantIDs(store.JobQuery{Partitions: []core.PartitionName{"gpu"}}, 7)
	w.wantIDs(store.JobQuery{Names: []string{"odd", "job-3"}}, 3, 7)
	w.wantIDs(store.JobQuery{Nodes: []core.NodeName{"n3", "n7"}}, 9)
	w.wantIDs(store.JobQuery{Nodes: []core.NodeName{"n1"}, Limit: 2}, 1, 2)
	w.wantIDs(store.JobQuery{Nodes: []core.NodeName{"n2"}, Limit: 1}, 9)
	w.wantIDs(store.JobQuery{Newest: true, Limit: 3}, 9, 7, 6)
	w.wantIDs(store.JobQuery{Newest: true, After: 6, Limit: 3}, 5, 4, 3)
	w.wantIDs(store.JobQuery{Newest: true, Since: ends[3]}, 9, 7, 6, 5)
	w.wantIDs(store.JobQuery{Newest: true, Nodes: []core.NodeName{"n1"}, Limit: 2, After: 4}, 3, 2)
	w.wantIDs(store.JobQuery{Users: []core.UserName{"nobody"}})

	// What somebody sees: their own, and what is in projects they manage; filters only take away.
	w.wantIDs(store.JobQuery{Seen: &store.Seen{User: "bob"}}, 2, 5)
	w.wantIDs(store.JobQuery{Seen: &store.Seen{User: "bob", Projects: []core.ProjectName{"arts"}}}, 2, 5, 7)
	w.wantIDs(store.JobQuery{
		Seen: &store.Seen{User: "bob"}, Users: []core.UserName{"ann", "bob"}, Newest: true,
		Limit: 1,
	}, 5)
	w.wantIDs(store.JobQuery{
		Seen: &store.Seen{User: "bob", Projects: []core.ProjectName{"arts"}},
		IDs:  []core.JobID{1, 2, 7},
	}, 2, 7)
	w.wantIDs(store.JobQuery{Seen: &store.Seen{User: "bob"}, Projects: []core.ProjectName{"arts"}})
	w.wantIDs(store.JobQuery{Seen: &store.Seen{}})

	// Overlap: not ended at Since, submitted before Until.
	w.wantIDs(store.JobQuery{Since: ends[3]}, 5, 6, 7, 9)
	w.wantIDs(store.JobQuery{Since: ends[3] - 1}, 4, 5, 6, 7, 9)
	w.wantIDs(store.JobQuery{Since: ends[3], Live: true}, 5, 6, 7, 8, 9)
	w.wantIDs(store.JobQuery{Since: ends[3], Users: []core.UserName{"ann"}}, 9)
	w.wantIDs(store.JobQuery{Since: ends[0], Until: ends[2]}, 2, 3)
	w.wantIDs(store.JobQuery{Until: start + 1}, 1)
	w.wantIDs(store.JobQuery{Since: far.End.Add(time.Hour)})
	got := w.jobs(store.JobQuery{IDs: []core.JobID{9}})
	w.same(got, []*core.Job{far})
}

func testPages(t *testing.T, w *world) {
	c := &core.Changes{}
	for id := core.JobID(1); id <= 25; id++ {
		s := spec(id, "ann")
		c.Jobs = append(c.Jobs, &core.Job{
			ID: id, SpecID: id, Spec: s, State: core.Completed, Submit: w.now,
			End: w.now.Add(time.Duration(100-id) * time.Second),
		})
		c.Specs = append(c.Specs, core.SpecRow{ID: id, Spec: s})
	}
	w.commit(c)
	for _, q := range []store.JobQuery{{}, {Since: w.now - 1}, {Users: []core.UserName{"ann"}}} {
		var got []core.JobID
		q.Limit = 7
		for {
			page := w.jobs(q)
			for _, j := range page {
				got = append(got, j.ID)
			}
			if len(page) < q.Limit {
				break
			}
			q.After = page[len(page)-1].ID
		}
		if len(got) != 25 || !slices.IsSorted(got) {
			t.Fatalf("pages gave %v", got)
		}
	}
}

func testSteps(t *testing.T, w *world) {
	w.commit(&core.Changes{Steps: []*core.Step{
		{Job: 2, ID: 0, Attempt: 2, Name: "again"},
		{Job: 2, ID: 1, Attempt: 1, Name: "b"},
		{Job: 2, ID: 0, Attempt: 1, Name: "a"},
		{Job: 5, ID: 0, Attempt: 1},
	}})
	w.commit(&core.Changes{Steps: []*core.Step{{Job: 2, ID: 1, Attempt: 1, Name: "b", State: core.Failed}}})
	got, err := w.Steps(w.ctx, []core.JobID{2, 3, 2})
	if err != nil {
		t.Fatal(err)
	}
	w.same(got, []*core.Step{
		{Job: 2, ID: 0, Attempt: 1, Name: "a"},
		{Job: 2, ID: 1, Attempt: 1, Name: "b", State: core.Failed},
		{Job: 2, ID: 0, Attempt: 2, Name: "again"},
	})
	if got, err := w.Steps(w.ctx, nil); err != nil || len(got) != 0 {
		t.Fatalf("steps of nothing: %v, %v", got, err)
	}
}

func (w *world) wantBlob(text string) {
	w.t.Helper()
	if b, err := w.Blob(w.ctx, hash(text)); err != nil || string(b) != text {
		w.t.Fatalf("blob %q: got %q, %v", text, b, err)
	}
}

func (w *world) wantNoBlob(text string) {
	w.t.Helper()
	_, err := w.Blob(w.ctx, hash(text))
	w.wantErr(err, store.ErrNotFound)
}

// testBlobs: a blob is found by its hash alone, however often it was brought, empty ones too.
func testBlobs(t *testing.T, w *world) {
	w.wantNoBlob("script 1")
	w.pending(1, "ann")
	w.pending(2000, "ann")
	w.wantBlob("script 1")
	w.wantBlob("env 2000")
	// The same script again and again, near and far, twice in one commit.
	for _, id := range []core.JobID{2001, 5000} {
		a, b := spec(1, "bob"), spec(1, "bob")
		w.commit(&core.Changes{
			Jobs:  []*core.Job{{ID: id, SpecID: id, Spec: a}, {ID: id + 600, SpecID: id + 600, Spec: b}},
			Specs: []core.SpecRow{{ID: id, Spec: a}, {ID: id + 600, Spec: b}}, Blobs: append(blobsOf(1), blobsOf(1)...),
		})
	}
	empty := core.Blob{Hash: hash("")}
	w.commit(&core.Changes{Blobs: []core.Blob{blob("loose"), empty}})
	w.wantBlob("loose")
	w.wantBlob("")
	got, err := w.Blobs(w.ctx, 5600, hash("script 1"), core.Hash{}, hash("env 1"))
	if err != nil {
		t.Fatal(err)
	}
	w.same(got, [][]byte{[]byte("script 1"), nil, []byte("env 1")})
	// A wrong neighborhood only makes it slower.
	if got, err = w.Blobs(w.ctx, 1, hash("env 2000")); err != nil || string(got[0]) != "env 2000" {
		t.Fatalf("got %q, %v", got, err)
	}
	_, err = w.Blobs(w.ctx, 1, hash("script 1"), hash("nothing"))
	w.wantErr(err, store.ErrNotFound)
}

// testManyBlobs: job ids far apart do not hide a blob.
func testManyBlobs(t *testing.T, w *world) {
	var ids []core.JobID
	for i := range core.JobID(60) {
		ids = append(ids, 1+i*997)
	}
	for _, id := range ids {
		w.pending(id, "ann")
	}
	for _, id := range ids {
		w.wantBlob(fmt.Sprintf("script %d", id))
	}
}

func testKeys(t *testing.T, w *world) {
	_, err := w.SubmitKey(w.ctx, "a")
	w.wantErr(err, store.ErrNotFound)
	keys := []core.SubmitKey{
		{Key: "a", Job: 1, At: 5, User: "ann"},
		{Key: "b", Job: 700, At: 6, User: "bob"},
		{Key: "c", Job: 90_000, At: 7, User: "ann"},
	}
	for _, k := range keys {
		w.commit(&core.Changes{Keys: []core.SubmitKey{k}})
	}
	for _, k := range keys {
		if id, err := w.SubmitKey(w.ctx, k.Key); err != nil || id != k.Job {
			t.Fatalf("key %s: %d, %v; want %d", k.Key, id, err, k.Job)
		}
	}
	_, err = w.SubmitKey(w.ctx, "A")
	w.wantErr(err, store.ErrNotFound)
	w.same(w.load().Keys, keys)
}

func testEvents(t *testing.T, w *world) {
	if got, err := w.Events(w.ctx, 0, 10); err != nil || len(got) != 0 {
		t.Fatalf("events of nothing: %v, %v", got, err)
	}
	var want []core.Event
	for i := range 3 {
		c := &core.Changes{Events: []core.Event{
			{
				Kind: core.JobStarted, Job: core.JobID(i), Node: "n1", User: "ann", By: "root",
				Data: raw(map[string]any{"i": i, "s": "\x00ü"}),
			},
			{Kind: core.NodeJoined},
		}}
		w.commit(c)
		want = append(want, c.Events...)
	}
	all, err := w.Events(w.ctx, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.same(all, want)
	part, err := w.Events(w.ctx, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	w.same(part, want[2:5])
	if got, err := w.Events(w.ctx, w.seq, 10); err != nil || len(got) != 0 {
		t.Fatalf("events after the last: %v, %v", got, err)
	}
	last, err := w.NodeEvents(w.ctx, "n1", 2)
	if err != nil {
		t.Fatal(err)
	}
	w.same(last, []core.Event{want[2], want[4]})
	if got, err := w.NodeEvents(w.ctx, "", 10); err != nil || len(got) != 0 {
		t.Fatalf("events of no node: %v, %v", got, err)
	}
}

func testRuns(t *testing.T, w *world) {
	runs := []*core.Run{
		{ID: "1", Project: "arts", Name: "x", User: "ann", Created: 10, Ended: 20, Jobs: []core.JobID{4}},
		{ID: "2", Project: "arts", Name: "y", User: "ann", Created: 11},
		{ID: "3", Project: "main", Name: "x", User: "bob", Created: 12, Config: hash("yaml")},
	}
	w.commit(&core.Changes{Runs: runs, Blobs: []core.Blob{blob("yaml")}})
	for _, tc := range []struct {
		q    store.RunQuery
		want []*core.Run
	}{
		{store.RunQuery{}, []*core.Run{runs[2], runs[1], runs[0]}},
		{store.RunQuery{Limit: 2}, []*core.Run{runs[2], runs[1]}},
		{store.RunQuery{Project: "arts"}, []*core.Run{runs[1], runs[0]}},
		{store.RunQuery{Projects: []core.ProjectName{"arts", "law"}}, []*core.Run{runs[1], runs[0]}},
		{store.RunQuery{Projects: []core.ProjectName{}}, nil},
		{store.RunQuery{Name: "x"}, []*core.Run{runs[2], runs[0]}},
		{store.RunQuery{Names: []string{"y", "z"}}, []*core.Run{runs[1]}},
		{store.RunQuery{Projects: []core.ProjectName{"arts"}, Names: []string{"y", "x"}}, []*core.Run{runs[1], runs[0]}},
		{store.RunQuery{Project: "arts", Name: "x", Limit: 5}, []*core.Run{runs[0]}},
		{store.RunQuery{Project: "main", Name: "y", Limit: 5}, nil},
		{store.RunQuery{ID: "2"}, []*core.Run{runs[1]}},
		{store.RunQuery{Before: 12, BeforeID: "3"}, []*core.Run{runs[1], runs[0]}},
		{store.RunQuery{Before: 11, BeforeID: "9"}, []*core.Run{runs[1], runs[0]}},
		{store.RunQuery{Before: 11, BeforeID: "2"}, []*core.Run{runs[0]}},
		{store.RunQuery{Oldest: true, Before: 10, BeforeID: "1", Limit: 1}, []*core.Run{runs[1]}},
	} {
		got, err := w.Runs(w.ctx, tc.q)
		if err != nil {
			t.Fatal(err)
		}
		w.same(got, tc.want)
	}
	w.wantBlob("yaml")
	w.same(w.load().Runs, []*core.Run{runs[1], runs[2]})
}
