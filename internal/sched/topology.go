package sched

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
)

// network is how nodes are joined, worked out for placement: leaves, and what is above them. A leaf is a switch with nodes,
// or a block. Leaves are numbered so that those under one switch, or in one larger block, are neighbours.
type network struct {
	groups [][]group // by level: the leaves are level 0 and not listed; the last is the highest
	sizes  []int32   // of blocks: nodes in one of each level, from a single block on; nil for a tree
	leaf   map[core.NodeName]int32
	leaves int32
	one    bool // a tree with one switch above all it names
}

// group is what is under a switch: leaves from lo up to hi.
type group struct{ lo, hi int32 }

// SetTopology tells the ledger how the nodes are joined. It has been checked: see core.Topology.
func (l *Ledger) SetTopology(t *core.Topology) {
	l.seeking.labelled, l.net = -1, nil
	switch {
	case t == nil:
	case t.Kind == core.TopologyTree:
		l.net = treeOf(t)
	case t.Kind == core.TopologyBlock:
		l.net = blocksOf(t)
	}
}

// expand lists the names of a hostlist in order.
func expand(list string) []string {
	names, err := hostlist.Expand(list, 1<<20)
	if list == "" || err != nil {
		return nil
	}
	return names
}

// treeOf numbers the leaves of a tree in the order of a walk from its tops.
func treeOf(t *core.Topology) *network {
	net := &network{leaf: map[core.NodeName]int32{}}
	index, below := map[string]int{}, make([]bool, len(t.Switches))
	for i := range t.Switches {
		index[t.Switches[i].Name] = i
	}
	kids := make([][]int, len(t.Switches))
	for i := range t.Switches {
		for _, name := range expand(t.Switches[i].Switches) {
			if k, ok := index[name]; ok && !below[k] {
				kids[i] = append(kids[i], k)
				below[k] = true
			}
		}
	}
	var walk func(i int) int // returns the level
	walk = func(i int) int {
		if len(kids[i]) == 0 {
			for _, node := range expand(t.Switches[i].Nodes) {
				net.leaf[core.NodeName(node)] = net.leaves
			}
			net.leaves++
			return 0
		}
		g, level := group{lo: net.leaves}, 0
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
	net.one = tops == 1
	return net
}

// blocksOf numbers blocks in order.
func blocksOf(t *core.Topology) *network {
	net := &network{leaf: map[core.NodeName]int32{}, leaves: int32(len(t.Blocks)), sizes: t.BlockSizes}
	least := int32(math.MaxInt32)
	for i := range t.Blocks {
		list := expand(t.Blocks[i].Nodes)
		for _, node := range list {
			net.leaf[core.NodeName(node)] = int32(i)
		}
		least = min(least, int32(len(list)))
	}
	if len(net.sizes) == 0 {
		net.sizes = []int32{max(1, least)}
	}
	for _, size := range net.sizes[1:] {
		var level []group
		per := max(1, size/net.sizes[0])
		for lo := int32(0); lo < net.leaves; lo += per {
			level = append(level, group{lo, min(lo+per, net.leaves)})
		}
		net.groups = append(net.groups, level)
	}
	net.groups = append(net.groups, []group{{0, net.leaves}}) // larger jobs than the largest block
	return net
}

// label gives each node its place in the line of all nodes: by leaf, then by name. A node that no leaf has is a leaf of
// its own, joined to nothing.
func (l *Ledger) label() {
	if l.seeking.labelled == l.shape {
		return
	}
	l.seeking.labelled, l.seeking.stray = l.shape, false
	line := slices.Clone(l.order)
	for _, a := range line {
		a.place.leaf = math.MaxInt32
		if l.net != nil {
			if leaf, ok := l.net.leaf[a.node.Name]; ok {
				a.place.leaf = leaf
			}
		}
	}
	slices.SortFunc(line, func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.place.leaf, b.place.leaf), hostlist.Compare(string(a.node.Name), string(b.node.Name)))
	})
	for i, a := range line {
		if a.place.line = int32(i); a.place.leaf == math.MaxInt32 && l.net != nil {
			a.place.leaf, l.seeking.stray = l.net.leaves+a.place.line, true
		}
	}
}

