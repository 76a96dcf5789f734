package logstore

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func appendAll(t *testing.T, s *Store, k Key, offset int64, data []byte) int64 {
	t.Helper()
	have, err := s.Append(k, "u", offset, data, false)
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// TestPerJob: a log stops at its limit, says so in its last line, and takes no more, also after a restart.
func TestPerJob(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), Key{Job: 1, Attempt: 1}
	s := New(dir)
	s.SetBounds(Bounds{PerJob: 1024})
	if have := appendAll(t, s, k, 0, bytes.Repeat([]byte("x"), 1000)); have != 1000 {
		t.Fatal(have)
	}
	if have := appendAll(t, s, k, 1000, bytes.Repeat([]byte("y"), 1000)); have != Full {
		t.Fatal(have)
	}
	const last = "\n[bireme: the output ends here: this job has written 1K, as much as is kept (limits.log_per_job); " +
		"it runs on]\n"
	want := strings.Repeat("x", 1000) + strings.Repeat("y", 24) + last
	for range 2 {
		if got := text(t, s, k, 0); got != want {
			t.Fatalf("got %d bytes: …%q", len(got), got[max(0, len(got)-200):])
		}
		if have := appendAll(t, s, k, 2000, []byte("z")); have != Full {
			t.Fatal(have)
		}
		if why := s.Dropping(k); why != LimitJob {
			t.Fatal(why)
		}
		s = New(dir)
		s.SetBounds(Bounds{PerJob: 1024})
	}
}

// TestPerUser: the logs of a user have a limit together; another user's are kept; what a purge frees can be used again,
// and a server that starts counts what is there.
func TestPerUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir)
	s.SetBounds(Bounds{PerUser: 1 << 10})
	one, two, other := Key{Job: 1, Attempt: 1}, Key{Job: 2, Attempt: 1}, Key{Job: 3, Attempt: 1}
	big := bytes.Repeat([]byte("x"), 800)
	if have := appendAll(t, s, one, 0, big); have != 800 {
		t.Fatal(have)
	}
	if have := appendAll(t, s, two, 0, big); have != 800 { // dropped in part, and acknowledged
		t.Fatal(have)
	}
	if got := text(t, s, two, 0); !strings.HasPrefix(got, strings.Repeat("x", 224)+"\n[bireme: output is dropped") ||
		!strings.Contains(got, "1K") || !strings.Contains(got, LimitUser) {
		t.Fatalf("%q", got)
	}
	if have, err := s.Append(other, "v", 0, big, false); err != nil || have != 800 || s.Dropping(other) != "" {
		t.Fatal(have, err)
	}
	s = New(dir)
	s.SetBounds(Bounds{PerUser: 1 << 10})
	if err := s.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := s.Used("u"); used < 1024 || s.Used("v") != 800 {
		t.Fatal(used, s.Used("v"))
	}
	if have := appendAll(t, s, two, 800, []byte("more")); have != 804 {
		t.Fatal(have)
	}
	if n, err := s.Purge(time.Now().Add(time.Hour), 1); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if have := appendAll(t, s, two, 804, []byte("kept\n")); have != 809 {
		t.Fatal(have)
	}
	if got := text(t, s, two, 0); strings.Contains(got, "more") ||
		!strings.HasSuffix(got, "[bireme: output is kept again from here on (limits.log_per_user)]\nkept\n") {
		t.Fatalf("%q", got)
	}
}

// TestDiskFloor: with less room on the disk than is to be left free nothing is kept, and the log says so once.
func TestDiskFloor(t *testing.T) {
	t.Parallel()
	s, k := New(t.TempDir()), Key{Job: 1, Attempt: 1}
	s.SetBounds(Bounds{MinFree: 1 << 60})
	var offset int64
	for range 3 {
		if offset = appendAll(t, s, k, offset, []byte("hello\n")); offset%6 != 0 {
			t.Fatal(offset)
		}
	}
	if got := text(t, s, k, 0); !strings.HasPrefix(
		got, "[bireme: output is dropped from here on: less than 1048576T") || strings.Count(got, "\n") != 1 {
		t.Fatalf("%q", got)
	}
	if !s.DiskLow() || s.Dropping(k) != LimitDisk {
		t.Fatal("it is not told")
	}
	s.SetBounds(Bounds{})
	if offset = appendAll(t, s, k, offset, []byte("again\n")); offset != 24 ||
		!strings.HasSuffix(text(t, s, k, 0), "\nagain\n") {
		t.Fatalf("%d: %q", offset, text(t, s, k, 0))
	}
}

// TestEndDoesNotWaitForTheDisk: who tells that a job has ended, or asks how far its log is, does not wait for a write
// of it that hangs.
func TestEndDoesNotWaitForTheDisk(t *testing.T) {
	t.Parallel()
	s, k := New(t.TempDir()), Key{Job: 1, Attempt: 1}
	appendAll(t, s, k, 0, []byte("x"))
	e := s.take(k)
	e.write.Lock() // as a write that hangs holds it
	s.End(k)
	if have, err := s.Have(k); err != nil || have != 1 {
		t.Error(have, err)
	}
	if got := text(t, s, k, 0); got != "x" {
		t.Errorf("%q", got)
	}
	e.write.Unlock()
	s.put(e)
}
