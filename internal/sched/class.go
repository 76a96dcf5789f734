package sched

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
	"bireme.dev/bireme/internal/sched/sorted"
)

// classInfo is an equivalence class: pending jobs with the same request for the same partitions. Whether idle nodes
// could hold such a job is computed once per class, when it appears and when nodes change.
type classInfo struct {
	partitions  []partitionClass // in the order in which the jobs name the partitions
	jobs        int
	switchLimit int32 // maximum number of leaf switches of a placement; 0: any
	moved       bool  // during reassess: it entered or left the queue of a partition
	due         int64 // value of classWatch.downs at which it is assessed again; 0: not scheduled

	special  bool                  // its jobs use advance reservations or licenses
	licenses *alloc.LicenseRequest // nil: none
}

// partitionClass is a class in one partition.
type partitionClass struct {
	part               *partition
	cluster.Candidates // where its jobs may run

	// A pass reads these for all classes, so they are adjacent.
	refusedEpoch int64              // Planner.refusalEpoch when it was last refused
	refusedFrom  core.Time          // in that epoch jobs that still run at this time are refused; 0: all
	refusal      refusal            // what is known from earlier passes
	minTime      core.Time          // lower bound of its jobs' minTime
	sleepWalk    int64              // the walk by class since which it sleeps; see sleepers.go
	sleeperIndex int                // its index in partition.sleepers plus 1
	preemptor    *preempt.Preemptor // nil: its jobs may not preempt
	req          fit.Request

	overTimeLimit      bool    // its time limit is above the partition's
	reason             *Reason // why its jobs could not start there even if nothing ran; nil: they could
	moved              bool
	queued             int         // number of its jobs in the partition's queue
	position           int         // its index in partition.classes
	minNodes, maxNodes int32       // the partition's bounds; 0 if its QOS lifts them
	limitAsk           *policy.Ask // its request in terms of limits; nil: not computed yet

	licenses        *alloc.LicenseRequest // nil: it asks for none
	namesAdvance    bool                  // its jobs run only in advance reservations
	inAdvanceQueue  bool                  // they wait in partition.advanceQueue: no other job competes for their nodes
	mayDelayAdvance bool                  // they may overlap advance reservations that allow a delay
	// For jobs that may run in advance reservations: one entry for each, in the order they are tried.
	options  []partitionClass
	isOption bool // it is an element of options

	// the last unsuccessful search for victims
	victimMemo victimMemo
	members    sorted.List[classMember, *classMember] // its jobs, in queue order
	walkedBy   int64                                  // the last walk by class that visited it
}

// addJob adds a job to the class's own queue.
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

type classKey struct {
	fit.Key
	partitions    core.PartitionName // as the spec lists them
	overTimeLimit uint64             // the partitions whose time limit it exceeds, by position
	switchLimit   int32              // see Planner.switchLimit
	advance       string             // see advance.Key
	exclusiveUser core.UserName      // see exclusiveUserKey
	uid           uint32             // see keptUsers.key
	qos           core.QOSName       // set only if the QOS may preempt
	exempted      core.QOSFlag       // bounds of partitions that its QOS lifts
}

// reason returns why no job of the class is in a queue, or nil if a partition could hold them.
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

// classRules is what the class of a job depends on beside the job. It is a value: plans keep it.
type classRules struct {
	advances   []*advance.Reservation
	preemption *preempt.Rules // nil: no preemption
	exempted   qosExemptions
	users      keptUsers
}

// newKeyFunc returns a function that computes the class of a job under the present rules. Plans keep it: it reads only
// what never changes.
func (p *Planner) newKeyFunc() func(*core.Job, core.Time) classKey {
	r := p.classRules
	return func(j *core.Job, now core.Time) classKey { return p.keyAt(j, now, &r) }
}

