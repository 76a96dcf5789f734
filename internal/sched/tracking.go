package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// nodeLog lists nodes on which something happened. Entries are numbered; of a node only the last entry counts. Old
// entries are cut off.
type nodeLog struct {
	nodes []*ledger.Node
	first int64 // number of the first entry
}

func (f *nodeLog) next() int64 { return f.first + int64(len(f.nodes)) }

func (f *nodeLog) at(n int64) *ledger.Node { return f.nodes[n-f.first] }

// since returns the nodes from an entry on. The caller has checked that the entry is not cut off.
func (f *nodeLog) since(n int64) []*ledger.Node { return f.nodes[n-f.first:] }

func (f *nodeLog) cut(n int64) {
	if k := n - f.first; k > 0 {
		f.nodes = append(f.nodes[:0], f.nodes[k:]...)
		f.first = n
	}
}

// maxChanged is how many changes are kept for cached searches. A search that missed more starts over.
const maxChanged = 1 << 14

// noteFreed records that something came free on a node.
func (p *Planner) noteFreed(a *ledger.Node) {
	a.FreedSeq = p.freed.next()
	p.freed.nodes = append(p.freed.nodes, a)
	p.noteChanged(a)
}

// noteChanged records that what is free on a node changed.
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

// updateFreeNow updates openNodes and freeNow for a node.
func (p *Planner) updateFreeNow(a *ledger.Node) {
	p.freeNow[a.Index] = nodeFree{mem: a.Free.Mem, cpus: a.Free.Cpus}
	if a.HasFree() {
		p.openNodes.Set(a.Index)
	} else {
		p.openNodes.Clear(a.Index)
	}
}

func (part *partition) has(a *ledger.Node) bool {
	return a.Index >= 0 && (part.nodes == nil || part.members.Has(a.Index))
}

// numberNodes numbers the nodes after the ledger's order changed, and switches tracking on or off by their number.
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

// renumber replaces node numbers after numberNodes.
func (sr *searchCache) renumber(old []*ledger.Node) {
	sr.marks = slices.DeleteFunc(sr.marks, func(m roomMark) bool { return old[m.index].Index < 0 })
	for i := range sr.marks {
		sr.marks[i].index = old[sr.marks[i].index].Index
	}
}

// addEnds records on a job's nodes when it ends.
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

// fingerprint is a hash that shows whether a set of values changed.
type fingerprint uint64

func newFingerprint() fingerprint { return 14695981039346656037 }

// add mixes values into the hash.
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
