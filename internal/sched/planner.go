package sched

import (
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Config is what the planner needs to know beside jobs and nodes.
type Config struct {
	Partitions []core.Partition
	Hosts      alloc.HostsFunc // expands hostlists
	Offers     []core.Offer    // nodes that could be had, by name
	Rule       Rule
	// Reservations is how many jobs of each queue that cannot start are promised one; 0: the first, or all if the rule is
	// RuleConservative.
	Reservations int32
	AllocUnit    alloc.Unit
	Licenses     []core.License
	Zone         *time.Location // whose days advance reservations come again by; nil: UTC
	Topology     *core.Topology // how nodes are joined; nil: nobody says
	// MaxSwitchWait is the most a job waits for few switches.
	MaxSwitchWait core.Seconds
	Preemption    *preempt.Rules // nil: nobody is preempted, until Changes bring one
	// FaultForTests is called with every job that the planner begins to work on. A test's may panic there.
	FaultForTests func(*core.Job)
}

// Changes is what the planner is told: whole records that are new or changed, and what is gone. A reservation that is
// in
// both lists went and came again.
type Changes struct {
	Jobs      []*core.Job
	Nodes     []*core.Node
	GoneNodes []core.NodeName

	Reservations     []*core.AdvanceReservation
	GoneReservations []string

	Policy *Policy         // nil: as it was
	Meters []*policy.Meter // what was used, of those for whom it changed

	Preemption *preempt.Rules // from now on; nil: as before

	// Anew says that the planner is of no use any more: one made with this config is to be told the rest, which is all
	// there is.
	NewConfig *Config
}

// Merge adds what came after c.
func (c *Changes) Merge(d Changes) {
	if d.NewConfig != nil {
		*c = Changes{NewConfig: d.NewConfig}
	}
	c.Jobs = append(c.Jobs, d.Jobs...)
	if len(d.GoneNodes) > 0 { // as with reservations below
		c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n *core.Node) bool {
			return slices.Contains(d.GoneNodes,
				n.Name)
		})
	}
	c.Nodes = append(c.Nodes, d.Nodes...)
	c.GoneNodes = append(c.GoneNodes, d.GoneNodes...)
	if len(d.GoneReservations) > 0 { // those that come are told after those that go, so they must not outlive them here
		c.Reservations = slices.DeleteFunc(slices.Clone(c.Reservations), func(r *core.AdvanceReservation) bool {
			return slices.Contains(d.GoneReservations, r.Name)
		})
	}
	c.Reservations = append(c.Reservations, d.Reservations...)
	c.GoneReservations = append(c.GoneReservations, d.GoneReservations...)
	if d.Policy != nil {
		c.Policy = d.Policy
	}
	c.Meters = append(c.Meters, d.Meters...)
	if d.Preemption != nil {
		c.Preemption = d.Preemption
	}
}

// IsEmpty tells whether there is nothing to tell.
func (c *Changes) IsEmpty() bool {
	return len(c.Jobs)+len(c.Nodes)+len(c.GoneNodes)+len(c.Reservations)+len(c.GoneReservations)+len(c.Meters) == 0 &&
		c.Policy == nil &&
		c.Preemption == nil && c.NewConfig == nil
}

