package sched

import (
	"fmt"
	"math/bits"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
	"bireme.dev/bireme/internal/sched/sorted"
)

// rank is all waiting jobs that ask for the same of the same partitions. What can be said of one without looking at
// what runs can be said of all: whether the nodes that are up could hold it at all is worked out once a class, when it
// appears and when nodes change, and not once a job and pass.
type classInfo struct {
	partitions  []partitionClass // one a partition, in the order the jobs name them
	jobs        int
	switchLimit int32 // its jobs are placed on so many leaf switches at most; 0: on any
	moved       bool  // while nodes change: some slot opened or closed
	due         int64 // see watch; 0: it is not

	special  bool                  // its jobs have something to do with reservations or licences
	licenses *alloc.LicenseRequest // nil: none
}

// class is a class in one partition.
type partitionClass struct {
	part *partition

	// These are looked at for all classes in every pass, so they are together.
	refusedEpoch int64              // the pass that last refused it
	refusedFrom  core.Time          // in that pass, jobs that are still there at this moment were refused; 0: all
	refusal      refusal            // what is known from earlier ones
	minTime      core.Time          // none of its jobs is shorter
	sleepWalk    int64              // the dive since which it sleeps; see roused
	sleeperIndex int                // its place among those that do, from 1
	preemptor    *preempt.Preemptor // nil: its jobs push nobody aside
	req          request

	overTimeLimit      bool    // its time limit is above the partition's
	reason             *Reason // why no job of it can start there on the nodes as they are; nil: one could, if nothing ran
	moved              bool
	queued             int         // of it in the partition's queue,
	position           int         // and where among the partition's slots
	minNodes, maxNodes int32       // the partition's bounds, as far as they hold for it
	limitAsk           *policy.Ask // what its jobs ask for, for limits; nil: nobody asked yet

	licenses        *alloc.LicenseRequest // nil: it asks for none
	namesAdvance    bool                  // its jobs ask for reservations
	inAdvanceQueue  bool                  // and wait in a queue of their own, having nothing to do with other jobs
	mayDelayAdvance bool                  // they may reach into reservations that let themselves be delayed
	// for jobs that may run in reservations: each way they may, in the order they are tried
	options      []partitionClass
	isOption     bool                 // it is one of those
	advance      *advance.Reservation // the reservation its jobs run in
	order        []*ledger.Node       // its nodes, then
	orderVersion int                  // as of; see Planner.nodesFor

	// how it went the last time that its jobs looked for somebody to preempt
	victimMemo victimMemo
	members    sorted.List[classMember, *classMember] // its jobs, by themselves
	walkedBy   int64                                  // the last dive that came by
}

// addJob puts a job into the class's own queue.
func (s *partitionClass) addJob(j *core.Job, g *policy.Gate) {
	n := alloc.MustFitTime(j.Spec)
	if s.queued++; s.queued == 1 {
		s.part.liveClasses++
		s.position, s.minTime = len(s.part.classes), n
		s.part.classes = append(s.part.classes, s)
		s.wake()
	} else if n < s.minTime {
		s.wake()
	}
	s.minTime = min(s.minTime, n)
	s.members.Insert(s.member(j, g))
}

// removeJob is the other way round.
func (s *partitionClass) removeJob(j *core.Job) {
	s.members.Remove(s.member(j, nil))
	if s.queued--; s.queued == 0 {
		s.part.liveClasses--
		s.part.removeSleeper(s)
		k := len(s.part.classes) - 1
		s.part.classes[s.position] = s.part.classes[k]
		s.part.classes[s.position].position = s.position
		s.part.classes[k] = nil
		s.part.classes = s.part.classes[:k]
	}
}

// classKey names a class.
type classKey struct {
	RequestKey
	partitions    core.PartitionName // as the spec lists them
	overTimeLimit uint64             // the partitions whose time limit it exceeds, by position
	switchLimit   int32              // leaf switches it waits for; see Planner.few
	advance       string             // see advanceKey
	exclusiveUser core.UserName      // see exclusiveUserKey
	uid           uint32             // see users
	qos           core.QOSName       // if that may push others aside
	exempted      core.QOSFlag       // bounds of its partitions that its QOS lifts
}

// reason is the reason the jobs of a class are not even looked at: none of their partitions could hold one.
func (c *classInfo) reason() *Reason {
	for i := range c.partitions {
		if c.partitions[i].reason == nil {
			return nil
		}
	}
	if len(c.partitions) == 0 {
		return &Reason{Code: core.ReasonPartitionConfig, Text: "its partition is not there any more"}
	}
	return c.partitions[0].reason
}

