package sched

import (
	"fmt"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/provision"
)

// Provision is a request of the plan for nodes that do not exist or are powered down.
type Provision = provision.Request

// provision computes which nodes to create or power up for the jobs that did not start.
func (ps *pass) provision() {
	p := ps.p
	if len(p.cfg.Offers) == 0 && p.nodes.PoweredDown == 0 {
		return
	}
	planner := provision.New(provision.Config{
		Now: ps.plan.Now, Offers: p.cfg.Offers, Ledger: p.ledger, Ends: &p.jobs.Ends, PoweredDown: p.nodes.PoweredDown,
	})
	for _, w := range ps.unplaced() {
		if planner.Full() {
			break
		}
		planner.Provide(provision.Job{
			Job: w.job, Tasks: w.tasks, Expected: ps.plan.expectedWithoutProvision(&w),
			Partitions: p.provisionPartitions(w.class),
		})
	}
	ps.plan.Provision, ps.plan.provisioned = planner.Requests(), planner.Served
}

// provisionPartitions lists the partitions of a class that new nodes could help.
func (p *Planner) provisionPartitions(c *classInfo) (out []provision.Partition) {
	for i := range c.partitions {
		s := &c.partitions[i]
		if isPartitionDown(s.part.State) || s.overTimeLimit || len(s.options) > 0 ||
			len(s.req.Required) > 0 && p.nodes.PoweredDown == 0 {
			continue
		}
		out = append(out, provision.Partition{
			Name: s.part.Name, Nodes: s.part.nodes.Names, Order: p.nodes.In(s.part.nodes), Fit: &s.req,
		})
	}
	return out
}

// unplacedJob is a job that waits, with as many of its tasks as do.
type unplacedJob struct {
	job   *core.Job
	class *classInfo
	part  *partition
	entry queueEntry
	tasks int
}

// unplaced lists the jobs that did not start, in the order of a pass, as many as are considered for provisioning.
func (ps *pass) unplaced() []unplacedJob {
	p := ps.p
	started := map[core.JobID]int{}
	for i := range ps.plan.Starts {
		started[ps.plan.Starts[i].Job]++
	}
	var out []unplacedJob
	add := func(part *partition, e queueEntry, c *classInfo) {
		tasks := e.job.Count() - started[e.job.ID]
		if tasks > 0 && hetRefOf(e.job) == nil {
			out = append(out, unplacedJob{e.job, c, part, e, tasks})
		}
	}
	for _, part := range p.partitions {
		n := 0
		for c := (queueCursor{List: &part.queue}); c.Current() != nil && n < provision.MaxJobs; c.Next() {
			e := c.Current()
			if w := p.pending[e.job.ID]; w.class != nil && e.class == w.class.firstUsable() && !ps.isLimited(e) {
				add(part, *e, w.class)
				n++
			}
		}
	}
	if p.classes.hasUnplaceable() {
		for _, w := range p.pending {
			if w.class != nil && w.class.firstUsable() == nil && len(w.class.partitions) > 0 {
				s := &w.class.partitions[0]
				add(s.part, queueEntryOf(w.job, s, nil), w.class)
			}
		}
	}
	slices.SortFunc(out, func(a, b unplacedJob) int {
		switch {
		case comesBefore(a.part, &a.entry, b.part, &b.entry):
			return -1
		case comesBefore(b.part, &b.entry, a.part, &a.entry):
			return 1
		}
		return 0
	})
	return out
}

// hasUnplaceable reports whether there are classes that only other nodes could hold.
func (cs *classSet) hasUnplaceable() bool {
	for _, c := range cs.byKey {
		if c.firstUsable() == nil {
			return true
		}
	}
	return false
}

// expectedWithoutProvision returns when a job would start on the nodes there are, as far as the plan knows: if it has
// no reservation, not before the head of its queue.
func (p *Plan) expectedWithoutProvision(w *unplacedJob) core.Time {
	if t, ok := p.expected[w.job.ID]; ok {
		return t
	}
	if w.class.firstUsable() == nil {
		return alloc.Never
	}
	at := alloc.Never
	for i := range w.class.partitions {
		s := &w.class.partitions[i]
		if s.reason != nil {
			continue
		}
		if t, ok := p.expected[p.heads[s.part.Name]]; ok {
			at = min(at, t)
		} else if p.heads[s.part.Name] == 0 {
			return p.Now // no job is ahead of it: it starts in this pass or the next
		}
	}
	return at
}

// withProvision adds to the reason of a job what provisioned nodes could do for it.
func (p *Plan) withProvision(j *core.Job, w Reason) Reason {
	served, ok := p.provisioned[j.ID]
	if !ok {
		return w
	}
	w.Text += fmt.Sprintf("; %s, in %v", served.Text, served.At.Sub(p.Now).Round(time.Second))
	if w.Expected == 0 || served.At < w.Expected {
		w.Expected, w.Estimate = served.At, true
	}
	return w
}
