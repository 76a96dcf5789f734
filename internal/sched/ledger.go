package sched

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
	nodes   map[core.NodeName]*nodeState
	order   []*nodeState // by weight, then order of joining: the order placement tries
	version int          // grows whenever order or the accounts in it change
	rules   AllocRules

	keptUsers map[uint32]int // nodes by the user they are kept to; see keep

	net    *topology // how nodes are joined; nil: nobody says
	search setSearch
}

// project is one node: what it has, what is free of it now, and, during a pass, what of it is promised.
type nodeState struct {
	free      resources          // what is free; less than nothing where more was given than there is
	reserved  []*nodeReservation // of reservations, while a pass runs
	cpuLayout                    // how its CPUs lie
	record    *core.Node

	freeCPUs        bitset // CPUs; nil if the node has too many to name
	gres            []gresState
	hasCPULimits    bool         // some of gres are bounds of partitions
	mistyped        int32        // jobs that hold units which have changed since
	sharers         []uint8      // jobs on each CPU that is shared; nil: none are
	maxSharers      []uint8      // and how many there may be
	capacity        resources    // what would be if nothing ran
	healthyCapacity *resources   // and none of its units were sick; nil: none is
	position        nodePosition // see Ledger.label

	blocks *nodeBlocks // nil: it is not split

	user           core.UserName // who keeps it to himself, while now.owned is not 0
	advanceParts   []advancePart // what advance reservations have of it; see Planner.placeAdvanceOnNodes
	partlyReserved bool          // they have a part of it only
	advanceJobs    []advanceJob  // if so: the jobs that are there, while a pass runs

	freeThen      resources // scratch of the search for the earliest start; see sweep
	sharersThen   []uint8   // users, in the same search
	roomThen      int32
	scanned       int64
	followed      int64 // the sweep that follows what comes free on it
	ignored       int64 // the sweep that has no use for it
	forecastIndex int32 // of the forecast that is being worked out

	nodeTracking

	preemptable []jobOnNode // that hold something here, where jobs may be preempted
}

// gresState is the units of one kind. One without a name is what a partition may still use of the node's CPUs.
type gresState struct {
	name, typ  string
	all, free  bitset // by index
	units      []core.Unit
	mem        core.Bytes // of each of them; 0: not known, or not the same
	vendor     string
	capability int32 // compute capability
}

// maxNamedCPUs is up to how many CPUs of a node jobs are given by name. A bigger "node" stands for a whole machine, as
// in
// traces, where naming tens of thousands of them for each job would cost more than all else and serve nobody.
const maxNamedCPUs = 4096

// bitset is a set of small integers.
type bitset []uint64

func newBitset(n int32) bitset {
	b := make(bitset, (n+63)/64)
	for i := range n {
		b.set(i)
	}
	return b
}

func (b bitset) set(i int32)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) clear(i int32)    { b[i/64] &^= 1 << (i % 64) }
func (b bitset) has(i int32) bool { return int(i/64) < len(b) && b[i/64]&(1<<(i%64)) != 0 }

func bitsetOf(members []int32) bitset {
	if len(members) == 0 {
		return nil
	}
	b := make(bitset, members[len(members)-1]/64+1)
	for _, i := range members {
		b.set(i)
	}
	return b
}

// first returns the n lowest members.
func (b bitset) first(n int32) []int32 {
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

// NewLedger makes an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{nodes: map[core.NodeName]*nodeState{}, search: setSearch{positionsAt: -1}}
}

// SetRules sets what the ledger goes by; it has no nodes yet.
func (l *Ledger) SetRules(r AllocRules) { l.rules = r }

// SetNode makes a node known or replaces what is known of it. It returns true if the node's balance is that of an empty
// node, because it is new or its hardware changed: the caller, who knows what is held there, books it with Force.
func (l *Ledger) SetNode(n *core.Node) (fresh bool) {
	l.countKept(n, 1)
	if a := l.nodes[n.Name]; a != nil {
		l.countKept(a.record, -1)
		if !hardwareChanged(a.record, n) {
			reorder := a.record.Weight != n.Weight || a.record.ID != n.ID
			a.record = n
			if reorder {
				l.sort()
			}
			return false
		}
		l.removeFromOrder(a)
	}
	a := &nodeState{record: n}
	if n.Hardware.CPUs <= maxNamedCPUs {
		a.freeCPUs = newBitset(n.Hardware.CPUs)
	}
	a.cpuLayout = cpuLayoutOf(&n.Hardware, l.rules.Unit)
	a.capacity = resources{cpus: n.Hardware.CPUs, mem: n.Hardware.Memory}
	for _, k := range n.Hardware.Kinds() {
		a.gres = append(a.gres, gresState{name: k.Name, typ: k.Type, all: bitsetOf(k.Index), free: bitsetOf(k.Index),
			units: k.Units})
		a.gres[len(a.gres)-1].setCommon(n)
		a.capacity.gres = append(a.capacity.gres, int64(len(k.Index)))
	}
	l.rules.addCPULimits(a)
	a.free.copyFrom(&a.capacity)
	if len(n.Hardware.Sick) > 0 {
		a.healthyCapacity = new(resources)
		a.healthyCapacity.copyFrom(&a.capacity)
		well := n.Hardware
		well.Sick = nil
		for i, k := range well.Kinds() {
			a.healthyCapacity.gres[i] = int64(len(k.Index))
		}
	}
	a.blocks = nodeBlocksOf(a)
	l.nodes[n.Name] = a
	at, _ := slices.BinarySearchFunc(l.order, a, compareNodes)
	l.order = slices.Insert(l.order, at, a)
	l.version++
	return true
}

