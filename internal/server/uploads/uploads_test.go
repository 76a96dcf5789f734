package uploads

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// What is on its way counts as what is there: many uploads at once take no more than their user may have.
func TestUploadsOnTheirWayCount(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	b := Bounds{Size: 2 << 20, PerUser: 3 << 20}
	first, second := bytes.Repeat([]byte("a"), 2<<20), bytes.Repeat([]byte("b"), 2<<20)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Put("ann", hashOf(first), r, b) }()
	if _, err := w.Write(first[:2<<20-1]); err != nil { // all but the last byte is on the disk
		t.Fatal(err)
	}
	if err := s.Put("ann", hashOf(second), bytes.NewReader(second), b); core.ReasonOf(err) != limitReason {
		t.Errorf("a second upload beside one on its way: %v", err)
	}
	if err := s.Put("bob", hashOf(second), bytes.NewReader(second), b); err != nil {
		t.Errorf("another user's: %v", err)
	}
	if _, err := w.Write(first[2<<20-1:]); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := <-done; err != nil {
		t.Errorf("the first upload: %v", err)
	}
	if err := s.Put("ann", hashOf(first), bytes.NewReader(first), b); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if err := s.Put("ann", hashOf(first), bytes.NewReader(second), b); err == nil {
		t.Error("another content under the name of one that is there was taken")
	}
	list, err := os.ReadDir(s.folder("ann"))
	if err != nil || len(list) != 1 {
		t.Errorf("%d files are left, %v", len(list), err)
	}
}

// An upload that comes again is as new as one that was written: a purge leaves it to the run that names it.
func TestUploadAgainIsNew(t *testing.T) {
	t.Parallel()
	s, content := New(t.TempDir()), []byte("changes")
	hash := hashOf(content)
	put := func() {
		t.Helper()
		if err := s.Put("ann", hash, bytes.NewReader(content), Bounds{Size: 100, PerUser: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	put()
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.folder("ann"), hash), old, old); err != nil {
		t.Fatal(err)
	}
	put()
	if n, err := s.Purge(time.Now().Add(-24 * time.Hour)); n != 0 || err != nil || !s.Has("ann", hash) {
		t.Errorf("%d purged, %v", n, err)
	}
}
