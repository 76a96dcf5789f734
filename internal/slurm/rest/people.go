package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

// accounting is a call of slurmdb.
type accounting struct{ *Call }

// inDB makes a handler of slurmdb one of the table.
func inDB(h func(accounting) (*schema.Record, error)) func(*Call) (*schema.Record, error) {
	return func(c *Call) (*schema.Record, error) { return h(accounting{c}) }
}

// books are the records of accounting, as the caller sees them.
type books struct {
	policy  *core.Policy
	users   []core.User
	cluster string
}

// books reads the records, and adds what Slurm has without anybody's doing: the account root and the QOS normal.
func (c accounting) books() (*books, error) {
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	policy, err := c.api.Client.Policy(c.Context)
	if err != nil {
		return nil, err
	}
	users, err := c.api.Client.Users(c.Context)
	if err != nil {
		return nil, err
	}
	b := &books{policy: policy, users: users.Users, cluster: info.Name}
	if b.account("root") == nil {
		policy.Projects = append(policy.Projects, core.Project{Name: "root", ID: rootID})
	}
	root := b.account("root")
	if root.Description = cmp.Or(root.Description, "default root account"); root.Member("root").Role == core.RoleNone {
		root.Members = append(root.Members, core.Member{User: "root", ID: rootID + 1, Role: core.RoleAdmin})
	}
	root.Organization = cmp.Or(root.Organization, "root")
	if b.qos("normal") == nil {
		policy.QOS = append([]core.QOS{{Name: "normal", ID: 1, Description: "Normal QOS default"}}, policy.QOS...)
	}
	return b, nil
}

// rootID is the number of the root account's association, where it has no record.
const rootID = 1

func (b *books) account(name string) *core.Project {
	for i := range b.policy.Projects {
		if p := &b.policy.Projects[i]; strings.EqualFold(string(p.Name), name) {
			return p
		}
	}
	return nil
}

func (b *books) qos(name string) *core.QOS {
	for i := range b.policy.QOS {
		if q := &b.policy.QOS[i]; strings.EqualFold(string(q.Name), name) {
			return q
		}
	}
	return nil
}

func (b *books) user(name string) *core.User {
	for i := range b.users {
		if u := &b.users[i]; string(u.Name) == name {
			return u
		}
	}
	return nil
}

// nothingFound is the answer to a request for one record that there is not.
func nothingFound(what, name string) error {
	return fail(http.StatusNotFound, errno.NothingFound, "Nothing found with query",
		"there is no "+what+" "+strconv.Quote(name))
}

func (b *books) short(p *core.Project, m *core.Member) *schema.Record {
	r := schema.New("assoc_short").Set("account", string(p.Name)).Set("cluster", b.cluster).Set("id", small(p.ID))
	if m != nil {
		r.Set("user", string(m.User)).Set("id", small(m.ID))
	}
	return r
}

func (b *books) accountRecord(p *core.Project) *schema.Record {
	coords, assocs := []*schema.Record{}, []*schema.Record{b.short(p, nil)}
	for i := range p.Members {
		m := &p.Members[i]
		assocs = append(assocs, b.short(p, m))
		if m.Role.Rank() >= core.RoleManager.Rank() {
			coords = append(coords, schema.New("coord").Set("name", string(m.User)).Set("direct", true))
		}
	}
	return schema.New("account").Set("name", string(p.Name)).Set("description", p.Description).
		Set("organization", p.Organization).Set("coordinators", coords).Set("associations", assocs)
}

func (b *books) accounts(name string) []*schema.Record {
	list := []*schema.Record{}
	for i := range b.policy.Projects {
		if p := &b.policy.Projects[i]; name == "" || string(p.Name) == name {
			list = append(list, b.accountRecord(p))
		}
	}
	return list
}

func listAccounts(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := []*schema.Record{}
	for _, name := range orAll(words(c.Query, "name")) {
		list = append(list, b.accounts(name)...)
	}
	return schema.New("openapi_accounts_resp").Set("accounts", list), nil
}

