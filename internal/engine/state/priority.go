package state

import (
	"cmp"
	"math"
	"strings"

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

// ranks keeps what priorities are made of.
//
// A priority is worked out when a job is submitted, released or changed, and for all jobs that wait once a period: age,
// fair shares and the cluster have moved on by then. That calculation goes through the jobs in slices, one a Tick, so
// that no command waits for it. What it changes stays in memory: it is made again after a restart.
type ranks struct {
	cfg     *Priority
	cluster policy.Cluster
	totals  map[core.PartitionName]policy.TRES
	tree    *policy.Tree
	due     core.Time // of the next calculation, or of its next slice
	began   core.Time // of the one that goes on
	next    int64     // the job it goes on with; 0: none goes on
	aged    []*core.Job
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
	r.cluster = policy.Cluster{}
	r.totals = map[core.PartitionName]policy.TRES{}
	for _, p := range s.cfg.Partitions {
		r.cluster.MaxPart = max(r.cluster.MaxPart, partPriority(&p))
	}
	for _, n := range s.view.nodes.All() {
		if n.Roles&core.Compute == 0 || n.Flags.Any(core.NodeUnknown|core.NodeDown|core.NodeFuture) {
			continue
		}
		r.cluster.Nodes++
		r.cluster.CPUs += int64(n.Hardware.CPUs)
		if len(r.cfg.Weights.TRES) == 0 {
			continue
		}
		has := nodeTRES(n)
		for _, p := range s.cfg.Partitions {
			if part := s.parts[p.Name]; part.nodes == nil || part.nodes[n.Name] {
				r.totals[p.Name] = r.totals[p.Name].Plus(has, 1)
			}
		}
	}
	r.tree = nil
	if r.cfg.Weights.FairShare > 0 || s.limits.rules.Shares() {
		r.tree = r.accounts(s)
		r.tree.FairShare(r.cfg.Flags, r.cfg.Damp)
	}
	if s.limits.rules.Shares() {
		c := sched.Changes{Policy: s.policy()}
		s.fresh.Merge(c)
		s.touched.Merge(c)
	}
}

// accounts is the tree of projects and their users, with what they spent.
func (r *ranks) accounts(s *State) *policy.Tree {
	list := s.associations(s.view.projects)
	at := map[spender]int{}
	for i := range list {
		at[spender{list[i].Account, list[i].User}] = i
	}
	find := func(k spender) int {
		i, ok := at[k]
		if !ok { // somebody, or a project, that has left and has used something
			i = len(list)
			at[k] = i
			list = append(list, policy.Assoc{Account: k.project, User: k.user, Shares: 1})
		}
		return i
	}
	for _, m := range s.meters() { // in order: sums of floats have one
		raw := s.usage.set.Read(m, s.view.now).All.Raw
		list[find(spender{m.Account, m.User})].Used.Raw += raw
		for up := m.Account; up != ""; {
			i := find(spender{project: up})
			list[i].Used.Raw += raw
			up = list[i].Parent
		}
	}
	t, err := policy.NewTree(list)
	core.Assert(err == nil, "projects are no tree: %v", err)
	return t
}

// recalc works priorities out anew: all that waits, a slice at a time.
func (s *State) recalc() {
	r := s.ranks
	if r == nil || s.view.now < r.due {
		return
	}
	if r.next == 0 {
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
	r := s.ranks
	if r == nil {
		return uint32(min(max(int64(basePriority)-int64(spec.Nice), 1), math.MaxUint32-1))
	}
	all, _ := sched.Asked(spec)
	x := policy.Job{TRES: all, Limit: spec.TimeLimit, Submit: j.Submit, Nice: int64(spec.Nice), FairShare: 1}
	if !j.Flags.Held() && j.Needs == nil {
		x.Accrues = max(j.Eligible, j.Released)
	}
	for name := range strings.SplitSeq(string(spec.Partition), ",") { // the best of those it may start in
		part := s.parts[core.PartitionName(name)]
		if p := partPriority(&part.Partition); p > x.PartPrio {
			x.PartPrio, x.PartTRES = p, r.totals[part.Name]
		}
	}
	if r.tree != nil {
		if f, ok := r.tree.Factor(spec.Project, spec.User); ok {
			x.FairShare = f
		}
	}
	f := r.cfg.Factors(&x, &r.cluster, s.view.now)
	return r.cfg.Priority(&f, 0, x.Nice)
}

func partPriority(p *core.Partition) uint32 { return uint32(max(1, p.PriorityFactor)) }
