package sched

import (
	"fmt"
	"math/bits"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// class is all waiting jobs that ask for the same of the same partitions. What can be said of one without looking at
// what runs can be said of all: whether the nodes that are up could hold it at all is worked out once a class, when it
// appears and when nodes change, and not once a job and pass.
type class struct {
	slots []slot // one a partition, in the order the jobs name them
	jobs  int
	few   int32 // its jobs are placed on so many leaf switches at most; 0: on any
	moved bool  // while nodes change: some slot opened or closed
	due   int64 // see watch; 0: it is not

	aside    bool        // its jobs have something to do with reservations or licences
	licences *licenceAsk // nil: none
}

// slot is a class in one partition.
type slot struct {
	part *partition

	// These are looked at for all classes in every pass, so they are together.
	pass     int64     // the pass that last refused it
	until    core.Time // in that pass, jobs that are still there at this moment were refused; 0: all
	refusal  refusal   // what is known from earlier ones
	shortest core.Time // none of its jobs is shorter
	slept    int64     // the dive since which it sleeps; see roused
	bed      int       // its place among those that do, from 1
	push     *pusher   // nil: its jobs push nobody aside
	need     need

	over               bool // its time limit is above the partition's
	why                *Why // why no job of it can start there on the nodes as they are; nil: one could, if nothing ran
	moved              bool
	jobs               int         // of it in the partition's queue,
	place              int         // and where among the partition's slots
	minNodes, maxNodes int32       // the partition's bounds, as far as they hold for it
	ask                *policy.Ask // what its jobs ask for, for limits; nil: nobody asked yet

	lic    *licenceAsk // nil: it asks for none
	named  bool        // its jobs ask for reservations
	inside bool        // and wait in a queue of their own, having nothing to do with other jobs
	reach  bool        // they may reach into reservations that let themselves be delayed
	ways   []slot      // for jobs that may run in reservations: each way they may, in the order they are tried
	sub    bool        // it is one of those
	own    *advance    // the reservation its jobs run in
	order  []*account  // its nodes, then
	shape  int         // as of; see Planner.nodesOf

	hunted  hunted                // how it went the last time that its jobs looked for somebody to preempt
	members list[member, *member] // its jobs, by themselves
	dived   int64                 // the last dive that came by
}

// enter puts a job into the class's own queue.
func (s *slot) enter(j *core.Job, g *policy.Gate) {
	n := mustRun(j.Spec)
	if s.jobs++; s.jobs == 1 {
		s.part.live++
		s.place, s.shortest = len(s.part.slots), n
		s.part.slots = append(s.part.slots, s)
		s.wake()
	} else if n < s.shortest {
		s.wake()
	}
	s.shortest = min(s.shortest, n)
	s.members.insert(s.member(j, g))
}

// leave is the other way round.
func (s *slot) leave(j *core.Job) {
	s.members.remove(s.member(j, nil))
	if s.jobs--; s.jobs == 0 {
		s.part.live--
		s.part.rise(s)
		k := len(s.part.slots) - 1
		s.part.slots[s.place] = s.part.slots[k]
		s.part.slots[s.place].place = s.place
		s.part.slots[k] = nil
		s.part.slots = s.part.slots[:k]
	}
}

// classKey names a class.
type classKey struct {
	Key
	partitions core.PartitionName // as the spec lists them
	over       uint64             // the partitions whose time limit it exceeds, by position
	few        int32              // leaf switches it waits for; see Planner.few
	aside      string             // see asideKey
	owner      core.UserName      // see ownerKey
	uid        uint32             // see users
	qos        core.QOSName       // if that may push others aside
	exempt     core.QOSFlag       // bounds of its partitions that its QOS lifts
}

// why is the reason the jobs of a class are not even looked at: none of their partitions could hold one.
func (c *class) why() *Why {
	for i := range c.slots {
		if c.slots[i].why == nil {
			return nil
		}
	}
	if len(c.slots) == 0 {
		return &Why{Reason: core.ReasonPartitionConfig, Text: "its partition is not there any more"}
	}
	return c.slots[0].why
}

// ruling is what classes go by beside the jobs themselves. It is a value: plans keep it.
type ruling struct {
	books  []*advance
	push   *Preemption // nil: nobody is preempted
	exempt exempts
	users  users
}

// keyFunc tells the class of a job as long as the reservations, and who may push whom aside, are these. Plans keep it: it
// reads only what never changes.
func (p *Planner) keyFunc() func(*core.Job, core.Time) classKey {
	r := p.ruling
	return func(j *core.Job, now core.Time) classKey { return p.keyAt(j, now, &r) }
}

func (p *Planner) keyOf(s *core.Spec, r *ruling) classKey {
	k := classKey{Key: KeyOf(s), partitions: s.Partition, aside: asideKey(r.books, s), owner: p.ownerKey(s), uid: r.users.key(s), exempt: r.exempt[s.QOS]}
	if r.push.pushy(s.QOS) {
		k.qos = s.QOS
	}
	at := 0
	eachPartition(s.Partition, func(name core.PartitionName) {
		if part := p.byName[name]; part != nil && part.MaxTime > 0 && s.TimeLimit > part.MaxTime && at < 64 && k.exempt&core.PartitionTimeLimit == 0 {
			k.over |= 1 << at
		}
		at++
	})
	return k
}

// exempts are the QOS that lift bounds of partitions, and which. It is a value: plans keep it.
type exempts map[core.QOSName]core.QOSFlag

// exempting are the flags of a QOS that do.
const exempting = core.PartitionMaxNodes | core.PartitionMinNodes | core.PartitionTimeLimit

// bounds gives a partition's as they are for a class.
func (k *classKey) bounds(part core.Partition) core.Partition {
	if k.exempt&core.PartitionMaxNodes != 0 {
		part.MaxNodes = 0
	}
	if k.exempt&core.PartitionMinNodes != 0 {
		part.MinNodes = 0
	}
	return part
}

// join finds or makes the class of a job that now waits.
func (p *Planner) join(j *core.Job, few int32) *class {
	k := p.keyOf(j.Spec, &p.ruling)
	k.few = few
	c := p.classes[k]
	if c == nil {
		c = &class{few: few}
		n := needOf(j.Spec, p.cfg.Names)
		n.uid = k.uid
		at := 0
		eachPartition(j.Spec.Partition, func(name core.PartitionName) {
			if part := p.byName[name]; part != nil && !c.in(part) {
				s := slot{part: part, need: n, over: at < 64 && k.over&(1<<at) != 0}
				bounds := k.bounds(part.Partition)
				s.minNodes, s.maxNodes = bounds.MinNodes, bounds.MaxNodes
				s.need.within(&bounds)
				s.need.settle(p.ledger, part.LLN)
				s.need.owner = ownerOf(j.Spec, &part.Partition)
				if few > 0 {
					s.need.wish.switches = few
				}
				s.push = p.push.pusher(j.Spec.QOS, &part.Partition)
				c.slots = append(c.slots, s)
			}
			at++
		})
		if k.aside != "" {
			p.asides(c, j.Spec)
		}
		for i := range c.slots {
			c.slots[i].why = p.assess(&c.slots[i])
		}
		p.classes[k] = c
		p.watch(c)
		p.stale = p.stale || c.why() != nil
	}
	c.jobs++
	return c
}

// leave is the other way round.
func (p *Planner) leave(c *class, j *core.Job) {
	if c.jobs--; c.jobs == 0 {
		p.stale = p.stale || c.why() != nil
		k := p.keyOf(j.Spec, &p.ruling)
		k.few = c.few
		delete(p.classes, k)
		p.unwatch(c)
		if c.licences != nil {
			p.asking--
		}
	}
}

func (c *class) in(part *partition) bool {
	for i := range c.slots {
		if c.slots[i].part == part {
			return true
		}
	}
	return false
}

// within applies a partition's own bounds on nodes and their memory.
func (n *need) within(part *core.Partition) {
	n.memMost = part.MaxMemPerNode
	n.bounded(part)
	if part.MinNodes > n.nodesMin && part.MinNodes <= n.nodesMax {
		n.atLeast(part.MinNodes)
	}
	if part.MaxNodes >= n.nodesMin {
		n.nodesMax = min(n.nodesMax, part.MaxNodes)
	}
}

// assess tells why a class could not start in a partition even if nothing ran, or nil if it could.
func (p *Planner) assess(s *slot) *Why {
	if s.named || len(s.ways) > 0 {
		return p.assessWays(s)
	}
	part, n := s.part, &s.need
	switch {
	case n.unreadable != "":
		return &Why{Reason: core.ReasonBadConstraints, Text: n.unreadable}
	case down(part.State):
		return &Why{Reason: core.ReasonPartitionDown, Text: fmt.Sprintf("partition %s is %s", part.Name, part.State)}
	case s.maxNodes > 0 && n.nodesMin > s.maxNodes:
		return &Why{Reason: core.ReasonPartitionNodes, Text: fmt.Sprintf("it asks for %d nodes; partition %s allows %d a job", n.nodesMin, part.Name, s.maxNodes)}
	case n.nodesMax < s.minNodes:
		return &Why{Reason: core.ReasonPartitionNodes, Text: fmt.Sprintf("it asks for at most %d nodes; partition %s wants %d a job or more", n.nodesMax, part.Name, s.minNodes)}
	case part.nodes != nil && int(n.nodesMin) > len(part.nodes):
		return &Why{Reason: core.ReasonPartitionNodes, Text: fmt.Sprintf("it asks for %d nodes; partition %s has %d", n.nodesMin, part.Name, len(part.nodes))}
	case s.over:
		return &Why{Reason: core.ReasonPartitionTime, Text: fmt.Sprintf("it asks for more time than the %s that partition %s allows", part.MaxTime.Duration(), part.Name)}
	}
	nodes := p.nodesOf(s)
	if n.choose(look{nodes: nodes, empty: true}, p.buf) != nil {
		return nil
	}
	if s.own.confines() {
		return &Why{Reason: core.ReasonReservation, Text: fmt.Sprintf("the nodes of reservation %s could not hold it: it asks for %s", s.own.Name, n)}
	}
	if loose := n.loose(); loose != n {
		if loose.choose(look{nodes: nodes, empty: true}, p.buf) != nil {
			return &Why{Reason: core.ReasonResources, Text: fmt.Sprintf("it waits for nodes on %d leaf switch(es) at most for as long as it may, and the nodes that are up are on more", n.wish.switches)}
		}
		n = loose
	}
	if f := p.ledger.canEver(n, part.nodes, nodes); f != nil {
		w := &Why{Reason: core.ReasonBadConstraints, Text: f.Text}
		if part.nodes == nil && int(n.nodesMin) > len(nodes) {
			w.Reason = core.ReasonPartitionNodes
		}
		return w
	}
	if len(n.must) > 0 {
		return &Why{Reason: core.ReasonReqNodeNotAvail, Text: "a node it asks for by name is not available"}
	}
	return &Why{Reason: core.ReasonResources, Text: "the nodes that are up could not hold it: it asks for " + n.String()}
}

// accounts lists a partition's nodes in the order they are tried.
func (p *Planner) accounts(part *partition) []*account {
	if part.nodes == nil {
		return p.ledger.order
	}
	if part.shape != p.ledger.shape {
		part.shape, part.order = p.ledger.shape, p.ledger.within(part.nodes)
	}
	return part.order
}

// open lists the nodes of a partition that had any CPU free when the pass began; the others have nothing to give.
func (p *Planner) open(part *partition) []*account {
	if part.opened != p.opened {
		part.opened = p.opened
		part.open = part.open[:0]
		for w, word := range p.openSet {
			if part.nodes != nil {
				word &= part.members[w]
			}
			for ; word != 0; word &= word - 1 {
				part.open = append(part.open, p.ledger.order[w*64+bits.TrailingZeros64(word)])
			}
		}
	}
	return part.open
}

// verdictsNow gives the reasons of classes that are not looked at. The map is shared with plans and never changed.
func (p *Planner) verdictsNow() map[classKey]Why {
	if p.stale {
		p.stale = false
		p.verdicts = nil
		for k, c := range p.classes {
			if w := c.why(); w != nil {
				if p.verdicts == nil {
					p.verdicts = map[classKey]Why{}
				}
				p.verdicts[k] = *w
			}
		}
	}
	return p.verdicts
}
