package fit

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/sched/ledger"
)

// leafNodes is the candidates under one leaf.
type leafNodes struct {
	leaf     int32
	from, to int // of the candidates
	tasks    int64
	required int
	chosen   bool
}

func (s *leafNodes) count() int { return s.to - s.from }

// chooseConnected chooses nodes that are near each other.
func (s setSearch) chooseConnected(net *ledger.Topology, some []Candidate) []Choice {
	byLeaf := func(x, y Candidate) int { return cmp.Compare(x.Node.Position.Leaf, y.Node.Position.Leaf) }
	if !slices.IsSortedFunc(some, byLeaf) {
		slices.SortStableFunc(some, byLeaf)
	}
	scratch := s.req.Set.scratch
	segs := scratch.leaves[:0]
	for i := range some {
		k := &some[i]
		if len(segs) == 0 || segs[len(segs)-1].leaf != k.Node.Position.Leaf {
			segs = append(segs, leafNodes{leaf: k.Node.Position.Leaf, from: i})
		}
		g := &segs[len(segs)-1]
		g.to = i + 1
		g.tasks += int64(k.Tasks)
		if k.Required {
			g.required++
		}
	}
	scratch.leaves = segs
	c := leafChoice{setSearch: s, candidates: some, leaves: segs}
	var picks []Choice
	switch {
	case net.Sizes != nil && s.req.Set.segment > 0:
		picks = c.chooseSegments(int(s.req.Set.segment))
	case net.Sizes != nil:
		picks = c.chooseInBlocks(net)
	default:
		picks = c.chooseInTree(net)
	}
	if picks == nil {
		return nil
	}
	slices.SortFunc(picks, func(x, y Choice) int { return cmp.Compare(x.Node.Position.Line, y.Node.Position.Line) })
	return s.assignTasks(picks)
}

// leafChoice is a choice of leaves under way.
type leafChoice struct {
	setSearch
	candidates []Candidate
	leaves     []leafNodes
}

// leafSpan is a range of leaves in which the job may be, and how many candidates they have.
type leafSpan struct{ from, to, count int }

// chooseInTree takes the lowest switch under which the job fits, and of several the one that leaves least over.
func (c *leafChoice) chooseInTree(net *ledger.Topology) []Choice {
	if picks := c.chooseInLevel(nil); picks != nil {
		return picks
	}
	for _, level := range net.Groups {
		if picks := c.chooseInLevel(level); picks != nil {
			return picks
		}
	}
	return nil
}

// chooseInBlocks takes the smallest kind of block that is large enough, and of several the one that leaves least over.
// A job that fits in one such block never uses parts of two.
func (c *leafChoice) chooseInBlocks(net *ledger.Topology) []Choice {
	for i, size := range net.Sizes {
		if size >= c.req.NodesMin {
			if i == 0 {
				return c.chooseInLevel(nil)
			}
			return c.chooseInLevel(net.Groups[i-1])
		}
	}
	return c.chooseInLevel(net.Groups[len(net.Groups)-1])
}

// chooseInLevel places the job in one group of a level (nil: one leaf): the one with the fewest candidates that holds
// it.
func (c *leafChoice) chooseInLevel(level []ledger.LeafGroup) []Choice {
	s := c.req.Set.scratch
	parts := s.spans[:0]
	if level == nil {
		for i := range c.leaves {
			parts = c.addSpan(parts, i, i+1)
		}
	}
	for _, g := range level {
		at := func(leaf int32) int {
			i, _ := slices.BinarySearchFunc(c.leaves, leaf, func(s leafNodes, leaf int32) int {
				return cmp.Compare(s.leaf, leaf)
			})
			return i
		}
		parts = c.addSpan(parts, at(g.Lo), at(g.Hi))
	}
	s.spans = parts
	slices.SortStableFunc(parts, func(a, b leafSpan) int { return cmp.Compare(a.count, b.count) })
	for _, p := range parts {
		if picks := c.fewestLeaves(p); picks != nil {
			return picks
		}
	}
	return nil
}

