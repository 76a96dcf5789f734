package live

import (
	"cmp"
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
)

// basePriority is every job's priority before nice, where policy has nothing to say.
const basePriority = 10_000

// Ranking is the part of priorities that jobs share, as of the last survey. It is a value: snapshots have it
// too.
type Ranking struct {
	Config  *conf.Priority
	Cluster policy.Cluster
	Totals  map[core.PartitionName]policy.TRES // of each partition
	Tree    *policy.Tree                       // of fair shares; nil: nothing goes by them
	Accrual bool                               // limits say how many jobs grow older
}

// Factor is one part of a job's priority.
type Factor struct {
	Name   string
	Value  float64 // 0 to 1, unless a flag says that it is not normal
	Weight float64
}

// Points is what the factor adds to the priority.
func (f *Factor) Points() float64 { return f.Value * f.Weight }

// Factors are what a job's priority is made of.
type Factors struct {
	Priority uint32 // as it would be worked out now; the job's own may be older
	Fixed    bool   // somebody set the job's priority: factors do not count
	List     []Factor
	Base     int64 // of all jobs, where there are no weights
	Run      int64 // for the priority of a YAML run
	Site     int64
	Nice     int64
}

// Ranking is what jobs share of their priorities, nil for first come, first served.
func (v *Snapshot) Ranking() *Ranking { return v.ranking }

// Factors tells what a job's priority is made of, in the best of its partitions.
func (v *Snapshot) Factors(j *core.Job) *Factors { return v.factors(j, j.Spec) }

// FactorsIn tells what a job's priority is made of in one of its partitions.
func (v *Snapshot) FactorsIn(j *core.Job, part core.PartitionName) *Factors {
	if j.Spec.Partition.String() == string(part) {
		return v.factors(j, j.Spec)
	}
	spec := *j.Spec
	spec.Partition = core.ListPartitions(part)
	return v.factors(j, &spec)
}

func (v *Snapshot) factors(j *core.Job, spec *core.Spec) *Factors {
	out := &Factors{Fixed: j.Flags.Has(core.FixedPriority) || spec.More().Priority != nil, Nice: int64(spec.Nice)}
	out.Site, out.Run = int64(spec.More().Site), v.runPoints(spec)
	if v.ranking == nil {
		out.Base = basePriority
		out.Priority = v.Priority(j, spec)
		return out
	}
	cfg := v.ranking.Config
	x := v.policyJob(j, spec)
	f := cfg.Factors(&x, &v.ranking.Cluster, v.now)
	values := append([]float64{f.Age, f.FairShare, f.JobSize, f.Partition, f.QOS, f.Assoc}, f.TRES...)
	out.List = Weights(cfg)
	for i := range out.List {
		out.List[i].Value = values[i]
	}
	out.Priority = cfg.Priority(&f, x.Site, x.Nice)
	return out
}

// Weights are the factors of priorities with their weights and without values.
func Weights(cfg *conf.Priority) []Factor {
	w := &cfg.Weights
	list := []Factor{
		{Name: "age", Weight: float64(w.Age)},
		{Name: "fairshare", Weight: float64(w.FairShare)},
		{Name: "job_size", Weight: float64(w.JobSize)},
		{Name: "partition", Weight: float64(w.Partition)},
		{Name: "qos", Weight: float64(w.QOS)},
		{Name: "assoc", Weight: float64(w.Assoc)},
	}
	for _, t := range w.TRES {
		list = append(list, Factor{Name: "tres " + t.Name, Weight: t.Per})
	}
	return list
}

// Priority works out the priority of a job with a spec.
func (v *Snapshot) Priority(j *core.Job, spec *core.Spec) uint32 {
	if v.ranking == nil {
		p := basePriority - int64(spec.Nice) + int64(spec.More().Site) + v.runPoints(spec)
		return uint32(min(max(p, 1), math.MaxUint32-1))
	}
	x := v.policyJob(j, spec)
	f := v.ranking.Config.Factors(&x, &v.ranking.Cluster, v.now)
	return v.ranking.Config.Priority(&f, x.Site, x.Nice)
}

