package slurmdb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/migrate/sqldump"
)

func (p *reader) association(c *cluster, r *sqldump.Row) error {
	n := numbers{r: r}
	a := &association{
		id: n.int("id_assoc", 0), user: r.Text("user"), account: r.Text("acct"), partition: r.Text("partition"),
		parent: r.Text("parent_acct"), shares: n.int("shares", 1), isDefault: n.int("is_def", 0) != 0,
		deleted: n.int("deleted", 0) != 0, priority: n.int("priority", 0), defaultQOS: n.int("def_qos_id", 0),
		qos: r.Text("qos"), delta: r.Text("delta_qos"), lft: n.int("lft", 0),
	}
	a.limits = core.Limits{
		GrpJobs: n.limit("grp_jobs"), GrpSubmit: n.limit("grp_submit_jobs"), GrpJobsAccrue: n.limit("grp_jobs_accrue"),
		GrpWall: n.limit("grp_wall"), MaxJobs: n.limit("max_jobs"), MaxSubmit: n.limit("max_submit_jobs"),
		MaxJobsAccrue: n.limit("max_jobs_accrue"), MaxWall: n.limit("max_wall_pj"),
		MinPrioThreshold: n.limit("min_prio_thresh"),
	}
	p.later(r, "grp_tres", &a.limits.GrpTRES)
	p.later(r, "grp_tres_mins", &a.limits.GrpTRESMins)
	p.later(r, "grp_tres_run_mins", &a.limits.GrpTRESRunMins)
	p.later(r, "max_tres_pj", &a.limits.MaxTRESPerJob)
	p.later(r, "max_tres_pn", &a.limits.MaxTRESPerNode)
	p.later(r, "max_tres_mins_pj", &a.limits.MaxTRESMinsPerJob)
	p.later(r, "max_tres_run_mins", &a.limits.MaxTRESRunMins)
	c.assocs = append(c.assocs, a)
	return errors.Join(n.err, need(r, "id_assoc", "user", "acct", "shares"))
}

// qosFlags are Slurm's numbers of the flags of a QOS.
var qosFlags = []struct {
	bit  int64
	flag core.QOSFlag
}{
	{0x1, core.PartitionMinNodes},
	{0x2, core.PartitionMaxNodes},
	{0x4, core.PartitionTimeLimit},
	{0x8, core.EnforceUsageThreshold},
	{0x10, core.NoReserve},
	{0x20, core.RequiresReservation},
	{0x40, core.DenyOnLimit},
	{0x80, core.OverPartQOS},
	{0x100, core.NoDecay},
	{0x200, core.UsageFactorSafe},
	{0x400, core.Relative},
}

// preemptMode is Slurm's number of how jobs are preempted.
func preemptMode(n int64) core.PreemptMode {
	switch {
	case n&0x4000 != 0:
		return core.PreemptWithin
	case n&0x1 != 0:
		return core.PreemptSuspend
	case n&0x2 != 0:
		return core.PreemptRequeue
	case n&0x8 != 0:
		return core.PreemptCancel
	}
	return core.PreemptDefault
}

