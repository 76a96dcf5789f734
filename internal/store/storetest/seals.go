package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// toySealer stands for a real one: it hides bytes from nobody but shows which key and name they are under.
type toySealer struct {
	key   byte
	known string // keys it has
}

func (s *toySealer) Append(dst []byte, name string, plain []byte) ([]byte, int64, error) {
	dst = append(dst, 'S', s.key, byte(len(name)))
	dst = append(dst, name...)
	for _, b := range plain {
		dst = append(dst, b^s.key)
	}
	return dst, int64(s.key), nil
}

func (s *toySealer) Unseal(name string, sealed []byte) ([]byte, error) {
	head := append([]byte{'S', 0, byte(len(name))}, name...)
	if len(sealed) < len(head) || !bytes.Contains([]byte(s.known), sealed[1:2]) {
		return nil, errors.New("no key opens it")
	}
	if head[1] = sealed[1]; !bytes.HasPrefix(sealed, head) {
		return nil, fmt.Errorf("it is not %s", name)
	}
	out := []byte{}
	for _, b := range sealed[len(head):] {
		out = append(out, b^head[1])
	}
	return out, nil
}

func (s *toySealer) Fresh(sealed []byte) bool {
	return len(sealed) > 1 && sealed[0] == 'S' && sealed[1] == s.key
}

// testSeals: blobs of before and after the first key are found; without the key those after it are not.
func testSeals(t *testing.T, w *world) {
	w.pending(1, "ann")
	w.SealWith(&toySealer{key: 1, known: "\x01"})
	w.pending(2, "ann")
	w.commit(&core.Changes{Blobs: []core.Blob{{Hash: hash("")}, blob("loose")}})
	for _, text := range []string{"script 1", "env 1", "script 2", "env 2", "", "loose"} {
		w.wantBlob(text)
	}
	got, err := w.Blobs(w.ctx, 2, hash("env 2"), core.Hash{}, hash("script 2"), hash("env 1"))
	if err != nil || string(got[0]) != "env 2" || got[1] != nil || string(got[2]) != "script 2" ||
		string(got[3]) != "env 1" {
		t.Fatalf("got %q, %v", got, err)
	}
	w.Store = w.db.Open(t)
	w.wantBlob("script 1")
	if _, err := w.Blob(w.ctx, hash("script 2")); err == nil {
		t.Fatal("a sealed blob is read without a key")
	}
	w.SealWith(&toySealer{key: 2, known: "\x02"})
	if _, err := w.Blob(w.ctx, hash("script 2")); err == nil {
		t.Fatal("a sealed blob is read with another key")
	}
}

// testReseal: resealing continues where a process left off; everything is read meanwhile; it ends when nothing is left.
func testReseal(t *testing.T, w *world) {
	const jobs = 400
	_, err := w.Seals(w.ctx)
	w.wantErr(err, store.ErrNotFound)
	for id := core.JobID(1); id <= jobs; id++ {
		if id == jobs/2 {
			w.SealWith(&toySealer{key: 1, known: "\x01"})
		}
		w.pending(id, "ann")
	}
	sealed, _, _ := (&toySealer{key: 1}).Append(nil, "ca", []byte("authority"))
	if err := w.PutSealed(w.ctx, "ca", sealed); err != nil {
		t.Fatal(err)
	}
	w.wantErr(w.BeginReseal(w.ctx, w.epoch+1, 2), store.ErrStale)
	if err := w.BeginReseal(w.ctx, w.epoch, 2); err != nil {
		t.Fatal(err)
	}
	ring := &toySealer{key: 2, known: "\x01\x02"}
	batches := 0
	for done := false; !done; batches++ {
		w.Store = w.db.Open(t) // each batch by another process
		w.SealWith(ring)
		_, err := w.Reseal(w.ctx, w.epoch+1)
		w.wantErr(err, store.ErrStale)
		s, err := w.Reseal(w.ctx, w.epoch)
		if err != nil || s.Key != 2 {
			t.Fatalf("%+v, %v", s, err)
		}
		done = s.Done
		w.wantBlob("script 1")
		w.wantBlob(fmt.Sprintf("env %d", jobs-1))
		if batches == 1 {
			w.pending(jobs+1, "ann")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if batches < 4 {
		t.Errorf("it took %d batches: no bound holds", batches)
	}
	w.Store = w.db.Open(t)
	w.SealWith(&toySealer{key: 2, known: "\x02"}) // the old key is gone
	for id := 1; id <= jobs+1; id++ {
		w.wantBlob(fmt.Sprintf("script %d", id))
	}
	if b, err := w.Sealed(w.ctx, "ca"); err != nil || !ring.Fresh(b) {
		t.Fatalf("the authority is left under the old key: %q, %v", b, err)
	}
	if s, err := w.Reseal(w.ctx, w.epoch); err != nil || !s.Done {
		t.Fatalf("%+v, %v", s, err)
	}
}

// testResealRace: a commit that was on its way with the old key when the new one became the present one is found.
func testResealRace(t *testing.T, w *world) {
	ring, old := &toySealer{key: 2, known: "\x01\x02"}, &toySealer{key: 1, known: "\x01"}
	w.SealWith(old)
	w.pending(1, "ann")
	if err := w.BeginReseal(w.ctx, w.epoch, 2); err != nil {
		t.Fatal(err)
	}
	w.SealWith(ring)
	if _, err := w.Reseal(w.ctx, w.epoch); err != nil {
		t.Fatal(err)
	}
	w.SealWith(old)
	w.commit(&core.Changes{Blobs: []core.Blob{blob("late")}})
	w.SealWith(ring)
	for n := 0; ; n++ {
		s, err := w.Reseal(w.ctx, w.epoch)
		if err != nil || n > 10 {
			t.Fatal(n, err)
		}
		if s.Done {
			break
		}
	}
	w.SealWith(&toySealer{key: 2, known: "\x02"})
	w.wantBlob("late")
	w.wantBlob("script 1")
}
