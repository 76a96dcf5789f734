package sreport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// facts are what a report is made from.
type facts struct {
	cluster string
	usage   *client.Usage
	tree    map[core.ProjectName]core.ProjectName // parents of accounts
	names   []string                              // of the resources reported on
}

// load asks the server; ok is false when a complaint was made. Usage of other clusters there is none.
func (s *session) load(c *condition, q client.UsageQuery) (f *facts, ok bool) {
	fail := func(err error) (*facts, bool) {
		s.w.Errorf("%s", slurm.ErrorText(err))
		return nil, false
	}
	var err error
	if s.c == nil {
		if s.c, err = s.w.Client(); err != nil {
			return fail(err)
		}
	}
	info, err := s.c.Cluster(s.ctx)
	if err != nil {
		return fail(err)
	}
	q.Start, q.End = c.start, c.end
	f = &facts{cluster: info.Name, tree: map[core.ProjectName]core.ProjectName{}}
	if f.usage, err = s.c.Usage(s.ctx, q); err != nil {
		return fail(err)
	}
	if f.names, ok = s.tresNames(f.usage.Cluster.Capacity); !ok {
		return nil, false
	}
	policy, err := s.c.Policy(s.ctx)
	if err != nil {
		return fail(err)
	}
	for i := range policy.Projects {
		f.tree[policy.Projects[i].Name] = policy.Projects[i].Parent
	}
	ours := slices.Concat(s.clusters, c.values["clusters"])
	if len(ours) > 0 && !c.flags["all_clusters"] && !slices.ContainsFunc(ours, func(n string) bool {
		return strings.EqualFold(n, info.Name) || strings.EqualFold(n, "all")
	}) {
		f.usage = &client.Usage{Start: c.start, End: c.end}
	}
	return f, true
}

// rows makes a row of each resource of what was used.
func (f *facts) rows(r row, used core.TRES) (out []row) {
	r.cluster = f.cluster
	r.energyTotal = f.usage.Cluster.Reported.Count("energy")
	for _, name := range f.names {
		one := r
		one.tres, one.used, one.energy = name, used.Count(name), used.Count("energy")
		one.total = f.usage.Cluster.Reported.Count(name)
		out = append(out, one)
	}
	return out
}

// sums adds usage up by a key of rows; rows for which there is none are left out.
func sums[K comparable](list []client.UsageRow, by func(r *client.UsageRow) (K, bool)) map[K]core.TRES {
	out := map[K]core.TRES{}
	for i := range list {
		if k, ok := by(&list[i]); ok {
			out[k] = out[k].Plus(list[i].TRES, 1)
		}
	}
	return out
}

// pair is a key of two names.
type pair struct{ first, second string }

func sortedPairs(m map[pair]core.TRES) []pair {
	keys := make([]pair, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b pair) int {
		return cmp.Or(strings.Compare(a.first, b.first), strings.Compare(a.second, b.second))
	})
	return keys
}

const clusterReports = `"AccountUtilizationByUser", "UserUtilizationByAccount", "UserUtilizationByWckey", ` +
	`"Utilization", and "WCKeyUtilizationByUser"`

func (s *session) clusterReport(args []string) int {
	name := args[0]
	begins := func(word string, least int) bool { // more letters than the word has do no harm
		return match(name[:min(len(name), len(word))], word, least)
	}
	switch {
	case begins("AccountUtilizationByUser", 1):
		return s.usageReport(args[1:], "Cluster/Account/User Utilization", "Cluster,Account,Login,Proper", true,
			(*facts).byAccount)
	case begins("UserUtilizationByAccount", 18):
		return s.usageReport(args[1:], "Cluster/User/Account Utilization", "Cluster,Login,Proper,Account", true,
			(*facts).byUserAccount)
	case begins("UserUtilizationByWckey", 18):
		return s.usageReport(args[1:], "Cluster/User/WCKey Utilization", "Cluster,Login,Proper,WCKey", false,
			(*facts).byUserWCKey)
	case begins("Utilization", 2):
		return s.utilReport(args[1:])
	case begins("WCKeyUtilizationByUser", 1):
		return s.usageReport(args[1:], "Cluster/WCKey/User Utilization", "Cluster,WCKey,Login,Proper", false,
			(*facts).byWCKey)
	}
	return s.refuseReport(name, "cluster", clusterReports)
}

