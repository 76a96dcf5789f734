package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

func testLead(t *testing.T, w *world) {
	e1, err := w.Lead(w.ctx, "a", time.Minute, 0, w.now)
	if err != nil || e1 != 1 {
		t.Fatalf("first epoch %d, %v; want 1", e1, err)
	}
	_, err = w.Lead(w.ctx, "b", time.Minute, 0, w.now.Add(30*time.Second))
	w.wantErr(err, store.ErrHeld)
	// Renewing keeps the epoch and moves the end.
	if e, err := w.Lead(w.ctx, "a", time.Minute, e1, w.now.Add(45*time.Second)); err != nil || e != e1 {
		t.Fatalf("renewed as %d, %v; want %d", e, err, e1)
	}
	_, err = w.Lead(w.ctx, "b", time.Minute, 0, w.now.Add(100*time.Second))
	w.wantErr(err, store.ErrHeld)
	// The same holder may take it again at once, as after its restart: a new epoch.
	e2, err := w.Lead(w.ctx, "a", time.Minute, 0, w.now.Add(101*time.Second))
	if err != nil || e2 != 2 {
		t.Fatalf("taken anew as %d, %v; want 2", e2, err)
	}
	_, err = w.Lead(w.ctx, "a", time.Minute, e1, w.now.Add(102*time.Second))
	w.wantErr(err, store.ErrStale)
	// Another takes it when it has run out.
	e3, err := w.Lead(w.ctx, "b", time.Minute, 0, w.now.Add(161*time.Second))
	if err != nil || e3 != 3 {
		t.Fatalf("taken over as %d, %v; want 3", e3, err)
	}
	_, err = w.Lead(w.ctx, "a", time.Minute, e2, w.now.Add(162*time.Second))
	w.wantErr(err, store.ErrStale)
	// Renewing for nothing gives it back.
	if _, err := w.Lead(w.ctx, "b", 0, e3, w.now.Add(163*time.Second)); err != nil {
		t.Fatal(err)
	}
	if e, err := w.Lead(w.ctx, "a", time.Minute, 0, w.now.Add(163*time.Second)); err != nil || e != 4 {
		t.Fatalf("taken after a resignation as %d, %v; want 4", e, err)
	}
}

