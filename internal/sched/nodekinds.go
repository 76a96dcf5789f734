package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Nodes that are alike are of a kind: what one of them could hold if nothing ran, all could. So whether the nodes that
// are up could hold a class is told by how many of each kind are up, without looking at them.

// countKind counts a node among those of its kind that are up, or with -1 no more.
func (p *Planner) countKind(a *ledger.Node, k int32) {
	if !a.Record.Usable() {
		if a.Record.Flags.Any(core.NodePoweredDown | core.NodePoweringUp) {
			p.poweredDown += int(k)
		}
		return
	}
	if k > 0 {
		a.Kind = p.kindOf(a)
	}
	for _, part := range p.partitions {
		if part.nodes == nil || part.nodes[a.Record.Name] {
			for int(a.Kind) >= len(part.upByKind) {
				part.upByKind = append(part.upByKind, 0)
			}
			part.upByKind[a.Kind] += k
		}
	}
}

// kindOf finds the kind of a node, or makes it the first of a new one.
func (p *Planner) kindOf(a *ledger.Node) int32 {
	for i, k := range p.nodeKinds {
		if sameKind(k, a) {
			return int32(i)
		}
	}
	first := *a // of which nothing is used but what it has
	p.nodeKinds = append(p.nodeKinds, &first)
	return int32(len(p.nodeKinds) - 1)
}

func sameKind(a, b *ledger.Node) bool {
	return !ledger.HardwareChanged(a.Record, b.Record) && a.Record.Hardware.TmpDisk == b.Record.Hardware.TmpDisk &&
		slices.Equal(a.Record.Features, b.Record.Features) && a.Record.Host.KeptTo() == b.Record.Host.KeptTo() &&
		a.Capacity.EqualTo(&b.Capacity) && slices.EqualFunc(a.Gres, b.Gres,
		func(x, y ledger.Gres) bool { return x.Name == y.Name && x.Typ == y.Typ })
}

// isCountable reports whether kinds are all there is to a class.
func (s *partitionClass) isCountable() bool {
	n := &s.req
	return len(n.Required)+len(n.Excluded) == 0 && n.Set == nil && (n.Detail == nil || n.Detail.Layout == nil &&
		!n.Detail.MixedTypes) && s.advance == nil && len(s.options) == 0 && !s.namesAdvance
}

// kindsCouldHold reports whether the nodes of a partition that are up could hold a job of a countable class, if
// nothing ran; and how many of them may go down at least before that is another matter.
func (p *Planner) kindsCouldHold(s *partitionClass) (could bool, spare int32) {
	n := &s.req
	left, tasks := n.NodesMin, int64(n.Tasks)
	most := int64(n.NodesMax)
	each := (n.Tasks + n.NodesMax - 1) / n.NodesMax // if so many nodes have room for that many tasks, it is enough
	spare = -(n.Tasks + each - 1) / each
	at := ledger.View{IfIdle: true}
	rooms := p.kindRooms[:0] // of kinds, with how many there are
	for i, up := range s.part.upByKind {
		if up == 0 {
			continue
		}
		k := p.nodeKinds[i]
		if room := n.TasksAt(&at, k); room > 0 && n.Accepts(k, &at) {
			left -= up
			rooms = append(rooms, [2]int32{room, up})
			if room >= each {
				spare += up
			}
		}
	}
	p.kindRooms = rooms
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

// nodeChange is what a change of a node means for classes.
type nodeChange uint8

const (
	unchanged nodeChange = iota
	upOrDown
	hardwareOrNew // it is new, or not what it was
)

func nodeChangeOf(old, is *core.Node) nodeChange {
	switch {
	case ledger.HardwareChanged(old, is), old.Hardware.TmpDisk != is.Hardware.TmpDisk, !slices.Equal(old.Features,
		is.Features), old.Roles != is.Roles, old.Host.KeptTo() != is.Host.KeptTo(),
		old.Weight != is.Weight, old.ID != is.ID:
		return hardwareOrNew
	case old.Usable() != is.Usable():
		return upOrDown
	}
	return unchanged
}
