package sched

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Terms are how a job holds its nodes, beside what it holds of them.
type Terms struct {
	Exclusive  bool               // nobody else may be there
	MaxSharing int32              // up to so many jobs may be on each of its CPUs; 0 or 1: it is alone on them
	User       core.UserName      // only others of his that say so too may be there
	Partition  core.PartitionName // where it runs: a partition may be bounded in what it uses of a node
}

// TermsOf gives the terms of an allocation to a job.
func TermsOf(s *core.Spec, al *core.Alloc) Terms {
	t := Terms{Exclusive: s.Shape.Exclusive, Partition: al.Partition}
	if al.More != nil {
		t.Exclusive, t.MaxSharing = t.Exclusive || al.More.Whole, al.More.Share
		if al.More.Own && !t.Exclusive {
			t.User = s.User
		}
	}
	return t
}

// Unit says how much of a node's CPUs is given out together.
type AllocUnit uint8

// The grains. No two jobs are on one core unless single CPUs are given.
const (
	UnitCore   AllocUnit = iota // whole cores, with all their threads, as Slurm's CR_Core
	UnitCPU                     // single CPUs, as CR_CPU on nodes that tell nothing of cores
	UnitSocket                  // whole sockets, as CR_Socket
)

// ParseAllocUnit reads core, cpu or socket.
func ParseAllocUnit(text string) (AllocUnit, bool) {
	switch strings.ToLower(text) {
	case "", "core":
		return UnitCore, true
	case "cpu":
		return UnitCPU, true
	case "socket":
		return UnitSocket, true
	}
	return 0, false
}

// AllocRules are what a ledger must know of the cluster beside its nodes. They are set before the first node.
type AllocRules struct {
	Unit      AllocUnit
	cpuLimits []cpuLimit
}

// isLimited is a partition that may use only so many CPUs of each of its nodes, all its jobs together.
type cpuLimit struct {
	part  core.PartitionName
	nodes map[core.NodeName]bool // nil: all
	cpus  int32
}

// AllocRulesOf reads what matters of partitions.
func AllocRulesOf(g AllocUnit, parts []core.Partition, names HostsFunc) AllocRules {
	r := AllocRules{Unit: g}
	for i := range parts {
		if p := &parts[i]; p.MaxCPUsPerNode > 0 {
			r.cpuLimits = append(r.cpuLimits, cpuLimit{p.Name, PartitionNodes(p, names), p.MaxCPUsPerNode})
		}
	}
	return r
}

// addCPULimits gives a node an account of each bound it is under. What a bounded partition may still use of a node is
// kept like
// a generic resource without a name, so that plans see it as they see everything else that may run out.
func (r *AllocRules) addCPULimits(a *nodeState) {
	for _, b := range r.cpuLimits {
		if b.nodes == nil || b.nodes[a.record.Name] {
			a.gres = append(a.gres, gresState{typ: string(b.part)})
			a.capacity.gres = append(a.capacity.gres, int64(b.cpus))
			a.hasCPULimits = true
		}
	}
}

// cpuLimitOf finds the account of a partition's bound on a node; -1: it has none.
func (a *nodeState) cpuLimitOf(part core.PartitionName) int {
	if a.hasCPULimits {
		for i := range a.gres {
			if a.gres[i].name == "" && a.gres[i].typ == string(part) {
				return i
			}
		}
	}
	return -1
}