// classRules is what classes go by beside the jobs themselves. It is a value: plans keep it.
type classRules struct {
	advances   []*advance.Reservation
	preemption *preempt.Rules // nil: nobody is preempted
	exempted   qosExemptions
	users      keptUsers
}

// newKeyFunc tells the class of a job as long as the reservations, and who may push whom aside, are these. Plans keep
// it: it
// reads only what never changes.
func (p *Planner) newKeyFunc() func(*core.Job, core.Time) classKey {
	r := p.classRules
	return func(j *core.Job, now core.Time) classKey { return p.keyAt(j, now, &r) }
}

func (p *Planner) keyOf(s *core.Spec, r *classRules) classKey {
	k := classKey{
		RequestKey: RequestKeyOf(s), partitions: s.Partition, advance: advance.Key(r.advances, s),
		exclusiveUser: p.exclusiveUserKey(s), uid: r.users.key(s), exempted: r.exempted[s.QOS],
	}
	if r.preemption.QosPreempts(s.QOS) {
		k.qos = s.QOS
	}
	at := 0
	alloc.EachPartition(s.Partition, func(name core.PartitionName) {
		if part := p.partitionByName[name]; part != nil && part.MaxTime > 0 && s.TimeLimit > part.MaxTime && at < 64 &&
			k.exempted&core.PartitionTimeLimit == 0 {
			k.overTimeLimit |= 1 << at
		}
		at++
	})
	return k
}

// qosExemptions are the QOS that lift bounds of partitions, and which. It is a value: plans keep it.
type qosExemptions map[core.QOSName]core.QOSFlag

// exemptingFlags are the flags of a QOS that do.
const exemptingFlags = core.PartitionMaxNodes | core.PartitionMinNodes | core.PartitionTimeLimit

// bounds gives a partition's as they are for a class.
func (k *classKey) bounds(part core.Partition) core.Partition {
	if k.exempted&core.PartitionMaxNodes != 0 {
		part.MaxNodes = 0
	}
	if k.exempted&core.PartitionMinNodes != 0 {
		part.MinNodes = 0
	}
	return part
}

// joinClass finds or makes the class of a job that now waits.
func (p *Planner) joinClass(j *core.Job, few int32) *classInfo {
	k := p.keyOf(j.Spec, &p.classRules)
	k.switchLimit = few
	c := p.classes[k]
	if c == nil {
		c = &classInfo{switchLimit: few}
		n := requestOf(j.Spec, p.cfg.Hosts)
		n.uid = k.uid
		at := 0
		alloc.EachPartition(j.Spec.Partition, func(name core.PartitionName) {
			if part := p.partitionByName[name]; part != nil && !c.hasPartition(part) {
				s := partitionClass{part: part, req: n, overTimeLimit: at < 64 && k.overTimeLimit&(1<<at) != 0}
				bounds := k.bounds(part.Partition)
				s.minNodes, s.maxNodes = bounds.MinNodes, bounds.MaxNodes
				s.req.applyPartition(&bounds)
				s.req.bindLedger(p.ledger, &p.setScratch, part.LLN)
				s.req.user = ownerOf(j.Spec, &part.Partition)
				if few > 0 {
					s.req.set.switches = few
				}
				s.preemptor = p.preemption.Preemptor(j.Spec.QOS, &part.Partition)
				c.partitions = append(c.partitions, s)
			}
			at++
		})
		if k.advance != "" {
			p.setAdvanceOptions(c, j.Spec)
		}
		for i := range c.partitions {
			c.partitions[i].reason = p.assess(&c.partitions[i])
		}
		p.classes[k] = c
		p.watchClass(c)
		p.classReasonsStale = p.classReasonsStale || c.reason() != nil
	}
	c.jobs++
	return c
}

// removeJob is the other way round.
func (p *Planner) leaveClass(c *classInfo, j *core.Job) {
	if c.jobs--; c.jobs == 0 {
		p.classReasonsStale = p.classReasonsStale || c.reason() != nil
		k := p.keyOf(j.Spec, &p.classRules)
		k.switchLimit = c.switchLimit
		delete(p.classes, k)
		p.unwatchClass(c)
		if c.licenses != nil {
			p.licenseClasses--
		}
	}
}

func (c *classInfo) hasPartition(part *partition) bool {
	for i := range c.partitions {
		if c.partitions[i].part == part {
			return true
		}
	}
	return false
}

// advanceReserved applies a partition's own bounds on nodes and their memory.
func (n *request) applyPartition(part *core.Partition) {
	n.maxMemPerNode = part.MaxMemPerNode
	n.applySharing(part)
	if part.MinNodes > n.nodesMin && part.MinNodes <= n.nodesMax {
		n.raiseNodes(part.MinNodes)
	}
	if part.MaxNodes >= n.nodesMin {
		n.nodesMax = min(n.nodesMax, part.MaxNodes)
	}
}