// Planner keeps queues and free resources between passes, so that a pass costs what changed. See the package comment.
type Planner struct {
	cfg             Config
	ledger          *ledger.Ledger
	partitions      []*partition // in config order
	partitionByName map[core.PartitionName]*partition

	pending           map[core.JobID]pendingJob // jobs that may start, now or from a known moment on
	ineligible        queue                     // those whose moment has not come, by that moment
	hasUserPartitions bool                      // some partition keeps nodes to one user at a time
	switchWaiters     queue                     // those that wait for few switches, by the moment their patience ends
	classes           map[classKey]*classInfo   // of the jobs in pending that are not in later
	allocations       map[core.JobID]*ledger.Allocation
	// what is in holding, and what a pass starts while it goes on
	ends         sorted.List[ledger.AllocEnd, *ledger.AllocEnd]
	arrayRunning map[core.JobID]int32 // tasks that hold something, by array
	hets         hetJobs
	poweredDown  int // nodes that are powered down, or on their way up

	classReasons      map[classKey]Reason // as of the last pass; see currentClassReasons
	classReasonsStale bool
	key               func(*core.Job, core.Time) classKey

	timetable *timetable // of RuleConservative

	limits  *limitState // nil: there are none
	meters  map[meterKey]*policy.Meter
	whoFunc func(*core.Spec, core.PartitionName) (policy.Who, bool)

	classRules                  // its books are the advance reservations, by name; never changed, but replaced
	advanceVersion        int64 // how often
	advanceLedgerVersion  int   // the ledger's shape, and
	advanceAppliedVersion int64 // bookings, as of when they were laid on the nodes
	advanceFingerprint    fingerprint
	partlyReserved        []*ledger.Node // nodes of which reservations have a part
	unreserved            []*ledger.Node // scratch; see pass.away
	advanceEntries        int            // entries in the partitions' inside queues
	licenses              map[string]*licensePool
	licenseClasses        int // classes that ask for licences

	throttledJobs map[core.JobID]*core.Job // of pending, those whose array may run so many tasks at once

	freed            nodeLog               // nodes on which something came free
	freedAtPass      int64                 // the first of them since the last pass began,
	freedSettled     int64                 // and since the one before
	changed          nodeLog               // nodes on which anything changed
	lastReservations []*ledger.Reservation // that the last pass made

	nodeKinds  []*ledger.Node // of nodes, the first of each
	numberedAt int            // the ledger's shape, as of index
	numbered   []*ledger.Node
	openNodes  ledger.Bitset // nodes that have anything to give
	freeNow    []nodeFree
	tracking   bool // there are enough nodes for that
	// From how many nodes on it is noted what happens on each, and from how many jobs on a queue is walked by classes: for
	// fewer it does not pay.
	trackMinNodes, classWalkMinJobs int

	borrowed   map[core.JobID][]core.Lent // what jobs use of those they preempted, by who uses it
	exemptions sorted.List[exemption, *exemption]
	victims    victimSearch

	currentJob core.JobID // see Looking

	refusalEpoch, scans int64
	classWalks          int64
	passCount           int64 // passes, for partition.open
	watch               classWatch
	pass                pass
	allocationPool      allocationPool
	lastPromises        planPromises // of the last plan
	sparePromises       planPromises // for the next one to fill
	setScratch          setScratch
	passScratch
}

// passScratch is what passes work in.
type passScratch struct {
	choices      []nodeChoice
	free         ledger.Resources
	walks        []queueWalk
	rooms        []int32
	nodeRooms    []int32
	changedNodes []*ledger.Node
	roomNodes    []*ledger.Node
	newMarks     []roomMark
	marks        []roomMark
	changedSet   ledger.Bitset
	times        []core.Time
	kindRooms    [][2]int32

	openList []*ledger.Node
}

type partition struct {
	core.Partition
	nodes        map[core.NodeName]bool // nil: all
	queue        queue                  // jobs that the nodes that are up could hold
	shortest     queue                  // the same, shortest first, if the rule wants that
	advanceQueue queue                  // jobs that ask for advance reservations
	liveClasses  int                    // classes in queue
	deadClasses  int                    // of them, those of which the pass found that none can start

	classes       []*partitionClass // of the classes in queue
	upByKind      []int32           // nodes that are up, by kind
	order         []*ledger.Node    // of nodes; see accounts
	orderVersion  int
	members       ledger.Bitset  // the same as a set
	openNodes     []*ledger.Node // see Planner.open
	openPass      int64
	sleepWalk     int64             // the dive since which classes sleep,
	sleepFreedSeq int64             // while nothing came free among the nodes before this gain
	sleepers      []sleepingClass   // those that do,
	awakeClasses  []*partitionClass // and the others, some of them twice
	maxFreed      maxFreed          // see pass.maxFreed
	freeEnvelope  freeEnvelope
	freedNodes    []*ledger.Node // see Planner.gained
	freedAt       int64
	searches      []*searchCache
	index         int32 // its place among the partitions
}

