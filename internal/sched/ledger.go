package sched

import (
	"cmp"
	"math/bits"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Ledger knows what every node has free. The planner plans on one, the state checks each start against its own: no
// resource is ever given twice.
type Ledger struct {
	nodes map[core.NodeName]*account
	order []*account // by weight, then order of joining: the order placement tries
	shape int        // grows whenever order or the accounts in it change
	rules Rules

	kept map[uint32]int // nodes by the user they are kept to; see keep

	net     *network // how nodes are joined; nil: nobody says
	seeking seeking
}

// account is one node: what it has, what is free of it now, and, during a pass, what of it is promised.
type account struct {
	now    balance  // what is free; less than nothing where more was given than there is
	claims []*claim // of reservations, while a pass runs
	grid            // how its CPUs lie
	node   *core.Node

	free  bitset // CPUs; nil if the node has too many to name
	gres  []gresAccount
	bound bool     // some of gres are bounds of partitions
	stray int32    // jobs that hold units which have changed since
	users []uint8  // jobs on each CPU that is shared; nil: none are
	most  []uint8  // and how many there may be
	full  balance  // what would be if nothing ran
	well  *balance // and none of its units were sick; nil: none is
	place place    // see Ledger.label

	split *split // nil: it is not split

	owner   core.UserName // who keeps it to himself, while now.owned is not 0
	asides  []aside       // what advance reservations have of it; see Planner.layAside
	parted  bool          // they have a part of it only
	tenants []tenant      // if so: the jobs that are there, while a pass runs

	then   balance // scratch of the search for the earliest start; see sweep
	shared []uint8 // users, in the same search
	room   int32
	swept  int64
	met    int64 // the sweep that follows what comes free on it
	unmet  int64 // the sweep that has no use for it
	pool   int32 // of the forecast that is being worked out

	tracks

	jobs []stay // that hold something here, where jobs may be preempted
}

// gresAccount is the units of one kind. One without a name is what a partition may still use of the node's CPUs.
type gresAccount struct {
	name, typ string
	all, free bitset // by index
	units     []core.Unit
	mem       core.Bytes // of each of them; 0: not known, or not the same
	vendor    string
	able      int32 // compute capability
}

// namedCPUs is up to how many CPUs of a node jobs are given by name. A bigger "node" stands for a whole machine, as in
// traces, where naming tens of thousands of them for each job would cost more than all else and serve nobody.
const namedCPUs = 4096

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
	return &Ledger{nodes: map[core.NodeName]*account{}, seeking: seeking{labelled: -1}}
}

// Rule sets what the ledger goes by; it has no nodes yet.
func (l *Ledger) Rule(r Rules) { l.rules = r }

// SetNode makes a node known or replaces what is known of it. It returns true if the node's balance is that of an empty
// node, because it is new or its hardware changed: the caller, who knows what is held there, books it with Force.
func (l *Ledger) SetNode(n *core.Node) (fresh bool) {
	l.keep(n, 1)
	if a := l.nodes[n.Name]; a != nil {
		l.keep(a.node, -1)
		if !resized(a.node, n) {
			reorder := a.node.Weight != n.Weight || a.node.ID != n.ID
			a.node = n
			if reorder {
				l.sort()
			}
			return false
		}
		l.drop(a)
	}
	a := &account{node: n}
	if n.Hardware.CPUs <= namedCPUs {
		a.free = newBitset(n.Hardware.CPUs)
	}
	a.grid = gridOf(&n.Hardware, l.rules.Grain)
	a.full = balance{cpus: n.Hardware.CPUs, mem: n.Hardware.Memory}
	for _, k := range n.Hardware.Kinds() {
		a.gres = append(a.gres, gresAccount{name: k.Name, typ: k.Type, all: bitsetOf(k.Index), free: bitsetOf(k.Index), units: k.Units})
		a.gres[len(a.gres)-1].describe(n)
		a.full.gres = append(a.full.gres, int64(len(k.Index)))
	}
	l.rules.bind(a)
	a.now.copy(&a.full)
	if len(n.Hardware.Sick) > 0 {
		a.well = new(balance)
		a.well.copy(&a.full)
		well := n.Hardware
		well.Sick = nil
		for i, k := range well.Kinds() {
			a.well.gres[i] = int64(len(k.Index))
		}
	}
	a.split = splitOf(a)
	l.nodes[n.Name] = a
	at, _ := slices.BinarySearchFunc(l.order, a, inOrder)
	l.order = slices.Insert(l.order, at, a)
	l.shape++
	return true
}

