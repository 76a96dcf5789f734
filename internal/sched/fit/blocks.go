package fit

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// raiseToBlocks raises what a job takes of a node to whole blocks, as few as will do; a job on several nodes has all of
// each.
func (req *Request) raiseToBlocks(node *ledger.Node, u *ledger.Resources) {
	b := node.Blocks
	k := int64(b.Count)
	if req.NodesMin <= 1 {
		k = max(1, blocksFor(int64(u.Cpus), int64(b.Cpus)), blocksFor(int64(u.Mem), int64(b.Mem)))
		for i := range u.Gres {
			k = max(k, blocksFor(u.Gres[i], b.Gres[i]))
		}
		k = min(k, int64(b.Count))
	}
	mem := core.Bytes(k) * b.Mem
	if k == int64(b.Count) {
		mem = node.Capacity.Mem // what does not divide is the whole's
	}
	if req.maxMemPerNode > 0 {
		mem = min(mem, req.maxMemPerNode)
	}
	u.Cpus, u.Mem = max(u.Cpus, node.CPULayout.RoundUp(int32(k)*b.Cpus)), max(u.Mem, mem)
	if len(u.Gres) == 0 && len(node.Gres) > 0 {
		u.Gres = make([]int64, len(node.Gres))
	}
	for i := range u.Gres {
		u.Gres[i] = max(u.Gres[i], min(k*b.Gres[i], node.Capacity.Gres[i]))
	}
}

// blocksFor returns how many blocks of a size hold an amount.
func blocksFor(amount, size int64) int64 {
	if size <= 0 {
		return 0
	}
	return (amount + size - 1) / size
}

// blocksFit reports whether the blocks a job would take are free.
func (req *Request) blocksFit(node *ledger.Node, b *ledger.Resources) bool {
	u := req.Usage(node, 1, b)
	if u.Cpus > b.Cpus || u.Mem > b.Mem {
		return false
	}
	for i := range u.Gres {
		if u.Gres[i] > b.Gres[i] {
			return false
		}
	}
	return true
}