// pendingJob is a job that may start. Its class is nil while its moment has not come.
type pendingJob struct {
	job   *core.Job
	class *classInfo
}

// allocationPool are the holdings of starts of earlier passes, to be used again: nobody knows them after their pass.
type allocationPool []*ledger.Allocation

func (s *allocationPool) get() *ledger.Allocation {
	if k := len(*s) - 1; k >= 0 {
		h := (*s)[k]
		*s = (*s)[:k]
		return h
	}
	return &ledger.Allocation{}
}

func (s *allocationPool) put(h *ledger.Allocation) {
	if *h = (ledger.Allocation{}); len(*s) < 1024 {
		*s = append(*s, h)
	}
}

// New makes an empty planner.
func New(cfg Config) *Planner {
	p := &Planner{
		cfg: cfg, ledger: ledger.New(), partitionByName: map[core.PartitionName]*partition{}, pending: map[core.JobID]pendingJob{},
		classes: map[classKey]*classInfo{}, allocations: map[core.JobID]*ledger.Allocation{}, arrayRunning: map[core.JobID]int32{},
	}
	p.whoFunc, p.licenses, p.numberedAt = p.whoIn, map[string]*licensePool{}, -1
	p.hets.planner = p
	p.usePreemption(cfg.Preemption)
	p.freed.first, p.changed.first, p.classWalkMinJobs, p.trackMinNodes = 1, 1, 64, 16
	p.victims.freeFunc = p.victims.freeOn
	p.ledger.SetTopology(cfg.Topology)
	p.ledger.SetRules(ledger.RulesOf(cfg.AllocUnit, cfg.Partitions, cfg.Hosts))
	for _, l := range cfg.Licenses {
		p.licenses[l.Name] = &licensePool{total: l.Total}
	}
	if cfg.Rule == RuleConservative {
		p.timetable = &timetable{jobs: map[core.JobID]*timetableJob{}}
	}
	for _, c := range cfg.Partitions {
		part := &partition{Partition: c, nodes: alloc.PartitionNodes(&c, cfg.Hosts)}
		part.index = int32(len(p.partitions))
		p.partitions = append(p.partitions, part)
		p.partitionByName[c.Name] = part
		p.hasUserPartitions = p.hasUserPartitions || c.ExclusiveUser
	}
	return p
}

// Apply tells the planner what changed. A job that is final and clean, or not pending any more, leaves by being told
// so.
func (p *Planner) Apply(c Changes) {
	if c.Preemption != nil && c.Preemption != p.preemption {
		p.setPreemption(c.Preemption)
	}
	if len(p.hets.byLead) > 0 && len(c.Nodes)+len(c.GoneNodes)+len(c.Reservations)+len(c.GoneReservations) > 0 {
		p.hets.each(p.hets.dequeue) // what they are judged by changes
		defer p.hets.each(p.hets.enqueueWhenComplete)
	}
	how := unchanged
	for _, name := range c.GoneNodes { // first: a name may come again
		if a := p.ledger.Nodes[name]; a != nil {
			p.countKind(a, -1)
			a.Index = -1
			p.ledger.DropNode(name)
			how = hardwareOrNew
		}
	}
	for _, n := range c.Nodes {
		how = max(how, p.setNode(n))
	}
	p.setReservations(&c)
	if how == hardwareOrNew {
		p.setKeptUsers()
	}
	if how != unchanged {
		p.reassess(how)
	}
	for _, m := range c.Meters {
		p.setMeter(m)
	}
	if c.Policy != nil {
		p.setPolicy(c.Policy)
	}
	for _, j := range c.Jobs {
		p.setCurrentJob(j)
		p.setJob(j)
	}
	p.currentJob = 0
}

// view notes which job is worked on.
func (p *Planner) setCurrentJob(j *core.Job) {
	p.currentJob = j.ID
	if p.cfg.FaultForTests != nil {
		p.cfg.FaultForTests(j)
	}
}

