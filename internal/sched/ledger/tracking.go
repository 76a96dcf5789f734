package ledger

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Tracking is what a planner notes on a node from pass to pass, so that a pass need look only where something
// changed.
type Tracking struct {
	Index      int32 // in the ledger's order; see Planner.index
	Kind       int32 // among kinds
	FreedSeq   int64 // its last place among gains
	ChangedSeq int64 // and among news
	Ends       []End
	ListedBy   int64 // scratch: the sweep that has it among nodes to look at anew
}

// End is a job's part of a node, in the order in which they come back.
type End struct {
	At    core.Time
	Alloc *Allocation
	Index int32 // of alloc.Nodes
}

// advanceAllows tells whether a node has anything to give now.
func (a *Node) HasFree() bool { return (a.Free.Cpus > 0 || a.Sharers != nil) && a.Record.Usable() }

func (a *Node) AddEnd(s End) {
	k := len(a.Ends)
	for k > 0 && a.Ends[k-1].At > s.At {
		k--
	}
	a.Ends = slices.Insert(a.Ends, k, s)
}

// RemoveEnd is the other way round.
func (a *Node) RemoveEnd(h *Allocation) {
	for i := range a.Ends {
		if a.Ends[i].Alloc == h {
			a.Ends = slices.Delete(a.Ends, i, i+1)
			return
		}
	}
}

// ComputeFreeAt works out what is free on a node at a moment, but for reservations.
func (a *Node) ComputeFreeAt(t, soon core.Time, sweep int64) {
	a.Scanned = sweep
	a.FreeThen.CopyFrom(&a.Free)
	a.SharersThen = append(a.SharersThen[:0], a.Sharers...)
	for i := range a.Ends {
		s := &a.Ends[i]
		if max(s.At, soon) > t {
			break
		}
		s.Alloc.ReturnTo(a, int(s.Index), &a.FreeThen, a.SharersThen)
	}
}
