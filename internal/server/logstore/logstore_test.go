package logstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

func text(t *testing.T, s *Store, k Key, offset int64) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Copy(t.Context(), &b, k, offset, nil, func() {}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNoGapNoRepeat(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), Key{Job: 12345, Attempt: 1}
	s := New(dir)
	steps := []struct {
		offset int64
		data   string
		have   int64
	}{
		{5, "late", 0}, // a log does not begin in the middle
		{0, "hello ", 6},
		{0, "hello ", 6}, // repeated
		{3, "lo world", 11},
		{20, "gap", 11},
		{11, "!", 12},
	}
	for _, st := range steps {
		have, err := s.Append(k, "u", st.offset, []byte(st.data), false)
		if err != nil || have != st.have {
			t.Fatalf("append %q at %d: %d, %v; want %d", st.data, st.offset, have, err, st.have)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = New(dir) // a restart continues where the file ends
	if have, err := s.Append(k, "u", 10, []byte("d!?"), false); err != nil || have != 13 {
		t.Fatal(have, err)
	}
	if got := text(t, s, k, 0); got != "hello world!?" {
		t.Fatalf("%q", got)
	}
	if got := text(t, s, k, 6); got != "world!?" {
		t.Fatalf("%q", got)
	}
}

func TestTailBeginsAnywhere(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), Key{Job: 7, Attempt: 2}
	s := New(dir)
	if have, err := s.Append(k, "u", 1000, []byte("the end"), true); err != nil || have != 1007 {
		t.Fatal(have, err)
	}
	s = New(dir)
	base, end, err := s.Range(k)
	if err != nil || base != 1000 || end != 1007 {
		t.Fatal(base, end, err)
	}
	if got := text(t, s, k, 0); got != "the end" {
		t.Fatalf("%q", got)
	}
}

func TestFollowIsWoken(t *testing.T) {
	t.Parallel()
	s, k := New(t.TempDir()), Key{Job: 1, Attempt: 1}
	r, w := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := s.Copy(t.Context(), w, k, 0, make(chan struct{}), func() {})
		_ = w.Close()
		result <- err
	}()
	var offset int64
	buf := make([]byte, 3)
	for range 100 {
		have, err := s.Append(k, "u", offset, []byte("abc"), false)
		if err != nil {
			t.Fatal(err)
		}
		offset = have
		if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "abc" {
			t.Fatal(string(buf), err)
		}
	}
	s.End(k)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func TestFollowEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	s, k := New(t.TempDir()), Key{Job: 1, Attempt: 1}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan struct{}, 1)
	result := make(chan error, 1)
	go func() { result <- s.Copy(ctx, io.Discard, k, 0, make(chan struct{}), func() { waiting <- struct{}{} }) }()
	<-waiting
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestManyLogsKeepFewFilesOpen(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	for i := range maxOpen * 3 {
		if _, err := s.Append(Key{Job: 1, Attempt: int32(i)}, "u", 0, []byte("x"), false); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.logs); n > maxOpen {
		t.Fatalf("%d logs open", n)
	}
	if got := text(t, s, Key{Job: 1, Attempt: 0}, 0); got != "x" {
		t.Fatalf("%q", got)
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	old, young := Key{Job: 1, Attempt: 1}, Key{Job: 5000, Attempt: 1}
	for _, k := range []Key{old, young} {
		if _, err := s.Append(k, "u", 10, []byte("x"), true); err != nil {
			t.Fatal(err)
		}
		s.End(k)
	}
	now := time.Now()
	if err := os.Chtimes(s.Path(old), now.Add(-time.Hour), now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Purge(now.Add(-time.Minute), 100); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := text(t, s, old, 0) + text(t, s, young, 0); got != "x" {
		t.Fatalf("%q", got)
	}
}
