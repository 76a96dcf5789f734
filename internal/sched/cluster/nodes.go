package cluster

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Nodes tracks the nodes of a ledger.
type Nodes struct {
	Ledger *ledger.Ledger
	Freed  Log   // nodes on which something came free; read by refusals
	Passes int64 // number of passes that have begun
	// Settled is the first entry of Freed since the pass before the current one began.
	Settled     int64
	freedAtPass int64 // first entry of Freed since the current pass began

	Changed Log // nodes on which anything changed; read by cached searches
	// Tracking says that Changed and the ends of jobs on nodes are recorded: there are at least TrackMinNodes. For fewer
	// it costs more than it saves.
	Tracking      bool
	TrackMinNodes int

	PoweredDown int // nodes that are powered down, or on their way up

	sets        []*Set         // of the partitions
	numberedAt  int            // version of the ledger when nodes were numbered
	numbered    []*ledger.Node // in the order of their numbers
	oldNumbered []*ledger.Node // scratch
	open        ledger.Bitset  // nodes that have anything free
	freeNow     []nodeFree
	kinds       []*ledger.Node // the first node of each kind; see kinds.go
	kindRooms   []kindRoom     // scratch
	withRoom    []*ledger.Node // scratch
}

// nodeFree is the free memory and CPUs of a node. A pass scans the values of all nodes for every class it tries, so
// they lie in one slice.
type nodeFree struct {
	mem  core.Bytes
	cpus int32
}

// Set is the nodes of a partition.
type Set struct {
	Names map[core.NodeName]bool // nil: all

	order        []*ledger.Node // see Nodes.In
	orderVersion int
	members      ledger.Bitset  // by number
	open         []*ledger.Node // see Nodes.openIn
	openPass     int64
	upByKind     []int32        // number of nodes that are up, by kind
	freed        []*ledger.Node // see Nodes.FreedIn
	freedAt      int64
	maxFreed     MaxFreed
	envelope     freeEnvelope
}

// NewNodes returns a tracker without nodes and sets.
func NewNodes() *Nodes {
	n := &Nodes{Ledger: ledger.New(), numberedAt: -1, TrackMinNodes: 16}
	n.Freed.First, n.Changed.First = 1, 1
	return n
}

// AddSet adds the nodes of a partition; nil names stand for all nodes. Sets are added before nodes.
func (n *Nodes) AddSet(names map[core.NodeName]bool) *Set {
	s := &Set{Names: names}
	n.sets = append(n.sets, s)
	return s
}

// HasName reports whether the set has a node, by name.
func (s *Set) HasName(name core.NodeName) bool { return s.Names == nil || s.Names[name] }

// Has reports whether the set has a node that is numbered.
func (s *Set) Has(node *ledger.Node) bool {
	return node.Index >= 0 && (s.Names == nil || s.members.Has(node.Index))
}

// In lists the nodes of a set in the order they are tried.
func (n *Nodes) In(s *Set) []*ledger.Node {
	if s.Names == nil {
		return n.Ledger.Order
	}
	if s.orderVersion != n.Ledger.Version {
		s.orderVersion, s.order = n.Ledger.Version, n.Ledger.NodesIn(s.Names)
	}
	return s.order
}

// Drop removes a node and reports whether it was there.
func (n *Nodes) Drop(name core.NodeName) bool {
	node := n.Ledger.Nodes[name]
	if node == nil {
		return false
	}
	n.countKind(node, -1)
	node.Index = -1
	n.Ledger.DropNode(name)
	n.logChanged(node)
	return true
}

// Put adds or replaces a node. It returns what changed, and fresh if what is free there must be booked again: the node
// is new, or has other hardware.
func (n *Nodes) Put(record *core.Node) (node *ledger.Node, how NodeChange, fresh bool) {
	old := n.Ledger.Nodes[record.Name]
	how = HardwareOrNew
	if old != nil {
		how = nodeChangeOf(old.Record, record)
		n.countKind(old, -1)
	}
	if !n.Ledger.SetNode(record) {
		n.countKind(old, 1)
		return old, how, false
	}
	if old != nil {
		old.Index = -1
	}
	node = n.Ledger.Nodes[record.Name]
	n.countKind(node, 1)
	return node, how, true
}

