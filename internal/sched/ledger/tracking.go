package ledger

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Tracking is what a planner records on a node between passes, so that a pass looks only at what changed.
type Tracking struct {
	Index      int32 // in the ledger's order; see cluster.Nodes.Number; -1: gone
	Kind       int32 // index in cluster.Nodes
	FreedSeq   int64 // its last entry in cluster.Nodes.Freed
	ChangedSeq int64 // its last entry in cluster.Nodes.Changed
	Ends       []End
}

// End is the end of a job's part of a node.
type End struct {
	At    core.Time
	Alloc *Allocation
	Index int32 // of alloc.Nodes
}

// HasFree reports whether a node has anything free now.
func (node *Node) HasFree() bool {
	return (node.Free.Cpus > 0 || node.Sharers != nil) && node.Record.Usable()
}

func (node *Node) AddEnd(s End) {
	k := len(node.Ends)
	for k > 0 && node.Ends[k-1].At > s.At {
		k--
	}
	node.Ends = slices.Insert(node.Ends, k, s)
}

// RemoveEnd removes a job's end from the node.
func (node *Node) RemoveEnd(h *Allocation) {
	for i := range node.Ends {
		if node.Ends[i].Alloc == h {
			node.Ends = slices.Delete(node.Ends, i, i+1)
			return
		}
	}
}
