package state

import (
	"cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
)

// basePriority is every job's priority before nice, where policy has nothing to say.
const basePriority = 10_000

// Priority is how priorities are worked out. A state without one gives every job the same, less nice.
type Priority struct {
	policy.Config
	Damp   int64        // of classic fair-share; 0: 1
	Period core.Seconds // between two calculations of all jobs; 0: five minutes
}

// ranks works priorities out.
//
// A priority is worked out when a job is submitted, released or changed, and for all jobs that wait once a period: age,
// fair shares and the cluster have moved on by then. That calculation goes through the jobs in slices, one a Tick, so
// that no command waits for it. What it changes stays in memory: it is made again after a restart.
type ranks struct {
	cfg   *Priority
	due   core.Time // of the next calculation, or of its next slice
	began core.Time // of the one that goes on
	next  int64     // the job it goes on with; 0: none goes on
	aged  []*core.Job
}

// slice is how many jobs one Tick looks at.
const slice = 2000

func newRanks(cfg *Priority, s *State) *ranks {
	r := &ranks{cfg: cfg, due: max(1, s.view.now)}
	r.survey(s)
	return r
}

// rankSoon has all priorities worked out anew at the next Tick.
func (s *State) rankSoon() {
	if r := s.ranks; r != nil {
		r.due, r.next = s.view.now, 0
	}
}

// survey looks at the cluster and at who spent what: the part of priorities that jobs share.
func (r *ranks) survey(s *State) {
	k := &ranking{cfg: r.cfg, accrual: s.limits.rules.Accrual(), totals: map[core.PartitionName]policy.TRES{}}
	for _, p := range s.cfg.Partitions {
		k.cluster.MaxPart = max(k.cluster.MaxPart, partPriority(&p))
	}
	for _, q := range s.view.qos {
		k.cluster.MaxQOS = max(k.cluster.MaxQOS, q.Priority)
	}
	for _, p := range s.view.projects {
		k.cluster.MaxAssoc = max(k.cluster.MaxAssoc, p.Assoc.Priority)
		for i := range p.Members {
			k.cluster.MaxAssoc = max(k.cluster.MaxAssoc, p.Members[i].Assoc.Priority)
		}
	}
	for _, n := range s.view.nodes.All() {
		if n.Roles&core.Compute == 0 || n.Flags.Any(core.NodeUnknown|core.NodeDown|core.NodeFuture) {
			continue
		}
		k.cluster.Nodes++
		k.cluster.CPUs += int64(n.Hardware.CPUs)
		if len(r.cfg.Weights.TRES) == 0 {
			continue
		}
		has := nodeTRES(n)
		for _, p := range s.cfg.Partitions {
			if part := s.parts[p.Name]; part.nodes == nil || part.nodes[n.Name] {
				k.totals[p.Name] = k.totals[p.Name].Plus(has, 1)
			}
		}
	}
	if len(r.cfg.Weights.TRES) > 0 { // licences are the whole cluster's, whatever the partition
		for _, p := range s.cfg.Partitions {
			k.totals[p.Name] = k.totals[p.Name].Plus(s.licenceTRES(), 1)
		}
	}
	if r.cfg.Weights.FairShare > 0 || s.limits.rules.Shares() {
		k.tree = s.view.accounts(s.view.now)
		k.tree.FairShare(r.cfg.Flags, r.cfg.Damp)
	}
	s.view.ranking = k
	if s.limits.rules.Shares() {
		c := sched.Changes{Policy: s.policy()}
		s.fresh.Merge(c)
		s.touched.Merge(c)
	}
}

// recalc works priorities out anew: all that waits, a slice at a time.
func (s *State) recalc() {
	r := s.ranks
	if r == nil || s.view.now < r.due {
		return
	}
	if r.next == 0 {
		s.accrue()
		r.survey(s)
		r.began, r.next = s.view.now, 1
	}
	left, from := slice, r.next
	r.next = 0
	var changed []*core.Job
	for id, j := range s.view.jobs.From(from) {
		if left--; left < 0 {
			r.next = id
			break
		}
		if j.Priority == 0 || j.Flags.Has(core.FixedPriority) || j.State != core.Pending && r.cfg.Flags&policy.CalculateRunning == 0 {
			continue
		}
		if p := r.cfg.Next(j.Priority, s.priorityOf(j, j.Spec)); p != j.Priority {
			next := clone(j)
			next.Priority = p
			changed = append(changed, next)
		}
	}
	for _, j := range changed {
		s.remind(j)
	}
	if r.next == 0 {
		r.due = r.began + core.Time(cmp.Or(r.cfg.Period, 300))*1e6
	}
}

// remind replaces a record by one that differs in what need not be stored.
func (s *State) remind(j *core.Job) {
	s.view.jobs.Set(int64(j.ID), j)
	s.fresh.Jobs = append(s.fresh.Jobs, j)
	if i, ok := s.dirty[j.ID]; ok {
		s.out.Jobs[i] = j
		return
	}
	s.ranks.aged = append(s.ranks.aged, j)
}

// priorityOf is the priority of a job with a spec, which may be about to replace the one it has.
func (s *State) priorityOf(j *core.Job, spec *core.Spec) uint32 {
	if p := spec.More().Priority; p != nil {
		return *p
	}
	return s.view.priority(j, spec)
}

func partPriority(p *core.Partition) uint32 { return uint32(max(1, p.PriorityFactor)) }