// usageReport is a report by accounts, users or WCKeys.
func (s *session) usageReport(args []string, title, format string, energy bool,
	rows func(f *facts, c *condition) []row,
) int {
	c := s.parse(clusterWords, "clusters", args)
	f, ok := s.load(&c, client.UsageQuery{})
	if !ok {
		return slurm.ExitError
	}
	if len(s.tres) > 0 {
		format += ",TresName"
	}
	format += ",Used"
	if energy && len(s.tres) == 0 {
		format += ",Energy"
	}
	list := rows(f, &c)
	cols := s.columns(&c, s.usageFields(c.flags["tree"]), format)
	widen(cols, map[string]int64{"Used": largest(list, func(r *row) int64 { return r.used })})
	return s.print(&c, title, s.usageUnits("CPU"), true, cols, list)
}

func largest(list []row, of func(r *row) int64) (n int64) {
	for i := range list {
		n = max(n, of(&list[i]))
	}
	return n
}

// parent is the account above one; those that nobody has put below another are below root.
func (f *facts) parent(p core.ProjectName) core.ProjectName {
	if p == "root" {
		return ""
	}
	return cmp.Or(f.tree[p], "root")
}

// under reports whether an account is another or lies below it.
func (f *facts) under(p, top core.ProjectName) bool {
	for range len(f.tree) + 2 {
		if p == top {
			return true
		}
		if p = f.parent(p); p == "" {
			return false
		}
	}
	return false
}

// byAccount lists accounts from root downward, each with its users; what an account used includes those below it.
func (f *facts) byAccount(c *condition) (out []row) {
	users := sums(f.usage.Rows, func(r *client.UsageRow) (pair, bool) {
		return pair{string(r.Project), string(r.User)}, true
	})
	accounts := map[core.ProjectName]core.TRES{}
	below := map[core.ProjectName][]core.ProjectName{}
	for k, used := range users {
		for p, n := core.ProjectName(k.first), 0; p != "" && n < len(f.tree)+2; p, n = f.parent(p), n+1 {
			if _, there := accounts[p]; !there && p != "root" {
				below[f.parent(p)] = append(below[f.parent(p)], p)
			}
			accounts[p] = accounts[p].Plus(used, 1)
		}
	}
	order := sortedPairs(users)
	var walk func(p core.ProjectName, depth int)
	walk = func(p core.ProjectName, depth int) {
		shown := c.has("accounts", string(p))
		if len(c.values["accounts"]) > 0 && shown {
			depth = 0
		}
		if shown && len(c.values["users"]) == 0 {
			out = append(out, f.rows(row{account: string(p), depth: depth}, accounts[p])...)
		}
		for _, k := range order {
			if k.first == string(p) && shown && c.has("users", k.second) {
				out = append(out, f.rows(row{account: k.first, login: k.second, depth: depth + 1}, users[k])...)
			}
		}
		slices.Sort(below[p])
		for _, k := range below[p] {
			walk(k, depth+1)
		}
	}
	if len(accounts) > 0 {
		walk("root", 0)
	}
	return out
}

func (f *facts) byUserAccount(c *condition) (out []row) {
	list := sums(f.usage.Rows, func(r *client.UsageRow) (pair, bool) {
		return pair{string(r.User), string(r.Project)},
			c.has("users", string(r.User)) && c.has("accounts", string(r.Project))
	})
	for _, k := range sortedPairs(list) {
		out = append(out, f.rows(row{login: k.first, account: k.second}, list[k])...)
	}
	return out
}

func (f *facts) byUserWCKey(c *condition) (out []row) {
	list := sums(f.usage.Rows, func(r *client.UsageRow) (pair, bool) {
		return pair{string(r.User), r.WCKey}, r.Jobs > 0 && c.has("users", string(r.User)) && c.has("wckeys", r.WCKey)
	})
	for _, k := range sortedPairs(list) {
		out = append(out, f.rows(row{login: k.first, wckey: k.second}, list[k])...)
	}
	return out
}

// byWCKey lists WCKeys, each with its users.
func (f *facts) byWCKey(c *condition) (out []row) {
	list := sums(f.usage.Rows, func(r *client.UsageRow) (pair, bool) {
		return pair{r.WCKey, string(r.User)}, r.Jobs > 0 && c.has("users", string(r.User)) && c.has("wckeys", r.WCKey)
	})
	keys := sortedPairs(list)
	for i, k := range keys {
		if i == 0 || keys[i-1].first != k.first {
			var all core.TRES
			for _, o := range keys {
				if o.first == k.first {
					all = all.Plus(list[o], 1)
				}
			}
			out = append(out, f.rows(row{wckey: k.first}, all)...)
		}
		out = append(out, f.rows(row{wckey: k.first, login: k.second}, list[k])...)
	}
	return out
}