func (p *reader) qosRow(r *sqldump.Row) error {
	n := numbers{r: r}
	row := qosRow{id: n.int("id", 0), deleted: n.int("deleted", 0) != 0, preempt: r.Text("preempt")}
	q := &row.qos
	q.Name, q.Description = core.QOSName(r.Text("name")), r.Text("description")
	q.Priority = uint32(clamp(n.int("priority", 0)))
	flags := clamp(n.int("flags", 0))
	for _, f := range qosFlags {
		if flags&f.bit != 0 {
			q.Flags |= f.flag
		}
	}
	q.Limits = core.Limits{
		GrpJobs: n.limit("grp_jobs"), GrpSubmit: n.limit("grp_submit_jobs"), GrpJobsAccrue: n.limit("grp_jobs_accrue"),
		GrpWall: n.limit("grp_wall"), MaxJobs: n.limit("max_jobs_per_user"), MaxSubmit: n.limit("max_submit_jobs_per_user"),
		MaxJobsAccrue: n.limit("max_jobs_accrue_pu"), MaxWall: n.limit("max_wall_duration_per_job"),
		MinPrioThreshold: n.limit("min_prio_thresh"),
	}
	q.MaxJobsPerProject, q.MaxSubmitPerProject = n.limit("max_jobs_pa"), n.limit("max_submit_jobs_pa")
	q.MaxAccruePerProject = n.limit("max_jobs_accrue_pa")
	if f := n.float("usage_factor", 1); f != 1 {
		q.UsageFactor = &f
	}
	q.UsageThreshold, q.LimitFactor = max(0, n.float("usage_thres", 0)), max(0, n.float("limit_factor", 0))
	q.PreemptMode = preemptMode(n.int("preempt_mode", 0))
	q.Grace = core.Seconds(clamp(n.int("grace_time", 0)))
	q.PreemptExempt = core.Seconds(clamp(n.int("preempt_exempt_time", 0)))
	p.qos = append(p.qos, row)
	to := &rowQOS{}
	for column, into := range to.columns() {
		p.later(r, column, into)
	}
	i := len(p.qos) - 1
	p.pending = append(p.pending, func() error { to.put(&p.qos[i].qos); return nil })
	return errors.Join(n.err, need(r, "id", "name"))
}

// rowQOS holds the resources of a QOS until its place in the list is fixed.
type rowQOS struct{ q core.QOS }

func (t *rowQOS) columns() map[string]*core.TRES {
	l := &t.q.Limits
	return map[string]*core.TRES{
		"grp_tres": &l.GrpTRES, "grp_tres_mins": &l.GrpTRESMins, "grp_tres_run_mins": &l.GrpTRESRunMins,
		"max_tres_pj": &l.MaxTRESPerJob, "max_tres_pn": &l.MaxTRESPerNode, "max_tres_mins_pj": &l.MaxTRESMinsPerJob,
		"max_tres_pa": &t.q.MaxTRESPerProject, "max_tres_pu": &t.q.MaxTRESPerUser,
		"max_tres_run_mins_pa": &t.q.MaxRunMinsPerAcct, "max_tres_run_mins_pu": &t.q.MaxRunMinsPerUser,
		"min_tres_pj": &t.q.MinTRESPerJob,
	}
}

func (t *rowQOS) put(q *core.QOS) {
	l, from := &q.Limits, &t.q.Limits
	l.GrpTRES, l.GrpTRESMins, l.GrpTRESRunMins = from.GrpTRES, from.GrpTRESMins, from.GrpTRESRunMins
	l.MaxTRESPerJob, l.MaxTRESPerNode, l.MaxTRESMinsPerJob = from.MaxTRESPerJob, from.MaxTRESPerNode,
		from.MaxTRESMinsPerJob
	q.MaxTRESPerProject, q.MaxTRESPerUser = t.q.MaxTRESPerProject, t.q.MaxTRESPerUser
	q.MaxRunMinsPerAcct, q.MaxRunMinsPerUser = t.q.MaxRunMinsPerAcct, t.q.MaxRunMinsPerUser
	q.MinTRESPerJob = t.q.MinTRESPerJob
}

// clamp makes Slurm's marks for "none" a zero.
func clamp(n int64) int64 {
	if n < 0 || n >= noVal {
		return 0
	}
	return n
}

