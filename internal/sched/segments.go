package sched

import (
	"cmp"
	"slices"
)

// segmented takes whole segments of nodes, each within a block: from the fewest blocks, or, if those have too little room
// for the tasks, the roomiest segments of all.
func (c *cluster) segmented(size int) []pick {
	segs := c.segs
	for i := range segs {
		slices.SortStableFunc(c.some[segs[i].from:segs[i].to], func(x, y candidate) int {
			return cmp.Or(boolFirst(x.must, y.must), cmp.Compare(y.room, x.room))
		})
		segs[i].to = segs[i].from + segs[i].count()/size*size
	}
	if picks := c.segments(size, func(s *segment, left int) (score, take int) {
		if n := s.count(); n >= left { // the smallest block that has all that are left, else the largest
			return 1<<30 - n, left
		}
		return s.count(), s.count()
	}); picks != nil {
		return picks
	}
	return c.segments(size, func(s *segment, _ int) (score, take int) {
		for i := s.from; i < s.from+size; i++ {
			score += int(c.some[i].room)
		}
		return score, size
	})
}

// segments takes nodes of the block with the best score, as many as that says, until there are enough.
func (c *cluster) segments(size int, rate func(s *segment, left int) (score, take int)) []pick {
	n := c.n
	want := (int(n.nodesMin) + size - 1) / size * size
	left := slices.Clone(c.segs) // what is left of each block
	picks := c.buf[:0]
	h := n.hold(c.counts)
	take := func(s *segment, count int) {
		for _, k := range c.some[s.from : s.from+count] {
			h.add(&k, 1)
			picks = append(picks, pick{a: k.a, room: k.room})
		}
		s.from += count
	}
	for i := range left { // those with nodes that must be there
		if s := &left[i]; s.must > 0 {
			take(s, min(s.count(), (s.must+size-1)/size*size))
		}
	}
	for len(picks) < want {
		var best *segment
		var most, count int
		for i := range left {
			if s := &left[i]; s.count() > 0 {
				if score, k := rate(s, want-len(picks)); best == nil || score > most {
					best, most, count = s, score, k
				}
			}
		}
		if best == nil {
			return nil
		}
		take(best, count)
	}
	if len(picks) > int(n.nodesMax) || !h.enough() {
		return nil
	}
	return picks
}

// boolFirst puts true before false.
func boolFirst(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}
