package ledger

import (
	"cmp"
	"math/bits"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Ledger knows what every node has free. The planner plans on one, the state checks each start against its own: no
// resource is ever given twice.
type Ledger struct {
	Nodes   map[core.NodeName]*Node
	Order   []*Node // by weight, then order of joining: the order placement tries
	Version int     // grows whenever Order changes
	Rules   Rules

	KeptUsers map[uint32]int // Nodes by the user they are kept to; see countKept
	// KeptProjects is likewise by project.
	KeptProjects map[core.ProjectName]int

	Net         *Topology // how nodes are connected; nil: not known
	positionsAt int       // Version of the nodes' positions; see assignPositions
	unconnected bool      // some node is not in the topology
}

// Node is one node: its capacity, what is free now, and, during a pass, what is reserved.
type Node struct {
	Free      Resources          // what is free; negative where more is allocated than there is
	Reserved  []*NodeReservation // of reservations, while a pass runs
	CPULayout                    // how its CPUs lie
	Record    *core.Node

	FreeCPUs        Bitset // CPUs; nil if the node has too many to name
	Gres            []Gres
	hasCPULimits    bool       // some of gres are bounds of partitions
	mistyped        int32      // jobs that hold units which have changed since
	Sharers         []uint8    // jobs on each CPU that is shared; nil: none are
	maxSharers      []uint8    // and how many there may be
	Capacity        Resources  // what would be if nothing ran
	healthyCapacity *Resources // and none of its units were sick; nil: none is
	Position        Position   // see Ledger.AssignPositions

	Blocks *Blocks // nil: it is not split

	user           core.UserName // the user it is kept to, while Free.UserExclusive is not 0
	AdvanceParts   []AdvancePart // what advance reservations have of it; see cluster.Advances
	PartlyReserved bool          // they have a part of it only
	AdvanceJobs    []AdvanceJob  // if so: the jobs that are there, while a pass runs

	// OtherComponent: another component of the het job that is being placed has this node, and no second one may.
	OtherComponent bool

	Tracking
}

// Gres is the units of one kind. One without a name is what a partition may still use of the node's CPUs.
type Gres struct {
	Name, Typ  string
	all, Free  Bitset // by index
	Units      []core.Unit
	Mem        core.Bytes // of each of them; 0: not known, or not the same
	Vendor     string
	Capability int32 // compute capability
}

// MaxNamedCPUs is the number of CPUs of a node up to which jobs get CPUs by number. A bigger "node" stands for a whole
// machine, as in traces, where naming tens of thousands of them for each job would be too slow.
const MaxNamedCPUs = 4096

// Bitset is a set of small integers.
type Bitset []uint64

func newBitset(n int32) Bitset {
	b := make(Bitset, (n+63)/64)
	for i := range n {
		b.Set(i)
	}
	return b
}

func (b Bitset) Set(i int32) { b[i/64] |= 1 << (i % 64) }

func (b Bitset) Clear(i int32) { b[i/64] &^= 1 << (i % 64) }

func (b Bitset) Has(i int32) bool { return int(i/64) < len(b) && b[i/64]&(1<<(i%64)) != 0 }

func bitsetOf(members []int32) Bitset {
	if len(members) == 0 {
		return nil
	}
	b := make(Bitset, members[len(members)-1]/64+1)
	for _, i := range members {
		b.Set(i)
	}
	return b
}

// first returns the n lowest members.
func (b Bitset) first(n int32) []int32 {
	out := make([]int32, 0, n)
	for w, word := range b {
		for word != 0 && int32(len(out)) < n {
			i := bits.TrailingZeros64(word)
			out = append(out, int32(w*64+i))
			word &= word - 1
		}
	}
	return out
}

// New makes an empty ledger.
func New() *Ledger {
	return &Ledger{Nodes: map[core.NodeName]*Node{}, positionsAt: -1}
}

// SetRules sets what the ledger goes by; it has no nodes yet.
func (l *Ledger) SetRules(r Rules) { l.Rules = r }

// SetNode makes a node known or replaces what is known of it. It returns true if the node's balance is that of an empty
// node, because it is new or its hardware changed: the caller books what jobs hold there with ForceAllocate.
func (l *Ledger) SetNode(n *core.Node) (fresh bool) {
	l.countKept(n, 1)
	if node := l.Nodes[n.Name]; node != nil {
		l.countKept(node.Record, -1)
		if !HardwareChanged(node.Record, n) {
			reorder := node.Record.Weight != n.Weight || node.Record.ID != n.ID
			node.Record = n
			if reorder {
				l.sort()
			}
			return false
		}
		l.removeFromOrder(node)
	}
	node := &Node{Record: n}
	if n.Hardware.CPUs <= MaxNamedCPUs {
		node.FreeCPUs = newBitset(n.Hardware.CPUs)
	}
	node.CPULayout = CpuLayoutOf(&n.Hardware, l.Rules.Unit)
	node.Capacity = Resources{Cpus: n.Hardware.CPUs, Mem: n.Hardware.Memory}
	for _, k := range n.Hardware.Kinds() {
		node.Gres = append(node.Gres, Gres{
			Name: k.Name, Typ: k.Type, all: bitsetOf(k.Index), Free: bitsetOf(k.Index),
			Units: k.Units,
		})
		node.Gres[len(node.Gres)-1].setCommon(n)
		node.Capacity.Gres = append(node.Capacity.Gres, int64(len(k.Index)))
	}
	l.Rules.addCPULimits(node)
	node.Free.CopyFrom(&node.Capacity)
	if len(n.Hardware.Sick) > 0 {
		node.healthyCapacity = new(Resources)
		node.healthyCapacity.CopyFrom(&node.Capacity)
		well := n.Hardware
		well.Sick = nil
		for i, k := range well.Kinds() {
			node.healthyCapacity.Gres[i] = int64(len(k.Index))
		}
	}
	node.Blocks = nodeBlocksOf(node)
	l.Nodes[n.Name] = node
	at, _ := slices.BinarySearchFunc(l.Order, node, CompareNodes)
	l.Order = slices.Insert(l.Order, at, node)
	l.Version++
	return true
}

// setCommon notes what all units of a kind have in common, the sick ones too.
func (g *Gres) setCommon(n *core.Node) {
	first := true
	for _, u := range n.Hardware.Units {
		switch {
		case u.Name != g.Name || u.Type != g.Typ:
		case first:
			g.Mem, g.Vendor, g.Capability, first = u.Memory, u.Vendor, u.Capability, false
		case u.Memory != g.Mem || u.Vendor != g.Vendor || u.Capability != g.Capability:
			g.Mem, g.Capability = min(g.Mem, u.Memory), min(g.Capability, u.Capability)
			if u.Vendor != g.Vendor {
				g.Vendor = ""
			}
		}
	}
}

// HardwareChanged reports whether a node's hardware differs, so that its free resources must be computed from scratch.
func HardwareChanged(old, new *core.Node) bool {
	a, b := old.Hardware, new.Hardware
	return old.Blocks != new.Blocks || a.CPUs != b.CPUs || a.Sockets != b.Sockets || a.Cores != b.Cores ||
		a.Threads != b.Threads || a.Memory != b.Memory ||
		!slices.Equal(a.Gres, b.Gres) || !slices.Equal(a.Units, b.Units) ||
		!slices.EqualFunc(a.Sick, b.Sick, func(x, y core.SickUnit) bool { return x.Name == y.Name && x.Index == y.Index })
}

// DropNode forgets a node.
func (l *Ledger) DropNode(name core.NodeName) {
	if node := l.Nodes[name]; node != nil {
		l.countKept(node.Record, -1)
		l.removeFromOrder(node)
		delete(l.Nodes, name)
	}
}

func (l *Ledger) removeFromOrder(node *Node) {
	l.Version++
	l.Order = slices.DeleteFunc(l.Order, func(b *Node) bool { return node == b })
}

// NodesIn lists the nodes of a set in order; nil means all. The list must not be changed.
func (l *Ledger) NodesIn(in map[core.NodeName]bool) []*Node {
	if in == nil {
		return l.Order
	}
	out := make([]*Node, 0, len(in))
	for _, node := range l.Order {
		if in[node.Record.Name] {
			out = append(out, node)
		}
	}
	return out
}

func (l *Ledger) sort() {
	l.Version++
	slices.SortFunc(l.Order, CompareNodes)
}

func CompareNodes(a, b *Node) int {
	switch {
	case a.Record.Weight != b.Record.Weight:
		return cmp.Compare(a.Record.Weight, b.Record.Weight)
	case a.Record.ID != b.Record.ID:
		return cmp.Compare(a.Record.ID, b.Record.ID)
	}
	return cmp.Compare(a.Record.Name, b.Record.Name)
}

// Allocate books a job's part of a node. If it is not free, nothing changes and the result is false. For a node that is
// gone there is nothing to book or check.
func (l *Ledger) Allocate(na *core.NodeAlloc, t alloc.Terms) bool {
	node := l.Nodes[na.Node]
	if node == nil {
		return true
	}
	if !node.CanAllocate(na, t) {
		return false
	}
	l.ForceAllocate(na, t)
	return true
}

func (node *Node) CanAllocate(na *core.NodeAlloc, t alloc.Terms) bool {
	if !node.acceptsTerms(t) || node.Free.Mem < na.Mem {
		return false
	}
	if cpus, ok := node.cpusWanted(na, t); !ok || node.Free.Cpus < cpus {
		return false
	}
	for _, g := range na.Gres {
		ga := node.gresOf(g.Name, g.Type)
		if ga == nil {
			return false
		}
		for _, u := range g.Units {
			if !ga.Free.Has(u) {
				return false
			}
		}
	}
	if at := node.CpuLimitOf(t.Partition); at >= 0 && node.Free.Gres[at] < int64(na.CPUs) {
		return false
	}
	return true
}

// ForceAllocate books an allocation that is there whatever the books say: after a restart, or when a node came back
// smaller.
func (l *Ledger) ForceAllocate(na *core.NodeAlloc, t alloc.Terms) {
	node := l.Nodes[na.Node]
	if node == nil {
		return
	}
	if t.MaxSharing > 1 {
		node.prepareSharing(na, t)
	}
	if t.User != "" {
		node.user = t.User
	}
	if len(na.Gres) > 0 && node.holdsMistyped(na) {
		node.mistyped++
	}
	node.Book(&node.Free, node.Sharers, na, t, -1)
	if t.MaxSharing > 1 {
		node.clearSharing() // none of its CPUs may be left
	}
	for _, c := range na.Cores {
		if node.FreeCPUs.Has(c) {
			node.FreeCPUs.Clear(c)
		}
	}
	for _, g := range na.Gres {
		for i := range node.Gres {
			if ga := &node.Gres[i]; ga.Name == g.Name {
				for _, u := range g.Units {
					if ga.Free.Has(u) {
						ga.Free.Clear(u)
					}
				}
			}
		}
	}
}

// Release takes a job's part of a node back.
func (l *Ledger) Release(na *core.NodeAlloc, t alloc.Terms) {
	node := l.Nodes[na.Node]
	if node == nil {
		return
	}
	node.Book(&node.Free, node.Sharers, na, t, 1)
	if node.Free.UserExclusive == 0 {
		node.user = ""
	}
	if t.MaxSharing > 1 {
		node.clearSharing()
	}
	for _, c := range na.Cores {
		if c < node.Record.Hardware.CPUs && node.FreeCPUs != nil && !node.isShared(c, t) {
			node.FreeCPUs.Set(c)
		}
	}
	for _, g := range na.Gres {
		for i := range node.Gres {
			if ga := &node.Gres[i]; ga.Name == g.Name {
				for _, u := range g.Units {
					if ga.all.Has(u) { // it may have more of them than the node still has
						ga.Free.Set(u)
					}
				}
			}
		}
	}
	if node.mistyped > 0 && node.holdsMistyped(na) {
		node.mistyped--
	}
}

// Book adds (sign 1) or subtracts (sign -1) a job's part of the node in b. Jobs that share CPUs are counted in users:
// the first takes a CPU and the last returns it. Without users each takes what it has, which is never too little.
func (node *Node) Book(b *Resources, users []uint8, na *core.NodeAlloc, t alloc.Terms, sign int32) {
	b.Cpus += sign * node.cpusBooked(users, na, t, sign)
	b.Mem += core.Bytes(sign) * na.Mem
	for k := range na.Gres {
		g := &na.Gres[k]
		for i := range node.Gres {
			switch ga := &node.Gres[i]; {
			case ga.Name != g.Name:
			case node.mistyped > 0:
				b.Gres[i] += int64(sign) * node.heldUnits(ga, g)
			case ga.Typ == g.Type:
				b.Gres[i] += int64(sign) * int64(len(g.Units))
			}
		}
	}
	if node.hasCPULimits {
		if at := node.CpuLimitOf(t.Partition); at >= 0 {
			b.Gres[at] += int64(sign) * int64(na.CPUs)
		}
	}
	if na.CPUs > 0 { // a suspended job that has lent all of its CPUs does not count
		b.Allocs -= sign
	}
	if t.User != "" {
		b.UserExclusive -= sign
		b.Exclusive -= sign
	} else if t.Exclusive {
		b.Exclusive -= sign
	}
}

// holdsMistyped reports whether a job holds units whose type has changed since.
func (node *Node) holdsMistyped(na *core.NodeAlloc) bool {
	for k := range na.Gres {
		g := &na.Gres[k]
		ga := node.gresOf(g.Name, g.Type)
		for _, u := range g.Units {
			if ga == nil || !ga.all.Has(u) {
				return true
			}
		}
	}
	return false
}

// heldUnits counts what a job holds of a kind: by the units there are now, and for units that are gone by what they
// were. Sick units are not among those there are.
func (node *Node) heldUnits(ga *Gres, g *core.GresAlloc) (n int64) {
	for _, u := range g.Units {
		if ga.all.Has(u) || ga.Typ == g.Type && !node.Record.Hardware.IsSick(g.Name, u) && !slices.ContainsFunc(node.Gres,
			func(o Gres) bool { return o.Name == g.Name && o.all.Has(u) }) {
			n++
		}
	}
	return n
}

func (node *Node) gresOf(name, typ string) *Gres {
	for i := range node.Gres {
		if node.Gres[i].Name == name && node.Gres[i].Typ == typ {
			return &node.Gres[i]
		}
	}
	return nil
}
