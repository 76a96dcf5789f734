package sched

import (
	"math/bits"

	"bireme.dev/bireme/internal/core"
)

// spare is what a node has free now of what all jobs ask for. Those of all nodes lie side by side: a pass goes through
// them for every class that it tries, and looks at few of the nodes themselves.
type spare struct {
	mem  core.Bytes
	cpus int32
}

// plainly tells whether a node has no room for a job of the class if it has less free than one task's CPUs and memory.
func (s *slot) plainly() bool {
	return s.need.more == nil && s.need.owner == "" && (s.own == nil || s.own.on == nil)
}

// least is the CPUs that a job needs free on each of its nodes.
func (n *need) least() int32 { return max(n.cpusPerTask, n.minCPUs) }

// roomy lists the nodes of a class that have its CPUs and memory free, in the order they are tried.
func (p *Planner) roomy(s *slot) []*account {
	cpus, mem := s.need.least(), s.need.memNode
	out := p.rooming[:0]
	for w, word := range p.openSet {
		if s.part.nodes != nil {
			word &= s.part.members[w]
		}
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			if f := &p.spares[i]; f.cpus >= cpus && f.mem >= mem {
				out = append(out, p.ledger.order[i])
			}
		}
	}
	p.rooming = out
	return out
}

// crest is the most memory that any open node of a partition has free beside so many CPUs or more, by CPUs. Nodes have less
// as a pass goes on; what none has is not there any more.
type crest struct {
	pass int64
	mem  []core.Bytes
}

// bare tells whether no node has enough free for one task of a class, whatever is reserved. Where jobs are preempted,
// nodes may get more in a pass, too; and of few nodes each is soon looked at.
func (ps *pass) bare(s *slot) bool {
	if ps.p.push != nil || !ps.p.tracking || !s.plainly() {
		return false
	}
	c := ps.crest(s.part)
	cpus := int(min(s.need.least(), namedCPUs))
	return cpus >= len(c.mem) || c.mem[cpus] < s.need.memNode
}

func (ps *pass) crest(part *partition) *crest {
	p, c := ps.p, &part.crest
	if c.pass == p.passes {
		return c
	}
	c.pass = p.passes
	c.mem = c.mem[:0]
	for w, word := range p.openSet {
		if part.nodes != nil {
			word &= part.members[w]
		}
		for ; word != 0; word &= word - 1 {
			f := &p.spares[w*64+bits.TrailingZeros64(word)]
			if f.cpus < 0 {
				continue
			}
			k := int(min(f.cpus, namedCPUs))
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
