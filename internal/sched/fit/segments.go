package fit

import (
	"cmp"
	"slices"
)

// chooseSegments takes whole segments of nodes, each within a block: from the fewest blocks, or, if those have too
// little room for the tasks, the roomiest segments of all.
func (c *leafChoice) chooseSegments(size int) []Choice {
	segs := c.leaves
	for i := range segs {
		slices.SortStableFunc(c.candidates[segs[i].from:segs[i].to], func(x, y Candidate) int {
			return cmp.Or(compareBool(x.Required, y.Required), cmp.Compare(y.Tasks, x.Tasks))
		})
		segs[i].to = segs[i].from + segs[i].count()/size*size
	}
	if picks := c.takeSegments(size, func(s *leafNodes, left int) (score, take int) {
		if n := s.count(); n >= left { // the smallest block that has all that are left, else the largest
			return 1<<30 - n, left
		}
		return s.count(), s.count()
	}); picks != nil {
		return picks
	}
	return c.takeSegments(size, func(s *leafNodes, _ int) (score, take int) {
		for i := s.from; i < s.from+size; i++ {
			score += int(c.candidates[i].Tasks)
		}
		return score, size
	})
}

// takeSegments takes nodes of the block with the best score, as many as that says, until there are enough.
func (c *leafChoice) takeSegments(size int, rate func(s *leafNodes, left int) (score, take int)) []Choice {
	req := c.req
	want := (int(req.NodesMin) + size - 1) / size * size
	left := slices.Clone(c.leaves) // what is left of each block
	picks := c.buf[:0]
	h := c.newSelection()
	take := func(s *leafNodes, count int) {
		for _, k := range c.candidates[s.from : s.from+count] {
			h.add(&k, 1)
			picks = append(picks, Choice{Node: k.Node, Capacity: k.Tasks})
		}
		s.from += count
	}
	for i := range left { // those with nodes that must be there
		if s := &left[i]; s.required > 0 {
			take(s, min(s.count(), (s.required+size-1)/size*size))
		}
	}
	for len(picks) < want {
		var best *leafNodes
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
	if len(picks) > int(req.NodesMax) || !h.isEnough() {
		return nil
	}
	return picks
}

// compareBool puts true before false.
func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}