// setCommon notes what all units of a kind have in common, the sick ones too.
func (g *gresState) setCommon(n *core.Node) {
	first := true
	for _, u := range n.Hardware.Units {
		switch {
		case u.Name != g.name || u.Type != g.typ:
		case first:
			g.mem, g.vendor, g.capability, first = u.Memory, u.Vendor, u.Capability, false
		case u.Memory != g.mem || u.Vendor != g.vendor || u.Capability != g.capability:
			g.mem, g.capability = min(g.mem, u.Memory), min(g.capability, u.Capability)
			if u.Vendor != g.vendor {
				g.vendor = ""
			}
		}
	}
}

// hardwareChanged tells whether a node's hardware differs, so that its balance must be worked out anew.
func hardwareChanged(old, new *core.Node) bool {
	a, b := old.Hardware, new.Hardware
	return old.Blocks != new.Blocks || a.CPUs != b.CPUs || a.Sockets != b.Sockets || a.Cores != b.Cores ||
		a.Threads != b.Threads || a.Memory != b.Memory ||
		!slices.Equal(a.Gres, b.Gres) || !slices.Equal(a.Units, b.Units) ||
		!slices.EqualFunc(a.Sick, b.Sick, func(x, y core.SickUnit) bool { return x.Name == y.Name && x.Index == y.Index })
}

// DropNode forgets a node.
func (l *Ledger) DropNode(name core.NodeName) {
	if a := l.nodes[name]; a != nil {
		l.countKept(a.record, -1)
		l.removeFromOrder(a)
		delete(l.nodes, name)
	}
}

func (l *Ledger) removeFromOrder(a *nodeState) {
	l.version++
	l.order = slices.DeleteFunc(l.order, func(b *nodeState) bool { return a == b })
}

// advanceReserved lists the accounts of a set of nodes in order; nil means all. The list is for reading.
func (l *Ledger) nodesIn(in map[core.NodeName]bool) []*nodeState {
	if in == nil {
		return l.order
	}
	out := make([]*nodeState, 0, len(in))
	for _, a := range l.order {
		if in[a.record.Name] {
			out = append(out, a)
		}
	}
	return out
}

func (l *Ledger) sort() {
	l.version++
	slices.SortFunc(l.order, compareNodes)
}

func compareNodes(a, b *nodeState) int {
	switch {
	case a.record.Weight != b.record.Weight:
		return cmp.Compare(a.record.Weight, b.record.Weight)
	case a.record.ID != b.record.ID:
		return cmp.Compare(a.record.ID, b.record.ID)
	}
	return cmp.Compare(a.record.Name, b.record.Name)
}

// Allocate gives a job's part of a node away; it changes nothing and returns false if it is not free. A node that is
// not
// known any more has nothing to take from and nothing to check.
func (l *Ledger) Allocate(na *core.NodeAlloc, t alloc.Terms) bool {
	a := l.nodes[na.Node]
	if a == nil {
		return true
	}
	if !a.canAllocate(na, t) {
		return false
	}
	l.ForceAllocate(na, t)
	return true
}

func (a *nodeState) canAllocate(na *core.NodeAlloc, t alloc.Terms) bool {
	if !a.acceptsTerms(t) || a.free.mem < na.Mem {
		return false
	}
	if cpus, ok := a.cpusWanted(na, t); !ok || a.free.cpus < cpus {
		return false
	}
	for _, g := range na.Gres {
		ga := a.gresOf(g.Name, g.Type)
		if ga == nil {
			return false
		}
		for _, u := range g.Units {
			if !ga.free.has(u) {
				return false
			}
		}
	}
	if at := a.cpuLimitOf(t.Partition); at >= 0 && a.free.gres[at] < int64(na.CPUs) {
		return false
	}
	return true
}