// orAll is a list of names; the empty name is all.
func orAll(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

func showAccount(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := b.accounts(c.Path("account_name"))
	if len(list) == 0 {
		return nil, nothingFound("account", c.Path("account_name"))
	}
	return schema.New("openapi_accounts_resp").Set("accounts", list), nil
}

func (b *books) userRecords(name string) []*schema.Record {
	list := []*schema.Record{}
	for i := range b.users {
		u := &b.users[i]
		if name != "" && string(u.Name) != name {
			continue
		}
		level := "None"
		switch {
		case u.Role == core.RoleAdmin:
			level = "Administrator"
		case u.Role.Rank() >= core.RoleManager.Rank():
			level = "Operator"
		}
		assocs, coords := []*schema.Record{}, []*schema.Record{}
		for k := range b.policy.Projects {
			p := &b.policy.Projects[k]
			at := slices.IndexFunc(p.Members, func(m core.Member) bool { return m.User == u.Name })
			if at < 0 {
				continue
			}
			assocs = append(assocs, b.short(p, &p.Members[at]))
			if p.Members[at].Role.Rank() >= core.RoleManager.Rank() {
				coords = append(coords, schema.New("coord").Set("name", string(p.Name)).Set("direct", true))
			}
		}
		list = append(list, schema.New("user").Set("name", string(u.Name)).Set("administrator_level", []string{level}).
			Set("default.account", string(u.Default)).Set("default.wckey", u.DefaultWCKey).Set("associations", assocs).
			Set("coordinators", coords).Set("wckeys", b.keysOf(u)))
	}
	return list
}

func (b *books) keysOf(u *core.User) []*schema.Record {
	list := []*schema.Record{}
	for i, key := range u.WCKeys {
		list = append(list, schema.New("wckey").Set("name", key).Set("user", string(u.Name)).Set("cluster", b.cluster).
			Set("id", i+1))
	}
	return list
}

func listUsers(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := []*schema.Record{}
	for _, name := range orAll(words(c.Query, "name")) {
		list = append(list, b.userRecords(name)...)
	}
	return schema.New("openapi_users_resp").Set("users", list), nil
}

func showUser(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := b.userRecords(c.Path("name"))
	if len(list) == 0 {
		return nil, nothingFound("user", c.Path("name"))
	}
	return schema.New("openapi_users_resp").Set("users", list), nil
}

// limit is a count of a limit; nil is none.
func limit(n *int64) schema.Number {
	if n == nil {
		return schema.Number{}
	}
	return schema.Int(*n)
}

func (b *books) assocRecord(p *core.Project, m *core.Member) *schema.Record {
	a, shares, parent := &p.Assoc, p.Shares, string(p.Parent)
	r := schema.New("assoc").Set("account", string(p.Name)).Set("cluster", b.cluster)
	id := p.ID
	if m != nil {
		a, shares, id, parent = &m.Assoc, m.Shares, m.ID, ""
		r.Set("user", string(m.User))
		if u := b.user(string(m.User)); u != nil {
			r.Set("is_default", u.Default == p.Name)
		}
	} else if parent == "" && p.Name != "root" {
		parent = "root"
	}
	if shares == 0 {
		shares = 1
	}
	qos := make([]string, len(a.QOS))
	for i, q := range a.QOS {
		qos[i] = string(q)
	}
	l := &a.Limits
	return r.Set("id", schema.Either{Until: 40, Old: b.short(p, m), New: small(id)}).Set("parent_account", parent).
		Set("default.qos", string(a.DefaultQOS)).Set("qos", qos).Set("shares_raw", shares).
		Set("priority", schema.Positive(a.Priority)).
		Set("max.jobs.per.count", limit(l.MaxJobs)).Set("max.jobs.per.accruing", limit(l.MaxJobsAccrue)).
		Set("max.jobs.per.submitted", limit(l.MaxSubmit)).Set("max.jobs.per.wall_clock", limit(l.MaxWall)).
		Set("max.jobs.active", limit(l.GrpJobs)).Set("max.jobs.accruing", limit(l.GrpJobsAccrue)).
		Set("max.jobs.total", limit(l.GrpSubmit)).Set("max.tres.total", report.TRESRecords(l.GrpTRES)).
		Set("max.tres.group.minutes", report.TRESRecords(l.GrpTRESMins)).
		Set("max.tres.group.active", report.TRESRecords(l.GrpTRESRunMins)).
		Set("max.tres.minutes.total", report.TRESRecords(l.MaxTRESRunMins)).
		Set("max.tres.minutes.per.job", report.TRESRecords(l.MaxTRESMinsPerJob)).
		Set("max.tres.per.job", report.TRESRecords(l.MaxTRESPerJob)).
		Set("max.tres.per.node", report.TRESRecords(l.MaxTRESPerNode)).
		Set("max.per.account.wall_clock", limit(l.GrpWall)).Set("min.priority_threshold", limit(l.MinPrioThreshold))
}

// assocs lists the associations of accounts and users; empty lists are all.
func (b *books) assocs(accounts, users []string) []*schema.Record {
	list := []*schema.Record{}
	for i := range b.policy.Projects {
		p := &b.policy.Projects[i]
		if len(accounts) > 0 && !has(accounts, string(p.Name)) {
			continue
		}
		if len(users) == 0 {
			list = append(list, b.assocRecord(p, nil))
		}
		for k := range p.Members {
			if m := &p.Members[k]; len(users) == 0 || has(users, string(m.User)) {
				list = append(list, b.assocRecord(p, m))
			}
		}
	}
	return list
}

// chosen are the associations that the parameters of a call choose.
func (c accounting) chosen(b *books) []*schema.Record {
	if list := words(c.Query, "cluster"); len(list) > 0 && !has(list, b.cluster) {
		return nil
	}
	return b.assocs(words(c.Query, "account"), words(c.Query, "user"))
}

func listAssocs(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_assocs_resp").Set("associations", c.chosen(b)), nil
}

func showAssoc(c accounting) (*schema.Record, error) {
	b, err := c.books()
	if err != nil {
		return nil, err
	}
	list := c.chosen(b)
	if len(list) == 0 {
		return nil, nothingFound("association of", c.Query.Get("account")+" "+c.Query.Get("user"))
	}
	return schema.New("openapi_assocs_resp").Set("associations", list[:1]), nil
}
