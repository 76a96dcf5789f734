package sched

import (
	"cmp"
	"slices"
	"sort"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// entry is a pending job in a queue, with the key it was put in under. Job records never change, so the id is read from
// there, when all else is equal.
type entry struct {
	job      *core.Job
	slot     *slot
	at       core.Time // when it was submitted, or from when on it may start
	short    core.Time // how long it may run, in queues that have the shortest first; else 0
	length   core.Time // how long it must be able to run
	priority uint32
	array    bool // it is one, or of one
	level    int8 // those who may push others aside stand before these
	gate     *policy.Gate
}

func entryOf(j *core.Job, s *slot, g *policy.Gate) entry {
	return entry{job: j, slot: s, gate: g, at: j.Submit, priority: j.Priority, length: mustRun(j.Spec), array: j.Array != nil}.levelled()
}

// shortOf is a job's entry in a queue that has the shortest first.
func shortOf(j *core.Job, s *slot, g *policy.Gate) entry {
	return entry{job: j, slot: s, gate: g, at: j.Submit, short: length(j.Spec), length: mustRun(j.Spec), array: j.Array != nil}.levelled()
}

// mustRun is how long a job must be able to run to start. One that says no limit is content with what is left until its
// deadline, or of its reservation.
func mustRun(s *core.Spec) core.Time {
	if x := s.Extra; x != nil && (x.Deadline > 0 && x.TimeMin == 0 || x.Fill) {
		return 1
	}
	return shortest(s)
}

// laterOf is a job's entry among those whose moment has not come.
func laterOf(j *core.Job) entry { return entry{job: j, at: j.Eligible} }

// compare orders a queue: length where that counts, priority, then age, then id, so that no two entries are equal.
func (e *entry) compare(f *entry) int {
	switch {
	case e.level != f.level:
		return cmp.Compare(f.level, e.level)
	case e.short != f.short:
		return cmp.Compare(e.short, f.short)
	case e.priority != f.priority:
		return cmp.Compare(f.priority, e.priority)
	case e.at != f.at:
		return cmp.Compare(e.at, f.at)
	}
	return cmp.Compare(e.job.ID, f.job.ID)
}

// queue is the jobs that wait, in order.
type queue = list[entry, *entry]

// ordered is what a list holds: no two members are equal.
type ordered[E any] interface {
	*E
	compare(*E) int
}

// list is a sorted list in chunks: insert and remove cost one small move each, wherever they fall.
type list[E any, P ordered[E]] struct {
	chunks [][]E
	len    int
	spare  []E // a chunk that became empty: short queues come and go all the time
}

const chunkMax = 256

func (q *list[E, P]) find(e *E) (chunk, at int, ok bool) {
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

func (q *list[E, P]) insert(e E) {
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
		if q.spare == nil {
			q.spare = make([]E, 0, 2)
		}
		q.chunks, q.spare = append(q.chunks, append(q.spare, e)), nil
		return
	}
	q.chunks[c] = slices.Insert(q.chunks[c], at, e)
	if full := q.chunks[c]; len(full) > chunkMax {
		q.chunks = slices.Insert(q.chunks, c+1, slices.Clone(full[chunkMax/2:]))
		clear(full[chunkMax/2:])
		q.chunks[c] = full[:chunkMax/2]
	}
}

func (q *list[E, P]) remove(e E) {
	c, at, ok := q.find(&e)
	if !ok {
		return
	}
	q.len--
	q.chunks[c] = slices.Delete(q.chunks[c], at, at+1)
	if len(q.chunks[c]) == 0 {
		q.spare = q.chunks[c]
		q.chunks = slices.Delete(q.chunks, c, c+1)
	}
}

// seek begins a walk at the first member that does not come before e.
func (q *list[E, P]) seek(e *E) walk[E, P] {
	c, at, _ := q.find(e)
	if c < len(q.chunks) && at == len(q.chunks[c]) {
		c, at = c+1, 0
	}
	return walk[E, P]{q: q, chunk: c, at: at}
}

// first begins a walk at the first member that is so; those behind it are, too.
func (q *list[E, P]) first(so func(*E) bool) walk[E, P] {
	c := sort.Search(len(q.chunks), func(i int) bool { return so(&q.chunks[i][len(q.chunks[i])-1]) })
	if c == len(q.chunks) {
		return walk[E, P]{q: q, chunk: c}
	}
	at := sort.Search(len(q.chunks[c]), func(i int) bool { return so(&q.chunks[c][i]) })
	return walk[E, P]{q: q, chunk: c, at: at}
}

// walk goes through a list in order; the list must not change meanwhile.
type walk[E any, P ordered[E]] struct {
	q         *list[E, P]
	chunk, at int
}

// cursor walks a queue.
type cursor = walk[entry, *entry]

func (c *walk[E, P]) head() *E {
	if c.chunk >= len(c.q.chunks) {
		return nil
	}
	return &c.q.chunks[c.chunk][c.at]
}

func (c *walk[E, P]) next() {
	c.at++
	if c.at >= len(c.q.chunks[c.chunk]) {
		c.chunk, c.at = c.chunk+1, 0
	}
}