// policyJob is what policy reads of a job.
func (v *Snapshot) policyJob(j *core.Job, spec *core.Spec) policy.Job {
	k := v.ranking
	x := policy.Job{
		User: spec.User, Project: spec.Project, Limit: spec.TimeLimit, Submit: j.Submit, FairShare: 1,
		Nice: int64(spec.Nice), Site: int64(spec.More().Site) + v.runPoints(spec),
	}
	if j.Alloc != nil {
		x.TRES, _ = alloc.AllocatedTRES(j.Alloc)
	} else {
		x.TRES, _ = alloc.RequestedTRES(spec)
	}
	if AccruesAge(j) {
		if x.Accrues = max(j.Eligible, j.Released); k.Accrual {
			x.Accrues = j.Accrue
		}
	}
	for name := range spec.Partition.All() { // the best of those it may start in
		for i := range v.partitions {
			if p := &v.partitions[i]; p.Name == name && PartitionPriority(p) > x.PartPrio {
				x.PartPrio, x.PartTRES = PartitionPriority(p), k.Totals[p.Name]
			}
		}
	}
	if q := v.qos[spec.QOS]; q != nil {
		x.QOSPrio = q.Priority
	}
	if k.Cluster.MaxAssoc > 0 {
		v.EachAssociation(spec.User, spec.Project, func(a *core.Association) bool {
			x.AssocPrio = a.Priority
			return x.AssocPrio > 0
		})
	}
	if k.Tree != nil {
		if f, ok := k.Tree.Factor(spec.Project, spec.User); ok {
			x.FairShare = f
		}
	}
	return x
}

// runPoints is what a YAML run's priority of 0 to 100 adds: its part of a weight. So runs of a higher one come first
// and those of the same one in the order they came, however long they wait.
func (v *Snapshot) runPoints(spec *core.Spec) int64 {
	return int64(spec.More().RunPriority) * v.runWeight / 100
}

// QOSUsage is what was used with each QOS, by name.
func (v *Snapshot) QOSUsage() map[core.QOSName]policy.Usage {
	out := map[core.QOSName]policy.Usage{}
	for _, m := range v.usage.List() {
		m = v.usage.Decay.Read(m, v.now)
		for i := range m.QOS {
			q := &m.QOS[i]
			u := out[q.Name]
			u.Add(q.Usage(v.now))
			out[q.Name] = u
		}
	}
	return out
}

// FairShareTree is the tree of projects and their users, with what they used by now.
func (v *Snapshot) FairShareTree(now core.Time) *policy.Tree {
	list := v.Associations()
	at := map[usage.Key]int{}
	for i := range list {
		at[usage.Key{Project: list[i].Project, User: list[i].User}] = i
	}
	find := func(k usage.Key) int {
		i, ok := at[k]
		if !ok { // somebody, or a project, that has left and has used something
			i = len(list)
			at[k] = i
			list = append(list, policy.Assoc{Project: k.Project, User: k.User, Shares: 1})
		}
		return i
	}
	for _, m := range v.usage.List() { // in order: sums of floats have one
		used := v.usage.Decay.Read(m, now).All.Usage(now)
		list[find(usage.Key{Project: m.Project, User: m.User})].Used.Add(used)
		for up := m.Project; ; {
			i := find(usage.Key{Project: up})
			list[i].Used.Add(used)
			if up == policy.Root {
				break
			}
			up = cmp.Or(list[i].Parent, policy.Root)
		}
	}
	t, err := policy.NewTree(list)
	core.Assert(err == nil, "projects are no tree: %v", err)
	return t
}

// PartitionPriority is the factor of a partition, 1 or more.
func PartitionPriority(p *core.Partition) uint32 { return uint32(max(1, p.PriorityFactor)) }

// AccruesAge reports whether nothing that was said of a job itself, a hold or a dependency, keeps its age from growing.
func AccruesAge(j *core.Job) bool { return !j.Flags.Held() && j.Needs == nil }
