package policyset

import (
	"fmt"
	"iter"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/sched/alloc"
)

// use is what somebody's jobs hold and how many there are.
type use struct {
	jobs      int64 // that run
	submitted int64 // that are there
	tres      core.TRES
}

func (l *use) add(j *core.Job, holds core.TRES) {
	l.submitted += int64(j.Count())
	if holds != nil {
		l.jobs++
		l.tres = l.tres.Plus(holds, 1)
	}
}

// uses is what all live jobs hold, by whom limits are set for.
type uses struct {
	projects     map[core.ProjectName]*use // with those below
	members      map[userInProject]*use
	qos          map[core.QOSName]*use
	byQOSUser    map[qosUser]*use
	byQOSProject map[qosProject]*use
	running      []*core.Job
}

type (
	userInProject struct {
		project core.ProjectName
		user    core.UserName
	}
	qosUser struct {
		qos  core.QOSName
		user core.UserName
	}
	qosProject struct {
		qos     core.QOSName
		project core.ProjectName
	}
)

func usageOf[K comparable](m map[K]*use, k K) *use {
	l := m[k]
	if l == nil {
		l = &use{}
		m[k] = l
	}
	return l
}

// usage counts what live jobs hold, by whom limits are set for. Projects are stacked as the policy has them.
func (b *Set) usage(jobs iter.Seq[*core.Job]) *uses {
	l := &uses{
		projects: map[core.ProjectName]*use{}, members: map[userInProject]*use{}, qos: map[core.QOSName]*use{},
		byQOSUser: map[qosUser]*use{}, byQOSProject: map[qosProject]*use{},
	}
	for j := range jobs {
		var holds core.TRES
		if j.Alloc != nil && j.End == 0 {
			holds = heldBy(j)
			l.running = append(l.running, j)
		}
		sp := j.Spec
		usageOf(l.members, userInProject{sp.Project, sp.User}).add(j, holds)
		up := sp.Project
		for range len(b.Projects) + 1 {
			usageOf(l.projects, up).add(j, holds)
			p := b.Projects[up]
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

// heldBy is what a job holds.
func heldBy(j *core.Job) core.TRES {
	all, _ := alloc.AllocatedTRES(j.Alloc)
	return all
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
func (b *Set) findExcesses(l *uses) []core.PolicyExcess {
	x := &excesses{}
	none := &use{}
	of := func(l *use) *use {
		if l == nil {
			return none
		}
		return l
	}
	for _, q := range named.Sorted(b.QOS) {
		if q.Flags&core.Relative != 0 {
			continue // percent of what the cluster is at the moment
		}
		path, who := "qos."+string(q.Name), "QOS "+string(q.Name)
		x.group(path, who, &q.Limits, of(l.qos[q.Name]))
		for _, u := range named.Sorted(b.Users) {
			has, who := of(l.byQOSUser[qosUser{q.Name, u.Name}]), fmt.Sprintf("%s with QOS %s", u.Name, q.Name)
			x.count(path, who, "max_jobs", q.Limits.MaxJobs, has.jobs)
			x.count(path, who, "max_submit", q.Limits.MaxSubmit, has.submitted)
			x.amounts(path, who, "max_tres_per_user", q.MaxTRESPerUser, has.tres)
		}
		for _, p := range named.Sorted(b.Projects) {
			has, who := of(l.byQOSProject[qosProject{q.Name, p.Name}]), fmt.Sprintf("project %s with QOS %s", p.Name, q.Name)
			x.count(path, who, "max_jobs_per_account", q.MaxJobsPerProject, has.jobs)
			x.count(path, who, "max_submit_per_account", q.MaxSubmitPerProject, has.submitted)
			x.amounts(path, who, "max_tres_per_account", q.MaxTRESPerProject, has.tres)
		}
	}
	for _, p := range named.Sorted(b.Projects) {
		path, who := "projects."+string(p.Name), "project "+string(p.Name)
		x.group(path, who, &p.Assoc.Limits, of(l.projects[p.Name]))
		for i := range p.Members {
			m := &p.Members[i]
			path, who := path+".members."+string(m.User), fmt.Sprintf("%s in project %s", m.User, p.Name)
			has := of(l.members[userInProject{p.Name, m.User}])
			x.group(path, who, &m.Assoc.Limits, has)
			x.count(path, who, "max_jobs", b.nearestLimit(p, m, func(l *core.Limits) *int64 { return l.MaxJobs }), has.jobs)
			x.count(path, who, "max_submit", b.nearestLimit(p, m, func(l *core.Limits) *int64 { return l.MaxSubmit }),
				has.submitted)
		}
	}
	for _, j := range l.running {
		b.eachLimit(j, func(path string, lim *core.Limits) {
			who := fmt.Sprintf("job %d of %s", j.ID, j.Spec.User)
			x.amounts(path, who, "max_tres_per_job", lim.MaxTRESPerJob, heldBy(j))
			if t := j.Spec.TimeLimit; t > 0 && t != core.Forever {
				x.count(path, who, "max_wall", lim.MaxWall, int64(t)/60)
			}
		})
	}
	return x.list
}

func (x *excesses) group(path, who string, lim *core.Limits, has *use) {
	x.count(path, who, "grp_jobs", lim.GrpJobs, has.jobs)
	x.count(path, who, "grp_submit", lim.GrpSubmit, has.submitted)
	x.amounts(path, who, "grp_tres", lim.GrpTRES, has.tres)
}

// nearestLimit is the limit that holds for each user of a project: the user's own, or the first one above that is set.
func (b *Set) nearestLimit(p *core.Project, m *core.Member, of func(*core.Limits) *int64) *int64 {
	if n := of(&m.Assoc.Limits); n != nil {
		return n
	}
	for range len(b.Projects) {
		if n := of(&p.Assoc.Limits); n != nil || p.Parent == "" {
			return n
		}
		if p = b.Projects[p.Parent]; p == nil {
			break
		}
	}
	return nil
}

// eachLimit goes through the limits one job is under: its QOS, its user's and those of its project. What is above only
// counts where these say nothing, and is left to the scheduler.
func (b *Set) eachLimit(j *core.Job, do func(path string, lim *core.Limits)) {
	if q := b.QOS[j.Spec.QOS]; q != nil && q.Flags&core.Relative == 0 {
		do("qos."+string(q.Name), &q.Limits)
	}
	p := b.Projects[j.Spec.Project]
	if p == nil {
		return
	}
	path := "projects." + string(p.Name)
	m := p.Member(j.Spec.User)
	do(path+".members."+string(m.User), &m.Assoc.Limits)
	do(path, &p.Assoc.Limits)
}

// NewExcesses finds the limits of a policy that are below what already runs and were not so before.
func (b *Set) NewExcesses(old *Set, jobs iter.Seq[*core.Job]) []core.PolicyExcess {
	before := old.findExcesses(old.usage(jobs))
	var out []core.PolicyExcess
	for _, e := range b.findExcesses(b.usage(jobs)) {
		same := func(o core.PolicyExcess) bool { return o.Who == e.Who && o.Limit == e.Limit && o.Max <= e.Max }
		if !slices.ContainsFunc(before, same) {
			out = append(out, e)
		}
	}
	return out
}

// ErrExceeded words what has more than a policy would allow.
func ErrExceeded(list []core.PolicyExcess) error {
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
