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

// The count follows what is written, replaced, purged and removed, and a new store that lists the folder has the same.
func TestCountFollowsTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir)
	b := Bounds{Size: 1000, PerUser: 2500}
	content := func(c string) []byte { return bytes.Repeat([]byte(c), 1000) }
	put := func(s *Store, c string) error {
		return s.Put("ann", hashOf(content(c)), bytes.NewReader(content(c)), b)
	}
	for _, c := range []string{"a", "b"} {
		if err := put(s, c); err != nil {
			t.Fatal(err)
		}
	}
	check := func(s *Store, wantBytes int64, wantFiles int) {
		t.Helper()
		c := s.count(folderName("ann"))
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.list(); err != nil || c.bytes != wantBytes || c.files != wantFiles || len(c.parts) != 0 {
			t.Errorf("%d bytes in %d files, %d on their way, %v; want %d in %d", c.bytes, c.files, len(c.parts), err,
				wantBytes, wantFiles)
		}
	}
	check(s, 2000, 2)
	if err := put(s, "c"); core.ReasonOf(err) != limitReason {
		t.Errorf("a third: %v", err)
	}
	if err := s.Put("ann", hashOf(content("c")), bytes.NewReader(content("d")[:400]), b); err == nil {
		t.Error("a content of another name was taken")
	}
	check(s, 2000, 2)
	// What an earlier server left on its way is not there for the next.
	if err := os.WriteFile(filepath.Join(s.folder("ann"), "tmp-1"), content("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(New(dir), 2000, 2)
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.folder("ann"), hashOf(content("a"))), old, old); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Purge(time.Now().Add(-24 * time.Hour)); n != 1 || err != nil {
		t.Errorf("%d purged, %v", n, err)
	}
	check(s, 1000, 1)
	if err := put(s, "c"); err != nil {
		t.Errorf("after the purge: %v", err)
	}
	check(s, 2000, 2)
	if err := s.Remove("ann"); err != nil {
		t.Fatal(err)
	}
	check(s, 0, 0)
	if err := put(s, "c"); err != nil {
		t.Errorf("after the removal: %v", err)
	}
	check(s, 1000, 1)
}

// Two uploads of the same content at once count once.
func TestSameContentTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	s, content := New(t.TempDir()), bytes.Repeat([]byte("a"), 1000)
	r, w := io.Pipe()
	done := make(chan error, 1)
	b := Bounds{Size: 1000, PerUser: 2000}
	go func() { done <- s.Put("ann", hashOf(content), r, b) }()
	if _, err := w.Write(content[:999]); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("ann", hashOf(content), bytes.NewReader(content), b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content[999:]); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c := s.count(folderName("ann")); c.bytes != 1000 || c.files != 1 {
		t.Errorf("%d bytes in %d files", c.bytes, c.files)
	}
}

// Users may not have more than so many uploads, however small.
func TestUploadsAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	b := Bounds{Size: 10, PerUser: 1 << 20}
	if err := s.Put("ann", hashOf([]byte("a")), bytes.NewReader([]byte("a")), b); err != nil {
		t.Fatal(err)
	}
	s.count(folderName("ann")).files = maxFiles
	if err := s.Put("ann", hashOf([]byte("b")), bytes.NewReader([]byte("b")), b); core.ReasonOf(err) != limitReason {
		t.Errorf("one too many: %v", err)
	}
}

// What users have uploaded who are gone is removed: at once, and at the next start.
func TestUploadsOfUsersWhoAreGone(t *testing.T) {
	t.Parallel()
	dir, content := t.TempDir(), []byte("x")
	s := New(dir)
	for _, u := range []core.UserName{"ann", "bob", "eve"} {
		if err := s.Put(u, hashOf(content), bytes.NewReader(content), Bounds{Size: 10, PerUser: 100}); err != nil {
			t.Fatal(err)
		}
	}
	s.Forget("eve")
	if err := s.removeGone(); err != nil || s.Has("eve", hashOf(content)) {
		t.Errorf("eve's: %v", err)
	}
	n, err := New(dir).Sweep(func() []core.UserName { return []core.UserName{"ann"} })
	if n != 1 || err != nil || s.Has("bob", hashOf(content)) || !s.Has("ann", hashOf(content)) {
		t.Errorf("%d swept, %v", n, err)
	}
}