// build makes the records of core of what pass one has read.
func (p *reader) build(name string) (*Database, error) {
	c := p.clusters[name]
	db := &Database{
		Cluster: name, associations: map[int64]*association{}, qosNames: map[int64]core.QOSName{},
		factors: map[core.QOSName]float64{}, tres: p.tres, wckeys: c.wckeys, usage: c.usage, rolled: c.rolled,
		stepInfo: c.stepInfo, repeated: map[int64]int{},
	}
	if len(p.tres) == 0 {
		return nil, errors.New("the dump has no tres_table: dump the whole database")
	}
	db.count(c)
	for i := range p.qos {
		db.qosNames[p.qos[i].id] = p.qos[i].qos.Name
		if f := p.qos[i].qos.UsageFactor; f != nil {
			db.factors[p.qos[i].qos.Name] = *f
		}
	}
	live := map[int64]bool{}
	for i := range p.qos {
		q := &p.qos[i]
		if q.deleted {
			continue
		}
		live[q.id] = true
		for _, id := range idList(q.preempt) {
			if n := db.qosNames[id]; n != "" {
				q.qos.Preempt = append(q.qos.Preempt, n)
			}
		}
		slices.Sort(q.qos.Preempt)
		db.QOS = append(db.QOS, q.qos)
	}
	slices.SortFunc(db.QOS, func(a, b core.QOS) int { return cmp.Compare(a.Name, b.Name) })
	db.projects(p, c, live)
	db.people(p, c)
	for _, what := range []string{"node events", "reservations"} {
		if n := c.other[what]; n > 0 {
			db.Left = append(db.Left, Left{what, fmt.Sprint(n), leftWhy[what]})
		}
	}
	return db, nil
}

var leftWhy = map[string]string{
	"node events":  "when nodes were down is history of nodes that are not here yet",
	"reservations": "make those that are still to come again with scontrol create reservation",
}

// count sorts what is known of jobs and finds ids that several rows have.
func (db *Database) count(c *cluster) {
	slices.SortFunc(c.jobs, func(a,
		b jobKey,
	) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.index, b.index))
	})
	for i := range c.jobs {
		if i > 0 && c.jobs[i].id == c.jobs[i-1].id {
			db.repeated[c.jobs[i].id] = max(db.repeated[c.jobs[i].id], 1) + 1
		}
	}
	slices.SortStableFunc(db.stepInfo, func(a, b stepInfo) int { return cmp.Compare(a.index, b.index) })
	db.Counts.Unfinished, db.Counts.MaxJob, db.Counts.Steps = c.open, core.JobID(c.max), c.steps
}

// rootAccount is the account at the top of Slurm's tree. Here nothing stands above the first projects.
const rootAccount = "root"

// projects makes the tree of accounts with their members.
func (db *Database) projects(p *reader, c *cluster, live map[int64]bool) {
	top := map[string]*association{}
	for _, a := range c.assocs {
		db.associations[a.id] = a
		if a.user == "" && !a.deleted {
			top[a.account] = a
		}
	}
	byName := map[string]*core.Project{}
	for name, a := range top {
		if name == rootAccount {
			continue
		}
		pr := &core.Project{Name: core.ProjectName(name)}
		if known := p.accounts[name]; known != nil {
			*pr = *known
		}
		if a.parent != rootAccount {
			pr.Parent = core.ProjectName(a.parent)
		}
		pr.Shares, pr.Assoc = shares(a.shares), db.assocOf(a, top, live)
		if a.parent == rootAccount && len(pr.Assoc.QOS) == 0 { // nothing is above it here
			pr.Assoc.QOS = db.qosOf(db.effective(a, top, 0), live)
		}
		byName[name] = pr
	}
	slices.SortFunc(c.assocs, func(a, b *association) int { return cmp.Compare(a.id, b.id) })
	for _, a := range c.assocs {
		if a.user == "" || a.deleted {
			continue
		}
		db.member(byName[a.account], a, top, live)
	}
	for _, x := range p.coords {
		db.coordinator(byName[x[0]], x[1])
	}
	for _, pr := range byName {
		slices.SortFunc(pr.Members, func(a, b core.Member) int { return cmp.Compare(a.User, b.User) })
		db.Projects = append(db.Projects, *pr)
	}
	slices.SortFunc(db.Projects, func(a, b core.Project) int { return cmp.Compare(a.Name, b.Name) })
}

