package fit

// CpusPerNode returns the CPUs that a job needs free on each of its nodes.
func (req *Request) CpusPerNode() int32 { return max(req.CpusPerTask, req.MinCPUs) }