// assess tells why a class could not start in a partition even if nothing ran, or nil if it could.
func (p *Planner) assess(s *partitionClass) *Reason {
	if s.namesAdvance || len(s.options) > 0 {
		return p.assessOptions(s)
	}
	part, n := s.part, &s.req
	switch {
	case n.invalid != "":
		return &Reason{Code: core.ReasonBadConstraints, Text: n.invalid}
	case isPartitionDown(part.State):
		return &Reason{Code: core.ReasonPartitionDown, Text: fmt.Sprintf("partition %s is %s", part.Name, part.State)}
	case s.maxNodes > 0 && n.nodesMin > s.maxNodes:
		return &Reason{
			Code: core.ReasonPartitionNodes,
			Text: fmt.Sprintf("the job requests %d nodes; partition %s allows %d per job", n.nodesMin, part.Name, s.maxNodes),
		}
	case n.nodesMax < s.minNodes:
		return &Reason{
			Code: core.ReasonPartitionNodes,
			Text: fmt.Sprintf("it asks for at most %d nodes; partition %s wants %d a job or more", n.nodesMax, part.Name,
				s.minNodes),
		}
	case part.nodes != nil && int(n.nodesMin) > len(part.nodes):
		return &Reason{Code: core.ReasonPartitionNodes, Text: fmt.Sprintf("the job requests %d nodes; partition %s has %d",
			n.nodesMin, part.Name, len(part.nodes))}
	case s.overTimeLimit:
		return &Reason{
			Code: core.ReasonPartitionTime,
			Text: fmt.Sprintf("it asks for more time than the %s that partition %s allows", part.MaxTime.Duration(), part.Name),
		}
	}
	nodes := p.nodesFor(s)
	if n.choose(ledger.View{Nodes: nodes, IfIdle: true}, p.choices) != nil {
		return nil
	}
	if s.advance.ConfinesNodes() {
		return &Reason{
			Code: core.ReasonReservation,
			Text: fmt.Sprintf("the nodes of reservation %s could not hold it: it asks for %s", s.advance.Name, n),
		}
	}
	if loose := n.withoutSwitchLimit(); loose != n {
		if loose.choose(ledger.View{Nodes: nodes, IfIdle: true}, p.choices) != nil {
			return &Reason{
				Code: core.ReasonResources,
				Text: fmt.Sprintf("it waits for nodes on %d leaf switch(es) at most for as long as it may, and the nodes that are up are on more", n.set.switches),
			}
		}
		n = loose
	}
	if f := checkSatisfiable(p.ledger, n, part.nodes, nodes); f != nil {
		w := &Reason{Code: core.ReasonBadConstraints, Text: f.Text}
		if part.nodes == nil && int(n.nodesMin) > len(nodes) {
			w.Code = core.ReasonPartitionNodes
		}
		return w
	}
	if len(n.required) > 0 {
		return &Reason{Code: core.ReasonReqNodeNotAvail, Text: "a node it asks for by name is not available"}
	}
	return &Reason{Code: core.ReasonResources, Text: "the nodes that are up could not hold it: it asks for " + n.String()}
}

// partitionNodes lists a partition's nodes in the order they are tried.
func (p *Planner) partitionNodes(part *partition) []*ledger.Node {
	if part.nodes == nil {
		return p.ledger.Order
	}
	if part.orderVersion != p.ledger.Version {
		part.orderVersion, part.order = p.ledger.Version, p.ledger.NodesIn(part.nodes)
	}
	return part.order
}

// advanceAllows lists the nodes of a partition that had any CPU free when the pass began; the others have nothing to
// give.
func (p *Planner) openNodesIn(part *partition) []*ledger.Node {
	if part.openPass != p.passCount {
		part.openPass = p.passCount
		part.openNodes = part.openNodes[:0]
		for w, word := range p.openNodes {
			if part.nodes != nil {
				word &= part.members[w]
			}
			for ; word != 0; word &= word - 1 {
				part.openNodes = append(part.openNodes, p.ledger.Order[w*64+bits.TrailingZeros64(word)])
			}
		}
	}
	return part.openNodes
}

// currentClassReasons gives the reasons of classes that are not looked at. The map is shared with plans and never
// changed.
func (p *Planner) currentClassReasons() map[classKey]Reason {
	if p.classReasonsStale {
		p.classReasonsStale = false
		p.classReasons = nil
		for k, c := range p.classes {
			if w := c.reason(); w != nil {
				if p.classReasons == nil {
					p.classReasons = map[classKey]Reason{}
				}
				p.classReasons[k] = *w
			}
		}
	}
	return p.classReasons
}
