package policy

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Check is the model that Gate is held against, written as the rules are told. It reports whether limits let a job
// start now. It gives no reason if they do, else Slurm's word for the first limit that does not and a sentence for
// people.
//
// A QOS is asked before associations, the partition's before the job's unless the job's says otherwise; then the user's
// association and the accounts above it, up to the root. Of a limit on single jobs or users the first that is defined
// counts. A limit on a whole group binds at every level.
func Check(j *Job, t *Tree, q QOSPair, r *Running) (core.Reason, string) {
	return check(j, t, q, r, false)
}

// check does that; with alone, as if nobody had used anything.
func check(j *Job, t *Tree, q QOSPair, r *Running, alone bool) (core.Reason, string) {
	leaf := t.find(j.Project, j.User)
	if leaf == nil {
		return core.ReasonInvalidProject, fmt.Sprintf("there is no account %s", j.Project)
	}
	c := &checker{j: j, t: t, q: q, r: r, leaf: leaf, alone: alone}
	c.single()
	for _, x := range q.order() {
		if x != nil {
			c.qos(x)
		}
	}
	c.userJobs()
	for n := leaf; n != nil; n = n.parent {
		who := n.name()
		c.group(ofAssoc, who, &n.Limits, see(r.assoc, assocKey{n.Project, n.User}), &n.Used, limitsView{
			tres:    scaled(n.Limits.GrpTRES, q.limitFactor()),
			mins:    n.Limits.GrpTRESMins,
			runMins: n.Limits.GrpTRESRunMins,
			root:    n.parent == nil,
		})
	}
	return c.reason, c.text
}

// CheckSubmit reports whether one may submit a job: the limits on how many are there, and with DenyOnLimit all that the
// job could not keep even if nothing else ran.
func CheckSubmit(j *Job, t *Tree, q QOSPair, r *Running) (core.Reason, string) {
	leaf := t.find(j.Project, j.User)
	if leaf == nil {
		return core.ReasonInvalidProject, fmt.Sprintf("there is no account %s", j.Project)
	}
	c := &checker{j: j, t: t, q: q, r: r, leaf: leaf}
	n := max(1, j.Tasks)
	userSet, accountSet := false, false // the first limit that is defined counts
	for _, x := range q.order() {
		if x == nil {
			continue
		}
		who := "QOS " + string(x.Name)
		c.count("QOSGrpSubmitJobsLimit", who+" may have %d jobs and has %d", x.Limits.GrpSubmit,
			see(r.qos, qosKey{qos: x.Name}).Submits, n)
		if !userSet && x.Limits.MaxSubmit != nil {
			userSet = true
			c.count("QOSMaxSubmitJobPerUserLimit", "a user of "+who+" may have %d jobs, "+string(j.User)+" has %d",
				x.Limits.MaxSubmit,
				see(r.qos, qosKey{qos: x.Name, user: j.User}).Submits, n)
		}
		if !accountSet && x.MaxSubmitPerProject != nil {
			accountSet = true
			c.count("MaxSubmitJobsPerAccount", "an account of "+who+" may have %d jobs, "+string(j.Project)+" has %d",
				x.MaxSubmitPerProject,
				see(r.qos, qosKey{qos: x.Name, account: j.Project}).Submits, n)
		}
	}
	for up := leaf; up != nil && !userSet; up = up.parent {
		if up.Limits.MaxSubmit != nil {
			userSet = true
			c.count("AssocMaxSubmitJobLimit", "a user of "+up.name()+" may have %d jobs, "+string(j.User)+" has %d",
				up.Limits.MaxSubmit,
				see(r.assoc, assocKey{j.Project, j.User}).Submits, n)
		}
	}
	for up := leaf; up != nil; up = up.parent {
		c.count("AssocGrpSubmitJobsLimit", up.name()+" may have %d jobs and has %d", up.Limits.GrpSubmit,
			see(r.assoc, assocKey{up.Project, up.User}).Submits, n)
	}
	denies := func(x *QOS) bool { return x != nil && x.Flags&core.DenyOnLimit != 0 }
	if c.reason == "" && (denies(q.Job) || denies(q.Partition)) {
		empty := NewRunning(r.Now)
		empty.Totals = r.Totals
		return check(j, t, q, empty, true)
	}
	return c.reason, c.text
}

