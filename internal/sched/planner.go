package sched

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Config is what the planner needs to know beside jobs and nodes.
type Config struct {
	Partitions []core.Partition
	Names      Names // expands hostlists
}

// Changes is what the planner is told: whole records that are new or changed, and what is gone.
type Changes struct {
	Jobs      []*core.Job
	Nodes     []*core.Node
	GoneNodes []core.NodeName
}

// Planner keeps queues and free resources between passes, so that a pass costs what changed. See the package comment.
type Planner struct {
	cfg    Config
	ledger *Ledger
	parts  []*partition // in config order
	byName map[core.PartitionName]*partition

	pending map[core.JobID]entry     // as put into the queues
	waiting map[core.JobID]core.Time // eligible later: not in a queue yet
	holding map[core.JobID]holding
	running map[core.JobID]int32 // tasks running, by array
	aside   map[core.JobID]Why   // cannot start on the nodes as they are; cleared when nodes change
	buf     []pick
}

type partition struct {
	core.Partition
	nodes map[core.NodeName]bool // nil: all
	queue queue
}

// holding is what a job has taken from the ledger.
type holding struct {
	alloc     *core.Alloc
	exclusive bool
	base      core.JobID // of its array, or 0
}

// New makes an empty planner.
func New(cfg Config) *Planner {
	p := &Planner{cfg: cfg, ledger: NewLedger(), byName: map[core.PartitionName]*partition{}, pending: map[core.JobID]entry{},
		waiting: map[core.JobID]core.Time{}, holding: map[core.JobID]holding{}, running: map[core.JobID]int32{}, aside: map[core.JobID]Why{}}
	for _, c := range cfg.Partitions {
		part := &partition{Partition: c, nodes: PartitionNodes(&c, cfg.Names)}
		p.parts = append(p.parts, part)
		p.byName[c.Name] = part
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
	for _, n := range c.Nodes {
		p.setNode(n)
	}
	for _, name := range c.GoneNodes {
		p.ledger.DropNode(name)
	}
	if len(c.Nodes)+len(c.GoneNodes) > 0 {
		p.recall()
	}
	for _, j := range c.Jobs {
		p.setJob(j)
	}
}

// recall puts jobs that were set aside back for the next pass to look at.
func (p *Planner) recall() {
	for id := range p.aside {
		if e, ok := p.pending[id]; ok {
			p.enqueue(e)
		}
	}
	clear(p.aside)
}

func (p *Planner) setNode(n *core.Node) {
	old := p.ledger.nodes[n.Name]
	resized := old != nil && Resized(old.node, n)
	p.ledger.SetNode(n)
	if !resized {
		return
	}
	for _, h := range p.holding {
		for i := range h.alloc.Nodes {
			if na := &h.alloc.Nodes[i]; na.Node == n.Name && !na.Done {
				p.ledger.Force(na, h.exclusive)
			}
		}
	}
}

func (p *Planner) setJob(j *core.Job) {
	if e, ok := p.pending[j.ID]; ok {
		if e.job == j {
			return
		}
		p.dequeue(e)
		delete(p.pending, j.ID)
		delete(p.aside, j.ID)
		delete(p.waiting, j.ID)
	}
	if h, ok := p.holding[j.ID]; ok {
		p.release(h)
		delete(p.holding, j.ID)
	}
	switch {
	case j.State == core.Pending && !j.Flags.Has(core.Requeueing) && j.Alloc == nil:
		e := entryOf(j)
		p.pending[j.ID] = e
		if j.Flags.Held() {
			return
		}
		p.waiting[j.ID] = j.Eligible
		if j.Eligible <= j.Submit {
			delete(p.waiting, j.ID)
			p.enqueue(e)
		}
	case j.Alloc != nil && j.Live():
		h := holding{alloc: j.Alloc, exclusive: j.Spec.Shape.Exclusive}
		if j.Array != nil {
			h.base = j.Array.Base
			p.running[h.base]++
		}
		for i := range h.alloc.Nodes {
			if na := &h.alloc.Nodes[i]; !na.Done {
				p.ledger.Force(na, h.exclusive)
			}
		}
		p.holding[j.ID] = h
	}
}

func (p *Planner) release(h holding) {
	for i := range h.alloc.Nodes {
		if na := &h.alloc.Nodes[i]; !na.Done {
			p.ledger.Give(na, h.exclusive)
		}
	}
	if h.base != 0 {
		if p.running[h.base]--; p.running[h.base] == 0 {
			delete(p.running, h.base)
		}
	}
}

func eachPartition(list core.PartitionName, do func(core.PartitionName)) {
	if !strings.Contains(string(list), ",") {
		do(list)
		return
	}
	for _, s := range strings.Split(string(list), ",") {
		do(core.PartitionName(s))
	}
}

func (p *Planner) enqueue(e entry) {
	eachPartition(e.job.Spec.Partition, func(name core.PartitionName) {
		if part := p.byName[name]; part != nil {
			part.queue.insert(e)
		}
	})
}

func (p *Planner) dequeue(e entry) {
	eachPartition(e.job.Spec.Partition, func(name core.PartitionName) {
		if part := p.byName[name]; part != nil {
			part.queue.remove(e)
		}
	})
}

// Pass plans at now.
func (p *Planner) Pass(now core.Time) *Plan {
	plan := &Plan{Now: now, heads: map[core.PartitionName]core.JobID{}}
	p.ripen(now, plan)
	pass := pass{p: p, plan: plan, throttled: map[core.JobID]bool{}}
	pass.run()
	for i := len(pass.taken) - 1; i >= 0; i-- { // leave the ledger as it was found
		p.release(pass.taken[i])
	}
	for id, why := range pass.aside { // out of the queues until nodes change; still pending
		p.dequeue(p.pending[id])
		p.aside[id] = why
	}
	plan.aside = make(map[core.JobID]Why, len(p.aside)+len(pass.throttled))
	for id, w := range p.aside {
		plan.aside[id] = w
	}
	for id := range pass.throttled {
		plan.aside[id] = Why{Reason: core.ReasonArrayTaskLimit, Text: "as many tasks of the array run as its limit allows"}
	}
	return plan
}

// ripen moves jobs whose time has come into their queues and finds the next one's.
func (p *Planner) ripen(now core.Time, plan *Plan) {
	var ripe []core.JobID
	for id, at := range p.waiting {
		if at <= now {
			ripe = append(ripe, id)
		} else if plan.WakeAt == 0 || at < plan.WakeAt {
			plan.WakeAt = at
		}
	}
	slices.Sort(ripe)
	for _, id := range ripe {
		delete(p.waiting, id)
		p.enqueue(p.pending[id])
	}
}

// pass is one walk through the queues.
type pass struct {
	p         *Planner
	plan      *Plan
	taken     []holding
	aside     map[core.JobID]Why
	throttled map[core.JobID]bool
	started   map[core.JobID]bool // jobs that stand in several queues
}

func (ps *pass) run() {
	cursors := make([]cursor, len(ps.p.parts))
	open := make([]bool, len(ps.p.parts))
	for i, part := range ps.p.parts {
		cursors[i] = cursor{q: &part.queue}
		open[i] = true
		if down(part.State) {
			open[i] = false
			if e := cursors[i].head(); e != nil {
				ps.closed(part, &cursors[i])
			}
		}
	}
	for {
		best := -1
		var head *entry
		for i := range cursors {
			if !open[i] {
				continue
			}
			e := cursors[i].head()
			if e == nil {
				open[i] = false
				continue
			}
			if best < 0 || higher(ps.p.parts[i], e, ps.p.parts[best], head) {
				best, head = i, e
			}
		}
		if best < 0 {
			return
		}
		if ps.try(ps.p.parts[best], head.job) {
			cursors[best].next()
		} else {
			ps.plan.heads[ps.p.parts[best].Name] = head.id
			open[best] = false
		}
	}
}

// higher orders jobs of different partitions: the partition's tier first.
func higher(a *partition, e *entry, b *partition, f *entry) bool {
	if a.PriorityTier != b.PriorityTier {
		return a.PriorityTier > b.PriorityTier
	}
	return e.compare(f) < 0
}

func down(state string) bool { return state != "" && state != "UP" && state != "DRAIN" }

// closed gives every job of a partition that is down its reason.
func (ps *pass) closed(part *partition, c *cursor) {
	for e := c.head(); e != nil; e = c.head() {
		ps.setAside(e.id, Why{Reason: core.ReasonPartitionDown, Text: fmt.Sprintf("partition %s is %s", part.Name, part.State)})
		c.next()
	}
}

func (ps *pass) setAside(id core.JobID, w Why) {
	if ps.aside == nil {
		ps.aside = map[core.JobID]Why{}
	}
	ps.aside[id] = w
}

// try starts a job, or as many tasks of an array as fit. It returns false if the queue behind must wait for it.
func (ps *pass) try(part *partition, j *core.Job) bool {
	if ps.started[j.ID] || ps.throttled[j.ID] {
		return true
	}
	if w, ok := part.limits(j); !ok {
		ps.setAside(j.ID, w)
		return true
	}
	if _, isAside := ps.aside[j.ID]; isAside {
		delete(ps.aside, j.ID) // another of its partitions will have it
	}
	n := needOf(j.Spec, ps.p.cfg.Names)
	if !j.IsArray() {
		if ps.place(part, j, &n, 0, false) {
			ps.mark(j.ID)
			return true
		}
		return ps.blockedBy(part, j, &n)
	}
	base := j.Array.Base
	first := true
	for task := range j.Array.Tasks.All() {
		if j.Spec.Throttle > 0 && ps.p.running[base] >= j.Spec.Throttle {
			ps.throttled[j.ID] = true
			return true
		}
		if !ps.place(part, j, &n, int32(task), true) {
			if first {
				return ps.blockedBy(part, j, &n)
			}
			return false
		}
		first = false
	}
	ps.mark(j.ID)
	return true
}

func (ps *pass) mark(id core.JobID) {
	if ps.started == nil {
		ps.started = map[core.JobID]bool{}
	}
	ps.started[id] = true
}

// limits checks what a partition allows; a job beyond it waits for an administrator, not for resources.
func (part *partition) limits(j *core.Job) (Why, bool) {
	s := &j.Spec.Shape
	if part.MaxNodes > 0 && max(1, s.NodesMin) > part.MaxNodes {
		return Why{Reason: core.ReasonPartitionNodes, Text: fmt.Sprintf("it asks for %d nodes; partition %s allows %d a job", s.NodesMin, part.Name, part.MaxNodes)}, false
	}
	if part.nodes != nil && int(s.NodesMin) > len(part.nodes) {
		return Why{Reason: core.ReasonPartitionNodes, Text: fmt.Sprintf("it asks for %d nodes; partition %s has %d", s.NodesMin, part.Name, len(part.nodes))}, false
	}
	if part.MaxTime > 0 && j.Spec.TimeLimit > part.MaxTime {
		return Why{Reason: core.ReasonPartitionTime, Text: fmt.Sprintf("it asks for %s; partition %s allows %s", j.Spec.TimeLimit.Duration(), part.Name, part.MaxTime.Duration())}, false
	}
	return Why{}, true
}

func (ps *pass) place(part *partition, j *core.Job, n *need, task int32, array bool) bool {
	l := ps.p.ledger
	picks := l.choose(n, part.nodes, ps.p.buf, false, (*core.Node).Usable)
	if picks == nil {
		return false
	}
	ps.p.buf = picks
	h := holding{alloc: n.alloc(part.Name, picks), exclusive: n.exclusive}
	for i := range h.alloc.Nodes {
		ok := l.Take(&h.alloc.Nodes[i], h.exclusive)
		core.Assert(ok, "placement of job %d takes what is not free on %s", j.ID, h.alloc.Nodes[i].Node)
	}
	if array {
		h.base = j.Array.Base
		ps.p.running[h.base]++
	}
	ps.taken = append(ps.taken, h)
	ps.plan.Starts = append(ps.plan.Starts, Start{Job: j.ID, Task: task, Array: array, Alloc: h.alloc})
	return true
}

// blockedBy tells whether a job that cannot start now may be passed by: only if it could not start on the usable nodes
// even if nothing ran.
func (ps *pass) blockedBy(part *partition, j *core.Job, n *need) bool {
	l := ps.p.ledger
	if l.choose(n, part.nodes, nil, true, (*core.Node).Usable) != nil {
		return false
	}
	w := Why{Reason: core.ReasonResources, Text: "no node that is up could hold it: it asks for " + n.String()}
	if len(n.must) > 0 {
		w.Reason = core.ReasonReqNodeNotAvail
		w.Text = "a node it asks for by name is not available"
	}
	if f := l.CanEver(j.Spec, part.nodes, ps.p.cfg.Names); f != nil {
		w = Why{Reason: core.ReasonBadConstraints, Text: f.Text}
		if int(n.nodesMin) > l.count(part.nodes) {
			w.Reason = core.ReasonPartitionNodes
		}
	}
	ps.setAside(j.ID, w)
	return true
}

func (l *Ledger) count(in map[core.NodeName]bool) int {
	if in == nil {
		return len(l.nodes)
	}
	return len(in)
}