// joined tells whether one switch joins all nodes: what fits anywhere then fits.
func (l *Ledger) joined() bool {
	if l.net == nil {
		return true
	}
	l.label()
	return l.net.one && !l.seeking.stray
}

// segment is the candidates under one leaf.
type segment struct {
	leaf     int32
	from, to int // of the candidates
	room     int64
	must     int
	in       bool
}

func (s *segment) count() int { return s.to - s.from }

// connected chooses nodes that are near each other.
func (n *need) connected(net *network, some []candidate, counts []grammar.FeatureCount, buf []pick) []pick {
	byLeaf := func(x, y candidate) int { return cmp.Compare(x.a.place.leaf, y.a.place.leaf) }
	if !slices.IsSortedFunc(some, byLeaf) {
		slices.SortStableFunc(some, byLeaf)
	}
	s := &n.wish.ledger.seeking
	segs := s.segs[:0]
	for i := range some {
		k := &some[i]
		if len(segs) == 0 || segs[len(segs)-1].leaf != k.a.place.leaf {
			segs = append(segs, segment{leaf: k.a.place.leaf, from: i})
		}
		g := &segs[len(segs)-1]
		g.to = i + 1
		g.room += int64(k.room)
		if k.must {
			g.must++
		}
	}
	s.segs = segs
	c := cluster{n: n, some: some, segs: segs, counts: counts, buf: buf}
	var picks []pick
	switch {
	case net.sizes != nil && n.wish.segment > 0:
		picks = c.segmented(int(n.wish.segment))
	case net.sizes != nil:
		picks = c.blocks(net)
	default:
		picks = c.tree(net)
	}
	if picks == nil {
		return nil
	}
	slices.SortFunc(picks, func(x, y pick) int { return cmp.Compare(x.a.place.line, y.a.place.line) })
	return n.finish(picks)
}

// cluster is a choice of leaves under way.
type cluster struct {
	n      *need
	some   []candidate
	segs   []segment
	counts []grammar.FeatureCount
	buf    []pick
}

// span is a row of segments in which the job may be, and how many candidates they have.
type span struct{ from, to, count int }

// tree takes the lowest switch under which the job fits, and of several the one that leaves least over.
func (c *cluster) tree(net *network) []pick {
	if picks := c.best(nil); picks != nil {
		return picks
	}
	for _, level := range net.groups {
		if picks := c.best(level); picks != nil {
			return picks
		}
	}
	return nil
}

// blocks takes the smallest sort of block that is large enough, and of several the one that leaves least over. A job that
// fits in one such block never uses parts of two.
func (c *cluster) blocks(net *network) []pick {
	for i, size := range net.sizes {
		if size >= c.n.nodesMin {
			if i == 0 {
				return c.best(nil)
			}
			return c.best(net.groups[i-1])
		}
	}
	return c.best(net.groups[len(net.groups)-1])
}

// best places the job in one group of a level (nil: one leaf): that with the fewest candidates which holds it.
func (c *cluster) best(level []group) []pick {
	s := &c.n.wish.ledger.seeking
	parts := s.parts[:0]
	if level == nil {
		for i := range c.segs {
			parts = c.weigh(parts, i, i+1)
		}
	}
	for _, g := range level {
		at := func(leaf int32) int {
			i, _ := slices.BinarySearchFunc(c.segs, leaf, func(s segment, leaf int32) int { return cmp.Compare(s.leaf, leaf) })
			return i
		}
		parts = c.weigh(parts, at(g.lo), at(g.hi))
	}
	s.parts = parts
	slices.SortStableFunc(parts, func(a, b span) int { return cmp.Compare(a.count, b.count) })
	for _, p := range parts {
		if picks := c.fewest(p); picks != nil {
			return picks
		}
	}
	return nil
}

