// Package ranking works out the priorities of jobs and keeps them up to date as time goes on.
package ranking

import (
	"cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/limits"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
)

// Calc works priorities out. Without settings of priorities every job has the same, less nice.
//
// A priority is worked out when a job is submitted, released or changed, and for all jobs that wait once a period: age,
// fair shares and the cluster have moved on by then. That calculation goes through the jobs in slices, one a Tick, so
// that no command waits for it. What it changes stays in memory: it is made again after a restart.
type Calc struct {
	rec     *live.Records
	cfg     *conf.Config
	cluster *cluster.Cluster
	limits  *limits.Limits
	people  *people.Directory
	jobs    *jobs.Editor

	on      bool       // there are settings of priorities
	due     core.Time  // of the next calculation, or of its next slice
	began   core.Time  // of the one that goes on
	nextJob core.JobID // the job it goes on with; 0: none goes on
}

// JobsPerSlice is how many jobs one Tick looks at.
const JobsPerSlice = 2000

// New makes a calculation that is off: see Begin.
func New(rec *live.Records, cfg *conf.Config, cl *cluster.Cluster, l *limits.Limits, p *people.Directory,
	ed *jobs.Editor,
) *Calc {
	return &Calc{rec: rec, cfg: cfg, cluster: cl, limits: l, people: p, jobs: ed}
}

// Begin begins with the settings of priorities, if there are any: all priorities are due at the next Tick.
func (r *Calc) Begin() {
	if r.cfg.Priority != nil {
		r.on, r.due, r.began, r.nextJob = true, max(1, r.rec.Now()), 0, 0
		r.refreshInputs()
	}
}

// Due is when Run has something to do. ok is false if it never has.
func (r *Calc) Due() (at core.Time, ok bool) { return r.due, r.on }

// Soon has all priorities worked out again at the next Tick.
func (r *Calc) Soon() { r.due, r.nextJob = r.rec.Now(), 0 }

// refreshInputs looks at the cluster and at who spent what: the part of priorities that jobs share.
func (r *Calc) refreshInputs() {
	cfg := r.cfg.Priority
	k := &live.Ranking{Config: cfg, Accrual: r.limits.Rules.Accrual(), Totals: map[core.PartitionName]policy.TRES{}}
	for _, p := range r.cfg.Partitions {
		k.Cluster.MaxPart = max(k.Cluster.MaxPart, live.PartitionPriority(&p))
	}
	for _, q := range r.rec.QOSByName() {
		k.Cluster.MaxQOS = max(k.Cluster.MaxQOS, q.Priority)
	}
	for _, p := range r.people.ProjectsByName() {
		k.Cluster.MaxAssoc = max(k.Cluster.MaxAssoc, p.Assoc.Priority)
		for i := range p.Members {
			k.Cluster.MaxAssoc = max(k.Cluster.MaxAssoc, p.Members[i].Assoc.Priority)
		}
	}
	for n := range r.rec.Nodes() {
		if n.Roles&core.Compute == 0 || n.Flags.Any(core.NodeUnknown|core.NodeDown|core.NodeFuture) {
			continue
		}
		k.Cluster.Nodes++
		k.Cluster.CPUs += int64(n.Hardware.CPUs)
		if len(cfg.Weights.TRES) == 0 {
			continue
		}
		has := limits.NodeTRES(n)
		for _, p := range r.cfg.Partitions {
			if part := r.cluster.Partitions[p.Name]; part.Nodes == nil || part.Nodes[n.Name] {
				k.Totals[p.Name] = k.Totals[p.Name].Plus(has, 1)
			}
		}
	}
	if len(cfg.Weights.TRES) > 0 { // licenses are the whole cluster's, whatever the partition
		for _, p := range r.cfg.Partitions {
			k.Totals[p.Name] = k.Totals[p.Name].Plus(r.limits.LicenseTRES(), 1)
		}
	}
	if cfg.Weights.FairShare > 0 || r.limits.Rules.Shares() {
		k.Tree = r.rec.FairShareTree(r.rec.Now())
		k.Tree.FairShare(cfg.Flags, cfg.Damp)
	}
	r.rec.SetRanking(k)
	if r.limits.Rules.Shares() {
		r.rec.TellPlanner(sched.Changes{Policy: r.limits.PlannerPolicy()})
	}
}

// Run works priorities out again: all that waits, a slice at a time.
func (r *Calc) Run() {
	cfg := r.cfg.Priority
	if !r.on || r.rec.Now() < r.due {
		return
	}
	if r.nextJob == 0 {
		r.updateAccrual()
		r.refreshInputs()
		r.began, r.nextJob = r.rec.Now(), 1
	}
	left, from := JobsPerSlice, r.nextJob
	r.nextJob = 0
	var changed []*core.Job
	for j := range r.rec.JobsFrom(from) {
		if left--; left < 0 {
			r.nextJob = j.ID
			break
		}
		if j.Priority == 0 || j.Flags.Has(core.FixedPriority) || j.State != core.Pending &&
			cfg.Flags&policy.CalculateRunning == 0 {
			continue
		}
		if p := cfg.Next(j.Priority, r.PriorityOf(j, j.Spec)); p != j.Priority {
			next := jobs.Clone(j)
			next.Priority = p
			changed = append(changed, next)
		}
	}
	for _, j := range changed {
		r.rec.PutJobUnstored(j)
	}
	if r.nextJob == 0 {
		r.due = r.began + core.Time(cmp.Or(cfg.Period, 300))*1e6
	}
}

// PriorityOf is the priority of a job with a spec, which may be about to replace the one it has.
func (r *Calc) PriorityOf(j *core.Job, spec *core.Spec) uint32 {
	if p := spec.More().Priority; p != nil {
		return *p
	}
	return r.rec.Priority(j, spec)
}

// Reset recomputes priorities after a change of the config: at the next Tick by weights, at once without.
func (r *Calc) Reset() {
	if r.cfg.Priority != nil {
		r.Begin()
		return
	}
	if !r.on {
		return
	}
	r.on = false
	r.rec.SetRanking(nil)
	var changed []*core.Job
	for j := range r.rec.Jobs() {
		if j.State == core.Pending && j.Priority != 0 && !j.Flags.Has(core.FixedPriority) {
			if p := r.PriorityOf(j, j.Spec); p != j.Priority {
				next := jobs.Clone(j)
				next.Priority = p
				changed = append(changed, next)
			}
		}
	}
	for _, j := range changed {
		edit := r.jobs.EditRecord(j)
		edit.CommitSilently() // the event of the settings tells
	}
}
