package sched

import (
	"slices"

	"bireme.dev/bireme/internal/sched/ledger"
)

// numberNodes numbers the nodes after the ledger's order changed, and switches tracking on or off by their number.
func (p *Planner) numberNodes() {
	old, changed, toggled := p.nodes.Number()
	if !changed {
		return
	}
	for _, part := range p.partitions {
		for _, sr := range part.searches {
			sr.renumber(old)
		}
		if toggled {
			part.searches = nil
		}
	}
	if toggled {
		p.jobs.AddAllEnds()
	}
}

// renumber replaces node numbers after numberNodes.
func (sr *searchCache) renumber(old []*ledger.Node) {
	sr.marks = slices.DeleteFunc(sr.marks, func(m roomMark) bool { return old[m.index].Index < 0 })
	for i := range sr.marks {
		sr.marks[i].index = old[sr.marks[i].index].Index
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
