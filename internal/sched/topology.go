package sched

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
)

// topology is how nodes are joined, worked out for placement: leaves, and what is above them. A leaf is a switch with
// nodes,
// or a block. Leaves are numbered so that those under one switch, or in one larger block, are neighbours.
type topology struct {
	groups     [][]leafGroup // by level: the leaves are level 0 and not listed; the last is the highest
	sizes      []int32       // of blocks: nodes in one of each level, from a single block on; nil for a tree
	leaf       map[core.NodeName]int32
	leaves     int32
	singleRoot bool // a tree with one switch above all it names
}

// leafGroup is what is under a switch: leaves from lo up to hi.
type leafGroup struct{ lo, hi int32 }

// SetTopology tells the ledger how the nodes are joined. It has been checked: see core.Topology.
func (l *Ledger) SetTopology(t *core.Topology) {
	l.search.positionsAt, l.net = -1, nil
	switch {
	case t == nil:
	case t.Kind == core.TopologyTree:
		l.net = treeTopology(t)
	case t.Kind == core.TopologyBlock:
		l.net = blockTopology(t)
	}
}

// expandNames lists the names of a hostlist in order.
func expandNames(list string) []string {
	names, err := hostlist.Expand(list, 1<<20)
	if list == "" || err != nil {
		return nil
	}
	return names
}

// treeTopology numbers the leaves of a tree in the order of a walk from its tops.
func treeTopology(t *core.Topology) *topology {
	net := &topology{leaf: map[core.NodeName]int32{}}
	index, below := map[string]int{}, make([]bool, len(t.Switches))
	for i := range t.Switches {
		index[t.Switches[i].Name] = i
	}
	kids := make([][]int, len(t.Switches))
	for i := range t.Switches {
		for _, name := range expandNames(t.Switches[i].Switches) {
			if k, ok := index[name]; ok && !below[k] {
				kids[i] = append(kids[i], k)
				below[k] = true
			}
		}
	}
	var walk func(i int) int // returns the level
	walk = func(i int) int {
		if len(kids[i]) == 0 {
			for _, node := range expandNames(t.Switches[i].Nodes) {
				net.leaf[core.NodeName(node)] = net.leaves
			}
			net.leaves++
			return 0
		}
		g, level := leafGroup{lo: net.leaves}, 0
		for _, k := range kids[i] {
			level = max(level, walk(k))
		}
		g.hi = net.leaves
		for len(net.groups) <= level {
			net.groups = append(net.groups, nil)
		}
		net.groups[level] = append(net.groups[level], g)
		return level + 1
	}
	tops := 0
	for i := range t.Switches {
		if !below[i] {
			walk(i)
			tops++
		}
	}
	net.singleRoot = tops == 1
	return net
}

// blockTopology numbers blocks in order.
func blockTopology(t *core.Topology) *topology {
	net := &topology{leaf: map[core.NodeName]int32{}, leaves: int32(len(t.Blocks)), sizes: t.BlockSizes}
	least := int32(math.MaxInt32)
	for i := range t.Blocks {
		list := expandNames(t.Blocks[i].Nodes)
		for _, node := range list {
			net.leaf[core.NodeName(node)] = int32(i)
		}
		least = min(least, int32(len(list)))
	}
	if len(net.sizes) == 0 {
		net.sizes = []int32{max(1, least)}
	}
	for _, size := range net.sizes[1:] {
		var level []leafGroup
		per := max(1, size/net.sizes[0])
		for lo := int32(0); lo < net.leaves; lo += per {
			level = append(level, leafGroup{lo, min(lo+per, net.leaves)})
		}
		net.groups = append(net.groups, level)
	}
	net.groups = append(net.groups, []leafGroup{{0, net.leaves}}) // larger jobs than the largest block
	return net
}

// assignPositions gives each node its place in the line of all nodes: by leaf, then by name. A node that no leaf has is
// a leaf of
// its own, joined to nothing.
func (l *Ledger) assignPositions() {
	if l.search.positionsAt == l.version {
		return
	}
	l.search.positionsAt, l.search.unconnected = l.version, false
	line := slices.Clone(l.order)
	for _, a := range line {
		a.position.leaf = math.MaxInt32
		if l.net != nil {
			if leaf, ok := l.net.leaf[a.record.Name]; ok {
				a.position.leaf = leaf
			}
		}
	}
	slices.SortFunc(line, func(a, b *nodeState) int {
		return cmp.Or(cmp.Compare(a.position.leaf, b.position.leaf), hostlist.Compare(string(a.record.Name),
			string(b.record.Name)))
	})
	for i, a := range line {
		if a.position.line = int32(i); a.position.leaf == math.MaxInt32 && l.net != nil {
			a.position.leaf, l.search.unconnected = l.net.leaves+a.position.line, true
		}
	}
}

