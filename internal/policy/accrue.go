package policy

// accrues are the limits on how many jobs of a queue grow older, and the priority from which on the plan keeps places.
func (c *compiler) accrues() {
	g := c.g
	most := func(limit *int64, k counterKey, once string) {
		if limit != nil && (once == "" || c.first(once)) {
			g.accrue = append(g.accrue, rule{at: c.count(k), limit: *limit})
		}
	}
	threshold := func(l *Limits) {
		if l.MinPrioThreshold != nil && c.first("place") {
			g.MinReservePriority = uint32(min(*l.MinPrioThreshold, 1<<32-1))
		}
	}
	for _, q := range c.l.qos {
		if q == nil {
			continue
		}
		most(q.Limits.GrpJobsAccrue, counterKey{qos: q.Name}, "")
		most(q.Limits.MaxJobsAccrue, counterKey{qos: q.Name, user: g.User}, "user accrues")
		most(q.MaxAccruePerProject, counterKey{qos: q.Name, project: g.Project}, "account accrues")
		threshold(&q.Limits)
	}
	for _, n := range c.l.path {
		most(n.Limits.MaxJobsAccrue, counterKey{project: g.Project, user: g.User}, "user accrues")
		most(n.Limits.GrpJobsAccrue, counterKey{project: n.Project, user: n.User}, "")
		threshold(&n.Limits)
	}
}

// Accrual hands out the places of those that grow older.
type Accrual struct{ has map[int32]int64 }

// Has counts a job that grows older.
func (a *Accrual) Has(g *Gate) {
	if g == nil {
		return
	}
	if a.has == nil {
		a.has = map[int32]int64{}
	}
	for i := range g.accrue {
		a.has[g.accrue[i].at]++
	}
}

// Admits reports whether one more may.
func (a *Accrual) Admits(g *Gate) bool {
	if g != nil {
		for i := range g.accrue {
			if r := &g.accrue[i]; a.has[r.at] >= r.limit {
				return false
			}
		}
	}
	return true
}

// Bounded reports whether limits say how many of a gate's jobs grow older.
func (g *Gate) Bounded() bool { return g != nil && len(g.accrue) > 0 }

// Accrual reports whether some limit is about how many jobs grow older.
func (r *Rules) Accrual() bool { return r != nil && r.accrual }

// noteAccrue takes in what limits say of growing older.
func (r *Rules) noteAccrue(l *Limits, more *int64) {
	r.accrual = r.accrual || l.GrpJobsAccrue != nil || l.MaxJobsAccrue != nil || more != nil
	r.some = r.some || r.accrual || l.MinPrioThreshold != nil
}
