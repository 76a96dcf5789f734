package state

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Charges is how usage is counted.
type Charges struct {
	HalfLife core.Seconds // of usage; 0: it is kept for ever
	Reset    policy.ResetPeriod
	Billing  map[core.PartitionName][]policy.Weight
	Flags    policy.Flag // of them, those on billing
}

// meterKey is who pays: a user in a project.
type meterKey struct {
	project core.ProjectName
	user    core.UserName
}

// usageMeters keeps what everybody has used, as meters: a value, its moment and what the running jobs of one user in
// one project add a second. So it is touched when one of them starts or ends and at no other time, and a restart finds
// it from what was written then.
type usageMeters struct {
	meterIDs map[meterKey]int64 // under which the view has their meters
	lastID   int64
	dirty    map[meterKey]bool // spent since the last Flush
}

// meterOf finds a meter.
func (s *State) meterOf(k meterKey) *policy.Meter {
	m, _ := s.view.meters.Get(s.usage.meterIDs[k])
	return m
}

func (s *State) putMeter(m *policy.Meter) {
	k := meterKey{m.Project, m.User}
	id, ok := s.usage.meterIDs[k]
	if !ok {
		s.usage.lastID++
		id = s.usage.lastID
		s.usage.meterIDs[k] = id
	}
	s.view.meters.Set(id, m)
}

func (s *State) loadUsage(img *Image) {
	c := &s.cfg.Charges
	s.usage = usageMeters{meterIDs: map[meterKey]int64{}, dirty: map[meterKey]bool{}}
	s.view.decay = &policy.Setting{HalfLife: c.HalfLife, Reset: c.Reset}
	for _, x := range img.Spent {
		m := &policy.Meter{Project: x.Project, User: x.User, At: x.At, All: reading(x.Raw, x.Wall, x.TRES)}
		for i := range x.QOS {
			q := &x.QOS[i]
			m.With(q.Name, s.noDecay(q.Name)).Reading = reading(q.Raw, q.Wall, q.TRES)
		}
		if c.Reset == policy.ResetNow { // as Slurm: once, when the server starts
			m = &policy.Meter{Project: x.Project, User: x.User, At: max(x.At, img.Now)}
		}
		s.putMeter(m)
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
		k := meterKey{j.Spec.Project, j.Spec.User}
		m := s.meterOf(k)
		switch {
		case m == nil:
			m = &policy.Meter{Project: k.project, User: k.user, At: s.view.now}
		case j.Start > m.At: // it started while nobody counted
			m = s.view.decay.Read(m, j.Start)
		}
		s.adjustRates(m, j, 1)
		s.putMeter(m)
	}
}

func reading(raw, wall float64, tres []core.UnitSeconds) policy.Reading {
	r := policy.Reading{Raw: raw, Wall: wall}
	for _, t := range tres {
		r.TRES = append(r.TRES, policy.Flow{Name: t.Name, Seconds: t.Seconds})
	}
	return r
}

// isCharged tells whether a job costs something now.
func isCharged(j *core.Job) bool {
	return j != nil && j.State == core.Running && j.End == 0 && j.Alloc != nil
}

// usageJobChanged notes that a job costs something from now on, or no longer.
func (s *State) usageJobChanged(old, j *core.Job) {
	was, is := isCharged(old), isCharged(j)
	if !was && !is || was && is && old.Alloc == j.Alloc && old.Spec == j.Spec {
		return
	}
	if s.cfg.Unkept && s.priorities == nil {
		return
	}
	if was {
		m := s.readMeter(meterKey{old.Spec.Project, old.Spec.User})
		s.adjustRates(m, old, -1)
		s.putDirtyMeter(m)
	}
	if is {
		m := s.readMeter(meterKey{j.Spec.Project, j.Spec.User})
		s.adjustRates(m, j, 1)
		s.putDirtyMeter(m)
	}
}

// readMeter gives what somebody has used by now, ours to change.
func (s *State) readMeter(k meterKey) *policy.Meter {
	if m := s.meterOf(k); m != nil {
		return s.view.decay.Read(m, s.view.now)
	}
	return &policy.Meter{Project: k.project, User: k.user, At: s.view.now}
}

func (s *State) putDirtyMeter(m *policy.Meter) {
	s.putMeter(m)
	s.usage.dirty[meterKey{m.Project, m.User}] = true
	s.sendMeter(m)
}

// adjustRates adds what a job costs to a meter's rates, or takes it away: to the whole, and to its QOS and its
// partition's.
func (s *State) adjustRates(m *policy.Meter, j *core.Job, k int64) {
	all := allocatedTRES(j.Alloc)
	bill := policy.Bill(all, s.cfg.Charges.Billing[j.Alloc.Partition], s.cfg.Charges.Flags)
	job, ok := s.view.qos[j.Spec.QOS]
	factor := job.Factor()
	m.All.Adjust(all, bill, factor, k)
	if ok {
		m.With(job.Name, job.Flags&core.NoDecay != 0).Adjust(all, bill, factor, k)
	}
	if info := s.partitions[j.Alloc.Partition]; info != nil && info.QOS != "" && info.QOS != j.Spec.QOS {
		if q := s.view.qos[info.QOS]; q != nil {
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
	q := s.view.qos[name]
	return q != nil && q.Flags&core.NoDecay != 0
}

// recomputeRates works all rates out anew: what a QOS costs, or how it is forgotten, has changed.
func (s *State) recomputeRates() {
	for k := range s.usage.meterIDs {
		m := s.readMeter(k)
		clearRates(&m.All)
		for i := range m.QOS {
			clearRates(&m.QOS[i].Reading)
			m.QOS[i].NoDecay = s.noDecay(m.QOS[i].Name)
		}
		s.putMeter(m)
		s.usage.dirty[k] = true
	}
	for _, j := range s.view.jobs.All() {
		if isCharged(j) {
			s.adjustRates(s.meterOf(meterKey{j.Spec.Project, j.Spec.User}), j, 1)
		}
	}
	s.limits.stale = true // the planner is told all meters with it
}

func clearRates(r *policy.Reading) {
	r.RawRate, r.WallRate = 0, 0
	for i := range r.TRES {
		r.TRES[i].Rate = 0
	}
}

// takeSpent gives what was spent since the last time, in order.
func (s *State) takeSpent() []*core.Spent {
	var out []*core.Spent
	for k := range s.usage.dirty {
		m := s.meterOf(k)
		x := &core.Spent{
			Project: k.project, User: k.user, At: m.At, Raw: m.All.Raw, Wall: m.All.Wall,
			TRES: unitSeconds(&m.All),
		}
		for i := range m.QOS {
			q := &m.QOS[i]
			x.QOS = append(x.QOS, core.SpentQOS{Name: q.Name, Raw: q.Raw, Wall: q.Wall, TRES: unitSeconds(&q.Reading)})
		}
		out = append(out, x)
	}
	clear(s.usage.dirty)
	slices.SortFunc(out, func(a, b *core.Spent) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return out
}

func unitSeconds(r *policy.Reading) []core.UnitSeconds {
	out := make([]core.UnitSeconds, 0, len(r.TRES))
	for _, f := range r.TRES {
		out = append(out, core.UnitSeconds{Name: f.Name, Seconds: f.Seconds})
	}
	return out
}

// deleteUsage drops what was spent in a project that is gone.
func (s *State) deleteUsage(name core.ProjectName) {
	for k, id := range s.usage.meterIDs {
		if k.project == name {
			s.view.meters.Delete(id)
			delete(s.usage.meterIDs, k)
			delete(s.usage.dirty, k)
		}
	}
	s.limits.stale = true
}
