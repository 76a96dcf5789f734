package state

import (
	"bireme.dev/bireme/internal/core"
)

// NodeHealth tells what is wrong with a node as a whole. What drains does so unless somebody else has; Return lets a
// node that was drained so come back when nothing of it is left, otherwise an administrator says so. Reply: nil.
type NodeHealth struct {
	Node   core.NodeName
	Faults []core.NodeFault
	Return bool
}

func (*NodeHealth) input() {}

func (in *NodeHealth) apply(s *State) (None, error) {
	s.nodes.SetFaults(in.Node, in.Faults, in.Return)
	return none, nil
}
