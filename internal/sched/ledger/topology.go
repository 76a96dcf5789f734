package ledger

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// Topology is how nodes are joined, worked out for placement: leaves, and what is above them. A leaf is a switch with
// nodes, or a block. Leaves are numbered so that those under one switch, or in one larger block, are neighbors.
type Topology struct {
	Groups     [][]LeafGroup // by level: the leaves are level 0 and not listed; the last is the highest
	Sizes      []int32       // of blocks: nodes in one of each level, from a single block on; nil for a tree
	leaf       map[core.NodeName]int32
	leaves     int32
	singleRoot bool // a tree with one switch above all it names
}

// LeafGroup is what is under a switch: leaves from lo up to hi.
type LeafGroup struct{ Lo, Hi int32 }

// SetTopology sets how the nodes are connected. It has been checked: see core.Topology.
func (l *Ledger) SetTopology(t *core.Topology) {
	l.positionsAt, l.Net = -1, nil
	switch {
	case t == nil:
	case t.Kind == core.TopologyTree:
		l.Net = treeTopology(t)
	case t.Kind == core.TopologyBlock:
		l.Net = blockTopology(t)
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
func treeTopology(t *core.Topology) *Topology {
	net := &Topology{leaf: map[core.NodeName]int32{}}
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
		g, level := LeafGroup{Lo: net.leaves}, 0
		for _, k := range kids[i] {
			level = max(level, walk(k))
		}
		g.Hi = net.leaves
		for len(net.Groups) <= level {
			net.Groups = append(net.Groups, nil)
		}
		net.Groups[level] = append(net.Groups[level], g)
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
func blockTopology(t *core.Topology) *Topology {
	net := &Topology{leaf: map[core.NodeName]int32{}, leaves: int32(len(t.Blocks)), Sizes: t.BlockSizes}
	least := int32(math.MaxInt32)
	for i := range t.Blocks {
		list := expandNames(t.Blocks[i].Nodes)
		for _, node := range list {
			net.leaf[core.NodeName(node)] = int32(i)
		}
		least = min(least, int32(len(list)))
	}
	if len(net.Sizes) == 0 {
		net.Sizes = []int32{max(1, least)}
	}
	for _, size := range net.Sizes[1:] {
		var level []LeafGroup
		per := max(1, size/net.Sizes[0])
		for lo := int32(0); lo < net.leaves; lo += per {
			level = append(level, LeafGroup{lo, min(lo+per, net.leaves)})
		}
		net.Groups = append(net.Groups, level)
	}
	net.Groups = append(net.Groups, []LeafGroup{{0, net.leaves}}) // larger jobs than the largest block
	return net
}

// AssignPositions gives each node its place in the line of all nodes: by leaf, then by name. A node that no leaf has is
// a leaf of its own, joined to nothing.
func (l *Ledger) AssignPositions() {
	if l.positionsAt == l.Version {
		return
	}
	l.positionsAt, l.unconnected = l.Version, false
	line := slices.Clone(l.Order)
	for _, node := range line {
		node.Position.Leaf = math.MaxInt32
		if l.Net != nil {
			if leaf, ok := l.Net.leaf[node.Record.Name]; ok {
				node.Position.Leaf = leaf
			}
		}
	}
	slices.SortFunc(line, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Position.Leaf, b.Position.Leaf), hostlist.Compare(string(a.Record.Name),
			string(b.Record.Name)))
	})
	for i, node := range line {
		if node.Position.Line = int32(i); node.Position.Leaf == math.MaxInt32 && l.Net != nil {
			node.Position.Leaf, l.unconnected = l.Net.leaves+node.Position.Line, true
		}
	}
}

// OneSwitchJoinsAll reports whether one switch connects all nodes, so that placement need not look at switches.
func (l *Ledger) OneSwitchJoinsAll() bool {
	if l.Net == nil {
		return true
	}
	l.AssignPositions()
	return l.Net.singleRoot && !l.unconnected
}

// Position is where a node is in the line of all nodes, and under which leaf of the network.
type Position struct{ Line, Leaf int32 }
