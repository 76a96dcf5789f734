package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestFramesRoundTrip(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	big := bytes.Repeat([]byte{0, 255, '"', '\n'}, 1<<20)
	if err := w.Send(TypeAckExit, AckExit{Keys: []Key{{Job: 7, Step: "0"}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Send(TypeData, Data{FD: 1, Offset: 9}, []byte("a"), big); err != nil {
		t.Fatal(err)
	}
	if err := w.Send(TypeShutdown, nil); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&buf)
	f := next(t, r)
	var ack AckExit
	if err := f.Decode(&ack); err != nil {
		t.Fatal(err)
	}
	if f.Type != TypeAckExit || ack.Keys[0] != (Key{Job: 7, Step: "0"}) || len(f.Payload) != 0 {
		t.Fatalf("got %d %+v", f.Type, ack)
	}
	f = next(t, r)
	var d Data
	if err := f.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if want := append([]byte("a"), big...); d.Offset != 9 || !bytes.Equal(f.Payload, want) {
		t.Fatalf("payload of %d bytes, header %+v", len(f.Payload), d)
	}
	if f = next(t, r); f.Type != TypeShutdown || string(f.Header) != "{}" {
		t.Fatalf("got %d %q", f.Type, f.Header)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("at the end: %v", err)
	}
}

func next(t *testing.T, r *Reader) Frame {
	t.Helper()
	f, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLaunchRoundTrip(t *testing.T) {
	t.Parallel()
	umask := uint32(0o27)
	want := &Launch{
		Key:      Key{Job: 12, Attempt: 1, Step: BatchStep, Node: "c01"},
		Identity: Identity{UID: 5, GID: 60, Name: "games"},
		Program:  Program{Argv: []string{"a b", "c"}, WorkDir: "/tmp", Umask: &umask},
		Script:   []byte("#!/bin/sh\necho \"\x00\xff\"\n"),
		Files:    []byte("a parcel\x00"),
		Env:      JoinEnv([]string{"A=1", "B=x\ny", "EMPTY="}),
	}
	var buf bytes.Buffer
	if err := NewWriter(&buf).SendLaunch(want); err != nil {
		t.Fatal(err)
	}
	got, err := DecodeLaunch(next(t, NewReader(&buf)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"A=1", "B=x\ny", "EMPTY="}, got.Environ()); diff != "" {
		t.Fatal(diff)
	}
}

func TestPayloadMustHoldItsParts(t *testing.T) {
	t.Parallel()
	for _, l := range [][2]int{{-1, 0}, {0, -1}, {4, 0}, {0, 4}, {2, 2}, {1, int(^uint(0) >> 1)}} {
		r := Run{ScriptLen: l[0], FilesLen: l[1]}
		if _, _, _, err := r.Cut([]byte("abc")); !errors.Is(err, ErrFrame) {
			t.Errorf("%v of 3: %v", l, err)
		}
	}
	r := Run{ScriptLen: 1, FilesLen: 1}
	if s, f, env, err := r.Cut([]byte("abc")); err != nil || string(s)+"|"+string(f)+"|"+string(env) != "a|b|c" {
		t.Errorf("%q %q %q %v", s, f, env, err)
	}
}

func TestReaderRefusesNonsense(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		in   []byte
		want error
	}{
		"too long":         {[]byte{255, 255, 255, 255, 1, 0, 0, 0, 0}, ErrFrame},
		"too short":        {[]byte{0, 0, 0, 4, 1, 0, 0, 0, 0}, ErrFrame},
		"header past end":  {[]byte{0, 0, 0, 6, 1, 0, 0, 0, 9, 'x'}, ErrFrame},
		"cut in length":    {[]byte{0, 0}, io.ErrUnexpectedEOF},
		"cut in body":      {[]byte{0, 0, 0, 9, 1, 0, 0, 0, 2, '{'}, io.ErrUnexpectedEOF},
		"announced 60 MiB": {[]byte{3, 192, 0, 0, 1, 0, 0, 0, 2, '{'}, io.ErrUnexpectedEOF},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewReader(bytes.NewReader(tc.in)).Next(); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestWriterRefusesOversizedFrameAndGoesOn(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	if err := w.Send(TypeData, nil, make([]byte, MaxFrame)); !errors.Is(err, ErrFrame) {
		t.Fatalf("got %v", err)
	}
	if err := w.Send(TypeShutdown, nil); err != nil {
		t.Fatal(err)
	}
	if f := next(t, NewReader(&buf)); f.Type != TypeShutdown {
		t.Fatalf("got %d", f.Type)
	}
}

func TestWriterKeepsEachSendersOrder(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	w, r := NewWriter(a), NewReader(b)
	const senders, each = 8, 500
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				if err := w.Send(TypeData, Data{Task: s, Offset: int64(i)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	seen := make([]int64, senders)
	for range senders * each {
		var d Data
		if err := next(t, r).Decode(&d); err != nil {
			t.Fatal(err)
		}
		if d.Offset != seen[d.Task] {
			t.Fatalf("sender %d: got %d, want %d", d.Task, d.Offset, seen[d.Task])
		}
		seen[d.Task]++
	}
	wg.Wait()
	a.Close()
}

func TestWriterReportsBrokenStream(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	b.Close()
	w := NewWriter(a)
	if err := w.Send(TypeShutdown, nil); err == nil {
		t.Fatal("no error from a closed pipe")
	}
	if err := w.Send(TypeShutdown, nil); err == nil {
		t.Fatal("a broken stream accepts frames")
	}
}

func BenchmarkLaunchFrame(b *testing.B) {
	l := &Launch{Key: Key{Job: 1, Step: BatchStep, Node: "n"}, Script: make([]byte, 2<<10), Env: make([]byte, 6<<10)}
	l.Stdio.Stdout = "slurm-%j.out"
	l.Program.WorkDir = "/home/someone/somewhere"
	var buf bytes.Buffer
	w := NewWriter(&buf)
	b.ReportAllocs()
	for i := range b.N {
		buf.Reset()
		l.Key.Job = core.JobID(i)
		if err := w.SendLaunch(l); err != nil {
			b.Fatal(err)
		}
		f, err := NewReader(&buf).Next()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodeLaunch(f); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzReader(f *testing.F) {
	seed, _ := AppendFrame(nil, TypeData, Data{FD: 1}, []byte("x"))
	f.Add(seed)
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in))
		for {
			fr, err := r.Next()
			if err != nil {
				return
			}
			out, err := AppendFrame(nil, fr.Type, json.RawMessage(fr.Header), fr.Payload)
			if err != nil {
				t.Fatal(err)
			}
			again, err := NewReader(bytes.NewReader(out)).Next()
			if err != nil || again.Type != fr.Type || !bytes.Equal(again.Payload, fr.Payload) ||
				!bytes.Equal(again.Header, fr.Header) {
				t.Fatal(fmt.Sprint("frame changed on its way: ", err))
			}
		}
	})
}

// A frame that was queued behind a write under way is not lost with the close, and a peer that does not read does not
// hold the close up forever.
func TestFinishSendsWhatIsQueued(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		here, there := net.Pipe()
		c := NewConn(here)
		var work sync.WaitGroup
		work.Go(func() { _ = c.Send(TypeInput, nil, []byte("first")) })
		var length [4]byte
		if _, err := io.ReadFull(there, length[:]); err != nil { // the rest of the write is under way now
			t.Fatal(err)
		}
		if err := c.Send(TypeIO, nil, []byte("second")); err != nil {
			t.Fatal(err)
		}
		if !reads {
			_ = c.Finish(time.Millisecond)
			work.Wait()
			continue
		}
		work.Go(func() { _ = c.Finish(time.Hour) })
		r := NewReader(io.MultiReader(bytes.NewReader(length[:]), there))
		for _, want := range []string{"first", "second"} {
			if f := next(t, r); string(f.Payload) != want {
				t.Fatalf("%q instead of %q", f.Payload, want)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("at the end: %v", err)
		}
		work.Wait()
	}
}

// TestBound: of a peer that is not trusted large frames are refused before they are read.
func TestBound(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, n := range []int{100, 5000} {
		if err := w.Send(TypeData, nil, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(&b)
	r.Bound(1000)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, ErrFrame) {
		t.Errorf("a frame of 5000 bytes: %v", err)
	}
}
