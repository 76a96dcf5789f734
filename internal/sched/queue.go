package sched

import (
	"cmp"
	"slices"
	"sort"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// queueEntry is a pending job in a queue, with the key it was put in under. Job records never change, so the id is read
// from
// there, when all else is equal.
type queueEntry struct {
	job      *core.Job
	class    *partitionClass
	since    core.Time // when it was submitted, or from when on it may start
	shortKey core.Time // how long it may run, in queues that have the shortest first; else 0
	minTime  core.Time // how long it must be able to run
	priority uint32
	inArray  bool // it is one, or of one
	rank     int8 // those who may push others aside stand before these
	gate     *policy.Gate
}

func queueEntryOf(j *core.Job, s *partitionClass, g *policy.Gate) queueEntry {
	return queueEntry{job: j, class: s, gate: g, since: j.Submit, priority: j.Priority, minTime: mustFitTime(j.Spec),
		inArray: j.Array != nil}.withRank()
}

// shortestEntryOf is a job's entry in a queue that has the shortest first.
func shortestEntryOf(j *core.Job, s *partitionClass, g *policy.Gate) queueEntry {
	return queueEntry{job: j, class: s, gate: g, since: j.Submit, shortKey: timeLimit(j.Spec),
		minTime: mustFitTime(j.Spec), inArray: j.Array != nil}.withRank()
}

// mustFitTime is how long a job must be able to run to start. One that says no limit is content with what is left until
// its
// deadline, or of its reservation.
func mustFitTime(s *core.Spec) core.Time {
	if x := s.Extra; x != nil && (x.Deadline > 0 && x.TimeMin == 0 || x.Fill) {
		return 1
	}
	return minTime(s)
}

// ineligibleEntryOf is a job's entry among those whose moment has not come.
func ineligibleEntryOf(j *core.Job) queueEntry { return queueEntry{job: j, since: j.Eligible} }

// compare orders a queue: length where that counts, priority, then age, then id, so that no two entries are equal.
func (e *queueEntry) compare(f *queueEntry) int {
	switch {
	case e.rank != f.rank:
		return cmp.Compare(f.rank, e.rank)
	case e.shortKey != f.shortKey:
		return cmp.Compare(e.shortKey, f.shortKey)
	case e.priority != f.priority:
		return cmp.Compare(f.priority, e.priority)
	case e.since != f.since:
		return cmp.Compare(e.since, f.since)
	}
	return cmp.Compare(e.job.ID, f.job.ID)
}

// queue is the jobs that wait, in order.
type queue = sortedList[queueEntry, *queueEntry]

// listItem is what a list holds: no two members are equal.
type listItem[E any] interface {
	*E
	compare(*E) int
}

// sortedList is a sorted list in chunks: insert and remove cost one small move each, wherever they fall.
type sortedList[E any, P listItem[E]] struct {
	chunks     [][]E
	len        int
	spareChunk []E // a chunk that became empty: short queues come and go all the time
}

const maxChunk = 256

func (q *sortedList[E, P]) find(e *E) (chunk, at int, ok bool) {
	chunk, _ = slices.BinarySearchFunc(q.chunks, e, func(c []E, e *E) int { return P(&c[len(c)-1]).compare(e) })
	if chunk == len(q.chunks) {
		return chunk, 0, false
	}
	c := q.chunks[chunk]
	lo, hi := 0, len(c)
	for lo < hi {
		mid := (lo + hi) / 2
		if P(&c[mid]).compare(e) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return chunk, lo, lo < len(c) && P(&c[lo]).compare(e) == 0
}

func (q *sortedList[E, P]) insert(e E) {
	c, at, ok := q.find(&e)
	if ok {
		q.chunks[c][at] = e
		return
	}
	q.len++
	if c == len(q.chunks) {
		if c > 0 && len(q.chunks[c-1]) < maxChunk {
			q.chunks[c-1] = append(q.chunks[c-1], e)
			return
		}
		if q.spareChunk == nil {
			q.spareChunk = make([]E, 0, 2)
		}
		q.chunks, q.spareChunk = append(q.chunks, append(q.spareChunk, e)), nil
		return
	}
	q.chunks[c] = slices.Insert(q.chunks[c], at, e)
	if full := q.chunks[c]; len(full) > maxChunk {
		q.chunks = slices.Insert(q.chunks, c+1, slices.Clone(full[maxChunk/2:]))
		clear(full[maxChunk/2:])
		q.chunks[c] = full[:maxChunk/2]
	}
}

func (q *sortedList[E, P]) remove(e E) {
	c, at, ok := q.find(&e)
	if !ok {
		return
	}
	q.len--
	q.chunks[c] = slices.Delete(q.chunks[c], at, at+1)
	if len(q.chunks[c]) == 0 {
		q.spareChunk = q.chunks[c]
		q.chunks = slices.Delete(q.chunks, c, c+1)
	}
}

// seek begins a walk at the first member that does not come before e.
func (q *sortedList[E, P]) seek(e *E) listCursor[E, P] {
	c, at, _ := q.find(e)
	if c < len(q.chunks) && at == len(q.chunks[c]) {
		c, at = c+1, 0
	}
	return listCursor[E, P]{list: q, chunk: c, at: at}
}

// first begins a walk at the first member that is so; those behind it are, too.
func (q *sortedList[E, P]) first(so func(*E) bool) listCursor[E, P] {
	c := sort.Search(len(q.chunks), func(i int) bool { return so(&q.chunks[i][len(q.chunks[i])-1]) })
	if c == len(q.chunks) {
		return listCursor[E, P]{list: q, chunk: c}
	}
	at := sort.Search(len(q.chunks[c]), func(i int) bool { return so(&q.chunks[c][i]) })
	return listCursor[E, P]{list: q, chunk: c, at: at}
}

// walkInOrder goes through a list in order; the list must not change meanwhile.
type listCursor[E any, P listItem[E]] struct {
	list      *sortedList[E, P]
	chunk, at int
}

// queueCursor walks a queue.
type queueCursor = listCursor[queueEntry, *queueEntry]

func (c *listCursor[E, P]) current() *E {
	if c.chunk >= len(c.list.chunks) {
		return nil
	}
	return &c.list.chunks[c.chunk][c.at]
}

func (c *listCursor[E, P]) next() {
	c.at++
	if c.at >= len(c.list.chunks[c.chunk]) {
		c.chunk, c.at = c.chunk+1, 0
	}
}
