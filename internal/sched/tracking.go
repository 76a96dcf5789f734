package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// nodeLog is a list of nodes on which something happened, the last of it: every happening has a number, and a node
// counts
// for its last one only.
type nodeLog struct {
	nodes []*ledger.Node
	first int64 // the number of the first
}

func (f *nodeLog) next() int64 { return f.first + int64(len(f.nodes)) }

// at is the node of a number.
func (f *nodeLog) at(n int64) *ledger.Node { return f.nodes[n-f.first] }

// since is the nodes from a number on; the caller has made sure that they are still there.
func (f *nodeLog) since(n int64) []*ledger.Node { return f.nodes[n-f.first:] }

// cut forgets what was before a number.
func (f *nodeLog) cut(n int64) {
	if k := n - f.first; k > 0 {
		f.nodes = append(f.nodes[:0], f.nodes[k:]...)
		f.first = n
	}
}

// maxChanged is how many changes are kept for searches to catch up with; one that missed more starts over.
const maxChanged = 1 << 14

// noteFreed notes that something came free on a node.
func (p *Planner) noteFreed(a *ledger.Node) {
	a.FreedSeq = p.freed.next()
	p.freed.nodes = append(p.freed.nodes, a)
	p.noteChanged(a)
}

// noteChanged notes that what is free on a node changed.
func (p *Planner) noteChanged(a *ledger.Node) {
	if p.numberedAt == p.ledger.Version {
		p.updateFreeNow(a)
	}
	if !p.tracking {
		return
	}
	if len(p.changed.nodes) >= maxChanged {
		p.changed.cut(p.changed.next() - maxChanged/2)
	}
	a.ChangedSeq = p.changed.next()
	p.changed.nodes = append(p.changed.nodes, a)
}

// updateFreeNow keeps the set of nodes that have anything to give, and what that is.
func (p *Planner) updateFreeNow(a *ledger.Node) {
	p.freeNow[a.Index] = nodeFree{mem: a.Free.Mem, cpus: a.Free.Cpus}
	if a.HasFree() {
		p.openNodes.Set(a.Index)
	} else {
		p.openNodes.Clear(a.Index)
	}
}

// has tells whether a node is in the partition.
func (part *partition) has(a *ledger.Node) bool {
	return a.Index >= 0 && (part.nodes == nil || part.members.Has(a.Index))
}

// gateIndex numbers the nodes after the ledger's order changed.
func (p *Planner) numberNodes() {
	if p.numberedAt == p.ledger.Version {
		return
	}
	p.numberedAt = p.ledger.Version
	p.openNodes = make(ledger.Bitset, (len(p.ledger.Order)+63)/64)
	p.freeNow = make([]nodeFree, len(p.ledger.Order))
	for i, a := range p.ledger.Order {
		a.Index = int32(i)
		p.updateFreeNow(a)
	}
	for _, part := range p.partitions {
		for _, sr := range part.searches {
			sr.renumber(p.numbered)
		}
		if part.nodes == nil {
			continue
		}
		part.members = make(ledger.Bitset, len(p.openNodes))
		for _, a := range p.partitionNodes(part) {
			part.members.Set(a.Index)
		}
	}
	p.numbered = append(p.numbered[:0], p.ledger.Order...)
	if track := len(p.ledger.Order) >= p.trackMinNodes; track != p.tracking {
		p.tracking = track
		for _, a := range p.ledger.Order {
			a.Ends = nil
		}
		for _, part := range p.partitions {
			part.searches = nil
		}
		if track {
			for _, h := range p.allocations {
				p.addEnds(h, h.End)
			}
		}
	}
}

// renumber follows the nodes to their new numbers.
func (sr *searchCache) renumber(old []*ledger.Node) {
	sr.marks = slices.DeleteFunc(sr.marks, func(m roomMark) bool { return old[m.index].Index < 0 })
	for i := range sr.marks {
		sr.marks[i].index = old[sr.marks[i].index].Index
	}
}

// addEnds notes on a job's nodes until when it is there.
func (p *Planner) addEnds(h *ledger.Allocation, end core.Time) {
	if !p.tracking {
		return
	}
	for i := range h.Alloc.Nodes {
		if na := &h.Alloc.Nodes[i]; !na.Done {
			if a := p.ledger.Nodes[na.Node]; a != nil {
				a.AddEnd(ledger.End{At: end, Alloc: h, Index: int32(i)})
			}
		}
	}
}

// fingerprint tells whether a set of values is another one than before.
type fingerprint uint64

func newFingerprint() fingerprint { return 14695981039346656037 }

// add works values into it.
func (f *fingerprint) add(values ...uint64) {
	for _, v := range values {
		for v ^= uint64(*f) >> 32; ; v >>= 16 {
			*f = (*f ^ fingerprint(v)) * 1099511628211
			if v == 0 {
				break
			}
		}
	}
}