// utilReport tells what became of the time of all nodes.
func (s *session) utilReport(args []string) int {
	c := s.parse(clusterWords, "clusters", args)
	if slices.Contains(s.tres, "node") {
		fmt.Fprintf(s.w.Err, "%s: fatal: TRES node usage is no longer reported in the Cluster Utilization report.  "+
			"Please use TRES CPU instead.\n", s.w.Name)
		return slurm.ExitError
	}
	f, ok := s.load(&c, client.UsageQuery{})
	if !ok {
		return slurm.ExitError
	}
	format := "Cluster,Allocated,Down,PlannedDown,Idle,Reserved,Reported"
	if len(s.tres) > 0 {
		format = "Cluster,TresName,Allocated,Down,PlannedDown,Idle,Reserved,Reported"
	}
	var list []row
	u := &f.usage.Cluster
	for _, name := range f.names {
		if u.Reported.Count("cpu") == 0 {
			break // nothing was there
		}
		x := &utilization{
			count: u.Capacity.Count(name), allocated: u.Allocated.Count(name), down: u.Down.Count(name),
			planned: u.PlannedDown.Count(name), waiting: u.Planned.Count(name), reported: u.Reported.Count(name),
		}
		x.idle = max(0, x.reported-x.allocated-x.down-x.planned-x.waiting)
		list = append(list, row{cluster: f.cluster, tres: name, util: x})
	}
	cols := s.columns(&c, s.utilFields(), format)
	most := func(of func(u *utilization) int64) int64 {
		return largest(list, func(r *row) int64 { return of(r.util) })
	}
	widen(cols, map[string]int64{
		"Allocated":   most(func(u *utilization) int64 { return u.allocated }),
		"Down":        most(func(u *utilization) int64 { return u.down }),
		"PlannedDown": most(func(u *utilization) int64 { return u.planned }),
		"Idle":        most(func(u *utilization) int64 { return u.idle }),
		"Reserved":    most(func(u *utilization) int64 { return u.waiting }),
		"Reported":    most(func(u *utilization) int64 { return u.reported }),
	})
	return s.print(&c, "Cluster Utilization", s.usageUnits("CPU"), false, cols, list)
}

// userReport lists who used most.
func (s *session) userReport(args []string) int {
	name := args[0]
	if !match(name[:min(len(name), 3)], "Top", 1) {
		return s.refuseReport(name, "user", `"Top"`)
	}
	c := s.parse(userWords, "users", args[1:])
	f, ok := s.load(&c, client.UsageQuery{})
	if !ok {
		return slurm.ExitError
	}
	list := sums(f.usage.Rows, func(r *client.UsageRow) (pair, bool) {
		return pair{string(r.User), string(r.Project)},
			c.has("users", string(r.User)) && c.has("accounts", string(r.Project))
	})
	if c.flags["group"] {
		accounts, used := map[string][]string{}, map[pair]core.TRES{}
		for _, k := range sortedPairs(list) {
			accounts[k.first] = append(accounts[k.first], k.second)
		}
		for k, x := range list {
			one := pair{k.first, strings.Join(accounts[k.first], ", ")}
			used[one] = used[one].Plus(x, 1)
		}
		list = used
	}
	keys := sortedPairs(list)
	slices.SortStableFunc(keys, func(a, b pair) int { return cmp.Compare(list[b].Count("cpu"), list[a].Count("cpu")) })
	var rows []row
	for _, k := range keys[:min(len(keys), max(1, c.top))] {
		rows = append(rows, f.rows(row{login: k.first, account: k.second}, list[k])...)
	}
	format := "Cluster,Login,Proper,Account,Used,Energy"
	if len(s.tres) > 0 {
		format = "Cluster,Login,Proper,Account,TresName,Used"
	}
	cols := s.columns(&c, s.usageFields(false), format)
	widen(cols, map[string]int64{"Used": largest(rows, func(r *row) int64 { return r.used })})
	return s.print(&c, fmt.Sprintf("Top %d Users", c.top), s.usageUnits("CPU"), true, cols, rows)
}