// CurrentJob is the job that was worked on last, 0 for none: when a call of the planner's does not return, the one it
// failed on.
func (p *Planner) CurrentJob() core.JobID { return p.currentJob }

func (p *Planner) setNode(n *core.Node) (how nodeChange) {
	old := p.ledger.Nodes[n.Name]
	how = hardwareOrNew
	if old != nil {
		if how = nodeChangeOf(old.Record, n); how == upOrDown {
			p.watch.noteUpDown(n.Usable())
		}
		p.countKind(old, -1)
	}
	if !p.ledger.SetNode(n) {
		p.countKind(old, 1)
		if how != unchanged {
			p.noteFreed(old)
		}
		return how
	}
	if old != nil {
		old.Index = -1
	}
	a := p.ledger.Nodes[n.Name]
	p.countKind(a, 1)
	for _, h := range p.allocations {
		for i := range h.Alloc.Nodes {
			if na := &h.Alloc.Nodes[i]; na.Node == n.Name && !na.Done {
				p.ledger.ForceAllocate(na, h.Terms)
				p.addPreemptable(h, i)
				if p.tracking {
					a.AddEnd(ledger.End{At: h.End, Alloc: h, Index: int32(i)})
				}
			}
		}
	}
	p.noteFreed(a)
	return how
}

func (p *Planner) setJob(j *core.Job) {
	if w, ok := p.pending[j.ID]; ok {
		if w.job == j {
			return
		}
		p.removePending(w)
	}
	if h, ok := p.allocations[j.ID]; ok {
		p.ends.Remove(ledger.AllocEnd{At: h.End, Id: j.ID})
		p.removeFromPreemption(h)
		p.release(h)
		delete(p.allocations, j.ID)
	}
	switch {
	case j.State == core.Pending && j.Alloc == nil:
		if IsBlocked(j) {
			return
		}
		if ref := hetRefOf(j); ref != nil {
			p.hets.add(j, ref)
			return
		}
		p.pending[j.ID] = pendingJob{job: j}
		if j.Eligible > j.Submit {
			p.ineligible.Insert(ineligibleEntryOf(j))
		} else {
			p.enqueueJob(j)
		}
	case j.Alloc != nil && j.Live():
		h := &ledger.Allocation{End: alloc.LatestEnd(j), Job: j}
		h.Alloc, h.Terms = alloc.Occupied(j)
		p.countAgainstLimits(h, h.End)
		if j.Array != nil {
			h.ArrayBase = j.Array.Base
			p.arrayRunning[h.ArrayBase]++
		}
		for i := range h.Alloc.Nodes {
			if na := &h.Alloc.Nodes[i]; !na.Done {
				p.ledger.ForceAllocate(na, h.Terms)
				if a := p.ledger.Nodes[na.Node]; a != nil {
					p.noteChanged(a)
				}
			}
		}
		p.bookLicenses(h.Alloc, 1)
		p.addEnds(h, h.End)
		p.allocations[j.ID] = h
		p.addToPreemption(h, j)
		p.ends.Insert(ledger.AllocEnd{At: h.End, Id: j.ID, Alloc: h})
	}
}

// enqueue lets a job whose moment has come wait for its start.
func (p *Planner) enqueueJob(j *core.Job) {
	if ref := hetRefOf(j); ref != nil {
		p.hets.enqueue(p.hets.byLead[ref.Lead])
		return
	}
	if j.Array != nil && j.Spec.Throttle > 0 { // it may have been forgotten for a moment
		p.addThrottled(j)
	}
	few, until := p.switchLimit(j)
	if few > 0 {
		p.switchWaiters.Insert(queueEntry{job: j, since: until})
	}
	p.enqueueInPartitions(j, few)
}

