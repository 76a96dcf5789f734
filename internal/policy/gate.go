package policy

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// compile makes the gate of some jobs; nil if nothing limits them.
//
// A QOS is asked before associations, the partition's before the job's unless the job's says otherwise; then the user's
// association and the accounts above it, up to the root. Of a limit on single jobs or users the first that is defined
// counts, resource by resource. A limit on a whole group binds at every level.
func (t *Tally) compile(w Who) *Gate {
	if !t.rules.Any() {
		return nil
	}
	c := &compiler{t: t, g: &Gate{Who: w}, l: t.rules.levels(w), seen: map[string]bool{}}
	c.single()
	for _, q := range c.l.qos {
		if q != nil {
			c.qos(q)
		}
	}
	c.user(&c.g.rules, jobsMost, "AssocMaxJobsLimit", func(l *Limits) *int64 { return l.MaxJobs })
	for _, n := range c.l.path {
		c.group(ofAssoc, n.name(), &n.Limits, scaled(n.Limits.GrpTRES, c.l.factor),
			counterKey{project: n.Project, user: n.User}, n.parent == nil)
	}
	c.submits()
	c.accrues()
	g := c.g
	g.factor = 1
	if job := t.rules.QOS(w.QOS); job != nil {
		g.deny, g.NoReserve = job.Flags&core.DenyOnLimit != 0, job.Flags&core.NoReserve != 0
		if t.rules.Safe && job.Flags&core.UsageFactorSafe != 0 {
			g.factor = job.Factor()
		}
	}
	if part := t.rules.QOS(w.PartitionQOS); part != nil {
		g.deny = g.deny || part.Flags&core.DenyOnLimit != 0
	}
	if len(g.rules)+len(g.submit) == 0 && !g.deny && !g.NoReserve && g.MinReservePriority == 0 && len(g.counts) == 0 {
		return nil
	}
	slices.Sort(g.counts)
	g.counts = slices.Compact(g.counts)
	decays := t.rules.HalfLife > 0 || t.rules.Reset != ResetNone
	for i := range g.rules {
		switch r := &g.rules[i]; r.test {
		case aheadMost:
			g.ahead, g.Timed = true, true
		case usedMost, wallUsed:
			g.used = true
			g.ahead = g.ahead || r.safe
			g.Timed = g.Timed || r.safe || decays
		default: // depends on no usage
		}
	}
	return g
}

type compiler struct {
	t    *Tally
	g    *Gate
	l    levels
	seen map[string]bool // limits that were defined at an earlier level
}

// first reports whether a limit is not defined at an earlier level.
func (c *compiler) first(what string) bool {
	if c.seen[what] {
		return false
	}
	c.seen[what] = true
	return true
}

func (c *compiler) add(r rule) { c.g.rules = append(c.g.rules, r) }

// count makes the gate's jobs count in a counter.
func (c *compiler) count(k counterKey) int32 {
	id := c.t.counter(k)
	c.g.counts = append(c.g.counts, id)
	return id
}

// tres adds a rule for every resource of a limit; with once, for those that no earlier level has one for.
func (c *compiler) tres(x test, s scope, f form, limit TRES, once string, r rule) {
	for _, a := range limit {
		if once != "" && !c.first(once+a.Name) {
			continue
		}
		r.test, r.tres, r.limit, r.reason = x, c.t.rules.index(a.Name), a.Count, reasonOf(s, f, a.Name)
		c.add(r)
	}
}

// single adds the limits of one job, whatever others use.
func (c *compiler) single() {
	level := func(s scope, who string, l *Limits, fit func(TRES) TRES) {
		r := rule{who: who}
		c.tres(jobMost, s, perJob, fit(l.MaxTRESPerJob), "job ", r)
		c.tres(nodeMost, s, perNode, fit(l.MaxTRESPerNode), "node ", r)
		c.tres(minutesMost, s, minsPerJob, l.MaxTRESMinsPerJob, "mins ", r)
		if l.MaxWall != nil && c.first("wall") {
			c.add(rule{test: wallMost, tres: -1, limit: *l.MaxWall, reason: core.Reason(s) +
				"MaxWallDurationPerJobLimit", who: who})
		}
	}
	for _, q := range c.l.qos {
		if q != nil {
			level(ofQOS, "QOS "+string(q.Name), &q.Limits, func(t TRES) TRES { return c.t.rules.percent(q, t) })
		}
	}
	for _, n := range c.l.path {
		level(ofAssoc, n.name(), &n.Limits, func(t TRES) TRES { return scaled(t, c.l.factor) })
	}
}

