package state

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
)

func (s *State) loadUsage(img *Image) {
	c := &s.cfg.Charges
	s.rec.Usage().Decay = &policy.Setting{HalfLife: c.HalfLife, Reset: c.Reset}
	s.usage = usage.NewMeters(s.rec.Usage())
	for _, x := range img.Spent {
		if c.Reset == policy.ResetNow { // as Slurm: once, when the server starts
			x = &core.Spent{Project: x.Project, User: x.User, At: max(x.At, img.Now)}
		}
		s.usage.Load(x, s.noDecay)
	}
	var running []*core.Job
	for _, j := range img.Jobs {
		if isCharged(j) {
			running = append(running, j)
		}
	}
	slices.SortFunc(running,
		func(a, b *core.Job) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	for _, j := range running {
		k := usage.KeyOf(j)
		m := s.usage.Of(k)
		switch {
		case m == nil:
			m = &policy.Meter{Project: k.Project, User: k.User, At: s.rec.Now()}
		case j.Start > m.At: // it started while nobody counted
			m = s.rec.Usage().Decay.Read(m, j.Start)
		}
		s.adjustRates(m, j, 1)
		s.usage.Put(m)
	}
}

// isCharged reports whether a job costs something now.
func isCharged(j *core.Job) bool {
	return j != nil && j.State == core.Running && j.End == 0 && j.Alloc != nil
}

// usageJobChanged starts or stops what a job adds to its meter.
func (s *State) usageJobChanged(old, j *core.Job) {
	was, is := isCharged(old), isCharged(j)
	if !was && !is || was && is && old.Alloc == j.Alloc && old.Spec == j.Spec {
		return
	}
	if s.cfg.Unkept && s.priorities == nil {
		return
	}
	if was {
		m := s.usage.Read(usage.KeyOf(old), s.rec.Now())
		s.adjustRates(m, old, -1)
		s.putDirtyMeter(m)
	}
	if is {
		m := s.usage.Read(usage.KeyOf(j), s.rec.Now())
		s.adjustRates(m, j, 1)
		s.putDirtyMeter(m)
	}
}

func (s *State) putDirtyMeter(m *policy.Meter) {
	s.usage.Put(m)
	s.usage.MarkDirty(m)
	s.sendMeter(m)
}

// adjustRates adds what a job costs to a meter's rates, or takes it away: to the whole, and to its QOS and its
// partition's.
func (s *State) adjustRates(m *policy.Meter, j *core.Job, k int64) {
	all := allocatedTRES(j.Alloc)
	bill := policy.Bill(all, s.cfg.Charges.Billing[j.Alloc.Partition], s.cfg.Charges.Flags)
	job, ok := s.rec.QOSByName()[j.Spec.QOS]
	factor := job.Factor()
	m.All.Adjust(all, bill, factor, k)
	if ok {
		m.With(job.Name, job.Flags&core.NoDecay != 0).Adjust(all, bill, factor, k)
	}
	if info := s.cluster.Partitions[j.Alloc.Partition]; info != nil && info.QOS != "" && info.QOS != j.Spec.QOS {
		if q := s.rec.QOSByName()[info.QOS]; q != nil {
			m.With(q.Name, q.Flags&core.NoDecay != 0).Adjust(all, bill, factor, k)
		}
	}
}

// allocatedTRES is what a job holds.
func allocatedTRES(al *core.Alloc) core.TRES {
	all, _ := alloc.AllocatedTRES(al)
	return all
}

func (s *State) noDecay(name core.QOSName) bool {
	q := s.rec.QOSByName()[name]
	return q != nil && q.Flags&core.NoDecay != 0
}

// recomputeRates recomputes all rates after the cost or the decay of a QOS has changed.
func (s *State) recomputeRates() {
	s.usage.ClearRates(s.rec.Now(), s.noDecay)
	for j := range s.rec.Jobs() {
		if isCharged(j) {
			s.adjustRates(s.usage.Of(usage.KeyOf(j)), j, 1)
		}
	}
	s.limits.stale = true // the planner is told all meters with it
}