// ForceAllocate books an allocation that is there whatever the books say: after a restart, or when a node came back
// smaller.
func (l *Ledger) ForceAllocate(na *core.NodeAlloc, t alloc.Terms) {
	a := l.nodes[na.Node]
	if a == nil {
		return
	}
	if t.MaxSharing > 1 {
		a.prepareSharing(na, t)
	}
	if t.User != "" {
		a.user = t.User
	}
	if len(na.Gres) > 0 && a.holdsMistyped(na) {
		a.mistyped++
	}
	a.book(&a.free, a.sharers, na, t, -1)
	if t.MaxSharing > 1 {
		a.clearSharing() // none of its CPUs may be left
	}
	for _, c := range na.Cores {
		if a.freeCPUs.has(c) {
			a.freeCPUs.clear(c)
		}
	}
	for _, g := range na.Gres {
		for i := range a.gres {
			if ga := &a.gres[i]; ga.name == g.Name {
				for _, u := range g.Units {
					if ga.free.has(u) {
						ga.free.clear(u)
					}
				}
			}
		}
	}
}

// Release takes a job's part of a node back.
func (l *Ledger) Release(na *core.NodeAlloc, t alloc.Terms) {
	a := l.nodes[na.Node]
	if a == nil {
		return
	}
	a.book(&a.free, a.sharers, na, t, 1)
	if a.free.userExclusive == 0 {
		a.user = ""
	}
	if t.MaxSharing > 1 {
		a.clearSharing()
	}
	for _, c := range na.Cores {
		if c < a.record.Hardware.CPUs && a.freeCPUs != nil && !a.isShared(c, t) {
			a.freeCPUs.set(c)
		}
	}
	for _, g := range na.Gres {
		for i := range a.gres {
			if ga := &a.gres[i]; ga.name == g.Name {
				for _, u := range g.Units {
					if ga.all.has(u) { // it may have more of them than the node still has
						ga.free.set(u)
					}
				}
			}
		}
	}
	if a.mistyped > 0 && a.holdsMistyped(na) {
		a.mistyped--
	}
}

// addToSet books a job's part of the node in a balance of it. Jobs that share their CPUs are counted in users, and the
// first
// of them takes a CPU and the last one gives it back; without users each takes what it has, which is never too little.
func (a *nodeState) book(b *resources, users []uint8, na *core.NodeAlloc, t alloc.Terms, sign int32) {
	b.cpus += sign * a.cpusBooked(users, na, t, sign)
	b.mem += core.Bytes(sign) * na.Mem
	for k := range na.Gres {
		g := &na.Gres[k]
		for i := range a.gres {
			switch ga := &a.gres[i]; {
			case ga.name != g.Name:
			case a.mistyped > 0:
				b.gres[i] += int64(sign) * a.heldUnits(ga, g)
			case ga.typ == g.Type:
				b.gres[i] += int64(sign) * int64(len(g.Units))
			}
		}
	}
	if a.hasCPULimits {
		if at := a.cpuLimitOf(t.Partition); at >= 0 {
			b.gres[at] += int64(sign) * int64(na.CPUs)
		}
	}
	if na.CPUs > 0 { // a suspended job that has lent all of its CPUs is in nobody's way
		b.allocs -= sign
	}
	if t.User != "" {
		b.userExclusive -= sign
		b.exclusive -= sign
	} else if t.Exclusive {
		b.exclusive -= sign
	}
}

// holdsMistyped tells whether a job holds units that are not of the type it was given them as: the node has been told
// otherwise
// since.
func (a *nodeState) holdsMistyped(na *core.NodeAlloc) bool {
	for k := range na.Gres {
		g := &na.Gres[k]
		ga := a.gresOf(g.Name, g.Type)
		for _, u := range g.Units {
			if ga == nil || !ga.all.has(u) {
				return true
			}
		}
	}
	return false
}

// usageOf counts what a job holds of a kind, by the units there are now; of those that are no more, by what they were.
// Sick
// ones are not among those there are.
func (a *nodeState) heldUnits(ga *gresState, g *core.GresAlloc) (n int64) {
	for _, u := range g.Units {
		if ga.all.has(u) || ga.typ == g.Type && !a.record.Hardware.IsSick(g.Name, u) && !slices.ContainsFunc(a.gres,
			func(o gresState) bool { return o.name == g.Name && o.all.has(u) }) {
			n++
		}
	}
	return n
}

func (a *nodeState) gresOf(name, typ string) *gresState {
	for i := range a.gres {
		if a.gres[i].name == name && a.gres[i].typ == typ {
			return &a.gres[i]
		}
	}
	return nil
}
