package state

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// basePriority is every job's priority before nice, where policy has nothing to say.
const basePriority = 10_000

// Priority is how priorities are worked out. A state without one gives every job the same, less nice.
type Priority struct {
	policy.Config
	HalfLife core.Seconds // of usage; 0: it is kept for ever
	Damp     int64        // of classic fair-share; 0: 1
	Period   core.Seconds // between two calculations of all jobs; 0: five minutes
	Billing  map[core.PartitionName][]policy.Weight
}

// ranks keeps what priorities are made of.
//
// A priority is worked out when a job is submitted, released or changed, and for all jobs that wait once a period: age,
// fair shares and the cluster have moved on by then. That calculation goes through the jobs in slices, one a Tick, so
// that no command waits for it. What it changes stays in memory: it is made again after a restart.
//
// Usage is kept as a value, its moment and a rate: what the running jobs of one user in one project cost a second. So it
// is touched when one of them starts or ends and at no other time, and a restart finds it from what was written then.
type ranks struct {
	cfg     *Priority
	spent   map[spender]*spending
	dirty   map[spender]bool // spent since the last Flush
	cluster policy.Cluster
	totals  map[core.PartitionName]policy.TRES
	tree    *policy.Tree
	due     core.Time // of the next calculation, or of its next slice
	began   core.Time // of the one that goes on
	next    int64     // the job it goes on with; 0: none goes on
	aged    []*core.Job
}

// spender is who pays: a user in a project.
type spender struct {
	project core.ProjectName
	user    core.UserName
}

type spending struct {
	raw  float64
	at   core.Time
	rate int64
}

// slice is how many jobs one Tick looks at.
const slice = 2000

func newRanks(cfg *Priority, s *State, img *Image) *ranks {
	r := &ranks{cfg: cfg, spent: map[spender]*spending{}, dirty: map[spender]bool{}, due: max(1, s.view.now)}
	for _, x := range img.Spent {
		r.spent[spender{x.Project, x.User}] = &spending{raw: x.Raw, at: x.At}
	}
	for _, j := range img.Jobs {
		rate := r.rate(j)
		if rate == 0 {
			continue
		}
		x := r.of(j, s.view.now)
		x.rate += rate
		if j.Start > x.at { // it started while nobody counted
			x.raw -= float64(rate) * j.Start.Sub(x.at).Seconds()
		}
	}
	r.survey(s)
	return r
}

// of finds a job's spender; one that never spent anything begins now.
func (r *ranks) of(j *core.Job, now core.Time) *spending {
	k := spender{j.Spec.Project, j.Spec.User}
	x := r.spent[k]
	if x == nil {
		x = &spending{at: now}
		r.spent[k] = x
	}
	return x
}

// rate is what a job costs a second now.
func (r *ranks) rate(j *core.Job) int64 {
	if j == nil || j.State != core.Running || j.End != 0 || j.Alloc == nil {
		return 0
	}
	return policy.Bill(allocated(j.Alloc), r.cfg.Billing[j.Alloc.Partition], r.cfg.Flags)
}

// charge notes that a job costs something from now on, or no longer.
func (r *ranks) charge(old, j *core.Job, now core.Time) {
	was, is := r.rate(old), r.rate(j)
	if was == is {
		return
	}
	x := r.of(j, now)
	x.raw = x.value(now, r.cfg.HalfLife)
	x.at = now
	x.rate += is - was
	r.dirty[spender{j.Spec.Project, j.Spec.User}] = true
}

func (x *spending) value(now core.Time, halfLife core.Seconds) float64 {
	return max(0, policy.Grown(x.raw, x.rate, halfLife, now.Sub(x.at)))
}

// flush gives what was spent since the last time, in order.
func (r *ranks) flush() []*core.Spent {
	var out []*core.Spent
	for k := range r.dirty {
		x := r.spent[k]
		out = append(out, &core.Spent{Project: k.project, User: k.user, At: x.at, Raw: x.raw})
	}
	clear(r.dirty)
	slices.SortFunc(out, func(a, b *core.Spent) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return out
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
		has := policy.Of(policy.Amount{Name: "node", Count: 1}, policy.Amount{Name: "cpu", Count: int64(n.Hardware.CPUs)},
			policy.Amount{Name: "mem", Count: int64(n.Hardware.Memory / core.MiB)})
		has = addGres(has, n.Hardware.Gres, 1)
		for _, p := range s.cfg.Partitions {
			if part := s.parts[p.Name]; part.nodes == nil || part.nodes[n.Name] {
				r.totals[p.Name] = r.totals[p.Name].Plus(has, 1)
			}
		}
	}
	r.tree = nil
	if r.cfg.Weights.FairShare > 0 {
		r.tree = r.accounts(s)
		r.tree.FairShare(r.cfg.Flags, r.cfg.Damp)
	}
}

