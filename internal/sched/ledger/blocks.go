package ledger

import (
	"bireme.dev/bireme/internal/core"
)

// Blocks is how a node is split into equal parts, for jobs that take whole ones. Others share the node as they
// always do.
type Blocks struct {
	Count int32
	Cpus  int32 // of one
	Mem   core.Bytes
	Gres  []int64 // by the node's kinds; 0: of that kind a job takes what it asks for
}

func nodeBlocksOf(a *Node) *Blocks {
	n := a.Record.Blocks
	if n < 1 {
		return nil
	}
	all := &a.Capacity
	if a.healthyCapacity != nil { // sick ones have their place in a block
		all = a.healthyCapacity
	}
	b := &Blocks{Count: n, Cpus: all.Cpus / n, Mem: all.Mem / core.Bytes(n), Gres: make([]int64, len(all.Gres))}
	for i := range b.Gres {
		if a.Gres[i].Name == "gpu" {
			b.Gres[i] = all.Gres[i] / int64(n)
		}
	}
	return b
}