// BeginPass numbers the nodes and forgets entries of Freed that all classes have seen.
func (n *Nodes) BeginPass() {
	n.Passes++
	n.Freed.cut(n.Settled)
	n.Settled, n.freedAtPass = n.freedAtPass, n.Freed.Next()
}

// Number numbers the nodes after the ledger's order changed, and switches tracking on or off by their number. It
// returns the nodes by their old numbers if they changed, and toggled if tracking did.
func (n *Nodes) Number() (old []*ledger.Node, changed, toggled bool) {
	if n.numberedAt == n.Ledger.Version {
		return nil, false, false
	}
	n.numberedAt = n.Ledger.Version
	n.open = make(ledger.Bitset, (len(n.Ledger.Order)+63)/64)
	n.freeNow = make([]nodeFree, len(n.Ledger.Order))
	for i, node := range n.Ledger.Order {
		node.Index = int32(i)
		n.updateFree(node)
	}
	for _, s := range n.sets {
		if s.Names == nil {
			continue
		}
		s.members = make(ledger.Bitset, len(n.open))
		for _, node := range n.In(s) {
			s.members.Set(node.Index)
		}
	}
	n.numbered, n.oldNumbered = append(n.oldNumbered[:0], n.Ledger.Order...), n.numbered
	if track := len(n.Ledger.Order) >= n.TrackMinNodes; track != n.Tracking {
		n.Tracking, toggled = track, true
		for _, node := range n.Ledger.Order {
			node.Ends = nil
		}
	}
	return n.oldNumbered, true, toggled
}

// areNumbered reports whether the nodes have not changed since Number.
func (n *Nodes) areNumbered() bool { return n.numberedAt == n.Ledger.Version }

// maxChanged is how many changes are kept for cached searches. A search that missed more starts over.
const maxChanged = 1 << 14

// NoteFreed records that something came free on a node.
func (n *Nodes) NoteFreed(node *ledger.Node) {
	node.FreedSeq = n.Freed.Next()
	n.Freed.Nodes = append(n.Freed.Nodes, node)
	n.NoteChanged(node)
}

// NoteUnreserved records that a node's resources are not reserved any more.
func (n *Nodes) NoteUnreserved(node *ledger.Node) {
	if node.Index >= 0 && node.HasFree() {
		node.FreedSeq = n.Freed.Next()
		n.Freed.Nodes = append(n.Freed.Nodes, node)
	}
}

// ForgetFreed makes all entries of Freed count as cut off, for changes that it does not record.
func (n *Nodes) ForgetFreed() {
	n.Freed.cut(n.Freed.Next())
	n.Freed.First++
}

// NoteChanged records that what is free on a node changed.
func (n *Nodes) NoteChanged(node *ledger.Node) {
	if n.areNumbered() {
		n.updateFree(node)
	}
	n.logChanged(node)
}

func (n *Nodes) logChanged(node *ledger.Node) {
	if !n.Tracking {
		return
	}
	if len(n.Changed.Nodes) >= maxChanged {
		n.Changed.cut(n.Changed.Next() - maxChanged/2)
	}
	node.ChangedSeq = n.Changed.Next()
	n.Changed.Nodes = append(n.Changed.Nodes, node)
}

// updateFree updates open and freeNow for a node.
func (n *Nodes) updateFree(node *ledger.Node) {
	n.freeNow[node.Index] = nodeFree{mem: node.Free.Mem, cpus: node.Free.Cpus}
	if node.HasFree() {
		n.open.Set(node.Index)
	} else {
		n.open.Clear(node.Index)
	}
}
