package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// tracks is what a planner notes on a node from pass to pass, so that a pass need look only where something changed.
type tracks struct {
	index  int32 // in the ledger's order; see Planner.index
	kind   int32 // among kinds
	gained int64 // its last place among gains
	news   int64 // and among news
	visits []visit
	listed int64 // scratch: the sweep that has it among nodes to look at anew
}

// visit is a job's part of a node, in the order in which they come back.
type visit struct {
	at core.Time
	h  *holding
	i  int32 // of alloc.Nodes
}

// feed is a list of nodes on which something happened, the last of it: every happening has a number, and a node counts
// for its last one only.
type feed struct {
	nodes []*account
	from  int64 // the number of the first
}

func (f *feed) next() int64 { return f.from + int64(len(f.nodes)) }

// at is the node of a number.
func (f *feed) at(n int64) *account { return f.nodes[n-f.from] }

// since is the nodes from a number on; the caller has made sure that they are still there.
func (f *feed) since(n int64) []*account { return f.nodes[n-f.from:] }

// cut forgets what was before a number.
func (f *feed) cut(n int64) {
	if k := n - f.from; k > 0 {
		f.nodes = append(f.nodes[:0], f.nodes[k:]...)
		f.from = n
	}
}

// newsMost is how many changes are kept for searches to catch up with; one that missed more starts over.
const newsMost = 1 << 14

// gain notes that something came free on a node.
func (p *Planner) gain(a *account) {
	a.gained = p.gains.next()
	p.gains.nodes = append(p.gains.nodes, a)
	p.touch(a)
}

// touch notes that what is free on a node changed.
func (p *Planner) touch(a *account) {
	if p.indexed == p.ledger.shape {
		p.mind(a)
	}
	if !p.tracking {
		return
	}
	if len(p.news.nodes) >= newsMost {
		p.news.cut(p.news.next() - newsMost/2)
	}
	a.news = p.news.next()
	p.news.nodes = append(p.news.nodes, a)
}

// mind keeps the set of nodes that have anything to give, and what that is.
func (p *Planner) mind(a *account) {
	p.spares[a.index] = spare{mem: a.now.mem, cpus: a.now.cpus}
	if a.open() {
		p.openSet.set(a.index)
	} else {
		p.openSet.clear(a.index)
	}
}

// open tells whether a node has anything to give now.
func (a *account) open() bool { return (a.now.cpus > 0 || a.users != nil) && a.node.Usable() }

// has tells whether a node is in the partition.
func (part *partition) has(a *account) bool {
	return a.index >= 0 && (part.nodes == nil || part.members.has(a.index))
}

// index numbers the nodes after the ledger's order changed.
func (p *Planner) index() {
	if p.indexed == p.ledger.shape {
		return
	}
	p.indexed = p.ledger.shape
	p.openSet = make(bitset, (len(p.ledger.order)+63)/64)
	p.spares = make([]spare, len(p.ledger.order))
	for i, a := range p.ledger.order {
		a.index = int32(i)
		p.mind(a)
	}
	for _, part := range p.parts {
		for _, sr := range part.searches {
			sr.renumber(p.numbered)
		}
		if part.nodes == nil {
			continue
		}
		part.members = make(bitset, len(p.openSet))
		for _, a := range p.accounts(part) {
			part.members.set(a.index)
		}
	}
	p.numbered = append(p.numbered[:0], p.ledger.order...)
	if track := len(p.ledger.order) >= p.trackFrom; track != p.tracking {
		p.tracking = track
		for _, a := range p.ledger.order {
			a.visits = nil
		}
		for _, part := range p.parts {
			part.searches = nil
		}
		if track {
			for _, h := range p.holding {
				p.stay(h, h.end)
			}
		}
	}
}

// renumber follows the nodes to their new numbers.
func (sr *search) renumber(old []*account) {
	sr.marks = slices.DeleteFunc(sr.marks, func(m mark) bool { return old[m.index].index < 0 })
	for i := range sr.marks {
		sr.marks[i].index = old[sr.marks[i].index].index
	}
}

// stay notes on a job's nodes until when it is there.
func (p *Planner) stay(h *holding, end core.Time) {
	if !p.tracking {
		return
	}
	for i := range h.alloc.Nodes {
		if na := &h.alloc.Nodes[i]; !na.Done {
			if a := p.ledger.nodes[na.Node]; a != nil {
				a.visit(visit{end, h, int32(i)})
			}
		}
	}
}

func (a *account) visit(s visit) {
	k := len(a.visits)
	for k > 0 && a.visits[k-1].at > s.at {
		k--
	}
	a.visits = slices.Insert(a.visits, k, s)
}

// quit is the other way round.
func (a *account) quit(h *holding) {
	for i := range a.visits {
		if a.visits[i].h == h {
			a.visits = slices.Delete(a.visits, i, i+1)
			return
		}
	}
}

// foresee works out what is free on a node at a moment, but for reservations.
func (a *account) foresee(t, soon core.Time, sweep int64) {
	a.swept = sweep
	a.then.copy(&a.now)
	a.shared = append(a.shared[:0], a.users...)
	for i := range a.visits {
		s := &a.visits[i]
		if max(s.at, soon) > t {
			break
		}
		s.h.back(a, int(s.i), &a.then, a.shared)
	}
}

// fingerprint tells whether a set of values is another one than before.
type fingerprint uint64

func newFingerprint() fingerprint { return 14695981039346656037 }

// mix works values into it.
func (f *fingerprint) mix(values ...uint64) {
	for _, v := range values {
		for v ^= uint64(*f) >> 32; ; v >>= 16 {
			*f = (*f ^ fingerprint(v)) * 1099511628211
			if v == 0 {
				break
			}
		}
	}
}
