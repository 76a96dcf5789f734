// Package ranklog tells in the output of a run on several nodes which of them wrote what. All nodes write one log;
// where the writer changes, and now and then, a mark says whose the following bytes are. A mark is an escape sequence
// that terminals show nothing of. Readers take them out, and may choose one rank.
//
// Programs of the run can write marks, too. They mislead nobody but their own user.
package ranklog

import (
	"bytes"
	"io"
	"strconv"
	"sync"
)

const (
	prefix = "\x1b_bireme rank "
	suffix = "\x1b\\"
	// longest bounds a mark.
	longest = len(prefix) + 10 + len(suffix)
)

// Every is after how many bytes of one rank at most the mark is there again: who begins to read in the middle finds one
// within Window bytes before.
const (
	Every  = 16 << 10
	Window = Every + 64<<10
)

// Variable has the srun that takes a run's commands to its nodes mark their output.
const Variable = "BIREME_RANK_MARKS"

// Mark says that what follows is of a rank.
func Mark(rank int) []byte {
	return append(strconv.AppendInt([]byte(prefix), int64(rank), 10), suffix...)
}

// Mux writes what several ranks print to one log.
type Mux struct {
	w io.Writer

	mu    sync.Mutex
	rank  int
	since int // bytes after the last mark; below 0: there is none yet
}

// NewMux makes one for a log.
func NewMux(w io.Writer) *Mux { return &Mux{w: w, since: -1} }

// Write writes the output of a rank, marked where that is needed.
func (m *Mux) Write(rank int, data []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := 0
	if m.since < 0 || m.rank != rank || m.since >= Every {
		text := Mark(rank)
		mark, m.rank, m.since = len(text), rank, 0
		data = append(text, data...) // one write: a reader never sees a mark without what it is about
	}
	m.since += len(data)
	n, err := m.w.Write(data)
	return max(0, n-mark), err
}

// Rank is the writer of one of them.
func (m *Mux) Rank(rank int) io.Writer { return &ranked{m, rank} }

type ranked struct {
	m    *Mux
	rank int
}

func (r *ranked) Write(data []byte) (int, error) { return r.m.Write(r.rank, data) }

// All chooses what every rank wrote.
const All = -1

// Filter takes marks out of a log and passes on what the chosen rank wrote.
type Filter struct {
	want int
	now  int
	skip int64  // bytes that are read for their marks only
	held []byte // the beginning of what may be a mark
}

// NewFilter makes one for a log that is read from its beginning: what comes before the first mark is rank 0's. From
// another place on it is read from up to Window bytes before, which skip counts.
func NewFilter(rank int, skip int64) *Filter { return &Filter{want: rank, skip: skip} }

// Begin gives where to read from so that a Filter knows the rank at an offset, and the bytes to skip from there.
func Begin(offset int64) (from, skip int64) {
	from = max(0, offset-Window)
	return from, offset - from
}

// Pass appends to dst what of the next bytes of a log is passed on.
func (f *Filter) Pass(dst, data []byte) []byte {
	if len(f.held) > 0 {
		data = append(f.held, data...)
		f.held = nil
	}
	for len(data) > 0 {
		at := bytes.IndexByte(data, prefix[0])
		if at < 0 {
			return f.add(dst, data)
		}
		dst = f.add(dst, data[:at])
		data = data[at:]
		rank, size := parse(data)
		switch {
		case size > 0:
			f.now = rank
			f.skip = max(0, f.skip-int64(size))
			data = data[size:]
		case size < 0: // it may go on
			f.held = bytes.Clone(data)
			return dst
		default:
			dst = f.add(dst, data[:1])
			data = data[1:]
		}
	}
	return dst
}

// Rest appends what was held back because it might have been a mark.
func (f *Filter) Rest(dst []byte) []byte {
	held := f.held
	f.held = nil
	return f.add(dst, held)
}

func (f *Filter) add(dst, data []byte) []byte {
	n := min(f.skip, int64(len(data)))
	f.skip -= n
	if f.want != All && f.want != f.now {
		return dst
	}
	return append(dst, data[n:]...)
}

// parse reads a mark at the beginning of data: its rank and length, 0 if there is none, -1 if it may be a part of one.
func parse(data []byte) (rank, size int) {
	if len(data) < len(prefix) {
		if string(data) == prefix[:len(data)] {
			return 0, -1
		}
		return 0, 0
	}
	if string(data[:len(prefix)]) != prefix {
		return 0, 0
	}
	end := bytes.Index(data[:min(len(data), longest)], []byte(suffix))
	if end < 0 {
		if len(data) < longest {
			return 0, -1
		}
		return 0, 0
	}
	rank, err := strconv.Atoi(string(data[len(prefix):end]))
	if err != nil || rank < 0 {
		return 0, 0
	}
	return rank, end + len(suffix)
}

// Writer filters what is written to it. It says that it took all: who counts, counts the bytes of the log.
type Writer struct {
	w io.Writer
	f *Filter
}

// NewWriter makes one.
func NewWriter(w io.Writer, f *Filter) *Writer { return &Writer{w, f} }

func (w *Writer) Write(data []byte) (int, error) {
	if len(w.f.held) == 0 && w.f.skip == 0 && (w.f.want == All || w.f.want == w.f.now) &&
		bytes.IndexByte(data, prefix[0]) < 0 { // nearly all output
		return w.w.Write(data)
	}
	out := w.f.Pass(nil, data)
	if len(out) > 0 {
		if _, err := w.w.Write(out); err != nil {
			return 0, err
		}
	}
	return len(data), nil
}

// Close writes what was held back.
func (w *Writer) Close() error {
	out := w.f.Rest(nil)
	if len(out) == 0 {
		return nil
	}
	_, err := w.w.Write(out)
	return err
}
