package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/store"
)

// Database is one database that can be opened several times at once, as several servers would.
type Database interface {
	Open(t *testing.T) store.Store // closed by the test's end at the latest
}

// Run checks a store. fresh gives a new, empty database.
func Run(t *testing.T, fresh func(t *testing.T) Database) {
	for name, check := range map[string]func(*testing.T, *world){
		"lead":               testLead,
		"lead by db clock":   testLeadClock,
		"servers":            testServers,
		"stale commit":       testStale,
		"gapless":            testGapless,
		"counters":           testCounters,
		"image":              testImage,
		"every field":        testEveryField,
		"upserts":            testUpserts,
		"policy":             testPolicy,
		"survives":           testSurvives,
		"live and history":   testHistory,
		"arrays":             testArrays,
		"queries":            testQueries,
		"query pages":        testPages,
		"steps":              testSteps,
		"blobs":              testBlobs,
		"many blobs":         testManyBlobs,
		"keys":               testKeys,
		"events":             testEvents,
		"runs":               testRuns,
		"sealed":             testSealed,
		"seals":              testSeals,
		"reseal":             testReseal,
		"reseal race":        testResealRace,
		"usage":              testUsage,
		"past reservations":  testPastReservations,
		"records":            testRecords,
		"audit":              testAudit,
		"purge audit":        testPurgeAudit,
		"purge events":       testPurgeEvents,
		"purge jobs":         testPurgeJobs,
		"purge shared blobs": testPurgeSharedBlobs,
		"purge arrays":       testPurgeArrays,
		"purge revisions":    testPurgeRevisions,
		"purge keys":         testPurgeKeys,
		"purge runs":         testPurgeRuns,
		"purge stale":        testPurgeStale,
		"strange text":       testStrangeText,
		"probe":              testProbe,
		"cancelled":          testCancelled,
		"readers beside":     testReadersBeside,
		"big batch":          testBigBatch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			check(t, &world{t: t, db: db, Store: db.Open(t), ctx: t.Context(), now: 1_700_000_000_000_000, next: 1})
		})
	}
}

// world is a store with what its engine would know of it.
type world struct {
	store.Store
	t     *testing.T
	ctx   context.Context
	db    Database
	epoch int64
	seq   int64
	now   core.Time
	next  core.JobID
}

func (w *world) lead() {
	w.t.Helper()
	e, err := w.Lead(w.ctx, "one", time.Minute, 0, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.epoch = e
}

// commit writes c with an event for every job in it, or one if there is none.
func (w *world) commit(c *core.Changes) {
	w.t.Helper()
	if w.epoch == 0 {
		w.lead()
	}
	w.now = w.now.Add(time.Second)
	c.Now, c.NextJob = w.now, w.next
	for _, j := range c.Jobs {
		w.next = max(w.next, j.ID+1)
		c.NextJob = w.next
		c.Events = append(c.Events, core.Event{Kind: core.JobUpdated, Job: j.ID, User: j.Spec.User})
	}
	if len(c.Events) == 0 {
		c.Events = []core.Event{{Kind: core.NodeChanged}}
	}
	for i := range c.Events {
		w.seq++
		c.Events[i].Seq, c.Events[i].At = w.seq, w.now
	}
	if err := w.Commit(w.ctx, w.epoch, c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load() *store.Image {
	w.t.Helper()
	img, err := w.Load(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return img
}

func (w *world) jobs(q store.JobQuery) []*core.Job {
	w.t.Helper()
	jobs, err := w.Jobs(w.ctx, q)
	if err != nil {
		w.t.Fatal(err)
	}
	return jobs
}

func (w *world) wantIDs(q store.JobQuery, want ...core.JobID) {
	w.t.Helper()
	var got []core.JobID
	for _, j := range w.jobs(q) {
		got = append(got, j.ID)
	}
	w.same(got, want)
}

func (w *world) same(got, want any) {
	w.t.Helper()
	if d := diff(got, want); d != "" {
		w.t.Fatalf("got (-) want (+):\n%s", d)
	}
}

func (w *world) wantErr(err, want error) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.t.Fatalf("got error %v, want %v", err, want)
	}
}

func diff(got, want any) string {
	return cmp.Diff(got, want, cmpopts.EquateEmpty(), cmp.Comparer(
		func(a, b taskset.Set) bool { return a.String() == b.String() }))
}

func hash(text string) core.Hash { return sha256.Sum256([]byte(text)) }

func blob(text string) core.Blob { return core.Blob{Hash: hash(text), Data: []byte(text)} }

// spec is a small spec with a script and an environment of its own.
func spec(id core.JobID, user core.UserName) *core.Spec {
	return &core.Spec{
		Name: fmt.Sprintf("job-%d", id), User: user, UID: 1000, GID: 1000, Project: "physics",
		Partition: core.ListPartitions("main"),
		Script:    hash(fmt.Sprintf("script %d", id)), Env: hash(fmt.Sprintf("env %d", id)),
		Shape: core.Shape{Tasks: 1, NodesMin: 1}, TimeLimit: 3600, IO: core.IO{WorkDir: "/home/" + string(user)},
	}
}

func blobsOf(id core.JobID) []core.Blob {
	return []core.Blob{blob(fmt.Sprintf("script %d", id)), blob(fmt.Sprintf("env %d", id))}
}

// pending submits a job and returns it.
func (w *world) pending(id core.JobID, user core.UserName) *core.Job {
	w.t.Helper()
	s := spec(id, user)
	j := &core.Job{ID: id, SpecID: id, Spec: s, Submit: w.now, Eligible: w.now}
	w.commit(&core.Changes{Jobs: []*core.Job{j}, Specs: []core.SpecRow{{ID: id, Spec: s}}, Blobs: blobsOf(id)})
	return j
}

// run starts a job on nodes.
func (w *world) run(j *core.Job, nodes ...core.NodeName) *core.Job {
	w.t.Helper()
	c := *j
	c.State, c.Start, c.Attempt = core.Running, w.now, j.Attempt+1
	c.Alloc = &core.Alloc{Partition: "main"}
	for _, n := range nodes {
		c.Alloc.Nodes = append(c.Alloc.Nodes, core.NodeAlloc{Node: n, CPUs: 2, Cores: []int32{0, 1}, Tasks: 1})
	}
	w.commit(&core.Changes{Jobs: []*core.Job{&c}})
	return &c
}

// finish ends a job.
func (w *world) finish(j *core.Job, as core.JobState) *core.Job {
	w.t.Helper()
	c := *j
	c.State, c.End = as, w.now
	c.Exit = core.Exit{Code: 3}
	w.commit(&core.Changes{Jobs: []*core.Job{&c}})
	return &c
}

func (w *world) ended(id core.JobID, user core.UserName, as core.JobState) *core.Job {
	w.t.Helper()
	return w.finish(w.run(w.pending(id, user), "n1"), as)
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
