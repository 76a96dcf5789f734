package state

import (
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
	s.nodes.SetSickUnits(in.Node, in.Sick, in.Return)
	return none, nil
}
