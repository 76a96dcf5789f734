package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// entry is a pending job in a queue, with the key it was put in under. Job records never change, so the id is read from
// there, when all else is equal.
type entry struct {
	job      *core.Job
	slot     *slot
	at       core.Time // when it was submitted, or from when on it may start
	priority uint32
}

func entryOf(j *core.Job, s *slot) entry {
	return entry{job: j, slot: s, at: j.Submit, priority: j.Priority}
}

// laterOf is a job's entry among those whose moment has not come.
func laterOf(j *core.Job) entry { return entry{job: j, at: j.Eligible} }

// compare orders a queue: priority, then age, then id, so that no two entries are equal.
func (e *entry) compare(f *entry) int {
	switch {
	case e.priority != f.priority:
		return cmp.Compare(f.priority, e.priority)
	case e.at != f.at:
		return cmp.Compare(e.at, f.at)
	}
	return cmp.Compare(e.job.ID, f.job.ID)
}

// queue is a sorted list in chunks: insert and remove cost one small move each, wherever they fall.
type queue struct {
	chunks [][]entry
	len    int
}

const chunkMax = 256

func (q *queue) find(e *entry) (chunk, at int, ok bool) {
	chunk, _ = slices.BinarySearchFunc(q.chunks, e, func(c []entry, e *entry) int { return c[len(c)-1].compare(e) })
	if chunk == len(q.chunks) {
		return chunk, 0, false
	}
	at, ok = slices.BinarySearchFunc(q.chunks[chunk], *e, func(a, b entry) int { return a.compare(&b) })
	return chunk, at, ok
}

func (q *queue) insert(e entry) {
	c, at, ok := q.find(&e)
	if ok {
		q.chunks[c][at] = e
		return
	}
	q.len++
	if c == len(q.chunks) {
		if c > 0 && len(q.chunks[c-1]) < chunkMax {
			q.chunks[c-1] = append(q.chunks[c-1], e)
			return
		}
		q.chunks = append(q.chunks, append(make([]entry, 0, 64), e))
		return
	}
	q.chunks[c] = slices.Insert(q.chunks[c], at, e)
	if full := q.chunks[c]; len(full) > chunkMax {
		q.chunks = slices.Insert(q.chunks, c+1, slices.Clone(full[chunkMax/2:]))
		clear(full[chunkMax/2:])
		q.chunks[c] = full[:chunkMax/2]
	}
}

func (q *queue) remove(e entry) {
	c, at, ok := q.find(&e)
	if !ok {
		return
	}
	q.len--
	q.chunks[c] = slices.Delete(q.chunks[c], at, at+1)
	if len(q.chunks[c]) == 0 {
		q.chunks = slices.Delete(q.chunks, c, c+1)
	}
}

// cursor walks a queue in order; the queue must not change meanwhile.
type cursor struct {
	q         *queue
	chunk, at int
}

func (c *cursor) head() *entry {
	if c.chunk >= len(c.q.chunks) {
		return nil
	}
	return &c.q.chunks[c.chunk][c.at]
}

func (c *cursor) next() {
	c.at++
	if c.at >= len(c.q.chunks[c.chunk]) {
		c.chunk, c.at = c.chunk+1, 0
	}
}
