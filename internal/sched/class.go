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

	special  bool                 // its jobs use advance reservations or licenses
	licenses *core.LicenseRequest // nil: none
}

// partitionClass is a class in one partition.
type partitionClass struct {
	part               *partition
	cluster.Candidates // where its jobs may run

	// A pass reads these for all classes, so they are adjacent.
	refusedEpoch int64              // refusals.epoch when it was last refused
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
	queued             int             // number of its jobs in the partition's queue
	position           int             // its index in partition.classes
	minNodes, maxNodes int32           // the partition's bounds; 0 if its QOS lifts them
	limitRequest       *policy.Request // its request in terms of limits; nil: not computed yet

	licenses        *core.LicenseRequest // nil: it asks for none
	namesAdvance    bool                 // its jobs run only in advance reservations
	inAdvanceQueue  bool                 // they wait in partition.advanceQueue: no other job competes for their nodes
	mayDelayAdvance bool                 // they may overlap advance reservations that allow a delay
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
	partitions    string           // as the spec lists them
	overTimeLimit uint64           // the partitions whose time limit it exceeds, by position
	switchLimit   int32            // see classSet.switchLimit
	advance       string           // see advance.Key
	exclusiveUser core.UserName    // see exclusiveUserKey
	uid           uint32           // see keptOwners
	project       core.ProjectName // likewise
	qos           core.QOSName     // set only if the QOS may preempt
	exempted      core.QOSFlag     // bounds of partitions that its QOS lifts
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
	kept       keptOwners
}

// classSet is the equivalence classes of the pending jobs that are eligible.
type classSet struct {
	cfg        *Config
	nodes      *cluster.Nodes
	partitions map[core.PartitionName]*partition
	byKey      map[classKey]*classInfo
	licensed   int // classes that ask for licenses
	watch      classWatch

	classRules                                            // replaced as a whole, never changed
	key               func(*core.Job, core.Time) classKey // see newKeyFunc
	hasUserPartitions bool                                // some partition has ExclusiveUser

	reasons      map[classKey]Reason // see currentReasons
	reasonsStale bool

	setScratch fit.Scratch
	buffer     *fit.Buffer
}

// setRules changes what the class of a job depends on. The caller has removed the jobs whose class that changes, and
// adds them again.
func (cs *classSet) setRules(change func(*classRules)) {
	change(&cs.classRules)
	cs.key = cs.newKeyFunc()
	cs.reasonsStale = true
}

// newKeyFunc returns a function that computes the class of a job under the present rules. Plans keep it: it reads only
// what never changes.
func (cs *classSet) newKeyFunc() func(*core.Job, core.Time) classKey {
	r := cs.classRules
	return func(j *core.Job, now core.Time) classKey { return cs.keyAt(j, now, &r) }
}

