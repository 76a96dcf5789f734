package storetest

import (
	"slices"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// testUsage: reports read the finished jobs of a time, with what they held, and the events of nodes.
func testUsage(t *testing.T, w *world) {
	first := w.ended(1, "ann", core.Completed)
	middle := w.now
	second := w.pending(2, "bob")
	s := *second.Spec
	s.Extra = &core.Extra{WCKey: "thesis"}
	w.commit(&core.Changes{Jobs: []*core.Job{second}, Specs: []core.SpecRow{{ID: 2, Spec: &s}}})
	second = w.finish(w.run(second, "n1", "n2"), core.Failed)
	w.run(w.pending(3, "ann"), "n1")
	read := func(from, until core.Time) (out []store.JobUsage) {
		if err := w.Usage(w.ctx, from, until, func(u *store.JobUsage) { out = append(out, *u) }); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(out, func(a, b store.JobUsage) int { return int(a.ID - b.ID) })
		return out
	}
	w.same(read(0, w.now), []store.JobUsage{
		{
			ID: 1, User: "ann", Project: "physics", Partition: "main", State: core.Completed, Submit: first.Submit,
			Eligible: first.Eligible, Start: first.Start, End: first.End, Alloc: first.Alloc, GID: 1000,
		},
		{
			ID: 2, User: "bob", Project: "physics", Partition: "main", State: core.Failed, Submit: second.Submit,
			Eligible: second.Eligible, Start: second.Start, End: second.End, Alloc: second.Alloc, GID: 1000, WCKey: "thesis",
		},
	})
	if got := read(middle, w.now); len(got) != 1 || got[0].ID != 2 {
		t.Errorf("after the first job's end: %+v", got)
	}
	w.commit(&core.Changes{Events: []core.Event{{Kind: core.NodeChanged, Node: "n1", By: "root", Data: raw("x")}}})
	var seen []core.Event
	each := func(e *core.Event) {
		c := *e
		c.Data = slices.Clone(e.Data)
		seen = append(seen, c)
	}
	if err := w.NodeHistory(w.ctx, w.now+1, each); err != nil {
		t.Fatal(err)
	}
	w.same(seen, []core.Event{{Seq: w.seq, At: w.now, Kind: core.NodeChanged, Node: "n1", By: "root", Data: raw("x")}})
}

// testPastReservations: occurrences stay after their end; one that has not begun is replaced, one cut short ends then.
func testPastReservations(t *testing.T, w *world) {
	w.lead()
	at := func(d time.Duration) core.Time { return w.now.Add(d) }
	start, end := at(time.Second), at(time.Hour)
	put := func(r core.AdvanceReservation) { w.commit(&core.Changes{Reservations: []*core.AdvanceReservation{&r}}) }
	put(core.AdvanceReservation{Name: "a", ID: 1, Start: at(time.Minute), End: end, Nodes: "n1"})
	put(core.AdvanceReservation{Name: "a", ID: 1, Start: start, End: end, Nodes: "n[1-2]"})
	put(core.AdvanceReservation{Name: "never", ID: 2, Start: at(time.Hour), End: at(2 * time.Hour)})
	w.now = at(time.Minute)
	w.commit(&core.Changes{GoneReservations: []string{"a", "never"}})
	got, err := w.PastReservations(w.ctx, 0, at(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	w.same(got, []*core.AdvanceReservation{{Name: "a", ID: 1, Start: start, End: w.now, Nodes: "n[1-2]"}})
	if got, err := w.PastReservations(w.ctx, w.now, at(time.Hour)); err != nil || len(got) > 0 {
		t.Errorf("after its end: %v, %v", got, err)
	}
	if _, _, err := w.Purge(w.ctx, w.epoch, store.Retention{Jobs: time.Minute}, at(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := w.PastReservations(w.ctx, 0, at(24*time.Hour)); err != nil || len(got) > 0 {
		t.Errorf("after a purge: %v, %v", got, err)
	}
}

// testRecords: small documents are made, replaced and removed, by the leader alone.
func testRecords(t *testing.T, w *world) {
	w.lead()
	put := func(kind string, r store.Record) {
		if err := w.PutRecord(w.ctx, w.epoch, kind, r); err != nil {
			t.Fatal(err)
		}
	}
	put("trigger", store.Record{Name: "2", Doc: []byte(`{"a":1}`)})
	put("trigger", store.Record{Name: "1", Doc: []byte(`{}`)})
	put("trigger", store.Record{Name: "2", Doc: []byte(`{"a":2}`)})
	put("cluster", store.Record{Name: "x", Doc: []byte(`{}`)})
	put("cluster", store.Record{Name: "x"})
	w.wantErr(w.PutRecord(w.ctx, w.epoch-1, "trigger", store.Record{Name: "3", Doc: []byte(`{}`)}), store.ErrStale)
	for kind, want := range map[string][]store.Record{
		"trigger": {{Name: "1", Doc: []byte(`{}`)}, {Name: "2", Doc: []byte(`{"a":2}`)}}, "cluster": nil,
	} {
		got, err := w.Records(w.ctx, kind)
		if err != nil {
			t.Fatal(err)
		}
		w.same(got, want)
	}
}
