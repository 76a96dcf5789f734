package cluster

import (
	"cmp"
	"math/bits"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Candidates is the nodes on which jobs of a class may run: those of a partition, and of these, those of an advance
// reservation, or those first.
type Candidates struct {
	Set          *Set
	Advance      *advance.Reservation // the advance reservation the jobs run in; nil: none
	order        []*ledger.Node       // the nodes for that, as of
	orderVersion int                  // this version of the ledger
}

// Has reports whether a node is a candidate.
func (c *Candidates) Has(node *ledger.Node) bool {
	return c.Set.HasName(node.Record.Name) && (!c.Advance.ConfinesNodes() || c.Advance.Nodes[node.Record.Name])
}

// Of lists candidates in the order they are tried.
func (n *Nodes) Of(c *Candidates) []*ledger.Node {
	all := n.In(c.Set)
	if c.Advance == nil || c.Advance.Nodes == nil {
		return all
	}
	if c.orderVersion != n.Ledger.Version {
		c.orderVersion, c.order = n.Ledger.Version, nil
		for _, node := range all {
			if c.Advance.Nodes[node.Record.Name] {
				c.order = append(c.order, node)
			}
		}
		if !c.Advance.ConfinesNodes() {
			for _, node := range all {
				if !c.Advance.Nodes[node.Record.Name] {
					c.order = append(c.order, node)
				}
			}
		}
	}
	return c.order
}

// OpenOf is Of without nodes that are known to have too little free now for the request. The next call may overwrite
// it.
func (n *Nodes) OpenOf(c *Candidates, req *fit.Request) []*ledger.Node {
	if c.needCPUsAndMemory(req) {
		return n.nodesWithRoom(c.Set, req.CpusPerNode(), req.MemPerNode)
	}
	if c.Advance == nil || c.Advance.Nodes == nil {
		return n.openIn(c.Set)
	}
	return n.Of(c)
}

// needCPUsAndMemory reports whether a node with less free than one task's CPUs and memory has no room for the request.
func (c *Candidates) needCPUsAndMemory(req *fit.Request) bool {
	return req.Detail == nil && req.User == "" && (c.Advance == nil || c.Advance.Nodes == nil)
}

// openIn lists the nodes of a set that had a free CPU when the pass began.
func (n *Nodes) openIn(s *Set) []*ledger.Node {
	if s.openPass != n.Passes {
		s.openPass = n.Passes
		s.open = s.open[:0]
		for w, word := range n.open {
			if s.Names != nil {
				word &= s.members[w]
			}
			for ; word != 0; word &= word - 1 {
				s.open = append(s.open, n.Ledger.Order[w*64+bits.TrailingZeros64(word)])
			}
		}
	}
	return s.open
}

// nodesWithRoom lists the nodes of a set that have so many CPUs and so much memory free, in the order they are tried.
func (n *Nodes) nodesWithRoom(s *Set, cpus int32, mem core.Bytes) []*ledger.Node {
	out := n.withRoom[:0]
	for w, word := range n.open {
		if s.Names != nil {
			word &= s.members[w]
		}
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			if f := &n.freeNow[i]; f.cpus >= cpus && f.mem >= mem {
				out = append(out, n.Ledger.Order[i])
			}
		}
	}
	n.withRoom = out
	return out
}

// freeEnvelope is the most memory that any open node of a set has free beside at least so many CPUs, by CPUs. Nodes
// have less as a pass goes on, so it is an upper bound.
type freeEnvelope struct {
	epoch int64
	mem   []core.Bytes
}

// NoneHasRoom reports whether no candidate has enough free for one task, ignoring reservations. It may report false
// although none has. What is computed for it holds for an epoch, in which nodes get nothing free.
func (n *Nodes) NoneHasRoom(c *Candidates, req *fit.Request, epoch int64) bool {
	if !n.Tracking || !c.needCPUsAndMemory(req) {
		return false
	}
	e := n.envelopeOf(c.Set, epoch)
	cpus := int(min(req.CpusPerNode(), ledger.MaxNamedCPUs))
	return cpus >= len(e.mem) || e.mem[cpus] < req.MemPerNode
}

func (n *Nodes) envelopeOf(s *Set, epoch int64) *freeEnvelope {
	e := &s.envelope
	if e.epoch == epoch {
		return e
	}
	e.epoch = epoch
	e.mem = e.mem[:0]
	for w, word := range n.open {
		if s.Names != nil {
			word &= s.members[w]
		}
		for ; word != 0; word &= word - 1 {
			f := &n.freeNow[w*64+bits.TrailingZeros64(word)]
			if f.cpus < 0 {
				continue
			}
			k := int(min(f.cpus, ledger.MaxNamedCPUs))
			for len(e.mem) <= k {
				e.mem = append(e.mem, -1)
			}
			e.mem[k] = max(e.mem[k], f.mem)
		}
	}
	for k := len(e.mem) - 2; k >= 0; k-- {
		e.mem[k] = max(e.mem[k], e.mem[k+1])
	}
	return e
}

// MaxFreed is the maximum of each resource over nodes in Nodes.Freed. A class that needs more need not look at each
// node.
type MaxFreed struct {
	freedSeq int64 // computed for these entries of Freed,
	starts   int   // after so many starts,
	pass     int64 // in this pass
	Nodes    int32
	CPUs     int32
	Mem      core.Bytes
}

// MaxFreedIn returns the maximum over the nodes of a set in Freed, after so many starts of the pass.
func (n *Nodes) MaxFreedIn(s *Set, starts int) *MaxFreed {
	m := &s.maxFreed
	if m.freedSeq == n.Freed.Next() && m.starts == starts && m.pass == n.Passes {
		return m
	}
	*m = n.MaxFreedSince(s, n.Freed.First)
	m.freedSeq, m.starts, m.pass = n.Freed.Next(), starts, n.Passes
	return m
}

// MaxFreedSince returns the maximum over the nodes of a set in Freed from an entry on.
func (n *Nodes) MaxFreedSince(s *Set, from int64) (m MaxFreed) {
	for i := from; i < n.Freed.Next(); i++ {
		if node := n.Freed.At(i); node.FreedSeq == i && s.Has(node) && node.HasFree() {
			m.Nodes++
			m.CPUs, m.Mem = max(m.CPUs, node.Free.Cpus), max(m.Mem, node.Free.Mem)
		}
	}
	return m
}

// IsBelow reports whether no node that came free has room for a task of the request.
func (m *MaxFreed) IsBelow(req *fit.Request) bool {
	return m.Nodes == 0 || req.Detail == nil && (req.CpusPerTask > m.CPUs || req.MinCPUs > m.CPUs ||
		req.MemPerNode > m.Mem)
}

// FreedIn lists the nodes of a set in Freed that have anything free, in the order they are tried.
func (n *Nodes) FreedIn(s *Set) []*ledger.Node {
	if s.freedAt != n.Freed.Next() {
		s.freedAt = n.Freed.Next()
		s.freed = s.freed[:0]
		for i, node := range n.Freed.Nodes {
			if node.FreedSeq == n.Freed.First+int64(i) && s.Has(node) && node.HasFree() {
				s.freed = append(s.freed, node)
			}
		}
		slices.SortFunc(s.freed, func(a, b *ledger.Node) int { return cmp.Compare(a.Index, b.Index) })
	}
	return s.freed
}