// weigh adds a row of segments to the list if it has enough for the job, as far as sums tell.
func (c *cluster) weigh(parts []span, from, to int) []span {
	p, must, room := span{from: from, to: to}, 0, int64(0)
	for i := from; i < to; i++ {
		p.count += c.segs[i].count()
		must += c.segs[i].must
		room += c.segs[i].room
	}
	if p.count >= int(c.n.nodesMin) && room >= int64(c.n.tasks) && must == len(c.n.must) {
		return append(parts, p)
	}
	return parts
}

// fewest places the job on the fewest leaves of a span.
func (c *cluster) fewest(p span) []pick {
	n := c.n
	if n.wish.most && p.count > int(n.nodesMin) { // as many as it wants, if that is possible here at all
		more := *n
		more.nodesMin = min(n.nodesMax, int32(p.count))
		if n.wish.each > 0 {
			more.tasks = more.nodesMin * n.wish.each
		}
		d := *c
		d.n = &more
		if picks := d.pack(c.segs[p.from:p.to]); picks != nil {
			return picks
		}
	}
	return c.pack(c.segs[p.from:p.to])
}

// pack takes whole leaves, the largest first, and ends with the smallest one that is enough.
func (c *cluster) pack(segs []segment) []pick {
	n := c.n
	nodes, room, used := 0, int64(0), 0
	take := func(s *segment) {
		s.in = true
		nodes, room, used = nodes+s.count(), room+s.room, used+1
	}
	order := make([]*segment, 0, len(segs))
	for i := range segs {
		if segs[i].in = false; segs[i].must > 0 {
			take(&segs[i])
		} else {
			order = append(order, &segs[i])
		}
	}
	limit := len(segs)
	if n.wish.switches > 0 {
		limit = min(limit, int(n.wish.switches))
	}
	if used > limit {
		return nil
	}
	if used > 0 && nodes >= int(n.nodesMin) && room >= int64(n.tasks) {
		if picks := c.on(segs, nil); picks != nil {
			return picks
		}
	}
	slices.SortStableFunc(order, func(a, b *segment) int { return cmp.Or(cmp.Compare(a.count(), b.count()), cmp.Compare(a.room, b.room)) })
	for ; used < limit && len(order) > 0; order = order[:len(order)-1] {
		for _, s := range order {
			if nodes+s.count() >= int(n.nodesMin) && room+s.room >= int64(n.tasks) {
				if picks := c.on(segs, s); picks != nil {
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
		if segs[i].in = segs[i].must > 0; segs[i].in {
			limit--
		}
	}
	tries := packTries
	return c.combine(segs, 0, limit, &tries)
}

// packTries bounds the search for leaves whose rooms and counts happen to fit together.
const packTries = 2000

// combine tries all choices of leaves, for jobs that want few of them and do not fit the largest.
func (c *cluster) combine(segs []segment, from, left int, tries *int) []pick {
	if *tries--; *tries < 0 {
		return nil
	}
	if picks := c.on(segs, nil); picks != nil || left == 0 {
		return picks
	}
	for i := from; i < len(segs); i++ {
		if segs[i].in {
			continue
		}
		segs[i].in = true
		if picks := c.combine(segs, i+1, left-1, tries); picks != nil {
			return picks
		}
		segs[i].in = false
	}
	return nil
}

// on places the job on the leaves taken so far and one more.
func (c *cluster) on(segs []segment, last *segment) []pick {
	s := &c.n.wish.ledger.seeking
	list := s.tried[:0]
	for i := range segs {
		if segs[i].in {
			list = append(list, c.some[segs[i].from:segs[i].to]...)
		}
	}
	if last != nil {
		list = append(list, c.some[last.from:last.to]...)
	}
	s.tried = list
	if len(list) < int(c.n.nodesMin) {
		return nil
	}
	return c.n.cover(list, c.counts, c.buf)
}
