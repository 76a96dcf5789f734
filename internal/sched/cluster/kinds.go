package cluster

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Nodes that are alike are of one kind: idle, they could hold the same jobs. So the number of nodes of each kind that
// are up says whether a class could run, without a look at the nodes.

// countKind counts a node among those of its kind that are up, or with -1 no more.
func (n *Nodes) countKind(node *ledger.Node, k int32) {
	if !node.Record.Usable() {
		if node.Record.Flags.Any(core.NodePoweredDown | core.NodePoweringUp) {
			n.PoweredDown += int(k)
		}
		return
	}
	if k > 0 {
		node.Kind = n.kindOf(node)
	}
	for _, s := range n.sets {
		if s.HasName(node.Record.Name) {
			for int(node.Kind) >= len(s.upByKind) {
				s.upByKind = append(s.upByKind, 0)
			}
			s.upByKind[node.Kind] += k
		}
	}
}

// kindOf returns the kind of a node. It may be the first of a new kind.
func (n *Nodes) kindOf(node *ledger.Node) int32 {
	for i, k := range n.kinds {
		if sameKind(k, node) {
			return int32(i)
		}
	}
	first := *node // only its capacity and record are used
	n.kinds = append(n.kinds, &first)
	return int32(len(n.kinds) - 1)
}

func sameKind(a, b *ledger.Node) bool {
	return !ledger.HardwareChanged(a.Record, b.Record) && a.Record.Hardware.TmpDisk == b.Record.Hardware.TmpDisk &&
		slices.Equal(a.Record.Features, b.Record.Features) && a.Record.Host.KeptTo() == b.Record.Host.KeptTo() &&
		a.Record.Project == b.Record.Project && a.Capacity.EqualTo(&b.Capacity) && slices.EqualFunc(a.Gres, b.Gres,
		func(x, y ledger.Gres) bool { return x.Name == y.Name && x.Typ == y.Typ })
}

// IsCountable reports whether the number of nodes of each kind decides where a request fits.
func IsCountable(req *fit.Request) bool {
	return len(req.Required)+len(req.Excluded) == 0 && req.Set == nil &&
		(req.Detail == nil || req.Detail.Layout == nil && !req.Detail.MixedTypes)
}

// kindRoom is how many tasks each of so many nodes of a kind could take.
type kindRoom struct{ room, nodes int32 }

// KindsCouldHold reports whether the nodes of a set that are up could hold a countable request if nothing ran, and how
// many of them may go down at least before they could not.
func (n *Nodes) KindsCouldHold(s *Set, req *fit.Request) (could bool, spare int32) {
	left, tasks := req.NodesMin, int64(req.Tasks)
	most := int64(req.NodesMax)
	each := (req.Tasks + req.NodesMax - 1) / req.NodesMax // nodes with room for so many tasks are enough
	spare = -(req.Tasks + each - 1) / each
	at := ledger.View{IfIdle: true}
	rooms := n.kindRooms[:0]
	for i, up := range s.upByKind {
		if up == 0 {
			continue
		}
		k := n.kinds[i]
		if room := req.TasksAt(&at, k); room > 0 && req.Accepts(k, &at) {
			left -= up
			rooms = append(rooms, kindRoom{room, up})
			if room >= each {
				spare += up
			}
		}
	}
	n.kindRooms = rooms
	if left > 0 {
		return false, 0
	}
	for len(rooms) > 0 && most > 0 && tasks > 0 { // nodes with the most room first
		best := 0
		for i := range rooms {
			if rooms[i].room > rooms[best].room {
				best = i
			}
		}
		k := min(most, int64(rooms[best].nodes))
		most -= k
		tasks -= k * int64(rooms[best].room)
		rooms[best] = rooms[len(rooms)-1]
		rooms = rooms[:len(rooms)-1]
	}
	return tasks <= 0, max(0, min(spare, -left))
}

// NodeChange is what a change of a node means for classes. The values are in order of how much must be assessed again.
type NodeChange uint8

// The values of NodeChange.
const (
	Unchanged NodeChange = iota
	UpOrDown
	HardwareOrNew // it is new, or has other properties
)

func nodeChangeOf(old, is *core.Node) NodeChange {
	switch {
	case ledger.HardwareChanged(old, is), old.Hardware.TmpDisk != is.Hardware.TmpDisk,
		!slices.Equal(old.Features, is.Features), old.Roles != is.Roles, old.Host.KeptTo() != is.Host.KeptTo(),
		old.Project != is.Project, old.Weight != is.Weight, old.ID != is.ID:
		return HardwareOrNew
	case old.Usable() != is.Usable():
		return UpOrDown
	}
	return Unchanged
}
