package state

import (
	"bireme.dev/bireme/internal/core"
)

// nodeChanged stores a node's record and brings all that depends on it up to date, in the order written here; old is
// nil for a new node. Only edits of nodes call it.
func (s *State) nodeChanged(old, n *core.Node) {
	s.limits.NodeChanged(old, n) // those in percent of the cluster
	s.cluster.NodeChanged(n)     // the ledger
	s.rec.PutNode(n)
	s.nodes.NodeChanged(n) // its timer, and what is to be done when it is empty
	s.reservations.ClusterChanged()
}

// nodeDeleted deletes a node's record, and all that was derived from it.
func (s *State) nodeDeleted(n *core.Node) {
	s.rec.DeleteNode(n)
	s.cluster.NodeDeleted(n.Name)
	s.reservations.ClusterChanged()
	s.limits.MarkStale()
	s.rec.TellPlannerNodeGone(n.Name)
}
