package ranklog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// log is the output of three ranks.
func log(t *testing.T) (all []byte, by [3]string) {
	t.Helper()
	var b bytes.Buffer
	m := NewMux(&b)
	for i := range 20_000 {
		rank := i * i % 7 % 3
		if i > 10_000 && i < 15_000 {
			rank = 1
		}
		line := fmt.Sprintf("\x1b[3%dmline\x1b %d\n", rank, i)
		if n, err := m.Rank(rank).Write([]byte(line)); err != nil || n != len(line) {
			t.Fatal(n, err)
		}
		by[rank] += line
	}
	return b.Bytes(), by
}

// TestRanks: each rank's output comes back, and all of it without marks, however the log is cut.
func TestRanks(t *testing.T) {
	t.Parallel()
	text, by := log(t)
	read := func(f *Filter, data []byte, size int) string {
		var out bytes.Buffer
		w := NewWriter(&out, f)
		for len(data) > 0 {
			n := min(size, len(data))
			if got, err := w.Write(data[:n]); got != n || err != nil {
				t.Fatal(got, err)
			}
			data = data[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, size := range []int{1, 2, 7, 19, 4096, 1 << 20} {
		sum := 0
		for rank, want := range by {
			if got := read(NewFilter(rank, 0), text, size); got != want {
				t.Errorf("rank %d in pieces of %d: %d bytes, want %d", rank, size, len(got), len(want))
			}
			sum += len(want)
		}
		if got := read(NewFilter(All, 0), text, size); len(got) != sum || strings.Contains(got, prefix) {
			t.Errorf("all in pieces of %d: %d bytes, want %d", size, len(got), sum)
		}
	}
	// From the middle: what each rank wrote from there on.
	for _, at := range []int64{1, 1000, int64(len(text)) / 2, int64(len(text)) * 3 / 5, int64(len(text)) - 5} {
		from, skip := Begin(at)
		for rank, want := range by {
			got := read(NewFilter(rank, skip), text[from:], 4096)
			before := read(NewFilter(rank, 0), text[:at], 4096)
			if !strings.HasSuffix(want, got) || len(got)+len(before) > len(want)+longest ||
				len(got)+len(before) < len(want)-longest {
				t.Errorf("rank %d from %d: %d bytes after %d, want %d", rank, at, len(got), len(before), len(want))
			}
		}
	}
}

// TestNoMarks: what only looks like a mark stays.
func TestNoMarks(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"plain\n", "\x1b", "\x1b_", prefix, prefix + "x" + suffix, prefix + "12345678901234567890" + suffix,
		prefix + "-1" + suffix, "\x1b[0m\x1b_other\x1b\\", prefix + "1\n",
	} {
		var out bytes.Buffer
		w := NewWriter(&out, NewFilter(0, 0))
		for _, b := range []byte(text) {
			if _, err := w.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || out.String() != text {
			t.Errorf("%q became %q, %v", text, out.String(), err)
		}
	}
}
