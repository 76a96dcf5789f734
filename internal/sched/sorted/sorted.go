package sorted

import (
	"slices"
	"sort"
)

// Item is what a list holds: no two members are equal.
type Item[E any] interface {
	*E
	Compare(*E) int
}

// List is a sorted list in chunks: insert and remove cost one small move each, wherever they fall.
type List[E any, P Item[E]] struct {
	Chunks     [][]E
	Len        int
	spareChunk []E // a chunk that became empty: short queues come and go all the time
}

const maxChunk = 256

func (q *List[E, P]) Find(e *E) (chunk, at int, ok bool) {
	chunk, _ = slices.BinarySearchFunc(q.Chunks, e, func(c []E, e *E) int { return P(&c[len(c)-1]).Compare(e) })
	if chunk == len(q.Chunks) {
		return chunk, 0, false
	}
	c := q.Chunks[chunk]
	lo, hi := 0, len(c)
	for lo < hi {
		mid := (lo + hi) / 2
		if P(&c[mid]).Compare(e) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return chunk, lo, lo < len(c) && P(&c[lo]).Compare(e) == 0
}

func (q *List[E, P]) Insert(e E) {
	c, at, ok := q.Find(&e)
	if ok {
		q.Chunks[c][at] = e
		return
	}
	q.Len++
	if c == len(q.Chunks) {
		if c > 0 && len(q.Chunks[c-1]) < maxChunk {
			q.Chunks[c-1] = append(q.Chunks[c-1], e)
			return
		}
		if q.spareChunk == nil {
			q.spareChunk = make([]E, 0, 2)
		}
		q.Chunks, q.spareChunk = append(q.Chunks, append(q.spareChunk, e)), nil
		return
	}
	q.Chunks[c] = slices.Insert(q.Chunks[c], at, e)
	if full := q.Chunks[c]; len(full) > maxChunk {
		q.Chunks = slices.Insert(q.Chunks, c+1, slices.Clone(full[maxChunk/2:]))
		clear(full[maxChunk/2:])
		q.Chunks[c] = full[:maxChunk/2]
	}
}

func (q *List[E, P]) Remove(e E) {
	c, at, ok := q.Find(&e)
	if !ok {
		return
	}
	q.Len--
	q.Chunks[c] = slices.Delete(q.Chunks[c], at, at+1)
	if len(q.Chunks[c]) == 0 {
		q.spareChunk = q.Chunks[c]
		q.Chunks = slices.Delete(q.Chunks, c, c+1)
	}
}

// Seek begins a walk at the first member that does not come before e.
func (q *List[E, P]) Seek(e *E) Cursor[E, P] {
	c, at, _ := q.Find(e)
	if c < len(q.Chunks) && at == len(q.Chunks[c]) {
		c, at = c+1, 0
	}
	return Cursor[E, P]{List: q, chunk: c, at: at}
}

// First begins a walk at the first member for which match holds; it holds for all behind it.
func (q *List[E, P]) First(match func(*E) bool) Cursor[E, P] {
	c := sort.Search(len(q.Chunks), func(i int) bool { return match(&q.Chunks[i][len(q.Chunks[i])-1]) })
	if c == len(q.Chunks) {
		return Cursor[E, P]{List: q, chunk: c}
	}
	at := sort.Search(len(q.Chunks[c]), func(i int) bool { return match(&q.Chunks[c][i]) })
	return Cursor[E, P]{List: q, chunk: c, at: at}
}

// Cursor goes through a list in order; the list must not change meanwhile.
type Cursor[E any, P Item[E]] struct {
	List      *List[E, P]
	chunk, at int
}

func (c *Cursor[E, P]) Current() *E {
	if c.chunk >= len(c.List.Chunks) {
		return nil
	}
	return &c.List.Chunks[c.chunk][c.at]
}

func (c *Cursor[E, P]) Next() {
	c.at++
	if c.at >= len(c.List.Chunks[c.chunk]) {
		c.chunk, c.at = c.chunk+1, 0
	}
}

// After walks a list from behind a member on, or from where it would be.
func (q *List[E, P]) After(e *E) Cursor[E, P] {
	w := Cursor[E, P]{List: q}
	var ok bool
	if w.chunk, w.at, ok = q.Find(e); ok {
		w.Next()
	}
	return w
}