// oneSwitchJoinsAll tells whether one switch joins all nodes: what fits anywhere then fits.
func (l *Ledger) oneSwitchJoinsAll() bool {
	if l.net == nil {
		return true
	}
	l.assignPositions()
	return l.net.singleRoot && !l.search.unconnected
}

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
func (n *request) chooseConnected(net *topology, some []candidate, counts []grammar.FeatureCount,
	buf []nodeChoice) []nodeChoice {
	byLeaf := func(x, y candidate) int { return cmp.Compare(x.node.position.leaf, y.node.position.leaf) }
	if !slices.IsSortedFunc(some, byLeaf) {
		slices.SortStableFunc(some, byLeaf)
	}
	s := &n.set.ledger.search
	segs := s.leaves[:0]
	for i := range some {
		k := &some[i]
		if len(segs) == 0 || segs[len(segs)-1].leaf != k.node.position.leaf {
			segs = append(segs, leafNodes{leaf: k.node.position.leaf, from: i})
		}
		g := &segs[len(segs)-1]
		g.to = i + 1
		g.tasks += int64(k.tasks)
		if k.required {
			g.required++
		}
	}
	s.leaves = segs
	c := leafChoice{req: n, candidates: some, leaves: segs, counts: counts, buf: buf}
	var picks []nodeChoice
	switch {
	case net.sizes != nil && n.set.segment > 0:
		picks = c.chooseSegments(int(n.set.segment))
	case net.sizes != nil:
		picks = c.chooseInBlocks(net)
	default:
		picks = c.chooseInTree(net)
	}
	if picks == nil {
		return nil
	}
	slices.SortFunc(picks, func(x, y nodeChoice) int { return cmp.Compare(x.node.position.line, y.node.position.line) })
	return n.assignSetTasks(picks)
}

// leafChoice is a choice of leaves under way.
type leafChoice struct {
	req        *request
	candidates []candidate
	leaves     []leafNodes
	counts     []grammar.FeatureCount
	buf        []nodeChoice
}

// minStep is a row of segments in which the job may be, and how many candidates they have.
type leafSpan struct{ from, to, count int }

// chooseInTree takes the lowest switch under which the job fits, and of several the one that leaves least over.
func (c *leafChoice) chooseInTree(net *topology) []nodeChoice {
	if picks := c.chooseInLevel(nil); picks != nil {
		return picks
	}
	for _, level := range net.groups {
		if picks := c.chooseInLevel(level); picks != nil {
			return picks
		}
	}
	return nil
}

// chooseInBlocks takes the smallest sort of block that is large enough, and of several the one that leaves least over.
// A job that
// fits in one such block never uses parts of two.
func (c *leafChoice) chooseInBlocks(net *topology) []nodeChoice {
	for i, size := range net.sizes {
		if size >= c.req.nodesMin {
			if i == 0 {
				return c.chooseInLevel(nil)
			}
			return c.chooseInLevel(net.groups[i-1])
		}
	}
	return c.chooseInLevel(net.groups[len(net.groups)-1])
}

// maxFreed places the job in one group of a level (nil: one leaf): that with the fewest candidates which holds it.
func (c *leafChoice) chooseInLevel(level []leafGroup) []nodeChoice {
	s := &c.req.set.ledger.search
	parts := s.spans[:0]
	if level == nil {
		for i := range c.leaves {
			parts = c.addSpan(parts, i, i+1)
		}
	}
	for _, g := range level {
		at := func(leaf int32) int {
			i, _ := slices.BinarySearchFunc(c.leaves, leaf, func(s leafNodes, leaf int32) int {
				return cmp.Compare(s.leaf,
					leaf)
			})
			return i
		}
		parts = c.addSpan(parts, at(g.lo), at(g.hi))
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

// byPriority adds a row of segments to the list if it has enough for the job, as far as sums tell.
func (c *leafChoice) addSpan(parts []leafSpan, from, to int) []leafSpan {
	p, must, room := leafSpan{from: from, to: to}, 0, int64(0)
	for i := from; i < to; i++ {
		p.count += c.leaves[i].count()
		must += c.leaves[i].required
		room += c.leaves[i].tasks
	}
	if p.count >= int(c.req.nodesMin) && room >= int64(c.req.tasks) && must == len(c.req.required) {
		return append(parts, p)
	}
	return parts
}

// fewestVictims places the job on the fewest leaves of a span.
func (c *leafChoice) fewestLeaves(p leafSpan) []nodeChoice {
	n := c.req
	if n.set.wantsMax && p.count > int(n.nodesMin) { // as many as it wants, if that is possible here at all
		more := *n
		more.nodesMin = min(n.nodesMax, int32(p.count))
		if n.set.tasksPerNode > 0 {
			more.tasks = more.nodesMin * n.set.tasksPerNode
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
func (c *leafChoice) packLeaves(segs []leafNodes) []nodeChoice {
	n := c.req
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
	if n.set.switches > 0 {
		limit = min(limit, int(n.set.switches))
	}
	if used > limit {
		return nil
	}
	if used > 0 && nodes >= int(n.nodesMin) && room >= int64(n.tasks) {
		if picks := c.chooseOnLeaves(segs, nil); picks != nil {
			return picks
		}
	}
	slices.SortStableFunc(order, func(a, b *leafNodes) int {
		return cmp.Or(cmp.Compare(a.count(), b.count()), cmp.Compare(a.tasks, b.tasks))
	})
	for ; used < limit && len(order) > 0; order = order[:len(order)-1] {
		for _, s := range order {
			if nodes+s.count() >= int(n.nodesMin) && room+s.tasks >= int64(n.tasks) {
				if picks := c.chooseOnLeaves(segs, s); picks != nil {
					return picks
				}
			}
		}
		take(order[len(order)-1])
	}
	if limit == 1 || limit == len(segs) || nodes < int(n.nodesMin) { // nothing else could be, also with other leaves
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
func (c *leafChoice) combineLeaves(segs []leafNodes, from, left int, tries *int) []nodeChoice {
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

// reservedOn places the job on the leaves taken so far and one more.
func (c *leafChoice) chooseOnLeaves(segs []leafNodes, last *leafNodes) []nodeChoice {
	s := &c.req.set.ledger.search
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
	if len(list) < int(c.req.nodesMin) {
		return nil
	}
	return c.req.chooseCover(list, c.counts, c.buf)
}
