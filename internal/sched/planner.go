package sched

import (
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// Config is what the planner needs to know beside jobs and nodes.
type Config struct {
	Partitions []core.Partition
	Names      Names        // expands hostlists
	Offers     []core.Offer // nodes that could be had, by name
	Rule       Rule
	// Reservations is how many jobs of each queue that cannot start are promised one; 0: the first, or all if the rule is
	// RuleConservative.
	Reservations int32
	Grain        Grain
	Licenses     []core.License
	Zone         *time.Location // whose days advance reservations come again by; nil: UTC
	Topology     *core.Topology // how nodes are joined; nil: nobody says
	// MaxSwitchWait is the most a job waits for few switches.
	MaxSwitchWait core.Seconds
	Preemption    *Preemption // nil: nobody is preempted, until Changes bring one
	// FaultForTests is called with every job that the planner begins to work on. A test's may panic there.
	FaultForTests func(*core.Job)
}

// Changes is what the planner is told: whole records that are new or changed, and what is gone. A reservation that is in
// both lists went and came again.
type Changes struct {
	Jobs      []*core.Job
	Nodes     []*core.Node
	GoneNodes []core.NodeName

	Reservations     []*core.AdvanceReservation
	GoneReservations []string

	Policy *Policy         // nil: as it was
	Meters []*policy.Meter // what was used, of those for whom it changed

	Preemption *Preemption // from now on; nil: as before

	// Anew says that the planner is of no use any more: one made with this config is to be told the rest, which is all
	// there is.
	Anew *Config
}

// Merge adds what came after c.
func (c *Changes) Merge(d Changes) {
	if d.Anew != nil {
		*c = Changes{Anew: d.Anew}
	}
	c.Jobs = append(c.Jobs, d.Jobs...)
	if len(d.GoneNodes) > 0 { // as with reservations below
		c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n *core.Node) bool { return slices.Contains(d.GoneNodes, n.Name) })
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

// Empty tells whether there is nothing to tell.
func (c *Changes) Empty() bool {
	return len(c.Jobs)+len(c.Nodes)+len(c.GoneNodes)+len(c.Reservations)+len(c.GoneReservations)+len(c.Meters) == 0 && c.Policy == nil &&
		c.Preemption == nil && c.Anew == nil
}

// Planner keeps queues and free resources between passes, so that a pass costs what changed. See the package comment.
type Planner struct {
	cfg    Config
	ledger *Ledger
	parts  []*partition // in config order
	byName map[core.PartitionName]*partition

	pending map[core.JobID]waiter // jobs that may start, now or from a known moment on
	later   queue                 // those whose moment has not come, by that moment
	owning  bool                  // some partition keeps nodes to one user at a time
	patient queue                 // those that wait for few switches, by the moment their patience ends
	classes map[classKey]*class   // of the jobs in pending that are not in later
	holding map[core.JobID]*holding
	ends    list[ending, *ending] // what is in holding, and what a pass starts while it goes on
	running map[core.JobID]int32  // tasks that hold something, by array
	hets    map[core.JobID]*hetSet
	asleep  int // nodes that are powered down, or on their way up

	verdicts map[classKey]Why // as of the last pass; see verdictsNow
	stale    bool
	key      func(*core.Job, core.Time) classKey

	table *timetable // of RuleConservative

	limits *limits // nil: there are none
	meters map[meterKey]*policy.Meter
	who    func(*core.Spec, core.PartitionName) (policy.Who, bool)

	ruling         // its books are the advance reservations, by name; never changed, but replaced
	bookings int64 // how often
	laid     int   // the ledger's shape, and
	laidFor  int64 // bookings, as of when they were laid on the nodes
	laidAs   fingerprint
	parted   []*account // nodes of which reservations have a part
	leftOver []*account // scratch; see pass.away
	insiders int        // entries in the partitions' inside queues
	stock    map[string]*stock
	asking   int // classes that ask for licences

	throttles map[core.JobID]*core.Job // of pending, those whose array may run so many tasks at once

	gains   feed           // nodes on which something came free
	begun   int64          // the first of them since the last pass began,
	settled int64          // and since the one before
	news    feed           // nodes on which anything changed
	last    []*reservation // that the last pass made

	kinds    []*account // of nodes, the first of each
	indexed  int        // the ledger's shape, as of index
	numbered []*account
	openSet  bitset // nodes that have anything to give
	spares   []spare
	tracking bool // there are enough nodes for that
	// From how many nodes on it is noted what happens on each, and from how many jobs on a queue is walked by classes: for
	// fewer it does not pay.
	trackFrom, deepFrom int

	borrowed map[core.JobID][]core.Lent // what jobs use of those they preempted, by who uses it
	exempts  list[exemption, *exemption]
	hunt     hunt

	looking core.JobID // see Looking

	passes, sweeps int64
	dives          int64
	opened         int64 // passes, for partition.open
	watched        watched
	walking        pass
	spare          spares
	shared         promises // of the last plan
	fresher        promises // for the next one to fill
	scratch
}

// scratch is what passes work in.
type scratch struct {
	buf    []pick
	tmp    balance
	lanes  []lane
	rooms  []int32
	roomOf []int32
	fresh  []*account
	some   []*account
	anew   []mark
	marks  []mark
	isNew  bitset
	turns  []core.Time
	some32 [][2]int32

	rooming []*account
}

type partition struct {
	core.Partition
	nodes  map[core.NodeName]bool // nil: all
	queue  queue                  // jobs that the nodes that are up could hold
	short  queue                  // the same, shortest first, if the rule wants that
	inside queue                  // jobs that ask for advance reservations
	live   int                    // classes in queue
	dead   int                    // of them, those of which the pass found that none can start

	slots    []*slot    // of the classes in queue
	ups      []int32    // nodes that are up, by kind
	order    []*account // of nodes; see accounts
	shape    int
	members  bitset     // the same as a set
	open     []*account // see Planner.open
	opened   int64
	asleep   int64     // the dive since which classes sleep,
	quiet    int64     // while nothing came free among the nodes before this gain
	sleepers []sleeper // those that do,
	awake    []*slot   // and the others, some of them twice
	best     bestGain  // see pass.bestGain
	crest    crest
	gained   []*account // see Planner.gained
	gainedAt int64
	searches []*search
	lane     int32 // its place among the partitions
}

// waiter is a job that may start. Its class is nil while its moment has not come.
type waiter struct {
	job   *core.Job
	class *class
}

// holding is what a job has taken from the ledger.
type holding struct {
	alloc *core.Alloc
	terms Terms
	base  core.JobID // of its array, or 0
	end   core.Time  // when it comes back at the latest; unset for starts of a pass
	job   *core.Job  // whose it is
	stake *policy.Stake
	on    []*account // its nodes, as of
	shape int        // the ledger's; see Planner.on

	id     core.JobID  // of those a planner keeps between passes
	victim *victim     // nil: it is not to be preempted
	lent   []core.Lent // what others use of it while it is suspended
	owes   []core.Lent // what it uses of others
	dying  bool        // it has ended and its nodes come free
	doomed bool        // in this pass: it is to be preempted
}

// spares are the holdings of starts of earlier passes, to be used again: nobody knows them after their pass.
type spares []*holding

func (s *spares) take() *holding {
	if k := len(*s) - 1; k >= 0 {
		h := (*s)[k]
		*s = (*s)[:k]
		return h
	}
	return &holding{}
}

func (s *spares) give(h *holding) {
	if *h = (holding{}); len(*s) < 1024 {
		*s = append(*s, h)
	}
}

// New makes an empty planner.
func New(cfg Config) *Planner {
	p := &Planner{
		cfg: cfg, ledger: NewLedger(), byName: map[core.PartitionName]*partition{}, pending: map[core.JobID]waiter{},
		classes: map[classKey]*class{}, holding: map[core.JobID]*holding{}, running: map[core.JobID]int32{},
	}
	p.who, p.stock, p.indexed = p.whoIn, map[string]*stock{}, -1
	p.rule(cfg.Preemption)
	p.gains.from, p.news.from, p.deepFrom, p.trackFrom = 1, 1, 64, 16
	p.ledger.SetTopology(cfg.Topology)
	p.ledger.Rule(RulesOf(cfg.Grain, cfg.Partitions, cfg.Names))
	for _, l := range cfg.Licenses {
		p.stock[l.Name] = &stock{total: l.Total}
	}
	if cfg.Rule == RuleConservative {
		p.table = &timetable{jobs: map[core.JobID]*booking{}}
	}
	for _, c := range cfg.Partitions {
		part := &partition{Partition: c, nodes: PartitionNodes(&c, cfg.Names)}
		part.lane = int32(len(p.parts))
		p.parts = append(p.parts, part)
		p.byName[c.Name] = part
		p.owning = p.owning || c.ExclusiveUser
	}
	return p
}

// PartitionNodes expands a partition's node list; nil means every node.
func PartitionNodes(c *core.Partition, names Names) map[core.NodeName]bool {
	if c.Nodes == "" || strings.EqualFold(c.Nodes, "ALL") {
		return nil
	}
	return names(c.Nodes)
}

// Apply tells the planner what changed. A job that is final and clean, or not pending any more, leaves by being told so.
func (p *Planner) Apply(c Changes) {
	if c.Preemption != nil && c.Preemption != p.push {
		p.setPreemption(c.Preemption)
	}
	if len(p.hets) > 0 && len(c.Nodes)+len(c.GoneNodes)+len(c.Reservations)+len(c.GoneReservations) > 0 {
		p.hetAll(p.hetSit) // what they are judged by changes
		defer p.hetAll(p.hetStand)
	}
	how := notAltered
	for _, name := range c.GoneNodes { // first: a name may come again
		if a := p.ledger.nodes[name]; a != nil {
			p.census(a, -1)
			a.index = -1
			p.ledger.DropNode(name)
			how = another
		}
	}
	for _, n := range c.Nodes {
		how = max(how, p.setNode(n))
	}
	p.setReservations(&c)
	if how == another {
		p.setUsers()
	}
	if how != notAltered {
		p.reassess(how)
	}
	for _, m := range c.Meters {
		p.setMeter(m)
	}
	if c.Policy != nil {
		p.setPolicy(c.Policy)
	}
	for _, j := range c.Jobs {
		p.look(j)
		p.setJob(j)
	}
	p.looking = 0
}

// look notes which job is worked on.
func (p *Planner) look(j *core.Job) {
	p.looking = j.ID
	if p.cfg.FaultForTests != nil {
		p.cfg.FaultForTests(j)
	}
}

// Looking is the job that was worked on last, 0 for none: when a call of the planner's does not return, the one it
// failed on.
func (p *Planner) Looking() core.JobID { return p.looking }

func (p *Planner) setNode(n *core.Node) (how altered) {
	old := p.ledger.nodes[n.Name]
	how = another
	if old != nil {
		if how = alteredOf(old.node, n); how == upOrDown {
			p.watched.turned(n.Usable())
		}
		p.census(old, -1)
	}
	if !p.ledger.SetNode(n) {
		p.census(old, 1)
		if how != notAltered {
			p.gain(old)
		}
		return how
	}
	if old != nil {
		old.index = -1
	}
	a := p.ledger.nodes[n.Name]
	p.census(a, 1)
	for _, h := range p.holding {
		for i := range h.alloc.Nodes {
			if na := &h.alloc.Nodes[i]; na.Node == n.Name && !na.Done {
				p.ledger.Force(na, h.terms)
				p.station(h, i)
				if p.tracking {
					a.visit(visit{h.end, h, int32(i)})
				}
			}
		}
	}
	p.gain(a)
	return how
}

func (p *Planner) setJob(j *core.Job) {
	if w, ok := p.pending[j.ID]; ok {
		if w.job == j {
			return
		}
		p.forget(w)
	}
	if h, ok := p.holding[j.ID]; ok {
		p.ends.remove(ending{at: h.end, id: j.ID})
		p.strike(h)
		p.release(h)
		delete(p.holding, j.ID)
	}
	switch {
	case j.State == core.Pending && j.Alloc == nil:
		if Blocked(j) {
			return
		}
		if ref := hetOf(j); ref != nil {
			p.hetAdd(j, ref)
			return
		}
		p.pending[j.ID] = waiter{job: j}
		if j.Eligible > j.Submit {
			p.later.insert(laterOf(j))
		} else {
			p.ripe(j)
		}
	case j.Alloc != nil && j.Live():
		h := &holding{end: endOf(j), job: j}
		h.alloc, h.terms = Booked(j)
		p.stake(h, h.end)
		if j.Array != nil {
			h.base = j.Array.Base
			p.running[h.base]++
		}
		for i := range h.alloc.Nodes {
			if na := &h.alloc.Nodes[i]; !na.Done {
				p.ledger.Force(na, h.terms)
				if a := p.ledger.nodes[na.Node]; a != nil {
					p.touch(a)
				}
			}
		}
		p.seat(h.alloc, 1)
		p.stay(h, h.end)
		p.holding[j.ID] = h
		p.enrol(h, j)
		p.ends.insert(ending{at: h.end, id: j.ID, h: h})
	}
}

// ripe lets a job whose moment has come wait for its start.
func (p *Planner) ripe(j *core.Job) {
	if ref := hetOf(j); ref != nil {
		p.hetRipe(p.hets[ref.Lead])
		return
	}
	if j.Array != nil && j.Spec.Throttle > 0 { // it may have been forgotten for a moment
		p.throttle(j)
	}
	few, until := p.few(j)
	if few > 0 {
		p.patient.insert(entry{job: j, at: until})
	}
	p.stand(j, few)
}

// stand puts a job into the queues of the partitions that could hold it.
func (p *Planner) stand(j *core.Job, few int32) {
	c := p.join(j, few)
	p.pending[j.ID] = waiter{job: j, class: c}
	if j.Array != nil && j.Spec.Throttle > 0 {
		p.throttle(j)
	}
	for i := range c.slots {
		if s := &c.slots[i]; s.why == nil {
			p.enqueue(s, j)
		} else {
			p.gate(j.Spec, s.part) // plans tell of the limits in all its partitions
		}
	}
}

// enqueue puts a job into the queue of one of its partitions.
func (p *Planner) enqueue(s *slot, j *core.Job) {
	if s.inside {
		p.insiders++
		g := p.gate(j.Spec, s.part)
		p.await(g, 1)
		s.part.inside.insert(entryOf(j, s, g))
		return
	}
	g := p.gate(j.Spec, s.part)
	p.await(g, 1)
	s.enter(j, g)
	if p.cfg.Rule == RuleSJFEASY {
		s.part.queue.insert(shortOf(j, s, g))
		return
	}
	s.part.queue.insert(entryOf(j, s, g))
	if p.cfg.Rule == RuleEASYSJBF {
		s.part.short.insert(shortOf(j, s, g))
	}
}

// dequeue is the other way round.
func (p *Planner) dequeue(s *slot, j *core.Job) {
	if s.inside {
		p.insiders--
		p.await(p.gate(j.Spec, s.part), -1)
		s.part.inside.remove(entryOf(j, s, nil))
		return
	}
	s.leave(j)
	p.await(p.gate(j.Spec, s.part), -1)
	if p.cfg.Rule == RuleSJFEASY {
		s.part.queue.remove(shortOf(j, s, nil))
		return
	}
	s.part.queue.remove(entryOf(j, s, nil))
	if p.cfg.Rule == RuleEASYSJBF {
		s.part.short.remove(shortOf(j, s, nil))
	}
}

func (p *Planner) forget(w waiter) {
	if ref := hetOf(w.job); ref != nil {
		p.hetDrop(w.job, ref)
		return
	}
	delete(p.pending, w.job.ID)
	delete(p.throttles, w.job.ID)
	if w.class == nil {
		p.later.remove(laterOf(w.job))
		return
	}
	if w.class.few > 0 {
		_, until := p.few(w.job)
		p.patient.remove(entry{job: w.job, at: until})
	}
	for i := range w.class.slots {
		if s := &w.class.slots[i]; s.why == nil {
			p.dequeue(s, w.job)
		}
	}
	p.leave(w.class, w.job)
}

func (p *Planner) release(h *holding) {
	if h.stake != nil {
		p.limits.tally.End(h.stake)
		h.stake = nil
	}
	p.seat(h.alloc, -1)
	for i := range h.alloc.Nodes {
		if na := &h.alloc.Nodes[i]; !na.Done {
			p.ledger.Give(na, h.terms)
			if a := p.ledger.nodes[na.Node]; a != nil {
				a.quit(h)
				p.gain(a)
			}
		}
	}
	if h.base != 0 {
		if p.running[h.base]--; p.running[h.base] == 0 {
			delete(p.running, h.base)
		}
	}
}

// on gives the accounts of a job's nodes; nil stands for those that are not known any more.
func (p *Planner) on(h *holding) []*account {
	if h.shape != p.ledger.shape {
		h.shape, h.on = p.ledger.shape, make([]*account, len(h.alloc.Nodes))
		for i := range h.on {
			h.on[i] = p.ledger.nodes[h.alloc.Nodes[i].Node]
		}
	}
	return h.on
}

func eachPartition(list core.PartitionName, do func(core.PartitionName)) {
	for {
		at := strings.IndexByte(string(list), ',')
		if at < 0 {
			do(list)
			return
		}
		do(list[:at])
		list = list[at+1:]
	}
}
