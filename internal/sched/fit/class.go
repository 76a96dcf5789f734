package fit

import "bireme.dev/bireme/internal/core"

// ApplyPartition applies a partition's own bounds on nodes and their memory.
func (n *Request) ApplyPartition(part *core.Partition) {
	n.maxMemPerNode = part.MaxMemPerNode
	n.applySharing(part)
	if part.MinNodes > n.NodesMin && part.MinNodes <= n.NodesMax {
		n.raiseNodes(part.MinNodes)
	}
	if part.MaxNodes >= n.NodesMin {
		n.NodesMax = min(n.NodesMax, part.MaxNodes)
	}
}