func (cs *classSet) keyOf(s *core.Spec, r *classRules) classKey {
	k := classKey{
		Key: fit.KeyOf(s), partitions: s.Partition.String(), advance: advance.Key(r.advances, s),
		exclusiveUser: cs.exclusiveUserKey(s), exempted: r.exempted[s.QOS],
	}
	k.uid, k.project = r.kept.key(s)
	if r.preemption.QosPreempts(s.QOS) {
		k.qos = s.QOS
	}
	at := 0
	for name := range s.Partition.All() {
		if part := cs.partitions[name]; part != nil && part.MaxTime > 0 && s.TimeLimit > part.MaxTime && at < 64 &&
			k.exempted&core.PartitionTimeLimit == 0 {
			k.overTimeLimit |= 1 << at
		}
		at++
	}
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

// join returns the class of a pending job and counts the job in. It creates the class if there is none.
func (cs *classSet) join(j *core.Job, few int32) *classInfo {
	k := cs.keyOf(j.Spec, &cs.classRules)
	k.switchLimit = few
	c := cs.byKey[k]
	if c == nil {
		c = &classInfo{switchLimit: few}
		req := fit.RequestOf(j.Spec, cs.cfg.Hosts)
		req.Uid, req.Project = k.uid, k.project
		at := 0
		for name := range j.Spec.Partition.All() {
			if part := cs.partitions[name]; part != nil && !c.hasPartition(part) {
				s := partitionClass{
					part: part, Candidates: cluster.Candidates{Set: part.nodes}, req: req,
					overTimeLimit: at < 64 && k.overTimeLimit&(1<<at) != 0,
				}
				bounds := k.bounds(part.Partition)
				s.minNodes, s.maxNodes = bounds.MinNodes, bounds.MaxNodes
				s.req.ApplyPartition(&bounds)
				s.req.BindLedger(cs.nodes.Ledger, &cs.setScratch, part.LLN)
				s.req.User = ownerOf(j.Spec, &part.Partition)
				if few > 0 {
					s.req.Set.Switches = few
				}
				s.preemptor = cs.preemption.Preemptor(j.Spec.QOS, &part.Partition)
				c.partitions = append(c.partitions, s)
			}
			at++
		}
		if k.advance != "" {
			cs.setAdvanceOptions(c, j.Spec)
		}
		for i := range c.partitions {
			c.partitions[i].reason = cs.assess(&c.partitions[i])
		}
		cs.byKey[k] = c
		cs.watchClass(c)
		cs.reasonsStale = cs.reasonsStale || c.reason() != nil
	}
	c.jobs++
	return c
}

// leave takes a job out of its class. The last one removes the class.
func (cs *classSet) leave(c *classInfo, j *core.Job) {
	if c.jobs--; c.jobs == 0 {
		cs.reasonsStale = cs.reasonsStale || c.reason() != nil
		k := cs.keyOf(j.Spec, &cs.classRules)
		k.switchLimit = c.switchLimit
		delete(cs.byKey, k)
		cs.unwatchClass(c)
		if c.licenses != nil {
			cs.licensed--
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
func (cs *classSet) assess(s *partitionClass) *Reason {
	if s.namesAdvance || len(s.options) > 0 {
		return cs.assessOptions(s)
	}
	part, req := s.part, &s.req
	switch {
	case req.Invalid != "":
		return &Reason{Code: core.ReasonBadConstraints, Text: req.Invalid}
	case isPartitionDown(part.State):
		return &Reason{Code: core.ReasonPartitionDown, Text: fmt.Sprintf("partition %s is %s", part.Name, part.State)}
	case s.maxNodes > 0 && req.NodesMin > s.maxNodes:
		return &Reason{
			Code: core.ReasonPartitionNodes,
			Text: fmt.Sprintf("the job requests %d nodes; partition %s allows %d per job", req.NodesMin, part.Name, s.maxNodes),
		}
	case req.NodesMax < s.minNodes:
		return &Reason{
			Code: core.ReasonPartitionNodes,
			Text: fmt.Sprintf("it asks for at most %d nodes; partition %s wants %d a job or more", req.NodesMax, part.Name,
				s.minNodes),
		}
	case part.nodes.Names != nil && int(req.NodesMin) > len(part.nodes.Names):
		return &Reason{Code: core.ReasonPartitionNodes, Text: fmt.Sprintf("the job requests %d nodes; partition %s has %d",
			req.NodesMin, part.Name, len(part.nodes.Names))}
	case s.overTimeLimit:
		return &Reason{
			Code: core.ReasonPartitionTime,
			Text: fmt.Sprintf("it asks for more time than the %s that partition %s allows", part.MaxTime.Duration(), part.Name),
		}
	}
	nodes := cs.nodes.Of(&s.Candidates)
	if req.Choose(ledger.View{Nodes: nodes, IfIdle: true}, cs.buffer.Choices) != nil {
		return nil
	}
	if s.Advance.ConfinesNodes() {
		return &Reason{
			Code: core.ReasonReservation,
			Text: fmt.Sprintf("the nodes of reservation %s could not hold it: it asks for %s", s.Advance.Name, req),
		}
	}
	if loose := req.WithoutSwitchLimit(); loose != req {
		if loose.Choose(ledger.View{Nodes: nodes, IfIdle: true}, cs.buffer.Choices) != nil {
			return &Reason{
				Code: core.ReasonResources,
				Text: fmt.Sprintf("it waits for nodes on %d leaf switch(es) at most for as long as it may, and the "+
					"nodes that are up are on more", req.Set.Switches),
			}
		}
		req = loose
	}
	if f := fit.CheckRequest(cs.nodes.Ledger, req, part.nodes.Names, nodes); f != nil {
		w := &Reason{Code: core.ReasonBadConstraints, Text: f.Text}
		if part.nodes.Names == nil && int(req.NodesMin) > len(nodes) {
			w.Code = core.ReasonPartitionNodes
		}
		return w
	}
	if len(req.Required) > 0 {
		return &Reason{Code: core.ReasonReqNodeNotAvail, Text: "a node it asks for by name is not available"}
	}
	return &Reason{Code: core.ReasonResources, Text: "the nodes that are up could not hold it: it asks for " +
		req.String()}
}

// currentReasons returns the reasons of classes that are in no queue. The map is shared with plans and never changed.
func (cs *classSet) currentReasons() map[classKey]Reason {
	if cs.reasonsStale {
		cs.reasonsStale = false
		cs.reasons = nil
		for k, c := range cs.byKey {
			if w := c.reason(); w != nil {
				if cs.reasons == nil {
					cs.reasons = map[classKey]Reason{}
				}
				cs.reasons[k] = *w
			}
		}
	}
	return cs.reasons
}
