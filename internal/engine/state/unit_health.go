package state

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// UnitHealth tells which units of a node are sick: they are given to nobody, while who has one keeps it. A node whose
// units of a name all are is drained. Return lets units, and a node drained so, come back when they are well; without
// it an administrator says so.
type UnitHealth struct {
	Node   core.NodeName
	Sick   []core.SickUnit
	Return bool
}

func (*UnitHealth) input() {}

func (in *UnitHealth) apply(s *State) (None, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok {
		return none, nil
	}
	sick := sickUnits(in, n)
	if slices.Equal(sick, n.Hardware.Sick) {
		return none, nil
	}
	edit := s.editNode(n)
	next := edit.node
	next.Hardware.Sick = sick
	s.drainForFaults(n, next, in.Return)
	edit.Commit(systemUser)
	return none, nil
}

// sickUnits is the new list, in order; what was sick stays so unless it may come back.
func sickUnits(in *UnitHealth, n *core.Node) []core.SickUnit {
	sick := slices.Clone(in.Sick)
	for _, u := range n.Hardware.Sick {
		if !in.Return && !slices.ContainsFunc(sick,
			func(o core.SickUnit) bool { return o.Name == u.Name && o.Index == u.Index }) {
			sick = append(sick, u)
		}
	}
	slices.SortFunc(sick, func(a, b core.SickUnit) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index))
	})
	return slices.CompactFunc(sick, func(a, b core.SickUnit) bool { return a.Name == b.Name && a.Index == b.Index })
}

// allUnitsSick tells whether of some resource every unit is.
func allUnitsSick(h *core.Hardware) bool {
	left := map[string]int{}
	for _, k := range h.Kinds() {
		left[k.Name] += len(k.Index)
	}
	for _, u := range h.Sick {
		if n, has := left[u.Name]; has && n == 0 {
			return true
		}
	}
	return false
}
