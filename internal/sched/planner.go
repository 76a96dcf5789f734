package sched

import (
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/license"
	"bireme.dev/bireme/internal/sched/preempt"
	"bireme.dev/bireme/internal/sched/reserve"
	"bireme.dev/bireme/internal/sched/timetable"
	"bireme.dev/bireme/internal/sched/victim"
)

// Config is what the planner needs beside jobs and nodes.
type Config struct {
	Partitions []core.Partition
	Hosts      alloc.HostsFunc // expands hostlists
	Offers     []core.Offer    // nodes that could be created, by name
	Rule       core.Rule
	// Reservations is the number of reservations per queue; 0: one, or as many as jobs wait if the rule is
	// core.RuleConservative.
	Reservations int32
	AllocUnit    core.AllocUnit
	Licenses     []core.License
	Zone         *time.Location // time zone of recurring advance reservations; nil: UTC
	Topology     *core.Topology // the network; nil: not known
	// MaxSwitchWait is the longest time a job waits for few switches.
	MaxSwitchWait core.Seconds
	Preemption    *preempt.Rules // nil: no preemption, until Changes set it
	// FaultForTests is called with every job that the planner begins to work on. Tests may panic in it.
	FaultForTests func(*core.Job)
}

// Changes is the input of Apply: whole records that are new or changed, and names of what is gone. A reservation in
// both lists was deleted and created again.
type Changes struct {
	Jobs      []*core.Job
	Nodes     []*core.Node
	GoneNodes []core.NodeName

	Reservations     []*core.AdvanceReservation
	GoneReservations []string

	Policy *Policy         // nil: unchanged
	Meters []*policy.Meter // recorded usage that changed

	Preemption *preempt.Rules // nil: unchanged

	// NewConfig says that the planner must be replaced by a new one with this configuration. The other fields are then
	// complete.
	NewConfig *Config
}

