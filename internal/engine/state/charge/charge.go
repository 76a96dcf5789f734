// Package charge has what jobs cost: it keeps the meters of package usage while jobs start and end, by the factors of
// their QOS and the billing weights of their partitions.
package charge

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/limits"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Charger adds what running jobs cost to the meters of their users.
type Charger struct {
	rec     *live.Records
	cfg     *conf.Config
	cluster *cluster.Cluster
	limits  *limits.Limits
	meters  *usage.Meters
}

// New makes the charger of meters that begin with what is stored: spent, as of then, and the jobs that run.
func New(rec *live.Records, cfg *conf.Config, cl *cluster.Cluster, l *limits.Limits) *Charger {
	c := &Charger{rec: rec, cfg: cfg, cluster: cl, limits: l}
	c.ConfigChanged()
	c.meters = usage.NewMeters(rec.Usage())
	return c
}

// ConfigChanged takes over how usage decays.
func (c *Charger) ConfigChanged() {
	c.rec.Usage().Decay = &policy.Setting{HalfLife: c.cfg.Charges.HalfLife, Reset: c.cfg.Charges.Reset}
}

// Load begins with what was stored at a time, and with the jobs that run since.
func (c *Charger) Load(spent []*core.Spent, stored core.Time, all []*core.Job) {
	for _, x := range spent {
		if c.cfg.Charges.Reset == policy.ResetNow { // as Slurm: once, when the server starts
			x = &core.Spent{Project: x.Project, User: x.User, At: max(x.At, stored)}
		}
		c.meters.Load(x, c.noDecay)
	}
	var running []*core.Job
	for _, j := range all {
		if IsCharged(j) {
			running = append(running, j)
		}
	}
	slices.SortFunc(running,
		func(a, b *core.Job) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	for _, j := range running {
		k := usage.KeyOf(j)
		m := c.meters.Of(k)
		switch {
		case m == nil:
			m = &policy.Meter{Project: k.Project, User: k.User, At: c.rec.Now()}
		case j.Start > m.At: // it started while nobody counted
			m = c.rec.Usage().Decay.Read(m, j.Start)
		}
		c.adjustRates(m, j, 1)
		c.meters.Put(m)
	}
}

// IsCharged reports whether a job costs something now.
func IsCharged(j *core.Job) bool {
	return j != nil && j.State == core.Running && j.End == 0 && j.Alloc != nil
}

// JobChanged starts or stops what a job adds to its meter.
func (c *Charger) JobChanged(old, j *core.Job) {
	was, is := IsCharged(old), IsCharged(j)
	if !was && !is || was && is && old.Alloc == j.Alloc && old.Spec == j.Spec {
		return
	}
	if c.cfg.Unkept && c.cfg.Priority == nil {
		return
	}
	if was {
		m := c.meters.Read(usage.KeyOf(old), c.rec.Now())
		c.adjustRates(m, old, -1)
		c.put(m)
	}
	if is {
		m := c.meters.Read(usage.KeyOf(j), c.rec.Now())
		c.adjustRates(m, j, 1)
		c.put(m)
	}
}

// TakeOver counts what somebody used elsewhere, as it was at a time, and reports whether it did: those who have used
// something here already have been taken over, or are others.
func (c *Charger) TakeOver(x *core.Spent) bool {
	k := usage.Key{Project: x.Project, User: x.User}
	if m := c.meters.Of(k); m != nil && c.rec.Usage().Decay.Read(m, c.rec.Now()).All.Raw > 0 {
		return false
	}
	m := c.meters.Read(k, c.rec.Now())
	was := &policy.Meter{Project: x.Project, User: x.User, At: min(x.At, c.rec.Now()), All: usage.Reading(x)}
	m.All.AddUsed(&c.rec.Usage().Decay.Read(was, c.rec.Now()).All)
	c.put(m)
	return true
}

func (c *Charger) put(m *policy.Meter) {
	c.meters.Put(m)
	c.meters.MarkDirty(m)
	c.limits.SendMeter(m)
}

// adjustRates adds what a job costs to a meter's rates, or takes it away: to the whole, and to its QOS and its
// partition's.
func (c *Charger) adjustRates(m *policy.Meter, j *core.Job, k int64) {
	all := allocatedTRES(j.Alloc)
	bill := policy.Bill(all, c.cfg.Charges.Billing[j.Alloc.Partition], c.cfg.Charges.Flags)
	job, ok := c.rec.QOSByName()[j.Spec.QOS]
	factor := job.Factor()
	m.All.Adjust(all, bill, factor, k)
	if ok {
		m.With(job.Name, job.Flags&core.NoDecay != 0).Adjust(all, bill, factor, k)
	}
	if info := c.cluster.Partitions[j.Alloc.Partition]; info != nil && info.QOS != "" && info.QOS != j.Spec.QOS {
		if q := c.rec.QOSByName()[info.QOS]; q != nil {
			m.With(q.Name, q.Flags&core.NoDecay != 0).Adjust(all, bill, factor, k)
		}
	}
}

// allocatedTRES is what a job holds.
func allocatedTRES(al *core.Alloc) core.TRES {
	all, _ := alloc.AllocatedTRES(al)
	return all
}

func (c *Charger) noDecay(name core.QOSName) bool {
	q := c.rec.QOSByName()[name]
	return q != nil && q.Flags&core.NoDecay != 0
}

// Recompute recomputes all rates after the cost or the decay of a QOS has changed.
func (c *Charger) Recompute() {
	c.meters.ClearRates(c.rec.Now(), c.noDecay)
	for j := range c.rec.Jobs() {
		if IsCharged(j) {
			c.adjustRates(c.meters.Of(usage.KeyOf(j)), j, 1)
		}
	}
	c.limits.MarkStale() // the planner is told all meters with it
}

// ReadAll brings all meters to the present: what was used until now decays as it did.
func (c *Charger) ReadAll() { c.meters.ReadAll(c.rec.Now()) }

// TakeSpent returns the meters that changed since the last time, to be stored.
func (c *Charger) TakeSpent() []*core.Spent { return c.meters.TakeSpent() }

// DeleteProject forgets what was used in a project.
func (c *Charger) DeleteProject(name core.ProjectName) { c.meters.DeleteProject(name) }
