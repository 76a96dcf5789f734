package fit

import "bireme.dev/bireme/internal/core"

// ApplyPartition applies a partition's own bounds on nodes and their memory.
func (req *Request) ApplyPartition(part *core.Partition) {
	req.maxMemPerNode = part.MaxMemPerNode
	req.applySharing(part)
	if part.MinNodes > req.NodesMin && part.MinNodes <= req.NodesMax {
		req.raiseNodes(part.MinNodes)
	}
	if part.MaxNodes >= req.NodesMin {
		req.NodesMax = min(req.NodesMax, part.MaxNodes)
	}
}
