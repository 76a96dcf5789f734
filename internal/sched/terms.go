package sched

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Terms are how a job holds its nodes, beside what it holds of them.
type Terms struct {
	Whole bool               // nobody else may be there
	Share int32              // up to so many jobs may be on each of its CPUs; 0 or 1: it is alone on them
	Owner core.UserName      // only others of his that say so too may be there
	Part  core.PartitionName // where it runs: a partition may be bounded in what it uses of a node
}

// TermsOf gives the terms of an allocation to a job.
func TermsOf(s *core.Spec, al *core.Alloc) Terms {
	t := Terms{Whole: s.Shape.Exclusive, Part: al.Partition}
	if al.More != nil {
		t.Whole, t.Share = t.Whole || al.More.Whole, al.More.Share
		if al.More.Own && !t.Whole {
			t.Owner = s.User
		}
	}
	return t
}

// Grain says how much of a node's CPUs is given out together.
type Grain uint8

// The grains. No two jobs are on one core unless single CPUs are given.
const (
	GrainCore   Grain = iota // whole cores, with all their threads, as Slurm's CR_Core
	GrainCPU                 // single CPUs, as CR_CPU on nodes that tell nothing of cores
	GrainSocket              // whole sockets, as CR_Socket
)

// ParseGrain reads core, cpu or socket.
func ParseGrain(text string) (Grain, bool) {
	switch strings.ToLower(text) {
	case "", "core":
		return GrainCore, true
	case "cpu":
		return GrainCPU, true
	case "socket":
		return GrainSocket, true
	}
	return 0, false
}

// Rules are what a ledger must know of the cluster beside its nodes. They are set before the first node.
type Rules struct {
	Grain  Grain
	bounds []bound
}

// bound is a partition that may use only so many CPUs of each of its nodes, all its jobs together.
type bound struct {
	part  core.PartitionName
	nodes map[core.NodeName]bool // nil: all
	cpus  int32
}

// RulesOf reads what matters of partitions.
func RulesOf(g Grain, parts []core.Partition, names Names) Rules {
	r := Rules{Grain: g}
	for i := range parts {
		if p := &parts[i]; p.MaxCPUsPerNode > 0 {
			r.bounds = append(r.bounds, bound{p.Name, PartitionNodes(p, names), p.MaxCPUsPerNode})
		}
	}
	return r
}

// bind gives a node an account of each bound it is under. What a bounded partition may still use of a node is kept like
// a generic resource without a name, so that plans see it as they see everything else that may run out.
func (r *Rules) bind(a *account) {
	for _, b := range r.bounds {
		if b.nodes == nil || b.nodes[a.node.Name] {
			a.gres = append(a.gres, gresAccount{typ: string(b.part)})
			a.full.gres = append(a.full.gres, int64(b.cpus))
			a.bound = true
		}
	}
}

// boundOf finds the account of a partition's bound on a node; -1: it has none.
func (a *account) boundOf(part core.PartitionName) int {
	if a.bound {
		for i := range a.gres {
			if a.gres[i].name == "" && a.gres[i].typ == string(part) {
				return i
			}
		}
	}
	return -1
}