// checker collects the first limit that is not kept.
type checker struct {
	j      *Job
	t      *Tree
	q      QOSPair
	r      *Running
	leaf   *node
	alone  bool
	kept   [4]seen // limits of a QOS on users and accounts that an earlier QOS has defined
	jobs   [2]bool
	reason core.Reason
	text   string
}

func (c *checker) stop(reason core.Reason, format string, args ...any) {
	if c.reason == "" {
		c.reason, c.text = reason, fmt.Sprintf(format, args...)
	}
}

// count holds have+more against a limit on a number. The format takes the limit and what there is.
func (c *checker) count(reason core.Reason, format string, limit *int64, have, more int64) {
	if limit != nil && have+more > *limit {
		c.stop(reason, format, *limit, have)
	}
}

// most holds amounts against a limit: what is named must not be more.
func (c *checker) most(s scope, f form, who string, limit TRES, want func(name string) int64, text string) {
	for _, a := range limit {
		if c.j.TRES.Count(a.Name) == 0 && f != perNode { // a resource it does not touch is not its affair
			continue
		}
		if n := want(a.Name); n > a.Count {
			c.stop(reasonOf(s, f, a.Name), "%s: %s %s at most, with this job %d", who,
				strings.ReplaceAll(text, "%", a.Name), fmt.Sprint(a.Count), n)
		}
	}
}

// single checks what the job must keep by itself: of each limit, the first that is defined.
func (c *checker) single() {
	j, mins := c.j, c.j.minutes()
	type level struct {
		s   scope
		who string
		l   *Limits
		fit func(TRES) TRES
	}
	var levels []level
	for _, x := range c.q.order() {
		if x != nil {
			levels = append(levels, level{ofQOS, "QOS " + string(x.Name), &x.Limits, func(t TRES) TRES {
				return x.tres(t, c.r.Totals)
			}})
		}
	}
	k := c.q.limitFactor()
	for n := c.leaf; n != nil; n = n.parent {
		levels = append(levels, level{ofAssoc, n.name(), &n.Limits, func(t TRES) TRES { return scaled(t, k) }})
	}
	var jobSeen, nodeSeen, minsSeen seen
	wallSeen := false
	for _, l := range levels {
		c.most(l.s, perJob, l.who, jobSeen.first(l.fit(l.l.MaxTRESPerJob)), j.TRES.Count, "% a job")
		c.most(l.s, perNode, l.who, nodeSeen.first(l.fit(l.l.MaxTRESPerNode)), j.PerNode.Count, "% a node")
		c.most(l.s, minsPerJob, l.who, minsSeen.first(l.l.MaxTRESMinsPerJob), func(name string) int64 {
			return times(j.TRES.Count(name), mins)
		}, "%-minutes a job")
		if l.l.MaxWall != nil && !wallSeen {
			wallSeen = true
			if mins > *l.l.MaxWall {
				c.stop(core.Reason(l.s)+"MaxWallDurationPerJobLimit", "%s: a job may last %d minutes at most", l.who, *l.l.MaxWall)
			}
		}
	}
}

// seen are the resources that a limit was found for.
type seen []string

// first keeps what was not found before.
func (s *seen) first(t TRES) TRES {
	var out TRES
	for _, a := range t {
		if !slices.Contains(*s, a.Name) {
			*s = append(*s, a.Name)
			out = append(out, a)
		}
	}
	return out
}

