package ledger

import "bireme.dev/bireme/internal/core"

// Blocks is how a node is split into equal parts, for jobs that take whole ones. Others share the node as they always
// do.
type Blocks struct {
	Count int32
	Cpus  int32 // of one
	Mem   core.Bytes
	Gres  []int64 // by the node's kinds; 0: of that kind a job takes what it asks for
}

func nodeBlocksOf(node *Node) *Blocks {
	n := node.Record.Blocks
	if n < 1 {
		return nil
	}
	all := &node.Capacity
	if node.healthyCapacity != nil { // sick ones have their place in a block
		all = node.healthyCapacity
	}
	b := &Blocks{Count: n, Cpus: all.Cpus / n, Mem: all.Mem / core.Bytes(n), Gres: make([]int64, len(all.Gres))}
	for i := range b.Gres {
		if node.Gres[i].Name == "gpu" {
			b.Gres[i] = all.Gres[i] / int64(n)
		}
	}
	return b
}