func testLeadClock(t *testing.T, w *world) {
	e, err := w.Lead(w.ctx, "a", time.Hour, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Lead(w.ctx, "b", time.Hour, 0, 0)
	w.wantErr(err, store.ErrHeld)
	if _, err := w.Lead(w.ctx, "a", -time.Second, e, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Lead(w.ctx, "b", time.Hour, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, err = w.Lead(w.ctx, "a", time.Hour, 0, core.At(time.Now().Add(30*time.Minute)))
	w.wantErr(err, store.ErrHeld)
}

func testServers(t *testing.T, w *world) {
	e, err := w.Lead(w.ctx, "a", time.Hour, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.Leader(w.ctx)
	if err != nil || l.Holder != "a" || l.Epoch != e || l.Left <= 0 || l.Left > time.Hour ||
		time.Since(l.Now.Go()).Abs() > time.Hour {
		t.Errorf("the leader is %+v, %v", l, err)
	}
	for _, doc := range []string{`{"n":1}`, `{"n":2}`} {
		for _, id := range []string{"b", "a"} {
			if err := w.PutServer(w.ctx, id, []byte(doc)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.PutServer(w.ctx, "b", nil); err != nil {
		t.Fatal(err)
	}
	list, err := w.Servers(w.ctx)
	if err != nil || len(list) != 1 || list[0].ID != "a" || string(list[0].Doc) != `{"n":2}` || list[0].Age < 0 {
		t.Errorf("the servers are %+v, %v", list, err)
	}
}

func testStale(t *testing.T, w *world) {
	kept := w.pending(1, "ann")
	before := w.load()
	old := w.epoch
	other := w.db.Open(t)
	if _, err := other.Lead(w.ctx, "two", time.Minute, 0, w.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	s := spec(2, "bob")
	err := w.Commit(w.ctx, old, &core.Changes{
		Now: w.now + 1, NextJob: 3, Jobs: []*core.Job{{ID: 2, SpecID: 2, Spec: s}}, Specs: []core.SpecRow{{ID: 2, Spec: s}},
		Blobs: blobsOf(2), Keys: []core.SubmitKey{{Key: "k", Job: 2}}, Nodes: []*core.Node{{Name: "n9"}},
		Events: []core.Event{{Seq: w.seq + 1, Kind: core.JobSubmitted}}, GoneNodes: []core.NodeName{"n1"},
	})
	w.wantErr(err, store.ErrStale)
	w.wantErr(w.Commit(w.ctx, old, &core.Changes{Now: w.now}), store.ErrStale)
	w.wantErr(w.Probe(w.ctx, old), store.ErrStale)
	w.same(w.load(), before)
	_, err = w.Blob(w.ctx, s.Script)
	w.wantErr(err, store.ErrNotFound)
	if b, err := w.Blob(w.ctx, kept.Spec.Script); err != nil || string(b) != "script 1" {
		t.Fatalf("got %q, %v", b, err)
	}
	events, err := w.Events(w.ctx, 0, 0)
	if err != nil || len(events) != int(w.seq) {
		t.Fatalf("%d events, %v; want %d", len(events), err, w.seq)
	}
}

func testGapless(t *testing.T, w *world) {
	w.pending(1, "ann")
	before := w.load()
	for name, events := range map[string][]core.Event{
		"gap":     {{Seq: w.seq + 2}},
		"again":   {{Seq: w.seq}},
		"hole":    {{Seq: w.seq + 1}, {Seq: w.seq + 3}},
		"reverse": {{Seq: w.seq + 2}, {Seq: w.seq + 1}},
	} {
		err := w.Commit(w.ctx, w.epoch, &core.Changes{Now: w.now + 1, NextJob: 9, Events: events})
		if err == nil || errors.Is(err, store.ErrStale) {
			t.Fatalf("%s: got %v, want an error that is not ErrStale", name, err)
		}
	}
	w.same(w.load(), before)
	w.pending(2, "ann") // and it continues
	if got := w.load().Seq; got != w.seq {
		t.Fatalf("seq %d, want %d", got, w.seq)
	}
}

func testCounters(t *testing.T, w *world) {
	w.same(w.load(), &store.Image{NextJob: 1, NextNode: 1})
	w.lead()
	if err := w.Commit(w.ctx, w.epoch, &core.Changes{Now: 500, NextJob: 70, NextNode: 8}); err != nil {
		t.Fatal(err)
	}
	ids := core.LastIDs{Reservation: 5, QOS: 6, Project: 7}
	if err := w.Commit(w.ctx, w.epoch, &core.Changes{LastIDs: &ids}); err != nil {
		t.Fatal(err)
	}
	// Nothing goes back, whatever a later commit says.
	back := &core.Changes{Now: 400, NextJob: 7, LastIDs: &core.LastIDs{Reservation: 9, QOS: 2}}
	if err := w.Commit(w.ctx, w.epoch, back); err != nil {
		t.Fatal(err)
	}
	ids.Reservation = 9
	w.same(w.load(), &store.Image{NextJob: 70, NextNode: 8, Now: 500, LastIDs: ids})
}

func testUpserts(t *testing.T, w *world) {
	j := w.pending(1, "ann")
	uid := uint32(7)
	first := &core.Changes{
		Nodes: []*core.Node{{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}}, Users: []*core.User{{Name: "ann", UID: &uid}},
		Projects: []*core.Project{{Name: "physics"}}, Tokens: []*core.Token{{ID: "t1", Hash: hash("t1")}},
		Spent: []*core.Spent{
			{Project: "physics", User: "ann", At: 5, Raw: 1e9 / 7},
			{Project: "physics", User: "bob", At: 6, Raw: 2},
		},
		Runs: []*core.Run{{ID: "r1", Project: "physics", Name: "train"}},
	}
	w.commit(first)
	s := *j.Spec
	s.Name, s.Nice = "renamed", 5
	j2 := *j
	j2.Spec, j2.Priority = &s, 9
	second := &core.Changes{
		Jobs: []*core.Job{&j2}, Specs: []core.SpecRow{{ID: 1, Spec: &s}},
		Nodes:     []*core.Node{{ID: 2, Name: "n2", Reason: "hot", Flags: core.NodeDrain}},
		Users:     []*core.User{{Name: "ann", Role: core.RoleAdmin}},
		Projects:  []*core.Project{{Name: "physics", Parent: "root"}},
		Tokens:    []*core.Token{{ID: "t1", Hash: hash("t1"), Revoked: true}},
		Runs:      []*core.Run{{ID: "r1", Project: "physics", Name: "train", Jobs: []core.JobID{1}}},
		Spent:     []*core.Spent{{Project: "physics", User: "ann", At: 9, Raw: 1e300 / 7}},
		GoneNodes: []core.NodeName{"n1", "never"},
	}
	w.commit(second)
	w.same(w.load(), &store.Image{
		Seq: w.seq, Now: w.now, NextJob: 2, NextNode: 1, Jobs: second.Jobs, Nodes: second.Nodes, Users: second.Users,
		Projects: second.Projects,
		Tokens:   second.Tokens, Runs: second.Runs, Spent: []*core.Spent{second.Spent[0], first.Spent[1]},
	})
}

// testPolicy: QOS, reservations, fleets and projects come, change and go; what a project spent goes with it, and its
// name may come again within the batch that took it.
func testPolicy(t *testing.T, w *world) {
	five := int64(5)
	w.commit(&core.Changes{
		QOS: []*core.QOS{
			{
				Name: "high", Priority: 9, Flags: core.DenyOnLimit | core.NoDecay, Limits: core.Limits{GrpJobs: &five},
				Preempt: []core.QOSName{"low"},
			},
			{Name: "low", UsageFactor: new(0.25), MaxTRESPerUser: core.TRESOf(core.Amount{Name: "gres/gpu", Count: 4})},
		},
		Reservations: []*core.AdvanceReservation{
			{
				Name: "a", ID: 3, Start: 10, End: 20, Nodes: "n[1-4]", Users: []core.UserName{"ann", "-bob"},
				Flags: core.ReserveMaint | core.ReserveDaily,
			},
			{Name: "b", ID: 4, Start: 11, End: 12, Licenses: []core.License{{Name: "matlab", Total: 2}}},
		},
		Fleets: []*core.Fleet{
			{Name: "lab", Next: 1, Hosts: []core.FleetHost{{
				Node:  "lab-0",
				Login: core.SSHLogin{Host: "h", User: "u", Key: "SHA256:x"}, Cause: "away",
			}}},
			{Name: "old", Placement: core.PlaceCluster},
		},
		Tokens: []*core.Token{{ID: "t1", Hash: hash("t1")}, {ID: "t2", Hash: hash("t2")}},
		Credentials: []*core.Credential{
			{Kind: core.SecretCredential, Owner: "physics", Name: "a", Sealed: "AA==", Created: 3},
			{Kind: core.SecretCredential, Owner: "physics", Name: "b", Sealed: "AB==", Created: 3},
			{Kind: core.SSHKeyCredential, Owner: "ann", Info: "ssh-ed25519 AAAA", Created: 3},
		},
		Projects: []*core.Project{{Name: "physics"}, {Name: "old"}},
		Spent: []*core.Spent{
			{Project: "old", User: "ann", At: 5, Raw: 1},
			{Project: "physics", User: "ann", At: 5, Raw: 2},
		},
	})
	low := &core.QOS{Name: "low", Priority: 3}
	again := &core.AdvanceReservation{Name: "a", ID: 5, Start: 30, End: 40}
	lab := &core.Fleet{Name: "lab", Next: 2, Keys: []core.FleetKey{{Fingerprint: "SHA256:y", Sealed: "AA=="}}}
	secret := &core.Credential{Kind: core.SecretCredential, Owner: "physics", Name: "a", Sealed: "AC==", Created: 9}
	kept := &core.Credential{Kind: core.SecretCredential, Owner: "physics", Name: "b", Sealed: "AB==", Created: 3}
	w.commit(&core.Changes{
		Fleets: []*core.Fleet{lab}, GoneFleets: []string{"lab", "old", "never"},
		Credentials: []*core.Credential{secret},
		GoneCredentials: []core.CredentialKey{
			{Kind: core.SecretCredential, Owner: "physics", Name: "a"},
			{Kind: core.SSHKeyCredential, Owner: "ann"},
			{Kind: core.SecretCredential, Owner: "never", Name: "a"},
		},
		QOS: []*core.QOS{low}, GoneQOS: []core.QOSName{"high", "never"},
		Reservations: []*core.AdvanceReservation{again}, GoneReservations: []string{"a", "b"},
		GoneUsers:    []core.UserName{"ann", "never"},
		GoneProjects: []core.ProjectName{"old"}, GoneTokens: []string{"t2", "never"},
	})
	w.same(w.load(), &store.Image{
		Seq: w.seq, Now: w.now, NextJob: 1, NextNode: 1, Projects: []*core.Project{{Name: "physics"}},
		Spent: []*core.Spent{{Project: "physics", User: "ann", At: 5, Raw: 2}}, QOS: []*core.QOS{low},
		Reservations: []*core.AdvanceReservation{again},
		Credentials:  []*core.Credential{secret, kept},
		Fleets:       []*core.Fleet{lab}, Tokens: []*core.Token{{ID: "t1", Hash: hash("t1")}},
	})
}

// testSurvives: what was committed is there for the next process, and its sequence continues.
func testSurvives(t *testing.T, w *world) {
	for id := core.JobID(1); id <= 40; id++ {
		w.pending(id, "ann")
	}
	before := w.load()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Store = w.db.Open(t)
	w.same(w.load(), before)
	w.lead()
	w.pending(41, "ann")
	if n := len(w.load().Jobs); n != 41 {
		t.Fatalf("%d jobs, want 41", n)
	}
}

func testSealed(t *testing.T, w *world) {
	_, err := w.Sealed(w.ctx, "ca")
	w.wantErr(err, store.ErrNotFound)
	for _, data := range []string{"first\x00\xff", "second"} {
		if err := w.PutSealed(w.ctx, "ca", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := w.Sealed(w.ctx, "ca"); err != nil || string(b) != "first\x00\xff" {
		t.Fatalf("got %q, %v; want the first", b, err)
	}
}

// testStrangeText: bytes that are no text in a database make no commit fail.
func testStrangeText(t *testing.T, w *world) {
	s := spec(1, "ann")
	s.Name, s.IO.WorkDir, s.From.Line = "nul\x00 bad\xff ö\t\"\\\n", "/data/\xfe\x00", "sbatch \x1b[1m\u2028"
	j := &core.Job{ID: 1, SpecID: 1, Spec: s, Message: "a\x00b\xc3"}
	w.commit(&core.Changes{
		Jobs: []*core.Job{j}, Specs: []core.SpecRow{{ID: 1, Spec: s}},
		Keys: []core.SubmitKey{{Key: "k\x00\xff", Job: 1}},
	})
	got := w.load().Jobs[0]
	if got.Spec.Name != "nul\x00 bad\ufffd ö\t\"\\\n" || got.Spec.From.Line != s.From.Line ||
		got.Message != "a\x00b\ufffd" {
		t.Fatalf("got %q, %q, %q", got.Spec.Name, got.Spec.From.Line, got.Message)
	}
	if id, err := w.SubmitKey(w.ctx, "k\x00\xff"); err != nil || id != 1 {
		t.Fatalf("key gives %d, %v", id, err)
	}
	w.wantIDs(store.JobQuery{Live: true, Names: []string{s.Name}}, 1)
}

func testProbe(t *testing.T, w *world) {
	w.pending(1, "ann")
	before := w.load()
	for range 3 {
		if err := w.Probe(w.ctx, w.epoch); err != nil {
			t.Fatal(err)
		}
	}
	w.same(w.load(), before)
	w.wantErr(w.Probe(w.ctx, w.epoch+1), store.ErrStale)
}

func testCancelled(t *testing.T, w *world) {
	w.pending(1, "ann")
	before := w.load()
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	err := w.Commit(ctx, w.epoch, &core.Changes{Now: w.now + 1, Events: []core.Event{{Seq: w.seq + 1}}})
	w.wantErr(err, context.Canceled)
	_, err = w.Load(ctx)
	w.wantErr(err, context.Canceled)
	w.same(w.load(), before)
	w.pending(2, "ann")
}

// testReadersBeside: readers see whole commits only, while a writer writes.
func testReadersBeside(t *testing.T, w *world) {
	w.lead()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				img, err := w.Load(w.ctx)
				if err != nil {
					t.Error(err)
					return
				}
				// Every commit brings two jobs and two events.
				if len(img.Jobs)%2 != 0 || int64(len(img.Jobs)) != img.Seq || int64(img.NextJob) != img.Seq+1 {
					t.Errorf("half a commit: %d jobs at seq %d, next %d", len(img.Jobs), img.Seq, img.NextJob)
					return
				}
			}
		})
	}
	for id := core.JobID(1); id < 60; id += 2 {
		c := &core.Changes{}
		for _, id := range []core.JobID{id, id + 1} {
			s := spec(id, "ann")
			c.Jobs = append(c.Jobs, &core.Job{ID: id, SpecID: id, Spec: s})
			c.Specs = append(c.Specs, core.SpecRow{ID: id, Spec: s})
		}
		w.commit(c)
	}
	close(stop)
	wg.Wait()
}

// testBigBatch: a batch far above what one statement takes.
func testBigBatch(t *testing.T, w *world) {
	c := &core.Changes{}
	for id := core.JobID(1); id <= 1500; id++ {
		s := spec(id, "ann")
		c.Jobs = append(c.Jobs, &core.Job{ID: id, SpecID: id, Spec: s})
		c.Specs = append(c.Specs, core.SpecRow{ID: id, Spec: s})
		c.Blobs = append(c.Blobs, blobsOf(id)...)
		c.Keys = append(c.Keys, core.SubmitKey{Key: fmt.Sprintf("key-%d", id), Job: id, User: "ann"})
	}
	want := c.Jobs
	w.commit(c)
	img := w.load()
	w.same(img.Jobs, want)
	if len(img.Keys) != 1500 || img.Seq != 1500 {
		t.Fatalf("%d keys at seq %d", len(img.Keys), img.Seq)
	}
	for _, j := range []*core.Job{want[0], want[777], want[1499]} {
		if b, err := w.Blob(w.ctx, j.Spec.Env); err != nil || string(b) != fmt.Sprintf("env %d", j.ID) {
			t.Fatalf("job %d: %q, %v", j.ID, b, err)
		}
	}
}