// qos checks what a QOS allows all its jobs, and each user and account in it.
func (c *checker) qos(x *QOS) {
	j, r, who := c.j, c.r, "QOS "+string(x.Name)
	for _, a := range x.tres(x.MinTRESPerJob, c.r.Totals) {
		if n := j.TRES.Count(a.Name); n < a.Count {
			c.stop(reasonOf(ofQOS, minPerJob, a.Name), "%s: %s %d a job at least, this one has %d", who, a.Name, a.Count, n)
		}
	}
	if x.Flags&core.EnforceUsageThreshold != 0 && j.FairShare < x.UsageThreshold {
		c.stop(ReasonUsageThreshold, "%s asks for a fair-share of %.4f, this job has %.4f", who, x.UsageThreshold,
			j.FairShare)
	}
	c.group(ofQOS, who, &x.Limits, see(r.qos, qosKey{qos: x.Name}), &x.Used, limitsView{
		tres: x.tres(x.Limits.GrpTRES, c.r.Totals), mins: x.Limits.GrpTRESMins, runMins: x.Limits.GrpTRESRunMins,
	})
	mine, ours := see(r.qos, qosKey{qos: x.Name, user: j.User}), see(r.qos, qosKey{qos: x.Name, account: j.Project})
	if !c.jobs[0] {
		c.count("QOSMaxJobsPerUserLimit", "a user of "+who+" may run %d jobs, "+string(j.User)+" runs %d",
			x.Limits.MaxJobs, mine.Jobs, 1)
	}
	if !c.jobs[1] {
		c.count("MaxJobsPerAccount", "an account of "+who+" may run %d jobs, "+string(j.Project)+" runs %d",
			x.MaxJobsPerProject, ours.Jobs, 1)
	}
	c.jobs = [2]bool{c.jobs[0] || x.Limits.MaxJobs != nil, c.jobs[1] || x.MaxJobsPerProject != nil}
	c.most(ofQOS, perUser, who, c.kept[0].first(x.tres(x.MaxTRESPerUser, c.r.Totals)), c.with(mine), "% a user")
	c.most(ofQOS, perProject, who, c.kept[1].first(x.tres(x.MaxTRESPerProject, c.r.Totals)), c.with(ours), "% an account")
	c.most(ofQOS, runMinsPerUser, who, c.kept[2].first(x.MaxRunMinsPerUser), c.ahead(mine), "running %-minutes a user")
	c.most(ofQOS, runMinsPerProject, who, c.kept[3].first(x.MaxRunMinsPerAcct), c.ahead(ours),
		"running %-minutes an account")
}

// userJobs checks how many jobs a user may run: the first association upward that says so, unless a QOS has said it.
func (c *checker) userJobs() {
	if c.jobs[0] {
		return
	}
	for n := c.leaf; n != nil; n = n.parent {
		if n.Limits.MaxJobs != nil {
			c.count("AssocMaxJobsLimit", "a user of "+n.name()+" may run %d jobs, "+string(c.j.User)+" runs %d",
				n.Limits.MaxJobs,
				see(c.r.assoc, assocKey{c.j.Project, c.j.User}).Jobs, 1)
			return
		}
	}
}

// with is what somebody holds of a resource once the job runs.
func (c *checker) with(x *modelTally) func(string) int64 {
	return func(name string) int64 { return plus(x.TRES.Count(name), c.j.TRES.Count(name)) }
}

// ahead is what somebody has ahead in resource-minutes once the job runs.
func (c *checker) ahead(x *modelTally) func(string) int64 {
	mins := c.j.minutes()
	return func(name string) int64 { return plus(x.RunMins(name, c.r.Now), times(c.j.TRES.Count(name), mins)) }
}

// limitsView is a group's limits as they stand after percent and factors.
type limitsView struct {
	tres, mins, runMins TRES
	root                bool // minutes are not enforced on it
}

// group checks what a group may have together.
func (c *checker) group(s scope, who string, l *Limits, x *modelTally, used *Usage, v limitsView) {
	p := core.Reason(s)
	c.count(p+"GrpJobsLimit", who+" may run %d jobs and runs %d", l.GrpJobs, x.Jobs, 1)
	c.most(s, grp, who, v.tres, c.with(x), "% together")
	c.most(s, grpRunMins, who, v.runMins, c.ahead(x), "running %-minutes together")
	if v.root {
		return
	}
	for _, a := range v.mins {
		if c.j.TRES.Count(a.Name) == 0 {
			continue
		}
		have := used.Minutes(a.Name)
		if c.alone {
			have = 0
		}
		if have >= a.Count || (c.r.Safe || c.alone) && plus(have, c.ahead(x)(a.Name)) > a.Count {
			c.stop(reasonOf(s, grpMins, a.Name), "%s: %d %s-minutes together, %d are used", who, a.Count, a.Name, have)
		}
	}
	if l.GrpWall != nil && !c.alone {
		have := int64(used.Wall / 60)
		if have >= *l.GrpWall || c.r.Safe && plus(have, c.j.minutes()) > *l.GrpWall {
			c.stop(p+"GrpWallLimit", "%s: %d minutes of jobs together, %d are used", who, *l.GrpWall, have)
		}
	}
}