// qos is what a QOS allows all its jobs, and each user and account in it.
func (c *compiler) qos(q *core.QOS) {
	r, who, w := c.t.rules, "QOS "+string(q.Name), c.g.Who
	c.tres(jobLeast, ofQOS, minPerJob, r.percent(q, q.MinTRESPerJob), "", rule{who: who})
	if q.Flags&core.EnforceUsageThreshold != 0 {
		c.g.shares = true
		c.add(rule{test: shareLeast, tres: -1, share: q.UsageThreshold, reason: ReasonUsageThreshold, who: who})
	}
	c.group(ofQOS, who, &q.Limits, r.percent(q, q.Limits.GrpTRES), counterKey{qos: q.Name}, false)
	mine := rule{who: who, whom: string(w.User), tres: -1}
	if q.Limits.MaxJobs != nil || q.Limits.MaxSubmit != nil || len(q.MaxTRESPerUser)+len(q.MaxRunMinsPerUser) > 0 {
		mine.at = c.count(counterKey{qos: q.Name, user: w.User})
	}
	ours := rule{who: who, whom: "project " + string(w.Project), tres: -1}
	if q.MaxJobsPerProject != nil || q.MaxSubmitPerProject != nil || len(q.MaxTRESPerProject)+len(q.MaxRunMinsPerAcct) >
		0 {
		ours.at = c.count(counterKey{qos: q.Name, project: w.Project})
	}
	if q.Limits.MaxJobs != nil && c.first("user jobs") {
		c.jobs(mine, "QOSMaxJobsPerUserLimit", *q.Limits.MaxJobs)
	}
	if q.MaxJobsPerProject != nil && c.first("account jobs") {
		c.jobs(ours, "MaxJobsPerAccount", *q.MaxJobsPerProject)
	}
	c.tres(heldMost, ofQOS, perUser, r.percent(q, q.MaxTRESPerUser), "user ", mine)
	c.tres(heldMost, ofQOS, perProject, r.percent(q, q.MaxTRESPerProject), "account ", ours)
	c.tres(aheadMost, ofQOS, runMinsPerUser, q.MaxRunMinsPerUser, "user ahead ", mine)
	c.tres(aheadMost, ofQOS, runMinsPerProject, q.MaxRunMinsPerAcct, "account ahead ", ours)
}

func (c *compiler) jobs(r rule, reason core.Reason, limit int64) {
	r.test, r.tres, r.limit, r.reason = jobsMost, -1, limit, reason
	c.add(r)
}

// user is a limit on a user's jobs: the first association upward that has one, unless a QOS has said it.
func (c *compiler) user(to *[]rule, x test, reason core.Reason, of func(*Limits) *int64) {
	for _, n := range c.l.path {
		limit := of(&n.Limits)
		if limit == nil {
			continue
		}
		at := c.count(counterKey{project: c.g.Project, user: c.g.User})
		if c.first(map[test]string{jobsMost: "user jobs", submitsMost: "user submits"}[x]) {
			*to = append(*to, rule{
				test: x, tres: -1, at: at, limit: *limit, reason: reason, who: n.name(),
				whom: string(c.g.User),
			})
		}
		return
	}
}

// group is what a group may have together.
func (c *compiler) group(s scope, who string, l *Limits, held TRES, k counterKey, root bool) {
	if l.GrpJobs == nil && l.GrpSubmit == nil && l.GrpWall == nil && len(l.GrpTRES)+len(l.GrpTRESMins)+
		len(l.GrpTRESRunMins) == 0 {
		return
	}
	p, safe := core.Reason(s), c.t.rules.Safe
	r := rule{who: who, tres: -1, at: c.count(k)}
	if l.GrpJobs != nil {
		c.jobs(r, p+"GrpJobsLimit", *l.GrpJobs)
	}
	c.tres(heldMost, s, grp, held, "", r)
	c.tres(aheadMost, s, grpRunMins, l.GrpTRESRunMins, "", r)
	if root { // as Slurm: minutes are not enforced on the root
		return
	}
	r.safe = safe
	c.tres(usedMost, s, grpMins, l.GrpTRESMins, "", r)
	if l.GrpWall != nil {
		r.test, r.tres, r.limit, r.reason = wallUsed, -1, *l.GrpWall, p+"GrpWallLimit"
		c.add(r)
	}
}

// submits are the limits on how many jobs there are.
func (c *compiler) submits() {
	g := c.g
	most := func(r rule, limit *int64, reason core.Reason, once string) {
		if limit != nil && (once == "" || c.first(once)) {
			r.test, r.tres, r.limit, r.reason = submitsMost, -1, *limit, reason
			g.submit = append(g.submit, r)
		}
	}
	for _, q := range c.l.qos {
		if q == nil {
			continue
		}
		who := "QOS " + string(q.Name)
		if q.Limits.GrpSubmit != nil {
			most(rule{who: who, at: c.count(counterKey{qos: q.Name})}, q.Limits.GrpSubmit, "QOSGrpSubmitJobsLimit", "")
		}
		if q.Limits.MaxSubmit != nil {
			most(rule{who: who, whom: string(g.User), at: c.count(counterKey{qos: q.Name, user: g.User})},
				q.Limits.MaxSubmit, "QOSMaxSubmitJobPerUserLimit", "user submits")
		}
		if q.MaxSubmitPerProject != nil {
			most(rule{who: who, whom: "project " + string(g.Project), at: c.count(counterKey{qos: q.Name, project: g.Project})},
				q.MaxSubmitPerProject, "MaxSubmitJobsPerAccount", "account submits")
		}
	}
	c.user(&g.submit, submitsMost, "AssocMaxSubmitJobLimit", func(l *Limits) *int64 { return l.MaxSubmit })
	for _, n := range c.l.path {
		if n.Limits.GrpSubmit != nil {
			most(rule{who: n.name(), at: c.count(counterKey{project: n.Project, user: n.User})}, n.Limits.GrpSubmit,
				"AssocGrpSubmitJobsLimit", "")
		}
	}
}
