package state

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// policyUse is what somebody's jobs hold and how many there are.
type policyUse struct {
	jobs      int64 // that run
	submitted int64 // that are there
	tres      core.TRES
}

func (l *policyUse) add(j *core.Job, holds core.TRES) {
	l.submitted += int64(j.Count())
	if holds != nil {
		l.jobs++
		l.tres = l.tres.Plus(holds, 1)
	}
}

// policyUses is what all live jobs hold, by whom limits are set for.
type policyUses struct {
	projects     map[core.ProjectName]*policyUse // with those below
	members      map[meterKey]*policyUse
	qos          map[core.QOSName]*policyUse
	byQOSUser    map[qosUser]*policyUse
	byQOSProject map[qosProject]*policyUse
	running      []*core.Job
}

type (
	qosUser struct {
		qos  core.QOSName
		user core.UserName
	}
	qosProject struct {
		qos     core.QOSName
		project core.ProjectName
	}
)

func usageOf[K comparable](m map[K]*policyUse, k K) *policyUse {
	l := m[k]
	if l == nil {
		l = &policyUse{}
		m[k] = l
	}
	return l
}

// policyUses reads all live jobs. Projects are stacked as b has them.
func (s *State) policyUsage(b *policySet) *policyUses {
	l := &policyUses{
		projects: map[core.ProjectName]*policyUse{}, members: map[meterKey]*policyUse{}, qos: map[core.QOSName]*policyUse{},
		byQOSUser: map[qosUser]*policyUse{}, byQOSProject: map[qosProject]*policyUse{},
	}
	for _, j := range s.view.jobs.All() {
		var holds core.TRES
		if j.Alloc != nil && j.End == 0 {
			holds = allocatedTRES(j.Alloc)
			l.running = append(l.running, j)
		}
		sp := j.Spec
		usageOf(l.members, meterKey{sp.Project, sp.User}).add(j, holds)
		up := sp.Project
		for range len(b.projects) + 1 {
			usageOf(l.projects, up).add(j, holds)
			p := b.projects[up]
			if p == nil || p.Parent == "" {
				break
			}
			up = p.Parent
		}
		if sp.QOS != "" {
			usageOf(l.qos, sp.QOS).add(j, holds)
			usageOf(l.byQOSUser, qosUser{sp.QOS, sp.User}).add(j, holds)
			usageOf(l.byQOSProject, qosProject{sp.QOS, sp.Project}).add(j, holds)
		}
	}
	return l
}

// excesses collects what has more than its limit.
type excesses struct{ list []core.PolicyExcess }

func (x *excesses) count(path, who, limit string, maximum *int64, has int64) {
	if maximum != nil && has > *maximum {
		x.list = append(x.list, core.PolicyExcess{Path: path, Who: who, Limit: limit, Max: *maximum, Has: has})
	}
}

func (x *excesses) amounts(path, who, limit string, maximum, has core.TRES) {
	for _, a := range maximum {
		x.count(path, who, limit+" "+a.Name, &a.Count, has.Count(a.Name))
	}
}

