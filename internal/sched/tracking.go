package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// nodeTracking is what a planner notes on a node from pass to pass, so that a pass need look only where something
// changed.
type nodeTracking struct {
	index      int32 // in the ledger's order; see Planner.index
	kind       int32 // among kinds
	freedSeq   int64 // its last place among gains
	changedSeq int64 // and among news
	ends       []nodeEnd
	listedBy   int64 // scratch: the sweep that has it among nodes to look at anew
}

// nodeEnd is a job's part of a node, in the order in which they come back.
type nodeEnd struct {
	at    core.Time
	alloc *allocation
	index int32 // of alloc.Nodes
}

// nodeLog is a list of nodes on which something happened, the last of it: every happening has a number, and a node
// counts
// for its last one only.
type nodeLog struct {
	nodes []*nodeState
	first int64 // the number of the first
}

func (f *nodeLog) next() int64 { return f.first + int64(len(f.nodes)) }

// at is the node of a number.
func (f *nodeLog) at(n int64) *nodeState { return f.nodes[n-f.first] }

// since is the nodes from a number on; the caller has made sure that they are still there.
func (f *nodeLog) since(n int64) []*nodeState { return f.nodes[n-f.first:] }

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
func (p *Planner) noteFreed(a *nodeState) {
	a.freedSeq = p.freed.next()
	p.freed.nodes = append(p.freed.nodes, a)
	p.noteChanged(a)
}

// noteChanged notes that what is free on a node changed.
func (p *Planner) noteChanged(a *nodeState) {
	if p.numberedAt == p.ledger.version {
		p.updateFreeNow(a)
	}
	if !p.tracking {
		return
	}
	if len(p.changed.nodes) >= maxChanged {
		p.changed.cut(p.changed.next() - maxChanged/2)
	}
	a.changedSeq = p.changed.next()
	p.changed.nodes = append(p.changed.nodes, a)
}

// updateFreeNow keeps the set of nodes that have anything to give, and what that is.
func (p *Planner) updateFreeNow(a *nodeState) {
	p.freeNow[a.index] = nodeFree{mem: a.free.mem, cpus: a.free.cpus}
	if a.hasFree() {
		p.openNodes.set(a.index)
	} else {
		p.openNodes.clear(a.index)
	}
}

// advanceAllows tells whether a node has anything to give now.
func (a *nodeState) hasFree() bool { return (a.free.cpus > 0 || a.sharers != nil) && a.record.Usable() }

// has tells whether a node is in the partition.
func (part *partition) has(a *nodeState) bool {
	return a.index >= 0 && (part.nodes == nil || part.members.has(a.index))
}

// gateIndex numbers the nodes after the ledger's order changed.
func (p *Planner) numberNodes() {
	if p.numberedAt == p.ledger.version {
		return
	}
	p.numberedAt = p.ledger.version
	p.openNodes = make(bitset, (len(p.ledger.order)+63)/64)
	p.freeNow = make([]nodeFree, len(p.ledger.order))
	for i, a := range p.ledger.order {
		a.index = int32(i)
		p.updateFreeNow(a)
	}
	for _, part := range p.partitions {
		for _, sr := range part.searches {
			sr.renumber(p.numbered)
		}
		if part.nodes == nil {
			continue
		}
		part.members = make(bitset, len(p.openNodes))
		for _, a := range p.partitionNodes(part) {
			part.members.set(a.index)
		}
	}
	p.numbered = append(p.numbered[:0], p.ledger.order...)
	if track := len(p.ledger.order) >= p.trackMinNodes; track != p.tracking {
		p.tracking = track
		for _, a := range p.ledger.order {
			a.ends = nil
		}
		for _, part := range p.partitions {
			part.searches = nil
		}
		if track {
			for _, h := range p.allocations {
				p.addEnds(h, h.end)
			}
		}
	}
}

// renumber follows the nodes to their new numbers.
func (sr *searchCache) renumber(old []*nodeState) {
	sr.marks = slices.DeleteFunc(sr.marks, func(m roomMark) bool { return old[m.index].index < 0 })
	for i := range sr.marks {
		sr.marks[i].index = old[sr.marks[i].index].index
	}
}

// addEnds notes on a job's nodes until when it is there.
func (p *Planner) addEnds(h *allocation, end core.Time) {
	if !p.tracking {
		return
	}
	for i := range h.alloc.Nodes {
		if na := &h.alloc.Nodes[i]; !na.Done {
			if a := p.ledger.nodes[na.Node]; a != nil {
				a.addEnd(nodeEnd{end, h, int32(i)})
			}
		}
	}
}

func (a *nodeState) addEnd(s nodeEnd) {
	k := len(a.ends)
	for k > 0 && a.ends[k-1].at > s.at {
		k--
	}
	a.ends = slices.Insert(a.ends, k, s)
}

// removeEnd is the other way round.
func (a *nodeState) removeEnd(h *allocation) {
	for i := range a.ends {
		if a.ends[i].alloc == h {
			a.ends = slices.Delete(a.ends, i, i+1)
			return
		}
	}
}

// computeFreeAt works out what is free on a node at a moment, but for reservations.
func (a *nodeState) computeFreeAt(t, soon core.Time, sweep int64) {
	a.scanned = sweep
	a.freeThen.copyFrom(&a.free)
	a.sharersThen = append(a.sharersThen[:0], a.sharers...)
	for i := range a.ends {
		s := &a.ends[i]
		if max(s.at, soon) > t {
			break
		}
		s.alloc.returnTo(a, int(s.index), &a.freeThen, a.sharersThen)
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
