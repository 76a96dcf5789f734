package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Nodes that are alike are of a kind: what one of them could hold if nothing ran, all could. So whether the nodes that are
// up could hold a class is told by how many of each kind are up, without looking at them.

// census counts a node among those of its kind that are up, or with -1 no more.
func (p *Planner) census(a *account, k int32) {
	if !a.node.Usable() {
		if a.node.Flags.Any(core.NodePoweredDown | core.NodePoweringUp) {
			p.asleep += int(k)
		}
		return
	}
	if k > 0 {
		a.kind = p.kindOf(a)
	}
	for _, part := range p.parts {
		if part.nodes == nil || part.nodes[a.node.Name] {
			for int(a.kind) >= len(part.ups) {
				part.ups = append(part.ups, 0)
			}
			part.ups[a.kind] += k
		}
	}
}

// kindOf finds the kind of a node, or makes it the first of a new one.
func (p *Planner) kindOf(a *account) int32 {
	for i, k := range p.kinds {
		if alike(k, a) {
			return int32(i)
		}
	}
	first := *a // of which nothing is used but what it has
	p.kinds = append(p.kinds, &first)
	return int32(len(p.kinds) - 1)
}

func alike(a, b *account) bool {
	return !resized(a.node, b.node) && a.node.Hardware.TmpDisk == b.node.Hardware.TmpDisk && slices.Equal(a.node.Features, b.node.Features) && a.node.Host.KeptTo() == b.node.Host.KeptTo() &&
		a.full.equal(&b.full) && slices.EqualFunc(a.gres, b.gres, func(x, y gresAccount) bool { return x.name == y.name && x.typ == y.typ })
}

// countable tells whether kinds are all there is to a class.
func (s *slot) countable() bool {
	n := &s.need
	return len(n.must)+len(n.not) == 0 && n.wish == nil && (n.more == nil || n.more.layout == nil && !n.more.kinds) && s.own == nil && len(s.ways) == 0 && !s.named
}

// counts tells whether the nodes of a partition that are up could hold a job of a class, which is countable, if nothing
// ran; and how many of them may go down at least before that is another matter.
func (p *Planner) counts(s *slot) (could bool, spare int32) {
	n := &s.need
	left, tasks := n.nodesMin, int64(n.tasks)
	most := int64(n.nodesMax)
	each := (n.tasks + n.nodesMax - 1) / n.nodesMax // if so many nodes have room for that many tasks, it is enough
	spare = -(n.tasks + each - 1) / each
	at := look{empty: true}
	rooms := p.some32[:0] // of kinds, with how many there are
	for i, up := range s.part.ups {
		if up == 0 {
			continue
		}
		k := p.kinds[i]
		if room := at.room(n, k); room > 0 && n.suits(k, &at) {
			left -= up
			rooms = append(rooms, [2]int32{room, up})
			if room >= each {
				spare += up
			}
		}
	}
	p.some32 = rooms
	if left > 0 {
		return false, 0
	}
	for len(rooms) > 0 && most > 0 && tasks > 0 { // the roomiest first
		best := 0
		for i := range rooms {
			if rooms[i][0] > rooms[best][0] {
				best = i
			}
		}
		k := min(most, int64(rooms[best][1]))
		most -= k
		tasks -= k * int64(rooms[best][0])
		rooms[best] = rooms[len(rooms)-1]
		rooms = rooms[:len(rooms)-1]
	}
	return tasks <= 0, max(0, min(spare, -left))
}

// altered is what a change of a node means for classes.
type altered uint8

const (
	notAltered altered = iota
	upOrDown
	another // it is new, or not what it was
)

func alteredOf(old, is *core.Node) altered {
	switch {
	case resized(old, is), old.Hardware.TmpDisk != is.Hardware.TmpDisk, !slices.Equal(old.Features, is.Features), old.Roles != is.Roles, old.Host.KeptTo() != is.Host.KeptTo(),
		old.Weight != is.Weight, old.ID != is.ID:
		return another
	case old.Usable() != is.Usable():
		return upOrDown
	}
	return notAltered
}