// describe notes what all units of a kind have in common, the sick ones too.
func (g *gresAccount) describe(n *core.Node) {
	first := true
	for _, u := range n.Hardware.Units {
		switch {
		case u.Name != g.name || u.Type != g.typ:
		case first:
			g.mem, g.vendor, g.able, first = u.Memory, u.Vendor, u.Capability, false
		case u.Memory != g.mem || u.Vendor != g.vendor || u.Capability != g.able:
			g.mem, g.able = min(g.mem, u.Memory), min(g.able, u.Capability)
			if u.Vendor != g.vendor {
				g.vendor = ""
			}
		}
	}
}

// resized tells whether a node's hardware differs, so that its balance must be worked out anew.
func resized(old, new *core.Node) bool {
	a, b := old.Hardware, new.Hardware
	return old.Blocks != new.Blocks || a.CPUs != b.CPUs || a.Sockets != b.Sockets || a.Cores != b.Cores || a.Threads != b.Threads || a.Memory != b.Memory ||
		!slices.Equal(a.Gres, b.Gres) || !slices.Equal(a.Units, b.Units) ||
		!slices.EqualFunc(a.Sick, b.Sick, func(x, y core.SickUnit) bool { return x.Name == y.Name && x.Index == y.Index })
}

// DropNode forgets a node.
func (l *Ledger) DropNode(name core.NodeName) {
	if a := l.nodes[name]; a != nil {
		l.keep(a.node, -1)
		l.drop(a)
		delete(l.nodes, name)
	}
}

func (l *Ledger) drop(a *account) {
	l.shape++
	l.order = slices.DeleteFunc(l.order, func(b *account) bool { return a == b })
}

// within lists the accounts of a set of nodes in order; nil means all. The list is for reading.
func (l *Ledger) within(in map[core.NodeName]bool) []*account {
	if in == nil {
		return l.order
	}
	out := make([]*account, 0, len(in))
	for _, a := range l.order {
		if in[a.node.Name] {
			out = append(out, a)
		}
	}
	return out
}

func (l *Ledger) sort() {
	l.shape++
	slices.SortFunc(l.order, inOrder)
}

func inOrder(a, b *account) int {
	switch {
	case a.node.Weight != b.node.Weight:
		return cmp.Compare(a.node.Weight, b.node.Weight)
	case a.node.ID != b.node.ID:
		return cmp.Compare(a.node.ID, b.node.ID)
	}
	return cmp.Compare(a.node.Name, b.node.Name)
}

// Take gives a job's part of a node away; it changes nothing and returns false if it is not free. A node that is not
// known any more has nothing to take from and nothing to check.
func (l *Ledger) Take(na *core.NodeAlloc, t Terms) bool {
	a := l.nodes[na.Node]
	if a == nil {
		return true
	}
	if !a.fits(na, t) {
		return false
	}
	l.Force(na, t)
	return true
}

func (a *account) fits(na *core.NodeAlloc, t Terms) bool {
	if !a.takes(t) || a.now.mem < na.Mem {
		return false
	}
	if cpus, ok := a.wants(na, t); !ok || a.now.cpus < cpus {
		return false
	}
	for _, g := range na.Gres {
		ga := a.gresFor(g.Name, g.Type)
		if ga == nil {
			return false
		}
		for _, u := range g.Units {
			if !ga.free.has(u) {
				return false
			}
		}
	}
	if at := a.boundOf(t.Part); at >= 0 && a.now.gres[at] < int64(na.CPUs) {
		return false
	}
	return true
}