// enqueueInPartitions puts a job into the queues of the partitions that could hold it.
func (p *Planner) enqueueInPartitions(j *core.Job, few int32) {
	c := p.joinClass(j, few)
	p.pending[j.ID] = pendingJob{job: j, class: c}
	if j.Array != nil && j.Spec.Throttle > 0 {
		p.addThrottled(j)
	}
	for i := range c.partitions {
		if s := &c.partitions[i]; s.reason == nil {
			p.enqueue(s, j)
		} else {
			p.gate(j.Spec, s.part) // plans tell of the limits in all its partitions
		}
	}
}

// enqueue puts a job into the queue of one of its partitions.
func (p *Planner) enqueue(s *partitionClass, j *core.Job) {
	if s.inAdvanceQueue {
		p.advanceEntries++
		g := p.gate(j.Spec, s.part)
		p.countTimed(g, 1)
		s.part.advanceQueue.Insert(queueEntryOf(j, s, g))
		return
	}
	g := p.gate(j.Spec, s.part)
	p.countTimed(g, 1)
	s.addJob(j, g)
	if p.cfg.Rule == RuleSJFEASY {
		s.part.queue.Insert(shortestEntryOf(j, s, g))
		return
	}
	s.part.queue.Insert(queueEntryOf(j, s, g))
	if p.cfg.Rule == RuleEASYSJBF {
		s.part.shortest.Insert(shortestEntryOf(j, s, g))
	}
}

// dequeue is the other way round.
func (p *Planner) dequeue(s *partitionClass, j *core.Job) {
	if s.inAdvanceQueue {
		p.advanceEntries--
		p.countTimed(p.gate(j.Spec, s.part), -1)
		s.part.advanceQueue.Remove(queueEntryOf(j, s, nil))
		return
	}
	s.removeJob(j)
	p.countTimed(p.gate(j.Spec, s.part), -1)
	if p.cfg.Rule == RuleSJFEASY {
		s.part.queue.Remove(shortestEntryOf(j, s, nil))
		return
	}
	s.part.queue.Remove(queueEntryOf(j, s, nil))
	if p.cfg.Rule == RuleEASYSJBF {
		s.part.shortest.Remove(shortestEntryOf(j, s, nil))
	}
}

func (p *Planner) removePending(w pendingJob) {
	if ref := hetRefOf(w.job); ref != nil {
		p.hets.remove(w.job, ref)
		return
	}
	delete(p.pending, w.job.ID)
	delete(p.throttledJobs, w.job.ID)
	if w.class == nil {
		p.ineligible.Remove(ineligibleEntryOf(w.job))
		return
	}
	if w.class.switchLimit > 0 {
		_, until := p.switchLimit(w.job)
		p.switchWaiters.Remove(queueEntry{job: w.job, since: until})
	}
	for i := range w.class.partitions {
		if s := &w.class.partitions[i]; s.reason == nil {
			p.dequeue(s, w.job)
		}
	}
	p.leaveClass(w.class, w.job)
}

func (p *Planner) release(h *ledger.Allocation) {
	if h.LimitUse != nil {
		p.limits.tally.End(h.LimitUse)
		h.LimitUse = nil
	}
	p.bookLicenses(h.Alloc, -1)
	for i := range h.Alloc.Nodes {
		if na := &h.Alloc.Nodes[i]; !na.Done {
			p.ledger.Release(na, h.Terms)
			if a := p.ledger.Nodes[na.Node]; a != nil {
				a.RemoveEnd(h)
				p.noteFreed(a)
			}
		}
	}
	if h.ArrayBase != 0 {
		if p.arrayRunning[h.ArrayBase]--; p.arrayRunning[h.ArrayBase] == 0 {
			delete(p.arrayRunning, h.ArrayBase)
		}
	}
}

// reservedOn gives the accounts of a job's nodes; nil stands for those that are not known any more.
func (p *Planner) nodesOf(h *ledger.Allocation) []*ledger.Node {
	if h.NodesVersion != p.ledger.Version {
		h.NodesVersion, h.Nodes = p.ledger.Version, make([]*ledger.Node, len(h.Alloc.Nodes))
		for i := range h.Nodes {
			h.Nodes[i] = p.ledger.Nodes[h.Alloc.Nodes[i].Node]
		}
	}
	return h.Nodes
}
