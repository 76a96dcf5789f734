package ledger

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Rules are what a ledger must know of the cluster beside its nodes. They are set before the first node.
type Rules struct {
	Unit      core.AllocUnit
	cpuLimits []cpuLimit
}

// cpuLimit is a partition that may use only so many CPUs of each of its nodes, all its jobs together.
type cpuLimit struct {
	part  core.PartitionName
	nodes map[core.NodeName]bool // nil: all
	cpus  int32
}

// RulesOf reads what matters of partitions.
func RulesOf(g core.AllocUnit, parts []core.Partition, names alloc.HostsFunc) Rules {
	r := Rules{Unit: g}
	for i := range parts {
		if p := &parts[i]; p.MaxCPUsPerNode > 0 {
			r.cpuLimits = append(r.cpuLimits, cpuLimit{p.Name, alloc.PartitionNodes(p, names), p.MaxCPUsPerNode})
		}
	}
	return r
}

// addCPULimits gives a node an account of each bound it is under. What a bounded partition may still use of a node is
// kept like a generic resource without a name, so that plans see it as they see everything else that may run out.
func (r *Rules) addCPULimits(node *Node) {
	for _, b := range r.cpuLimits {
		if b.nodes == nil || b.nodes[node.Record.Name] {
			node.Gres = append(node.Gres, Gres{Typ: string(b.part)})
			node.Capacity.Gres = append(node.Capacity.Gres, int64(b.cpus))
			node.hasCPULimits = true
		}
	}
}

// CpuLimitOf finds the account of a partition's bound on a node; -1: it has none.
func (node *Node) CpuLimitOf(part core.PartitionName) int {
	if node.hasCPULimits {
		for i := range node.Gres {
			if node.Gres[i].Name == "" && node.Gres[i].Typ == string(part) {
				return i
			}
		}
	}
	return -1
}
