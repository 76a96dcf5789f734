package state

import (
	"cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
)

// priorityCalc works priorities out.
//
// A priority is worked out when a job is submitted, released or changed, and for all jobs that wait once a period: age,
// fair shares and the cluster have moved on by then. That calculation goes through the jobs in slices, one a Tick, so
// that no command waits for it. What it changes stays in memory: it is made again after a restart.
type priorityCalc struct {
	cfg     *Priority
	due     core.Time  // of the next calculation, or of its next slice
	began   core.Time  // of the one that goes on
	nextJob core.JobID // the job it goes on with; 0: none goes on
}

// jobsPerSlice is how many jobs one Tick looks at.
const jobsPerSlice = 2000

func newPriorityCalc(cfg *Priority, s *State) *priorityCalc {
	r := &priorityCalc{cfg: cfg, due: max(1, s.rec.Now())}
	r.refreshInputs(s)
	return r
}

// recalcPrioritiesSoon has all priorities worked out anew at the next Tick.
func (s *State) recalcPrioritiesSoon() {
	if r := s.priorities; r != nil {
		r.due, r.nextJob = s.rec.Now(), 0
	}
}

// refreshInputs looks at the cluster and at who spent what: the part of priorities that jobs share.
func (r *priorityCalc) refreshInputs(s *State) {
	k := &live.Ranking{Config: r.cfg, Accrual: s.limits.rules.Accrual(), Totals: map[core.PartitionName]policy.TRES{}}
	for _, p := range s.cfg.Partitions {
		k.Cluster.MaxPart = max(k.Cluster.MaxPart, live.PartitionPriority(&p))
	}
	for _, q := range s.rec.QOSByName() {
		k.Cluster.MaxQOS = max(k.Cluster.MaxQOS, q.Priority)
	}
	for _, p := range s.people.ProjectsByName() {
		k.Cluster.MaxAssoc = max(k.Cluster.MaxAssoc, p.Assoc.Priority)
		for i := range p.Members {
			k.Cluster.MaxAssoc = max(k.Cluster.MaxAssoc, p.Members[i].Assoc.Priority)
		}
	}
	for n := range s.rec.Nodes() {
		if n.Roles&core.Compute == 0 || n.Flags.Any(core.NodeUnknown|core.NodeDown|core.NodeFuture) {
			continue
		}
		k.Cluster.Nodes++
		k.Cluster.CPUs += int64(n.Hardware.CPUs)
		if len(r.cfg.Weights.TRES) == 0 {
			continue
		}
		has := nodeTRES(n)
		for _, p := range s.cfg.Partitions {
			if part := s.cluster.Partitions[p.Name]; part.Nodes == nil || part.Nodes[n.Name] {
				k.Totals[p.Name] = k.Totals[p.Name].Plus(has, 1)
			}
		}
	}
	if len(r.cfg.Weights.TRES) > 0 { // licenses are the whole cluster's, whatever the partition
		for _, p := range s.cfg.Partitions {
			k.Totals[p.Name] = k.Totals[p.Name].Plus(s.licenseTRES(), 1)
		}
	}
	if r.cfg.Weights.FairShare > 0 || s.limits.rules.Shares() {
		k.Tree = s.rec.FairShareTree(s.rec.Now())
		k.Tree.FairShare(r.cfg.Flags, r.cfg.Damp)
	}
	s.rec.SetRanking(k)
	if s.limits.rules.Shares() {
		s.rec.TellPlanner(sched.Changes{Policy: s.plannerPolicy()})
	}
}

// recalcPriorities works priorities out anew: all that waits, a slice at a time.
func (s *State) recalcPriorities() {
	r := s.priorities
	if r == nil || s.rec.Now() < r.due {
		return
	}
	if r.nextJob == 0 {
		s.updateAccrual()
		r.refreshInputs(s)
		r.began, r.nextJob = s.rec.Now(), 1
	}
	left, from := jobsPerSlice, r.nextJob
	r.nextJob = 0
	var changed []*core.Job
	for j := range s.rec.JobsFrom(from) {
		if left--; left < 0 {
			r.nextJob = j.ID
			break
		}
		if j.Priority == 0 || j.Flags.Has(core.FixedPriority) || j.State != core.Pending &&
			r.cfg.Flags&policy.CalculateRunning == 0 {
			continue
		}
		if p := r.cfg.Next(j.Priority, s.priorityOf(j, j.Spec)); p != j.Priority {
			next := jobs.Clone(j)
			next.Priority = p
			changed = append(changed, next)
		}
	}
	for _, j := range changed {
		s.rec.PutJobUnstored(j)
	}
	if r.nextJob == 0 {
		r.due = r.began + core.Time(cmp.Or(r.cfg.Period, 300))*1e6
	}
}

// priorityOf is the priority of a job with a spec, which may be about to replace the one it has.
func (s *State) priorityOf(j *core.Job, spec *core.Spec) uint32 {
	if p := spec.More().Priority; p != nil {
		return *p
	}
	return s.rec.Priority(j, spec)
}