// findExcesses finds every limit of a policy that is below what already runs.
func (s *State) findExcesses(b *policySet, l *policyUses) []core.PolicyExcess {
	x := &excesses{}
	none := &policyUse{}
	of := func(l *policyUse) *policyUse {
		if l == nil {
			return none
		}
		return l
	}
	for _, q := range sorted(b.qos) {
		if q.Flags&core.Relative != 0 {
			continue // percent of what the cluster is at the moment
		}
		path, who := "qos."+string(q.Name), "QOS "+string(q.Name)
		x.group(path, who, &q.Limits, of(l.qos[q.Name]))
		for _, u := range sorted(b.users) {
			has, who := of(l.byQOSUser[qosUser{q.Name, u.Name}]), fmt.Sprintf("%s with QOS %s", u.Name, q.Name)
			x.count(path, who, "max_jobs", q.Limits.MaxJobs, has.jobs)
			x.count(path, who, "max_submit", q.Limits.MaxSubmit, has.submitted)
			x.amounts(path, who, "max_tres_per_user", q.MaxTRESPerUser, has.tres)
		}
		for _, p := range sorted(b.projects) {
			has, who := of(l.byQOSProject[qosProject{q.Name, p.Name}]), fmt.Sprintf("project %s with QOS %s", p.Name, q.Name)
			x.count(path, who, "max_jobs_per_account", q.MaxJobsPerAccount, has.jobs)
			x.count(path, who, "max_submit_per_account", q.MaxSubmitPerAccount, has.submitted)
			x.amounts(path, who, "max_tres_per_account", q.MaxTRESPerAccount, has.tres)
		}
	}
	for _, p := range sorted(b.projects) {
		path, who := "projects."+string(p.Name), "project "+string(p.Name)
		x.group(path, who, &p.Assoc.Limits, of(l.projects[p.Name]))
		for i := range p.Members {
			m := &p.Members[i]
			path, who := path+".members."+string(m.User), fmt.Sprintf("%s in project %s", m.User, p.Name)
			has := of(l.members[meterKey{p.Name, m.User}])
			x.group(path, who, &m.Assoc.Limits, has)
			x.count(path, who, "max_jobs", b.nearestLimit(p, m, func(l *core.Limits) *int64 { return l.MaxJobs }), has.jobs)
			x.count(path, who, "max_submit", b.nearestLimit(p, m, func(l *core.Limits) *int64 { return l.MaxSubmit }),
				has.submitted)
		}
	}
	for _, j := range l.running {
		b.eachLimit(j, func(path string, lim *core.Limits) {
			who := fmt.Sprintf("job %d of %s", j.ID, j.Spec.User)
			x.amounts(path, who, "max_tres_per_job", lim.MaxTRESPerJob, allocatedTRES(j.Alloc))
			if t := j.Spec.TimeLimit; t > 0 && t != core.Forever {
				x.count(path, who, "max_wall", lim.MaxWall, int64(t)/60)
			}
		})
	}
	return x.list
}

func (x *excesses) group(path, who string, lim *core.Limits, has *policyUse) {
	x.count(path, who, "grp_jobs", lim.GrpJobs, has.jobs)
	x.count(path, who, "grp_submit", lim.GrpSubmit, has.submitted)
	x.amounts(path, who, "grp_tres", lim.GrpTRES, has.tres)
}

// nearestLimit is the limit that holds for each user of a project: the user's own, or the first one above that is set.
func (b *policySet) nearestLimit(p *core.Project, m *core.Member, of func(*core.Limits) *int64) *int64 {
	if n := of(&m.Assoc.Limits); n != nil {
		return n
	}
	for range len(b.projects) {
		if n := of(&p.Assoc.Limits); n != nil || p.Parent == "" {
			return n
		}
		if p = b.projects[p.Parent]; p == nil {
			break
		}
	}
	return nil
}

// eachLimit goes through the limits one job is under: its QOS, its user's and those of its project. What is above only
// counts where these say nothing, and is left to the scheduler.
func (b *policySet) eachLimit(j *core.Job, do func(path string, lim *core.Limits)) {
	if q := b.qos[j.Spec.QOS]; q != nil && q.Flags&core.Relative == 0 {
		do("qos."+string(q.Name), &q.Limits)
	}
	p := b.projects[j.Spec.Project]
	if p == nil {
		return
	}
	path := "projects." + string(p.Name)
	m := p.Member(j.Spec.User)
	do(path+".members."+string(m.User), &m.Assoc.Limits)
	do(path, &p.Assoc.Limits)
}

// newExcesses finds the limits of a policy that are below what already runs and were not so before.
func (s *State) newExcesses(b *policySet) []core.PolicyExcess {
	before := s.findExcesses(s.currentPolicy(), s.policyUsage(s.currentPolicy()))
	var out []core.PolicyExcess
	for _, e := range s.findExcesses(b, s.policyUsage(b)) {
		same := func(o core.PolicyExcess) bool { return o.Who == e.Who && o.Limit == e.Limit && o.Max <= e.Max }
		if !slices.ContainsFunc(before, same) {
			out = append(out, e)
		}
	}
	return out
}

// errExcess words what has more than a policy would allow.
func errExcess(list []core.PolicyExcess) error {
	is := "1 limit is"
	if len(list) > 1 {
		is = fmt.Sprintf("%d limits are", len(list))
	}
	e := core.Errorf(core.Conflict, "%s below what already runs; nothing was changed", is).Because("limit_below_use")
	for _, x := range list {
		e.Faults = append(e.Faults,
			core.Fault{Path: x.Path, Message: fmt.Sprintf("%s has %d, %s would allow %d", x.Who, x.Has, x.Limit, x.Max)})
	}
	return e
}