// Force books an allocation that is there whatever the books say: after a restart, or when a node came back smaller.
func (l *Ledger) Force(na *core.NodeAlloc, t Terms) {
	a := l.nodes[na.Node]
	if a == nil {
		return
	}
	if t.Share > 1 {
		a.sharing(na, t)
	}
	if t.Owner != "" {
		a.owner = t.Owner
	}
	if len(na.Gres) > 0 && a.strange(na) {
		a.stray++
	}
	a.add(&a.now, a.users, na, t, -1)
	if t.Share > 1 {
		a.settle() // none of its CPUs may be left
	}
	for _, c := range na.Cores {
		if a.free.has(c) {
			a.free.clear(c)
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

// Give takes a job's part of a node back.
func (l *Ledger) Give(na *core.NodeAlloc, t Terms) {
	a := l.nodes[na.Node]
	if a == nil {
		return
	}
	a.add(&a.now, a.users, na, t, 1)
	if a.now.owned == 0 {
		a.owner = ""
	}
	if t.Share > 1 {
		a.settle()
	}
	for _, c := range na.Cores {
		if c < a.node.Hardware.CPUs && a.free != nil && !a.busy(c, t) {
			a.free.set(c)
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
	if a.stray > 0 && a.strange(na) {
		a.stray--
	}
}

// add books a job's part of the node in a balance of it. Jobs that share their CPUs are counted in users, and the first
// of them takes a CPU and the last one gives it back; without users each takes what it has, which is never too little.
func (a *account) add(b *balance, users []uint8, na *core.NodeAlloc, t Terms, sign int32) {
	b.cpus += sign * a.count(users, na, t, sign)
	b.mem += core.Bytes(sign) * na.Mem
	for k := range na.Gres {
		g := &na.Gres[k]
		for i := range a.gres {
			switch ga := &a.gres[i]; {
			case ga.name != g.Name:
			case a.stray > 0:
				b.gres[i] += int64(sign) * a.held(ga, g)
			case ga.typ == g.Type:
				b.gres[i] += int64(sign) * int64(len(g.Units))
			}
		}
	}
	if a.bound {
		if at := a.boundOf(t.Part); at >= 0 {
			b.gres[at] += int64(sign) * int64(na.CPUs)
		}
	}
	if na.CPUs > 0 { // a suspended job that has lent all of its CPUs is in nobody's way
		b.held -= sign
	}
	if t.Owner != "" {
		b.owned -= sign
		b.whole -= sign
	} else if t.Whole {
		b.whole -= sign
	}
}

// strange tells whether a job holds units that are not of the type it was given them as: the node has been told otherwise
// since.
func (a *account) strange(na *core.NodeAlloc) bool {
	for k := range na.Gres {
		g := &na.Gres[k]
		ga := a.gresFor(g.Name, g.Type)
		for _, u := range g.Units {
			if ga == nil || !ga.all.has(u) {
				return true
			}
		}
	}
	return false
}

// held counts what a job holds of a kind, by the units there are now; of those that are no more, by what they were. Sick
// ones are not among those there are.
func (a *account) held(ga *gresAccount, g *core.GresAlloc) (n int64) {
	for _, u := range g.Units {
		if ga.all.has(u) || ga.typ == g.Type && !a.node.Hardware.IsSick(g.Name, u) && !slices.ContainsFunc(a.gres, func(o gresAccount) bool { return o.name == g.Name && o.all.has(u) }) {
			n++
		}
	}
	return n
}

func (a *account) gresFor(name, typ string) *gresAccount {
	for i := range a.gres {
		if a.gres[i].name == name && a.gres[i].typ == typ {
			return &a.gres[i]
		}
	}
	return nil
}
