package state

import (
	"bireme.dev/bireme/internal/core"
)

// nodeEdit is a change of one node's record: a copy that its methods change. Every edit ends with one of the commit
// methods; nothing else stores a node.
type nodeEdit struct {
	s    *State
	node *core.Node // the copy that commit stores
}

// editNode begins a change of a node.
func (s *State) editNode(n *core.Node) nodeEdit {
	c := *n
	return nodeEdit{s, &c}
}

// editNodeRecord begins a change with a record that nobody else has.
func (s *State) editNodeRecord(n *core.Node) nodeEdit { return nodeEdit{s, n} }

// commit stores a change and emits its event; by is empty for one that nobody asked for.
func (e *nodeEdit) Commit(by core.UserName) { e.commitAs(core.NodeChanged, by) }

// commitAs is commit with an event of a kind: NodeJoined for a new node.
func (e *nodeEdit) commitAs(kind core.EventKind, by core.UserName) {
	e.CommitSilently()
	e.s.rec.Event(kind, core.Event{Node: e.node.Name, By: by, Data: nodeData(e.node)})
}

// commitSilently stores a change that nobody watches for: its key, or since when it is idle.
func (e *nodeEdit) CommitSilently() {
	old, _ := e.s.rec.Node(e.node.Name)
	e.s.nodeChanged(old, e.node)
}

// nodeChanged stores a node's record and brings all that depends on it up to date, in the order written here; old is
// nil for a new node.
func (s *State) nodeChanged(old, n *core.Node) {
	if s.cfg.Power.SuspendTime > 0 && n.Flags == 0 && (old == nil || old.Flags != 0) {
		n.LastBusy = s.rec.Now() // it could not be used before
	}
	s.limits.NodeChanged(old, n)
	s.cluster.NodeChanged(n)
	s.rec.PutNode(n)
	s.trackIdleAction(n)
	s.setNodeTimer(n)
	s.reservations.ClusterChanged()
}