// addSpan adds a range of leaves to the list if it has enough for the job, by sums.
func (c *leafChoice) addSpan(parts []leafSpan, from, to int) []leafSpan {
	p, must, room := leafSpan{from: from, to: to}, 0, int64(0)
	for i := from; i < to; i++ {
		p.count += c.leaves[i].count()
		must += c.leaves[i].required
		room += c.leaves[i].tasks
	}
	if p.count >= int(c.req.NodesMin) && room >= int64(c.req.Tasks) && must == len(c.req.Required) {
		return append(parts, p)
	}
	return parts
}

// fewestLeaves places the job on the fewest leaves of a span.
func (c *leafChoice) fewestLeaves(p leafSpan) []Choice {
	req := c.req
	if req.Set.WantsMax && p.count > int(req.NodesMin) { // as many as it wants, if that is possible here at all
		more := *req
		more.NodesMin = min(req.NodesMax, int32(p.count))
		if req.Set.TasksPerNode > 0 {
			more.Tasks = more.NodesMin * req.Set.TasksPerNode
		}
		d := *c
		d.req = &more
		if picks := d.packLeaves(c.leaves[p.from:p.to]); picks != nil {
			return picks
		}
	}
	return c.packLeaves(c.leaves[p.from:p.to])
}

// packLeaves takes whole leaves, the largest first, and ends with the smallest one that is enough.
func (c *leafChoice) packLeaves(segs []leafNodes) []Choice {
	req := c.req
	nodes, room, used := 0, int64(0), 0
	take := func(s *leafNodes) {
		s.chosen = true
		nodes, room, used = nodes+s.count(), room+s.tasks, used+1
	}
	order := make([]*leafNodes, 0, len(segs))
	for i := range segs {
		if segs[i].chosen = false; segs[i].required > 0 {
			take(&segs[i])
		} else {
			order = append(order, &segs[i])
		}
	}
	limit := len(segs)
	if req.Set.Switches > 0 {
		limit = min(limit, int(req.Set.Switches))
	}
	if used > limit {
		return nil
	}
	if used > 0 && nodes >= int(req.NodesMin) && room >= int64(req.Tasks) {
		if picks := c.chooseOnLeaves(segs, nil); picks != nil {
			return picks
		}
	}
	slices.SortStableFunc(order, func(a, b *leafNodes) int {
		return cmp.Or(cmp.Compare(a.count(), b.count()), cmp.Compare(a.tasks, b.tasks))
	})
	for ; used < limit && len(order) > 0; order = order[:len(order)-1] {
		for _, s := range order {
			if nodes+s.count() >= int(req.NodesMin) && room+s.tasks >= int64(req.Tasks) {
				if picks := c.chooseOnLeaves(segs, s); picks != nil {
					return picks
				}
			}
		}
		take(order[len(order)-1])
	}
	if limit == 1 || limit == len(segs) || nodes < int(req.NodesMin) { // nothing else could be, also with other leaves
		return nil
	}
	for i := range segs {
		if segs[i].chosen = segs[i].required > 0; segs[i].chosen {
			limit--
		}
	}
	tries := maxPackTries
	return c.combineLeaves(segs, 0, limit, &tries)
}

// maxPackTries bounds the search for leaves whose rooms and counts happen to fit together.
const maxPackTries = 2000

// combineLeaves tries all choices of leaves, for jobs that want few of them and do not fit the largest.
func (c *leafChoice) combineLeaves(segs []leafNodes, from, left int, tries *int) []Choice {
	if *tries--; *tries < 0 {
		return nil
	}
	if picks := c.chooseOnLeaves(segs, nil); picks != nil || left == 0 {
		return picks
	}
	for i := from; i < len(segs); i++ {
		if segs[i].chosen {
			continue
		}
		segs[i].chosen = true
		if picks := c.combineLeaves(segs, i+1, left-1, tries); picks != nil {
			return picks
		}
		segs[i].chosen = false
	}
	return nil
}

// chooseOnLeaves places the job on the leaves taken so far and one more.
func (c *leafChoice) chooseOnLeaves(segs []leafNodes, last *leafNodes) []Choice {
	s := c.req.Set.scratch
	list := s.tried[:0]
	for i := range segs {
		if segs[i].chosen {
			list = append(list, c.candidates[segs[i].from:segs[i].to]...)
		}
	}
	if last != nil {
		list = append(list, c.candidates[last.from:last.to]...)
	}
	s.tried = list
	if len(list) < int(c.req.NodesMin) {
		return nil
	}
	return c.chooseCover(list)
}
