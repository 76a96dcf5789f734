package rest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/schema"
)

// draft is a change of accounting: users that are made first, the parts of the policy that change as a whole or not at
// all, and what is set of users afterwards.
type draft struct {
	*books
	c        accounting
	fresh    []core.User
	projects map[core.ProjectName]bool
	levels   map[core.QOSName]bool // QOS
	after    []func() error
	records  int // put so far
}

// maxRecords bounds the records of one change: each is looked for among all.
const maxRecords = 10_000

// another counts a record that is put.
func (d *draft) another() error {
	if d.records++; d.records > maxRecords {
		return core.Errorf(core.TooLarge, "the request changes more than %d records", maxRecords).
			Because("request_too_large")
	}
	return nil
}

func (c accounting) draft() (*draft, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	return &draft{books: b, c: c, projects: map[core.ProjectName]bool{}, levels: map[core.QOSName]bool{}}, nil
}

// commit makes the change.
func (d *draft) commit() error {
	for i := range d.fresh {
		if err := d.c.api.Client.NewUser(d.c.Context, &d.fresh[i]); err != nil {
			return err
		}
	}
	p := core.Policy{}
	for i := range d.policy.Projects {
		if d.projects[d.policy.Projects[i].Name] {
			p.Projects = append(p.Projects, d.policy.Projects[i])
		}
	}
	for i := range d.policy.QOS {
		if d.levels[d.policy.QOS[i].Name] {
			p.QOS = append(p.QOS, d.policy.QOS[i])
		}
	}
	if len(p.Projects)+len(p.QOS) > 0 {
		if _, err := d.c.api.Client.ApplyPolicy(d.c.Context, &client.ApplyPolicy{Policy: p, Force: true}); err != nil {
			return err
		}
	}
	for _, do := range d.after {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func missing(name string) error {
	return fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing", name+" is not given")
}

// putAccount makes an account, or changes its texts.
func (d *draft) putAccount(in schema.Input) error {
	if err := d.another(); err != nil {
		return err
	}
	name := strings.ToLower(in.Text("name"))
	if name == "" {
		return missing("account name")
	}
	p := d.account(name)
	if p == nil {
		d.policy.Projects = append(d.policy.Projects, core.Project{Name: core.ProjectName(name)})
		p = d.account(name)
		p.Description, p.Organization = name, name
	}
	if in.Has("description") {
		p.Description = in.Text("description")
	}
	if in.Has("organization") {
		p.Organization = in.Text("organization")
	}
	d.unusedOf(in, "coordinators", "flags")
	d.projects[p.Name] = true
	return nil
}

// unusedOf warns of those fields that a record has and that are not taken over.
func (d *draft) unusedOf(in schema.Input, names ...string) {
	for _, n := range names {
		if len(in.List(n))+len(in.Records(n)) > 0 {
			d.c.unused(d.c.Endpoint.Path, n)
		}
	}
}

// levelRole is the role of a level of administrators of Slurm's.
func levelRole(words []string) (*core.Role, error) {
	role := core.RoleUser
	for _, w := range words {
		switch strings.ToLower(w) {
		case "administrator", "admin":
			role = core.RoleAdmin
		case "operator":
			role = core.RoleManager
		case "none", "not set":
		default:
			return nil, badField("administrator_level", w)
		}
	}
	return &role, nil
}

// putUser makes a user, or changes level, default account and wckeys.
func (d *draft) putUser(in schema.Input) error {
	if err := d.another(); err != nil {
		return err
	}
	name := core.UserName(in.Text("name"))
	if name == "" {
		return missing("user name")
	}
	if old := in.Text("old_name"); old != "" && old != string(name) {
		return fail(http.StatusBadRequest, 2036, "Requested operation not supported on this system",
			"old_name: users are not renamed here")
	}
	d.unusedOf(in, "coordinators", "flags")
	change := &client.UpdateUser{}
	if list := in.List("administrator_level"); len(list) > 0 {
		role, err := levelRole(list)
		if err != nil {
			return err
		}
		change.Role = role
	}
	if a := in.Text("default.account"); a != "" {
		project := core.ProjectName(a)
		change.Default = &project
	}
	if k := in.Text("default.wckey"); k != "" {
		change.DefaultWCKey = &k
	}
	if d.user(string(name)) == nil {
		d.fresh = append(d.fresh, core.User{Name: name, UnixName: string(name)})
		d.users = append(d.users, core.User{Name: name})
	}
	for _, a := range in.Records("associations") {
		if err := d.putAssoc(withUser(a, string(name))); err != nil {
			return err
		}
	}
	for _, k := range in.Records("wckeys") {
		if err := d.putKey(withUser(k, string(name))); err != nil {
			return err
		}
	}
	if *change != (client.UpdateUser{}) {
		d.after = append(d.after, func() error { return d.c.api.Client.UpdateUser(d.c.Context, name, change) })
	}
	return nil
}

func withUser(in schema.Input, name string) schema.Input {
	in["user"] = name
	return in
}

// putAssoc makes or changes the association of an account, or of a user in one.
func (d *draft) putAssoc(in schema.Input) error {
	if err := d.another(); err != nil {
		return err
	}
	account, user := strings.ToLower(in.Text("account")), in.Text("user")
	if account == "" {
		return missing("account")
	}
	if cluster := in.Text("cluster"); cluster != "" && cluster != d.cluster {
		return fail(http.StatusBadRequest, 2036, "Requested operation not supported on this system",
			"cluster "+strconv.Quote(cluster)+": this server keeps the records of one cluster, its own")
	}
	if part := in.Text("partition"); part != "" {
		return fail(http.StatusBadRequest, 2036, "Requested operation not supported on this system",
			"partition "+strconv.Quote(part)+": associations here are of all partitions")
	}
	p := d.account(account)
	if p == nil {
		return fail(http.StatusBadRequest, 2045, "Invalid account or account/partition combination specified",
			"there is no account "+strconv.Quote(account))
	}
	d.projects[p.Name] = true
	if user == "" {
		if up := in.Text("parent_account"); up != "" {
			if p.Parent = core.ProjectName(up); up == "root" {
				p.Parent = ""
			}
		}
		if err := readShares(in, &p.Shares); err != nil {
			return err
		}
		return readAssoc(in, &p.Assoc)
	}
	at := slices.IndexFunc(p.Members, func(m core.Member) bool { return string(m.User) == user })
	if at < 0 {
		if d.user(user) == nil {
			return fail(http.StatusBadRequest, 2010, "Invalid user id", "there is no user "+strconv.Quote(user))
		}
		p.Members = append(p.Members, core.Member{User: core.UserName(user), Role: core.RoleUser})
		slices.SortFunc(p.Members, func(a, b core.Member) int { return strings.Compare(string(a.User), string(b.User)) })
		at = slices.IndexFunc(p.Members, func(m core.Member) bool { return string(m.User) == user })
	}
	if err := readShares(in, &p.Members[at].Shares); err != nil {
		return err
	}
	return readAssoc(in, &p.Members[at].Assoc)
}

func readShares(in schema.Input, to *int32) error {
	n := in.Number("shares_raw")
	switch {
	case !n.IsSet():
	case n.Whole() < 0 || n.Whole() > core.SharesParent:
		return badField("shares_raw", strconv.FormatInt(n.Whole(), 10))
	default:
		*to = int32(n.Whole())
	}
	return nil
}

// readCount takes a limit over; an infinite one is none, and so is -1, as sacctmgr has it.
func readCount(in schema.Input, name string, to **int64) {
	switch n := in.Number(name); {
	case n.IsInfinite(), n.Whole() < 0:
		*to = nil
	case n.IsSet():
		v := n.Whole()
		*to = &v
	}
}

// readTRES takes amounts over; one below 0 is no limit.
func readTRES(in schema.Input, name string, to *core.TRES) {
	if !in.Has(name) {
		return
	}
	var list []core.Amount
	for _, t := range in.Records(name) {
		kind := t.Text("type")
		if n := t.Text("name"); n != "" {
			kind += "/" + n
		}
		if n := t.Number("count"); kind != "" && !n.IsInfinite() && n.Whole() >= 0 {
			list = append(list, core.Amount{Name: strings.ToLower(kind), Count: n.Whole()})
		}
	}
	*to = core.TRESOf(list...)
}

func readAssoc(in schema.Input, a *core.Association) error {
	if in.Has("default.qos") {
		a.DefaultQOS = core.QOSName(in.Text("default.qos"))
	}
	if list := in.List("qos"); in.Has("qos") {
		a.QOS = *named[core.QOSName](list)
	}
	if n := in.Number("priority"); n.IsSet() {
		a.Priority = uint32(small(max(0, n.Whole())))
	}
	l := &a.Limits
	readCount(in, "max.jobs.per.count", &l.MaxJobs)
	readCount(in, "max.jobs.per.accruing", &l.MaxJobsAccrue)
	readCount(in, "max.jobs.per.submitted", &l.MaxSubmit)
	readCount(in, "max.jobs.per.wall_clock", &l.MaxWall)
	readCount(in, "max.jobs.active", &l.GrpJobs)
	readCount(in, "max.jobs.accruing", &l.GrpJobsAccrue)
	readCount(in, "max.jobs.total", &l.GrpSubmit)
	readCount(in, "max.per.account.wall_clock", &l.GrpWall)
	readCount(in, "min.priority_threshold", &l.MinPrioThreshold)
	readTRES(in, "max.tres.total", &l.GrpTRES)
	readTRES(in, "max.tres.group.minutes", &l.GrpTRESMins)
	readTRES(in, "max.tres.group.active", &l.GrpTRESRunMins)
	readTRES(in, "max.tres.minutes.total", &l.MaxTRESRunMins)
	readTRES(in, "max.tres.minutes.per.job", &l.MaxTRESMinsPerJob)
	readTRES(in, "max.tres.per.job", &l.MaxTRESPerJob)
	readTRES(in, "max.tres.per.node", &l.MaxTRESPerNode)
	return nil
}

// putQOS makes or changes a QOS.
func (d *draft) putQOS(in schema.Input) error {
	if err := d.another(); err != nil {
		return err
	}
	name := strings.ToLower(in.Text("name"))
	if name == "" {
		return missing("qos name")
	}
	q := d.qos(name)
	if q == nil {
		d.policy.QOS = append(d.policy.QOS, core.QOS{Name: core.QOSName(name)})
		q = d.qos(name)
	}
	d.levels[q.Name] = true
	if in.Has("description") {
		q.Description = in.Text("description")
	}
	if in.Has("flags") {
		q.Flags = 0
		for _, w := range in.List("flags") {
			f, ok := qosWords[strings.ToUpper(w)]
			if !ok && w != "NOT_SET" && w != "ADD" {
				return badField("flags", w)
			}
			q.Flags |= f
		}
	}
	if n := in.Number("priority"); n.IsSet() {
		q.Priority = uint32(small(max(0, n.Whole())))
	}
	if n := in.Number("usage_factor"); n.IsSet() {
		f := n.Value()
		q.UsageFactor = &f
	}
	if n := in.Number("usage_threshold"); n.IsSet() {
		q.UsageThreshold = n.Value()
	}
	if n := in.Number("limits.factor"); n.IsSet() {
		q.LimitFactor = n.Value()
	}
	if in.Has("limits.grace_time") {
		q.Grace = core.Seconds(in.Number("limits.grace_time").Whole())
	}
	if n := in.Number("preempt.exempt_time"); n.IsSet() {
		q.PreemptExempt = core.Seconds(n.Whole())
	}
	if in.Has("preempt.list") {
		q.Preempt = *named[core.QOSName](in.List("preempt.list"))
	}
	for _, w := range in.List("preempt.mode") {
		switch strings.ToUpper(w) {
		case "DISABLED", "GANG":
		case "SUSPEND", "REQUEUE", "CANCEL":
			q.PreemptMode = core.PreemptMode(strings.ToLower(w))
		default:
			return badField("preempt.mode", w)
		}
	}
	readQOSLimits(in, q)
	return nil
}

func readQOSLimits(in schema.Input, q *core.QOS) {
	l := &q.Limits
	readCount(in, "limits.max.active_jobs.accruing", &l.GrpJobsAccrue)
	readCount(in, "limits.max.active_jobs.count", &l.GrpJobs)
	readCount(in, "limits.max.jobs.count", &l.GrpSubmit)
	readCount(in, "limits.max.wall_clock.per.qos", &l.GrpWall)
	readCount(in, "limits.max.wall_clock.per.job", &l.MaxWall)
	readCount(in, "limits.max.jobs.active_jobs.per.account", &q.MaxJobsPerProject)
	readCount(in, "limits.max.jobs.active_jobs.per.user", &l.MaxJobs)
	readCount(in, "limits.max.jobs.per.account", &q.MaxSubmitPerProject)
	readCount(in, "limits.max.jobs.per.user", &l.MaxSubmit)
	readCount(in, "limits.max.accruing.per.account", &q.MaxAccruePerProject)
	readCount(in, "limits.max.accruing.per.user", &l.MaxJobsAccrue)
	readCount(in, "limits.min.priority_threshold", &l.MinPrioThreshold)
	readTRES(in, "limits.max.tres.total", &l.GrpTRES)
	readTRES(in, "limits.max.tres.minutes.total", &l.GrpTRESMins)
	readTRES(in, "limits.max.tres.minutes.per.qos", &l.GrpTRESRunMins)
	readTRES(in, "limits.max.tres.minutes.per.job", &l.MaxTRESMinsPerJob)
	readTRES(in, "limits.max.tres.minutes.per.account", &q.MaxRunMinsPerAcct)
	readTRES(in, "limits.max.tres.minutes.per.user", &q.MaxRunMinsPerUser)
	readTRES(in, "limits.max.tres.per.account", &q.MaxTRESPerProject)
	readTRES(in, "limits.max.tres.per.job", &l.MaxTRESPerJob)
	readTRES(in, "limits.max.tres.per.node", &l.MaxTRESPerNode)
	readTRES(in, "limits.max.tres.per.user", &q.MaxTRESPerUser)
	readTRES(in, "limits.min.tres.per.job", &q.MinTRESPerJob)
}

// putKey gives a user a wckey.
func (d *draft) putKey(in schema.Input) error {
	if err := d.another(); err != nil {
		return err
	}
	u, key := d.user(in.Text("user")), in.Text("name")
	if u == nil || key == "" {
		return missing("user or name of a wckey")
	}
	if slices.Contains(u.WCKeys, key) {
		return nil
	}
	u.WCKeys = append(slices.Clone(u.WCKeys), key)
	slices.Sort(u.WCKeys)
	keys, name := u.WCKeys, u.Name
	d.after = append(d.after, func() error {
		return d.c.api.Client.UpdateUser(d.c.Context, name, &client.UpdateUser{WCKeys: &keys})
	})
	return nil
}