func (db *Database) member(pr *core.Project, a *association, top map[string]*association, live map[int64]bool) {
	switch {
	case pr == nil: // of the account root: everybody who is an administrator there is one here
		return
	case a.partition != "":
		db.Left = append(db.Left, Left{
			"association", fmt.Sprintf("%s in %s, partition %s", a.user, a.account, a.partition),
			"associations are not of one partition here; its usage counts for the user's in the account",
		})
		if slices.ContainsFunc(pr.Members, func(m core.Member) bool { return string(m.User) == a.user }) {
			return
		}
		pr.Members = append(pr.Members, core.Member{User: core.UserName(a.user), Role: core.RoleUser})
		return
	}
	m := core.Member{User: core.UserName(a.user), Role: core.RoleUser, Shares: shares(a.shares)}
	m.Assoc = db.assocOf(a, top, live)
	if i := slices.IndexFunc(pr.Members, func(o core.Member) bool { return o.User == m.User }); i >= 0 {
		pr.Members[i] = m // it was there for a partition alone
		return
	}
	pr.Members = append(pr.Members, m)
}

func (db *Database) coordinator(pr *core.Project, user string) {
	if pr == nil {
		return
	}
	for i := range pr.Members {
		if string(pr.Members[i].User) == user {
			pr.Members[i].Role = core.RoleManager
			return
		}
	}
	pr.Members = append(pr.Members, core.Member{User: core.UserName(user), Role: core.RoleManager})
}

// slurmParent is "Fairshare=parent" among shares.
const slurmParent = 0x7fffffff

func shares(n int64) int32 {
	switch {
	case n == slurmParent:
		return core.SharesParent
	case n < 0:
		return 0
	}
	return int32(min(n, slurmParent-1))
}

func (db *Database) assocOf(a *association, top map[string]*association, live map[int64]bool) core.Association {
	out := core.Association{Limits: a.limits, Priority: uint32(clamp(a.priority))}
	if len(idList(a.qos)) > 0 || strings.Trim(a.delta, ",") != "" {
		out.QOS = db.qosOf(db.effective(a, top, 0), live)
	}
	if live[a.defaultQOS] {
		out.DefaultQOS = db.qosNames[a.defaultQOS]
	}
	return out
}

func (db *Database) qosOf(ids []int64, live map[int64]bool) (names []core.QOSName) {
	for _, id := range ids {
		if live[id] {
			names = append(names, db.qosNames[id])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// effective is the list of QOS that an association has: its own, or that above it, with what it adds and takes away.
func (db *Database) effective(a *association, top map[string]*association, depth int) []int64 {
	const deepest = 100 // a dump may hold circles
	if own := idList(a.qos); len(own) > 0 {
		return own
	}
	up := top[a.parent]
	if a.user != "" {
		up = top[a.account]
	}
	if up == nil || up == a || depth > deepest {
		return applyDelta(nil, a.delta)
	}
	return applyDelta(db.effective(up, top, depth+1), a.delta)
}

// people makes the users, with the account that is theirs where they name none.
func (db *Database) people(p *reader, c *cluster) {
	defaults := map[string]core.ProjectName{}
	first := map[string]core.ProjectName{}
	for _, a := range c.assocs {
		if a.user == "" || a.deleted || a.account == rootAccount {
			continue
		}
		if _, ok := first[a.user]; !ok {
			first[a.user] = core.ProjectName(a.account)
		}
		if a.isDefault {
			defaults[a.user] = core.ProjectName(a.account)
		}
	}
	for _, row := range p.users {
		d := cmp.Or(defaults[row.name], first[row.name])
		if d == "" && row.name == "root" {
			continue // who is an administrator anyway
		}
		u := core.User{
			Name: core.UserName(row.name), UnixName: row.name, Role: core.RoleUser, Default: d,
			WCKeys: c.ofUser[row.name], DefaultWCKey: c.defaults[row.name],
		}
		slices.Sort(u.WCKeys)
		switch row.level {
		case 2:
			db.Left = append(db.Left, Left{
				"admin level", row.name + ": Operator",
				"there are administrators and coordinators here, and nobody between; the user gets neither right",
			})
		case 3:
			u.Role = core.RoleAdmin
		}
		db.Users = append(db.Users, u)
	}
	slices.SortFunc(db.Users, func(a, b core.User) int { return cmp.Compare(a.Name, b.Name) })
}