func (p *Planner) keyOf(s *core.Spec, r *classRules) classKey {
	k := classKey{
		Key: fit.KeyOf(s), partitions: s.Partition, advance: advance.Key(r.advances, s),
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

// qosExemptions lists the QOS that lift bounds of partitions, and which bounds. It is never changed: plans keep it.
type qosExemptions map[core.QOSName]core.QOSFlag

// exemptingFlags are the flags of a QOS that lift bounds of partitions.
const exemptingFlags = core.PartitionMaxNodes | core.PartitionMinNodes | core.PartitionTimeLimit

// bounds returns a partition with the bounds that hold for the class.
func (k *classKey) bounds(part core.Partition) core.Partition {
	if k.exempted&core.PartitionMaxNodes != 0 {
		part.MaxNodes = 0
	}
	if k.exempted&core.PartitionMinNodes != 0 {
		part.MinNodes = 0
	}
	return part
}

// joinClass returns the class of a pending job and counts the job in. It creates the class if there is none.
func (p *Planner) joinClass(j *core.Job, few int32) *classInfo {
	k := p.keyOf(j.Spec, &p.classRules)
	k.switchLimit = few
	c := p.classes[k]
	if c == nil {
		c = &classInfo{switchLimit: few}
		n := fit.RequestOf(j.Spec, p.cfg.Hosts)
		n.Uid = k.uid
		at := 0
		alloc.EachPartition(j.Spec.Partition, func(name core.PartitionName) {
			if part := p.partitionByName[name]; part != nil && !c.hasPartition(part) {
				s := partitionClass{
					part: part, Candidates: cluster.Candidates{Set: part.nodes}, req: n,
					overTimeLimit: at < 64 && k.overTimeLimit&(1<<at) != 0,
				}
				bounds := k.bounds(part.Partition)
				s.minNodes, s.maxNodes = bounds.MinNodes, bounds.MaxNodes
				s.req.ApplyPartition(&bounds)
				s.req.BindLedger(p.ledger, &p.setScratch, part.LLN)
				s.req.User = ownerOf(j.Spec, &part.Partition)
				if few > 0 {
					s.req.Set.Switches = few
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

// leaveClass takes a job out of its class. The last one removes the class.
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

// assess returns why a class could not start in a partition even if nothing ran, or nil if it could.
func (p *Planner) assess(s *partitionClass) *Reason {
	if s.namesAdvance || len(s.options) > 0 {
		return p.assessOptions(s)
	}
	part, n := s.part, &s.req
	switch {
	case n.Invalid != "":
		return &Reason{Code: core.ReasonBadConstraints, Text: n.Invalid}
	case isPartitionDown(part.State):
		return &Reason{Code: core.ReasonPartitionDown, Text: fmt.Sprintf("partition %s is %s", part.Name, part.State)}
	case s.maxNodes > 0 && n.NodesMin > s.maxNodes:
		return &Reason{
			Code: core.ReasonPartitionNodes,
			Text: fmt.Sprintf("the job requests %d nodes; partition %s allows %d per job", n.NodesMin, part.Name, s.maxNodes),
		}
	case n.NodesMax < s.minNodes:
		return &Reason{
			Code: core.ReasonPartitionNodes,
			Text: fmt.Sprintf("it asks for at most %d nodes; partition %s wants %d a job or more", n.NodesMax, part.Name,
				s.minNodes),
		}
	case part.nodes.Names != nil && int(n.NodesMin) > len(part.nodes.Names):
		return &Reason{Code: core.ReasonPartitionNodes, Text: fmt.Sprintf("the job requests %d nodes; partition %s has %d",
			n.NodesMin, part.Name, len(part.nodes.Names))}
	case s.overTimeLimit:
		return &Reason{
			Code: core.ReasonPartitionTime,
			Text: fmt.Sprintf("it asks for more time than the %s that partition %s allows", part.MaxTime.Duration(), part.Name),
		}
	}
	nodes := p.nodes.Of(&s.Candidates)
	if n.Choose(ledger.View{Nodes: nodes, IfIdle: true}, p.choices) != nil {
		return nil
	}
	if s.Advance.ConfinesNodes() {
		return &Reason{
			Code: core.ReasonReservation,
			Text: fmt.Sprintf("the nodes of reservation %s could not hold it: it asks for %s", s.Advance.Name, n),
		}
	}
	if loose := n.WithoutSwitchLimit(); loose != n {
		if loose.Choose(ledger.View{Nodes: nodes, IfIdle: true}, p.choices) != nil {
			return &Reason{
				Code: core.ReasonResources,
				Text: fmt.Sprintf("it waits for nodes on %d leaf switch(es) at most for as long as it may, and the "+
					"nodes that are up are on more", n.Set.Switches),
			}
		}
		n = loose
	}
	if f := fit.CheckRequest(p.ledger, n, part.nodes.Names, nodes); f != nil {
		w := &Reason{Code: core.ReasonBadConstraints, Text: f.Text}
		if part.nodes.Names == nil && int(n.NodesMin) > len(nodes) {
			w.Code = core.ReasonPartitionNodes
		}
		return w
	}
	if len(n.Required) > 0 {
		return &Reason{Code: core.ReasonReqNodeNotAvail, Text: "a node it asks for by name is not available"}
	}
	return &Reason{Code: core.ReasonResources, Text: "the nodes that are up could not hold it: it asks for " + n.String()}
}

// currentClassReasons returns the reasons of classes that are in no queue. The map is shared with plans and never
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
