package fit

// CpusPerNode returns the CPUs that a job needs free on each of its nodes.
func (n *Request) CpusPerNode() int32 { return max(n.CpusPerTask, n.MinCPUs) }
