package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
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

// RemoveNode forgets a node, its key with it: it would have to join again. A node that jobs run on is refused, unless
// they are waited for (Drain), ended as on a node that an administrator sets down (Now), or known to have ended (Gone).
// Reply: *Removed.
type RemoveNode struct {
	By    core.Identity
	Node  core.NodeName
	Drain bool
	Now   bool
	Gone  bool
}

// Removed reports whether a node is gone; otherwise it goes when its jobs have.
type Removed struct{ Gone bool }

func (*RemoveNode) input() {}

func (in *RemoveNode) apply(s *State) (*Removed, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no node %q", in.Node).Because("invalid_node")
	}
	if err := people.AdminOnly(in.By, "may remove nodes"); err != nil {
		return nil, err
	}
	if h := s.rec.FleetHost(n); h != nil {
		return nil, core.Errorf(core.Conflict,
			"node %s is a host of fleet %s: take it out there (bireme fleet delete %s --instance %d)",
			n.Name, n.Fleet, n.Fleet, h.Num).Because("node_of_fleet")
	}
	if len(s.cluster.OnNode(in.Node)) > 0 && !in.Gone && !in.Now && !in.Drain {
		return nil, core.Errorf(core.Conflict, "%s on node %s: --drain removes it when they have ended, --now ends them",
			s.nodes.DescribeJobsOn(in.Node), n.Name).Because("node_busy")
	}
	s.nodes.RemoveWhenEmpty(n, in.By.User, in.Now, in.Gone)
	_, there := s.rec.Node(in.Node)
	return &Removed{Gone: !there}, nil
}
