package sched

import "bireme.dev/bireme/internal/core"

// nodeBlocks is how a node is split into equal parts, for jobs that take whole ones. Others share the node as they
// always do.
type nodeBlocks struct {
	count int32
	cpus  int32 // of one
	mem   core.Bytes
	gres  []int64 // by the node's kinds; 0: of that kind a job takes what it asks for
}

func nodeBlocksOf(a *nodeState) *nodeBlocks {
	n := a.record.Blocks
	if n < 1 {
		return nil
	}
	all := &a.capacity
	if a.healthyCapacity != nil { // sick ones have their place in a block
		all = a.healthyCapacity
	}
	b := &nodeBlocks{count: n, cpus: all.cpus / n, mem: all.mem / core.Bytes(n), gres: make([]int64, len(all.gres))}
	for i := range b.gres {
		if a.gres[i].name == "gpu" {
			b.gres[i] = all.gres[i] / int64(n)
		}
	}
	return b
}

// raiseToBlocks raises what a job takes of a node to whole blocks, as few as will do; a job on several nodes has all of
// each.
func (n *request) raiseToBlocks(a *nodeState, u *resources) {
	b := a.blocks
	k := int64(b.count)
	if n.nodesMin <= 1 {
		k = max(1, blocksFor(int64(u.cpus), int64(b.cpus)), blocksFor(int64(u.mem), int64(b.mem)))
		for i := range u.gres {
			k = max(k, blocksFor(u.gres[i], b.gres[i]))
		}
		k = min(k, int64(b.count))
	}
	mem := core.Bytes(k) * b.mem
	if k == int64(b.count) {
		mem = a.capacity.mem // what does not divide is the whole's
	}
	if n.maxMemPerNode > 0 {
		mem = min(mem, n.maxMemPerNode)
	}
	u.cpus, u.mem = max(u.cpus, a.cpuLayout.roundUp(int32(k)*b.cpus)), max(u.mem, mem)
	if len(u.gres) == 0 && len(a.gres) > 0 {
		u.gres = make([]int64, len(a.gres))
	}
	for i := range u.gres {
		u.gres[i] = max(u.gres[i], min(k*b.gres[i], a.capacity.gres[i]))
	}
}

// partitions is how many parts of a size hold an amount.
func blocksFor(amount, size int64) int64 {
	if size <= 0 {
		return 0
	}
	return (amount + size - 1) / size
}

// blocksFit tells whether the blocks a job would take are free.
func (n *request) blocksFit(a *nodeState, b *resources) bool {
	u := n.usage(a, 1, b)
	if u.cpus > b.cpus || u.mem > b.mem {
		return false
	}
	for i := range u.gres {
		if u.gres[i] > b.gres[i] {
			return false
		}
	}
	return true
}