// accounts is the tree of projects and their users, with what they spent.
func (r *ranks) accounts(s *State) *policy.Tree {
	users := map[spender]*policy.Assoc{}
	projects := map[core.ProjectName]*policy.Assoc{}
	account := func(name core.ProjectName) *policy.Assoc {
		a := projects[name]
		if a == nil {
			a = &policy.Assoc{Account: name, Shares: 1}
			projects[name] = a
		}
		return a
	}
	for name, p := range s.view.projects {
		a := account(name)
		a.Shares = int64(cmp.Or(p.Shares, 1))
		if s.rooted(p) {
			a.Parent = p.Parent
		}
		for _, m := range p.Members {
			users[spender{name, m.User}] = &policy.Assoc{Account: name, User: m.User, Shares: int64(cmp.Or(m.Shares, 1))}
		}
	}
	for k, x := range r.spent {
		a := users[k]
		if a == nil {
			account(k.project)
			a = &policy.Assoc{Account: k.project, User: k.user, Shares: 1}
			users[k] = a
		}
		a.Used.Raw = x.value(s.view.now, r.cfg.HalfLife)
	}
	var list []policy.Assoc
	for _, u := range users {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b policy.Assoc) int { // sums of floats have an order
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.User, b.User))
	})
	for i := range list {
		for up := list[i].Account; up != ""; up = projects[up].Parent {
			projects[up].Used.Raw += list[i].Used.Raw
		}
	}
	for _, a := range projects {
		list = append(list, *a)
	}
	t, err := policy.NewTree(list)
	core.Assert(err == nil, "projects are no tree: %v", err)
	return t
}

// rooted tells whether one comes from a project to the top by its parents.
func (s *State) rooted(p *core.Project) bool {
	up := p
	for range s.view.projects {
		if up.Parent == "" {
			return true
		}
		if up = s.view.projects[up.Parent]; up == nil {
			return false
		}
	}
	return false
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
	x := policy.Job{TRES: asked(spec), Limit: spec.TimeLimit, Submit: j.Submit, Nice: int64(spec.Nice), FairShare: 1}
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

// asked is what a spec asks for.
func asked(spec *core.Spec) policy.TRES {
	sh := &spec.Shape
	nodes := int64(max(1, sh.NodesMin))
	cpus := int64(max(1, sh.Tasks)) * int64(max(1, sh.CPUsPerTask))
	mem := int64(sh.MemPerNode/core.MiB) * nodes
	if sh.MemPerCPU > 0 {
		mem = int64(sh.MemPerCPU/core.MiB) * cpus
	}
	t := policy.Of(policy.Amount{Name: "node", Count: nodes}, policy.Amount{Name: "cpu", Count: cpus}, policy.Amount{Name: "mem", Count: max(0, mem)})
	return addGres(t, sh.Gres, nodes)
}

func addGres(t policy.TRES, list []core.Gres, nodes int64) policy.TRES {
	for _, g := range list {
		t = t.Plus(policy.TRES{{Name: "gres/" + g.Name, Count: g.Count * nodes}}, 1)
		if g.Type != "" {
			t = t.Plus(policy.TRES{{Name: "gres/" + g.Name + ":" + g.Type, Count: g.Count * nodes}}, 1)
		}
	}
	return t
}

// allocated is what a job holds.
func allocated(al *core.Alloc) policy.TRES {
	var cpus int64
	var mem core.Bytes
	var gres []core.Gres
	for i := range al.Nodes {
		na := &al.Nodes[i]
		cpus += int64(na.CPUs)
		mem += na.Mem
		for _, g := range na.Gres {
			gres = append(gres, core.Gres{Name: g.Name, Type: g.Type, Count: int64(len(g.Units))})
		}
	}
	t := policy.Of(policy.Amount{Name: "node", Count: int64(len(al.Nodes))}, policy.Amount{Name: "cpu", Count: cpus},
		policy.Amount{Name: "mem", Count: int64(mem / core.MiB)})
	return addGres(t, gres, 1)
}
