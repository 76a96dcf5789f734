package logstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"bireme.dev/bireme/internal/wire/ranklog"
)

// When output came is next to a log in a file of marks: from which offset on output came at which time. A mark is
// written at most every markEvery, so output of one moment shares its mark. Logs that are tails, and those of stores
// that keep no times, have none: their output is all of the time at which the file was last written.

// markEvery is the resolution of times.
const markEvery = 50 * time.Millisecond

// markSize is that of a mark in the file: offset and milliseconds since 1970.
const markSize = 16

type mark struct{ offset, ms int64 }

// KeepTimes has the store keep when output came. It is called before the store is used.
func (s *Store) KeepTimes() { s.times = true }

func (s *Store) timesPath(k Key) string { return strings.TrimSuffix(s.Path(k), ".log") + ".times" }

// markTime notes that output from the present end on comes now. e.write is held. A mark that cannot be written costs
// the time of that output, not the output.
func (s *Store) markTime(e *entry) {
	now := time.Now()
	if now.Sub(e.marked) < markEvery {
		return
	}
	f, err := os.OpenFile(s.timesPath(e.key), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	var b [markSize]byte
	binary.BigEndian.PutUint64(b[:8], uint64(e.base+e.size))
	binary.BigEndian.PutUint64(b[8:], uint64(now.UnixMilli()))
	_, err = f.Write(b[:])
	if errors.Join(err, f.Close()) == nil {
		e.marked = now
	}
}

// marks reads the times of a log.
type marks struct {
	file *os.File // nil: there are none
	n    int
	only mark // where there are none
}

func (s *Store) openMarks(k Key, base int64) (*marks, error) {
	m := &marks{n: 1, only: mark{offset: base}}
	f, err := os.Open(s.timesPath(k))
	if errors.Is(err, fs.ErrNotExist) {
		if st, err := os.Stat(s.Path(k)); err == nil {
			m.only.ms = st.ModTime().UnixMilli()
		}
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil || st.Size() < markSize {
		m.only.ms = time.Now().UnixMilli()
		return m, errors.Join(err, f.Close())
	}
	m.file, m.n = f, int(st.Size()/markSize)
	return m, nil
}

func (m *marks) close() {
	if m.file != nil {
		_ = m.file.Close() // it was only read
	}
}

func (m *marks) at(i int) mark {
	if m.file == nil {
		return m.only
	}
	var b [markSize]byte
	if _, err := m.file.ReadAt(b[:], int64(i)*markSize); err != nil {
		return m.only
	}
	return mark{int64(binary.BigEndian.Uint64(b[:8])), int64(binary.BigEndian.Uint64(b[8:]))}
}

// before is the last mark at or before an offset.
func (m *marks) before(offset int64) int {
	return max(0, sort.Search(m.n, func(i int) bool { return m.at(i).offset > offset })-1)
}

// since is the first mark of a time or later; n if there is none.
func (m *marks) since(ms int64) int {
	return sort.Search(m.n, func(i int) bool { return m.at(i).ms >= ms })
}

// Piece is some output of one moment.
type Piece struct {
	Offset int64
	At     time.Time // milliseconds; pieces of a page have different ones, in their order
	Data   []byte
}

// PageQuery selects a part of a log. Zero fields do not restrict.
type PageQuery struct {
	From         int64     // offset: ascending from it on, descending before it; below 0: from the beginning, or the end
	Since, Until time.Time // Since <= At <= Until
	Limit        int       // pieces
	Descending   bool
	// Of the log of several nodes: what one of them wrote, or ranklog.All; nil: the log as it is.
	Rank *int
}

// Bounds of a page.
const (
	maxPiece = 64 << 10
	maxPaged = 4 << 20
)

// Page reads a part of a log. next is where the following page begins; below 0: there is none now.
func (s *Store) Page(k Key, q PageQuery) (list []Piece, next int64, err error) {
	e, err := s.loadedEntry(k)
	if err != nil {
		return nil, -1, err
	}
	defer s.put(e)
	e.mu.Lock()
	file, base, end := e.file, e.base, e.end()
	e.mu.Unlock()
	if file == nil {
		return nil, -1, nil
	}
	m, err := s.openMarks(k, base)
	if err != nil {
		return nil, -1, fmt.Errorf("log of job %d: %w", k.Job, err)
	}
	defer m.close()
	p := &pager{m: m, base: base, low: base, high: end, read: func(b []byte, at int64) (int, error) {
		return file.ReadAt(b, at-base)
	}}
	if !q.Since.IsZero() {
		i := m.since(q.Since.UnixMilli())
		if i == m.n {
			return nil, -1, nil
		}
		p.low = max(base, m.at(i).offset)
	}
	if !q.Until.IsZero() {
		if i := m.since(q.Until.UnixMilli() + 1); i < m.n {
			p.high = min(end, m.at(i).offset)
		}
	}
	if q.Descending {
		list, next, err = p.down(q)
	} else {
		list, next, err = p.up(q)
	}
	if q.Rank != nil && err == nil && len(list) > 0 {
		list, err = p.choose(list, *q.Rank)
	}
	return list, next, err
}

// choose leaves of pieces what one rank wrote. Those that have nothing of it are left out.
func (p *pager) choose(list []Piece, rank int) ([]Piece, error) {
	order := slices.Clone(list)
	slices.SortFunc(order, func(a, b Piece) int { return cmp.Compare(a.Offset, b.Offset) })
	from, skip := ranklog.Begin(order[0].Offset - p.base)
	f := ranklog.NewFilter(rank, skip)
	before := make([]byte, skip)
	if n, err := p.read(before, p.base+from); n < len(before) {
		return nil, err
	}
	f.Pass(nil, before)
	passed := make(map[int64][]byte, len(order))
	for _, piece := range order {
		passed[piece.Offset] = f.Pass(nil, piece.Data)
	}
	last := order[len(order)-1].Offset
	passed[last] = f.Rest(passed[last])
	out := list[:0]
	for _, piece := range list {
		if piece.Data = passed[piece.Offset]; len(piece.Data) > 0 {
			out = append(out, piece)
		}
	}
	return out, nil
}

// pager reads pieces of a log between two offsets.
type pager struct {
	m         *marks
	base      int64
	low, high int64
	read      func(b []byte, at int64) (int, error)
}

func (p *pager) up(q PageQuery) (list []Piece, next int64, err error) {
	pos, total := max(p.low, q.From), 0
	last := int64(0)
	for pos < p.high && len(list) < q.Limit && total < maxPaged {
		i := p.m.before(pos)
		stop := p.high
		if i+1 < p.m.n {
			stop = min(stop, p.m.at(i+1).offset)
		}
		if stop <= pos { // marks of a log that was cut
			stop = p.high
		}
		data, err := p.piece(pos, stop)
		if err != nil {
			return nil, -1, err
		}
		last = max(last+1, p.m.at(i).ms)
		list = append(list, Piece{Offset: pos, At: time.UnixMilli(last), Data: data})
		pos += int64(len(data))
		total += len(data)
	}
	if pos < p.high {
		return list, pos, nil
	}
	return list, -1, nil
}

func (p *pager) down(q PageQuery) (list []Piece, next int64, err error) {
	pos, total := p.high, 0
	if q.From >= 0 {
		pos = min(pos, q.From)
	}
	last := int64(1) << 62
	for pos > p.low && len(list) < q.Limit && total < maxPaged {
		i := p.m.before(pos - 1)
		from := max(p.low, p.m.at(i).offset, pos-maxPiece)
		data := make([]byte, pos-from)
		if n, err := p.read(data, from); n < len(data) {
			return nil, -1, err
		}
		if from == pos-maxPiece { // it begins with a line
			if nl := bytes.IndexByte(data[:len(data)-1], '\n'); nl >= 0 {
				data, from = data[nl+1:], from+int64(nl)+1
			}
		}
		last = min(last-1, p.m.at(i).ms)
		list = append(list, Piece{Offset: from, At: time.UnixMilli(last), Data: data})
		pos = from
		total += len(data)
	}
	if pos > p.low {
		return list, pos, nil
	}
	return list, -1, nil
}

// piece reads output up to stop, or as much of it as whole lines fill a piece.
func (p *pager) piece(from, stop int64) ([]byte, error) {
	data := make([]byte, min(stop-from, maxPiece))
	if n, err := p.read(data, from); n < len(data) {
		return nil, err
	}
	if from+int64(len(data)) < stop {
		if nl := bytes.LastIndexByte(data, '\n'); nl >= 0 {
			data = data[:nl+1]
		}
	}
	return data, nil
}
