package state

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// load is what somebody's jobs hold and how many there are.
type load struct {
	jobs   int64 // that run
	submit int64 // that are there
	tres   core.TRES
}

func (l *load) add(j *core.Job, holds core.TRES) {
	l.submit += int64(j.Count())
	if holds != nil {
		l.jobs++
		l.tres = l.tres.Plus(holds, 1)
	}
}

// loads is what all live jobs hold, by whom limits are set for.
type loads struct {
	projects map[core.ProjectName]*load // with those below
	members  map[spender]*load
	qos      map[core.QOSName]*load
	qosUser  map[qosUser]*load
	qosAcct  map[qosAcct]*load
	running  []*core.Job
}

type (
	qosUser struct {
		qos  core.QOSName
		user core.UserName
	}
	qosAcct struct {
		qos     core.QOSName
		project core.ProjectName
	}
)

func at[K comparable](m map[K]*load, k K) *load {
	l := m[k]
	if l == nil {
		l = &load{}
		m[k] = l
	}
	return l
}

// loads reads all live jobs. Projects are stacked as b has them.
func (s *State) loads(b *book) *loads {
	l := &loads{
		projects: map[core.ProjectName]*load{}, members: map[spender]*load{}, qos: map[core.QOSName]*load{},
		qosUser: map[qosUser]*load{}, qosAcct: map[qosAcct]*load{},
	}
	for _, j := range s.view.jobs.All() {
		var holds core.TRES
		if j.Alloc != nil && j.End == 0 {
			holds = allocated(j.Alloc)
			l.running = append(l.running, j)
		}
		sp := j.Spec
		at(l.members, spender{sp.Project, sp.User}).add(j, holds)
		up := sp.Project
		for range len(b.projects) + 1 {
			at(l.projects, up).add(j, holds)
			p := b.projects[up]
			if p == nil || p.Parent == "" {
				break
			}
			up = p.Parent
		}
		if sp.QOS != "" {
			at(l.qos, sp.QOS).add(j, holds)
			at(l.qosUser, qosUser{sp.QOS, sp.User}).add(j, holds)
			at(l.qosAcct, qosAcct{sp.QOS, sp.Project}).add(j, holds)
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

// exceeding finds every limit of a policy that is below what already runs.
func (s *State) exceeding(b *book, l *loads) []core.PolicyExcess {
	x := &excesses{}
	none := &load{}
	of := func(l *load) *load {
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
			has, who := of(l.qosUser[qosUser{q.Name, u.Name}]), fmt.Sprintf("%s with QOS %s", u.Name, q.Name)
			x.count(path, who, "max_jobs", q.Limits.MaxJobs, has.jobs)
			x.count(path, who, "max_submit", q.Limits.MaxSubmit, has.submit)
			x.amounts(path, who, "max_tres_per_user", q.MaxTRESPerUser, has.tres)
		}
		for _, p := range sorted(b.projects) {
			has, who := of(l.qosAcct[qosAcct{q.Name, p.Name}]), fmt.Sprintf("project %s with QOS %s", p.Name, q.Name)
			x.count(path, who, "max_jobs_per_account", q.MaxJobsPerAccount, has.jobs)
			x.count(path, who, "max_submit_per_account", q.MaxSubmitPerAccount, has.submit)
			x.amounts(path, who, "max_tres_per_account", q.MaxTRESPerAccount, has.tres)
		}
	}
	for _, p := range sorted(b.projects) {
		path, who := "projects."+string(p.Name), "project "+string(p.Name)
		x.group(path, who, &p.Assoc.Limits, of(l.projects[p.Name]))
		for i := range p.Members {
			m := &p.Members[i]
			path, who := path+".members."+string(m.User), fmt.Sprintf("%s in project %s", m.User, p.Name)
			has := of(l.members[spender{p.Name, m.User}])
			x.group(path, who, &m.Assoc.Limits, has)
			x.count(path, who, "max_jobs", b.nearest(p, m, func(l *core.Limits) *int64 { return l.MaxJobs }), has.jobs)
			x.count(path, who, "max_submit", b.nearest(p, m, func(l *core.Limits) *int64 { return l.MaxSubmit }), has.submit)
		}
	}
	for _, j := range l.running {
		b.eachLimit(j, func(path string, lim *core.Limits) {
			who := fmt.Sprintf("job %d of %s", j.ID, j.Spec.User)
			x.amounts(path, who, "max_tres_per_job", lim.MaxTRESPerJob, allocated(j.Alloc))
			if t := j.Spec.TimeLimit; t > 0 && t != core.Forever {
				x.count(path, who, "max_wall", lim.MaxWall, int64(t)/60)
			}
		})
	}
	return x.list
}

func (x *excesses) group(path, who string, lim *core.Limits, has *load) {
	x.count(path, who, "grp_jobs", lim.GrpJobs, has.jobs)
	x.count(path, who, "grp_submit", lim.GrpSubmit, has.submit)
	x.amounts(path, who, "grp_tres", lim.GrpTRES, has.tres)
}

// nearest is the limit that holds for each user of a project: the user's own, or the first one above that is set.
func (b *book) nearest(p *core.Project, m *core.Member, of func(*core.Limits) *int64) *int64 {
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
func (b *book) eachLimit(j *core.Job, do func(path string, lim *core.Limits)) {
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

// newlyExceeded finds the limits of a policy that are below what already runs and were not so before.
func (s *State) newlyExceeded(b *book) []core.PolicyExcess {
	before := s.exceeding(s.book(), s.loads(s.book()))
	var out []core.PolicyExcess
	for _, e := range s.exceeding(b, s.loads(b)) {
		same := func(o core.PolicyExcess) bool { return o.Who == e.Who && o.Limit == e.Limit && o.Max <= e.Max }
		if !slices.ContainsFunc(before, same) {
			out = append(out, e)
		}
	}
	return out
}

// exceeded words what has more than a policy would allow.
func exceeded(list []core.PolicyExcess) error {
	is := "1 limit is"
	if len(list) > 1 {
		is = fmt.Sprintf("%d limits are", len(list))
	}
	e := core.Errorf(core.Conflict, "%s below what already runs; nothing was changed", is).Because("limit_below_use")
	for _, x := range list {
		e.Faults = append(e.Faults, core.Fault{Path: x.Path, Message: fmt.Sprintf("%s has %d, %s would allow %d", x.Who, x.Has, x.Limit, x.Max)})
	}
	return e
}
