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

// WithoutSwitchLimit returns the request without the limit on switches.
func (req *Request) WithoutSwitchLimit() *Request {
	if req.Set == nil || req.Set.Switches == 0 {
		return req
	}
	m, w := *req, *req.Set
	w.Switches, m.Set = 0, &w
	return &m
}

// CpusPerNode returns the CPUs that a job needs free on each of its nodes.
func (req *Request) CpusPerNode() int32 { return max(req.CpusPerTask, req.MinCPUs) }
