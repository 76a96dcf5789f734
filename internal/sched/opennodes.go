package sched

import (
	"math/bits"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// nodeFree is the free memory and CPUs of a node. A pass scans the values of all nodes for every class it tries, so
// they lie in one slice.
type nodeFree struct {
	mem  core.Bytes
	cpus int32
}

// needsCPUsAndMemory reports whether a node with less free than one task's CPUs and memory has no room for the class.
func (s *partitionClass) needsCPUsAndMemory() bool {
	return s.req.Detail == nil && s.req.User == "" && (s.advance == nil || s.advance.Nodes == nil)
}

// nodesWithRoom lists the nodes of a class that have its CPUs and memory free, in the order they are tried.
func (p *Planner) nodesWithRoom(s *partitionClass) []*ledger.Node {
	cpus, mem := s.req.CpusPerNode(), s.req.MemPerNode
	out := p.openList[:0]
	for w, word := range p.openNodes {
		if s.part.nodes != nil {
			word &= s.part.members[w]
		}
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			if f := &p.freeNow[i]; f.cpus >= cpus && f.mem >= mem {
				out = append(out, p.ledger.Order[i])
			}
		}
	}
	p.openList = out
	return out
}

// freeEnvelope is the most memory that any open node of a partition has free beside at least so many CPUs, by CPUs.
// Nodes have less as a pass goes on, so it is an upper bound.
type freeEnvelope struct {
	epoch int64
	mem   []core.Bytes
}

// noNodeHasRoom reports whether no node has enough free for one task of a class, ignoring reservations. With preemption
// nodes may get more during a pass, so it reports false then.
func (ps *pass) noNodeHasRoom(s *partitionClass) bool {
	if ps.p.preemption != nil || !ps.p.tracking || !s.needsCPUsAndMemory() {
		return false
	}
	c := ps.envelopeOf(s.part)
	cpus := int(min(s.req.CpusPerNode(), ledger.MaxNamedCPUs))
	return cpus >= len(c.mem) || c.mem[cpus] < s.req.MemPerNode
}

func (ps *pass) envelopeOf(part *partition) *freeEnvelope {
	p, c := ps.p, &part.freeEnvelope
	if c.epoch == p.refusalEpoch {
		return c
	}
	c.epoch = p.refusalEpoch
	c.mem = c.mem[:0]
	for w, word := range p.openNodes {
		if part.nodes != nil {
			word &= part.members[w]
		}
		for ; word != 0; word &= word - 1 {
			f := &p.freeNow[w*64+bits.TrailingZeros64(word)]
			if f.cpus < 0 {
				continue
			}
			k := int(min(f.cpus, ledger.MaxNamedCPUs))
			for len(c.mem) <= k {
				c.mem = append(c.mem, -1)
			}
			c.mem[k] = max(c.mem[k], f.mem)
		}
	}
	for k := len(c.mem) - 2; k >= 0; k-- {
		c.mem[k] = max(c.mem[k], c.mem[k+1])
	}
	return c
}