// Merge appends changes that came after c.
func (c *Changes) Merge(d Changes) {
	if d.NewConfig != nil {
		*c = Changes{NewConfig: d.NewConfig}
	}
	c.Jobs = append(c.Jobs, d.Jobs...)
	if len(d.GoneNodes) > 0 { // see reservations below
		c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n *core.Node) bool {
			return slices.Contains(d.GoneNodes, n.Name)
		})
	}
	c.Nodes = append(c.Nodes, d.Nodes...)
	c.GoneNodes = append(c.GoneNodes, d.GoneNodes...)
	if len(d.GoneReservations) > 0 { // Apply deletes first, so a deleted one must not stay in the list
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

// IsEmpty reports whether there are no changes.
func (c *Changes) IsEmpty() bool {
	return len(c.Jobs)+len(c.Nodes)+len(c.GoneNodes)+len(c.Reservations)+len(c.GoneReservations)+len(c.Meters) == 0 &&
		c.Policy == nil && c.Preemption == nil && c.NewConfig == nil
}

// Planner keeps queues and free resources between passes, so that a pass costs what changed. See the package comment.
type Planner struct {
	cfg Config

	// The cluster.
	nodes    *cluster.Nodes
	jobs     *cluster.Jobs
	ledger   *ledger.Ledger // of nodes
	advance  *cluster.Advances
	licenses *license.Licenses
	limits   *limitState // nil: there are none
	meters   map[meterKey]*policy.Meter
	whoFunc  func(*core.Spec, core.PartitionName) (policy.Who, bool)

	// The pending jobs.
	pending          map[core.JobID]pendingJob // jobs that may start, now or from their begin time on
	ineligible       queue                     // pending jobs whose begin time lies ahead, by that time
	switchWaiters    queue                     // jobs that wait for few switches, by the time at which that ends
	throttledJobs    map[core.JobID]*core.Job  // pending jobs whose array has a limit on running tasks
	hets             hetJobs
	classes          classSet
	partitions       []*partition // in config order
	advanceEntries   int          // entries in the partitions' advanceQueue
	classWalks       int64        // number of walks by class
	classWalkMinJobs int          // queues are walked by class from so many jobs on; for fewer it costs more than it saves

	// What a pass knows from earlier passes.
	pass          pass
	currentJob    core.JobID            // see CurrentJob
	reserved      *cluster.Reservations // of the pass
	refusals      refusals
	finder        *reserve.Finder
	victims       *victim.Search
	timetable     *timetable.Timetable // of core.RuleConservative
	lastPromises  planPromises         // of the last plan
	sparePromises planPromises         // for the next one to fill

	allocationPool allocationPool
	passScratch
}

// passScratch is reusable memory of passes.
type passScratch struct {
	buffer fit.Buffer
	free   ledger.Resources
	walks  []queueWalk
	left   []*ledger.Node // see explainAdvance
}

// partition is a partition with its queues.
type partition struct {
	core.Partition
	nodes        *cluster.Set
	queue        queue // jobs that idle nodes could hold
	shortest     queue // the same, shortest first; only for core.RuleEASYSJBF
	advanceQueue queue // jobs that run only in advance reservations of whole nodes
	liveClasses  int   // classes in queue
	deadClasses  int   // of these, the classes that the pass refused for all jobs

	classes       []*partitionClass // of the jobs in queue
	sleepWalk     int64             // the walk by class since which classes sleep; see sleepers.go
	sleepFreedSeq int64             // cluster.Nodes.Freed was read up to this entry
	sleepers      []sleepingClass   // sleeping classes
	awakeClasses  []*partitionClass // the other classes, some of them twice
	index         int32             // in Planner.partitions
}

// pendingJob is a job that may start. Its class is nil while its begin time lies ahead.
type pendingJob struct {
	job   *core.Job
	class *classInfo
}

// allocationPool holds allocations of starts of earlier passes for reuse. Nothing refers to them after their pass.
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

// New returns an empty planner.
func New(cfg Config) *Planner {
	p := &Planner{
		cfg: cfg, nodes: cluster.NewNodes(), pending: map[core.JobID]pendingJob{}, classWalkMinJobs: 64,
	}
	p.ledger, p.jobs = p.nodes.Ledger, cluster.NewJobs(p.nodes)
	p.reserved, p.advance = cluster.NewReservations(p.nodes), cluster.NewAdvances(p.nodes)
	p.licenses = license.New(cfg.Licenses, p.jobs, p.reserved, p.advance)
	p.finder = reserve.New(p.nodes, p.jobs, p.reserved, p.advance, p.licenses, &p.buffer)
	p.classes = classSet{
		cfg: &p.cfg, nodes: p.nodes, byKey: map[classKey]*classInfo{}, partitions: map[core.PartitionName]*partition{},
		buffer: &p.buffer,
	}
	p.refusals = refusals{nodes: p.nodes, reserved: p.reserved, advance: p.advance, buffer: &p.buffer}
	p.whoFunc = whoFuncOf(p.classes.partitions)
	p.hets.planner = p
	p.usePreemption(cfg.Preemption)
	p.victims = victim.New(p.jobs, p.ledger, &p.buffer)
	p.ledger.SetTopology(cfg.Topology)
	p.ledger.SetRules(ledger.RulesOf(cfg.AllocUnit, cfg.Partitions, cfg.Hosts))
	if cfg.Rule == core.RuleConservative {
		p.timetable = timetable.New()
	}
	for _, c := range cfg.Partitions {
		part := &partition{Partition: c, nodes: p.nodes.AddSet(alloc.PartitionNodes(&c, cfg.Hosts))}
		part.index = int32(len(p.partitions))
		p.partitions = append(p.partitions, part)
		p.classes.partitions[c.Name] = part
		p.classes.hasUserPartitions = p.classes.hasUserPartitions || c.ExclusiveUser
	}
	return p
}

// Apply takes in changes. A job leaves when its record says that it is not pending any more, or ended with clean nodes.
func (p *Planner) Apply(c Changes) {
	if c.Preemption != nil && c.Preemption != p.classes.preemption {
		p.setPreemption(c.Preemption)
	}
	if len(p.hets.byLead) > 0 && len(c.Nodes)+len(c.GoneNodes)+len(c.Reservations)+len(c.GoneReservations) > 0 {
		p.hets.each(p.hets.dequeue) // their reasons depend on what changes
		defer p.hets.each(p.hets.enqueueWhenComplete)
	}
	how := cluster.Unchanged
	for _, name := range c.GoneNodes { // first: a name may be used again
		if p.nodes.Drop(name) {
			how = cluster.HardwareOrNew
		}
	}
	for _, n := range c.Nodes {
		how = max(how, p.setNode(n))
	}
	p.setReservations(&c)
	if how == cluster.HardwareOrNew {
		p.setKeptOwners()
	}
	if how != cluster.Unchanged {
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

func (p *Planner) setCurrentJob(j *core.Job) {
	p.currentJob = j.ID
	if p.cfg.FaultForTests != nil {
		p.cfg.FaultForTests(j)
	}
}

// CurrentJob returns the job that was worked on last; 0: none. After a panic it is the job that caused it.
func (p *Planner) CurrentJob() core.JobID { return p.currentJob }

func (p *Planner) setNode(n *core.Node) cluster.NodeChange {
	node, how, fresh := p.nodes.Put(n)
	if how == cluster.UpOrDown {
		p.classes.watch.noteUpDown(n.Usable())
	}
	if fresh {
		p.jobs.BookOn(node)
	}
	if fresh || how != cluster.Unchanged {
		p.nodes.NoteFreed(node)
	}
	return how
}

// numberNodes numbers the nodes after they changed.
func (p *Planner) numberNodes() {
	old, changed, toggled := p.nodes.Number()
	if changed {
		p.finder.Renumber(old)
		p.jobs.Renumber()
	}
	if toggled {
		p.finder.ForgetCaches()
		p.jobs.AddAllEnds()
	}
}

func (p *Planner) setJob(j *core.Job) {
	if w, ok := p.pending[j.ID]; ok {
		if w.job == j {
			return
		}
		p.removePending(w)
	}
	if h := p.jobs.Remove(j.ID); h != nil {
		p.release(h)
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
		p.limits.start(h, h.End)
		p.licenses.Book(h.Alloc, 1)
		p.jobs.Add(h, j)
	}
}

// enqueueJob enqueues a job whose begin time has passed.
func (p *Planner) enqueueJob(j *core.Job) {
	if ref := hetRefOf(j); ref != nil {
		p.hets.enqueue(p.hets.byLead[ref.Lead])
		return
	}
	if j.Array != nil && j.Spec.Throttle > 0 { // removePending may have dropped it
		p.addThrottled(j)
	}
	few, until := p.classes.switchLimit(j)
	if few > 0 {
		p.switchWaiters.Insert(queueEntry{job: j, since: until})
	}
	p.enqueueInPartitions(j, few)
}

// enqueueInPartitions adds a job to the queues of the partitions that could hold it.
func (p *Planner) enqueueInPartitions(j *core.Job, few int32) {
	c := p.classes.join(j, few)
	p.pending[j.ID] = pendingJob{job: j, class: c}
	if j.Array != nil && j.Spec.Throttle > 0 {
		p.addThrottled(j)
	}
	for i := range c.partitions {
		if s := &c.partitions[i]; s.reason == nil {
			p.enqueue(s, j)
		} else {
			p.limits.gate(j.Spec, s.part) // Plan.Reason needs the limits of all its partitions
		}
	}
}

// enqueue adds a job to the queue of one of its partitions.
func (p *Planner) enqueue(s *partitionClass, j *core.Job) {
	if s.inAdvanceQueue {
		p.advanceEntries++
		g := p.limits.gate(j.Spec, s.part)
		p.limits.countTimed(g, 1)
		s.part.advanceQueue.Insert(queueEntryOf(j, s, g))
		return
	}
	g := p.limits.gate(j.Spec, s.part)
	p.limits.countTimed(g, 1)
	s.addJob(j, g)
	if p.cfg.Rule == core.RuleSJFEASY {
		s.part.queue.Insert(shortestEntryOf(j, s, g))
		return
	}
	s.part.queue.Insert(queueEntryOf(j, s, g))
	if p.cfg.Rule == core.RuleEASYSJBF {
		s.part.shortest.Insert(shortestEntryOf(j, s, g))
	}
}

func (p *Planner) dequeue(s *partitionClass, j *core.Job) {
	if s.inAdvanceQueue {
		p.advanceEntries--
		p.limits.countTimed(p.limits.gate(j.Spec, s.part), -1)
		s.part.advanceQueue.Remove(queueEntryOf(j, s, nil))
		return
	}
	s.removeJob(j)
	p.limits.countTimed(p.limits.gate(j.Spec, s.part), -1)
	if p.cfg.Rule == core.RuleSJFEASY {
		s.part.queue.Remove(shortestEntryOf(j, s, nil))
		return
	}
	s.part.queue.Remove(queueEntryOf(j, s, nil))
	if p.cfg.Rule == core.RuleEASYSJBF {
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
		_, until := p.classes.switchLimit(w.job)
		p.switchWaiters.Remove(queueEntry{job: w.job, since: until})
	}
	for i := range w.class.partitions {
		if s := &w.class.partitions[i]; s.reason == nil {
			p.dequeue(s, w.job)
		}
	}
	p.classes.leave(w.class, w.job)
}

func (p *Planner) release(h *ledger.Allocation) {
	p.limits.end(h)
	p.licenses.Book(h.Alloc, -1)
	p.jobs.Release(h)
}
