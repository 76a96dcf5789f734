package sacctmgr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
)

// row is one line of any listing: what it is about may be there or not.
type row struct {
	p     *core.Project
	m     *core.Member
	u     *core.User
	q     *core.QOS
	s     *run
	depth int // in the tree of accounts
	text  []string
}

// column is a field of a listing. A negative width is filled on the right.
type column struct {
	name  string // in format=, any case; it may be cut short
	title string
	width int
	value func(r *row) string
}

func limitsOf(r *row) *core.Limits {
	switch {
	case r.q != nil:
		return &r.q.Limits
	case r.m != nil:
		return &r.m.Assoc.Limits
	case r.p != nil:
		return &r.p.Assoc.Limits
	}
	return &core.Limits{}
}

func assocOf(r *row) *core.Association {
	switch {
	case r.m != nil:
		return &r.m.Assoc
	case r.p != nil:
		return &r.p.Assoc
	}
	return &core.Association{}
}

func num(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func wall(n *int64) string {
	if n == nil {
		return ""
	}
	return grammar.FormatClockLimit(*n)
}

// amounts writes resources in the order of their ids: cpu, mem, energy, node, billing, then the rest.
func amounts(t core.TRES) string {
	out := slices.Clone(t)
	rank := func(a core.Amount) int {
		if i := slices.Index([]string{"cpu", "mem", "energy", "node", "billing"}, a.Name); i >= 0 {
			return i
		}
		return 9
	}
	slices.SortStableFunc(out, func(a, b core.Amount) int { return rank(a) - rank(b) })
	parts := make([]string, len(out))
	for i, a := range out {
		unit := ""
		if a.Name == "mem" {
			unit = "M"
		}
		parts[i] = fmt.Sprintf("%s=%d%s", a.Name, a.Count, unit)
	}
	return strings.Join(parts, ",")
}

func of(t core.TRES, name string) string {
	if n, ok := t.Get(name); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

func joined[T ~string](list []T) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = string(v)
	}
	return strings.Join(parts, ",")
}

func seconds(n core.Seconds) string { return grammar.FormatClock(int64(n)) }

// columns are all fields there are.
var columns = []column{
	{"Cluster", "Cluster", 10, func(r *row) string { return r.s.name }},
	{"Account", "Account", 10, func(r *row) string {
		if r.p == nil {
			return ""
		}
		return strings.Repeat(" ", r.depth) + string(r.p.Name)
	}},
	{"User", "User", 10, func(r *row) string {
		switch {
		case r.m != nil:
			return string(r.m.User)
		case r.u != nil:
			return string(r.u.Name)
		}
		return ""
	}},
	{"Partition", "Partition", 10, func(*row) string { return "" }},
	{"Share", "Share", 9, func(r *row) string {
		n := int32(0)
		if r.m != nil {
			n = r.m.Shares
		} else if r.p != nil {
			n = r.p.Shares
		}
		return strconv.Itoa(int(max(1, n)))
	}},
	{"Fairshare", "Share", 9, func(r *row) string { return find("Share").value(r) }},
	{"Priority", "Priority", 10, func(r *row) string {
		if r.q != nil {
			return strconv.Itoa(int(r.q.Priority))
		}
		if p := assocOf(r).Priority; p > 0 {
			return strconv.Itoa(int(p))
		}
		return ""
	}},
	{"GrpJobs", "GrpJobs", 7, func(r *row) string { return num(limitsOf(r).GrpJobs) }},
	{"GrpTRES", "GrpTRES", 13, func(r *row) string { return amounts(limitsOf(r).GrpTRES) }},
	{"GrpNodes", "GrpNodes", 8, func(r *row) string { return of(limitsOf(r).GrpTRES, "node") }},
	{"GrpCPUs", "GrpCPUs", 8, func(r *row) string { return of(limitsOf(r).GrpTRES, "cpu") }},
	{"GrpMem", "GrpMem", 7, func(r *row) string { return of(limitsOf(r).GrpTRES, "mem") }},
	{"GrpJobsAccrue", "GrpJobsAccrue", 13, func(r *row) string { return num(limitsOf(r).GrpJobsAccrue) }},
	{"MaxJobsAccrue", "MaxJobsAccrue", 13, func(r *row) string { return num(limitsOf(r).MaxJobsAccrue) }},
	{"MinPrioThreshold", "MinPrioThresh", 13, func(r *row) string { return num(limitsOf(r).MinPrioThreshold) }},
	{"GrpSubmit", "GrpSubmit", 9, func(r *row) string { return num(limitsOf(r).GrpSubmit) }},
	{"GrpWall", "GrpWall", 11, func(r *row) string { return wall(limitsOf(r).GrpWall) }},
	{"GrpTRESMins", "GrpTRESMins", 13, func(r *row) string { return amounts(limitsOf(r).GrpTRESMins) }},
	{"GrpCPUMins", "GrpCPUMins", 11, func(r *row) string { return of(limitsOf(r).GrpTRESMins, "cpu") }},
	{"GrpTRESRunMins", "GrpTRESRunMins", 13, func(r *row) string { return amounts(limitsOf(r).GrpTRESRunMins) }},
	{"MaxJobs", "MaxJobs", 7, func(r *row) string { return num(limitsOf(r).MaxJobs) }},
	{"MaxTRES", "MaxTRES", 13, func(r *row) string { return amounts(limitsOf(r).MaxTRESPerJob) }},
	{"MaxNodes", "MaxNodes", 8, func(r *row) string { return of(limitsOf(r).MaxTRESPerJob, "node") }},
	{"MaxCPUs", "MaxCPUs", 8, func(r *row) string { return of(limitsOf(r).MaxTRESPerJob, "cpu") }},
	{"MaxTRESPerNode", "MaxTRESPerNode", 14, func(r *row) string { return amounts(limitsOf(r).MaxTRESPerNode) }},
	{"MaxSubmit", "MaxSubmit", 9, func(r *row) string { return num(limitsOf(r).MaxSubmit) }},
	{"MaxWall", "MaxWall", 11, func(r *row) string { return wall(limitsOf(r).MaxWall) }},
	{"MaxTRESMins", "MaxTRESMins", 13, func(r *row) string { return amounts(limitsOf(r).MaxTRESMinsPerJob) }},
	{"MaxCPUMins", "MaxCPUMins", 11, func(r *row) string { return of(limitsOf(r).MaxTRESMinsPerJob, "cpu") }},
	{"QOS", "QOS", 20, func(r *row) string { return joined(r.s.mayUse(r.p, r.m)) }},
	{"QOSLevel", "QOS", 20, func(r *row) string { return joined(r.s.mayUse(r.p, r.m)) }},
	{"DefaultQOS", "Def QOS", 9, func(r *row) string { return string(assocOf(r).DefaultQOS) }},
	{"ParentName", "ParentName", 10, func(r *row) string {
		if r.m != nil || r.p == nil || r.p.Name == "root" {
			return ""
		}
		return orName(string(r.p.Parent), "root")
	}},
	{"Descr", "Descr", 20, func(r *row) string {
		if r.q != nil {
			return r.q.Description
		}
		if r.p.Name == "root" && r.p.Description == "" {
			return "default root account"
		}
		return r.p.Description
	}},
	{"Org", "Org", 20, func(r *row) string {
		if r.p.Name == "root" && r.p.Organization == "" {
			return "root"
		}
		return r.p.Organization
	}},
	{"DefaultAccount", "Def Acct", 10, func(r *row) string { return string(r.u.Default) }},
	{"Admin", "Admin", 9, func(r *row) string {
		if r.u.Role == core.RoleAdmin {
			return "Administrator"
		}
		return "None"
	}},
	{"Coordinators", "Coord Accounts", 20, func(r *row) string {
		var list []string
		for i := range r.s.policy.Projects {
			p := &r.s.policy.Projects[i]
			if r.u != nil {
				if m := member(p, string(r.u.Name)); m != nil && m.Role.Rank() >= core.RoleManager.Rank() {
					list = append(list, string(p.Name))
				}
			} else if r.p == p {
				for _, m := range p.Members {
					if m.Role == core.RoleManager {
						list = append(list, string(m.User))
					}
				}
			}
		}
		return strings.Join(list, ",")
	}},

	{"Name", "Name", 10, func(r *row) string { return string(r.q.Name) }},
	{"GraceTime", "GraceTime", 10, func(r *row) string { return seconds(r.q.Grace) }},
	{"Preempt", "Preempt", 10, func(r *row) string { return joined(r.q.Preempt) }},
	{"PreemptExemptTime", "PreemptExemptTime", 19, func(r *row) string {
		if r.q.PreemptExempt == 0 {
			return ""
		}
		return seconds(r.q.PreemptExempt)
	}},
	{"PreemptMode", "PreemptMode", 11, func(r *row) string { return orName(string(r.q.PreemptMode), "cluster") }},
	{"Flags", "Flags", 40, func(r *row) string { return r.q.Flags.String() }},
	{"UsageThres", "UsageThres", 10, func(r *row) string {
		if r.q.UsageThreshold == 0 {
			return ""
		}
		return fmt.Sprintf("%.6f", r.q.UsageThreshold)
	}},
	{"UsageFactor", "UsageFactor", 11, func(r *row) string {
		return fmt.Sprintf("%.6f", r.q.Factor())
	}},
	{"LimitFactor", "LimitFactor", 11, func(r *row) string {
		if r.q.LimitFactor == 0 {
			return ""
		}
		return fmt.Sprintf("%.6f", r.q.LimitFactor)
	}},
	{"MaxTRESPU", "MaxTRESPU", 13, func(r *row) string { return amounts(r.q.MaxTRESPerUser) }},
	{"MaxTRESPerUser", "MaxTRESPU", 13, func(r *row) string { return amounts(r.q.MaxTRESPerUser) }},
	{"MaxJobsPU", "MaxJobsPU", 9, func(r *row) string { return num(r.q.Limits.MaxJobs) }},
	{"MaxJobsPerUser", "MaxJobsPU", 9, func(r *row) string { return num(r.q.Limits.MaxJobs) }},
	{"MaxSubmitPU", "MaxSubmitPU", 11, func(r *row) string { return num(r.q.Limits.MaxSubmit) }},
	{"MaxSubmitJobsPerUser", "MaxSubmitPU", 11, func(r *row) string { return num(r.q.Limits.MaxSubmit) }},
	{"MaxTRESPA", "MaxTRESPA", 13, func(r *row) string { return amounts(r.q.MaxTRESPerProject) }},
	{"MaxJobsPA", "MaxJobsPA", 9, func(r *row) string { return num(r.q.MaxJobsPerProject) }},
	{"MaxJobsAccruePU", "MaxJobsAccruePU", 15, func(r *row) string { return num(r.q.Limits.MaxJobsAccrue) }},
	{"MaxJobsAccruePA", "MaxJobsAccruePA", 15, func(r *row) string { return num(r.q.MaxAccruePerProject) }},
	{"MaxSubmitPA", "MaxSubmitPA", 11, func(r *row) string { return num(r.q.MaxSubmitPerProject) }},
	{"MinTRES", "MinTRES", 13, func(r *row) string { return amounts(r.q.MinTRESPerJob) }},

	{"ControlHost", "ControlHost", 15, func(*row) string { return "" }},
	{"ControlPort", "ControlPort", 12, func(*row) string { return "" }},
	{"RPC", "RPC", 5, func(*row) string { return "" }},
	{"Type", "Type", 8, func(r *row) string { return r.text[0] }},
	{"TRESName", "Name", 15, func(r *row) string { return r.text[1] }},
	{"ID", "ID", 6, func(r *row) string { return r.text[2] }},
}

// defaults are the columns of each listing, where nobody says.
var defaults = map[string]string{
	"accounts": "Account,Descr,Org",
	"associations": "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins," +
		"MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins",
	"users": "User,DefaultAccount,Admin",
	"qos": "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThres,UsageFactor," +
		"GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall," +
		"MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES",
	"clusters": "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit," +
		"MaxWall,QOS,DefaultQOS",
	"tres": "Type,TRESName,ID",
}

const (
	accountAssoc = ",Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMem,GrpSubmit,GrpWall," +
		"GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
	userAssoc = ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall," +
		"MaxCPUMins,QOS,DefaultQOS"
)

func init() { find = findColumn } // a column's value may be another's

var find func(name string) *column

// findColumn finds a column by its name, which may be cut short.
func findColumn(name string) *column {
	var short *column
	for i := range columns {
		c := &columns[i]
		if strings.EqualFold(c.name, name) {
			return c
		}
		if short == nil && len(name) >= 2 && len(name) < len(c.name) && strings.EqualFold(c.name[:len(name)], name) {
			short = c
		}
	}
	return short
}

func (s *run) show(args []string) int {
	what, rest := entity(args)
	where, _ := items(rest)
	if _, ok := defaults[what]; !ok {
		fmt.Fprint(s.w.Err, `No valid entity in list command
Input line must include "Account", "Association", "Cluster", "Configuration",
"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",
"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"
`)
		if what != "" {
			fmt.Fprintf(s.w.Err, "Of these, %s cannot be shown here\n", what)
		}
		return slurm.ExitError
	}
	format, tree := defaults[what], false
	var filter []item
	for _, it := range where {
		switch {
		case it.key == "" && strings.EqualFold(it.value, "withassoc"), it.key == "" &&
			strings.EqualFold(it.value, "withassocs"):
			s.withAssoc = true
		case it.key == "" && strings.EqualFold(it.value, "tree"):
			tree = true
		case it.key == "" && slices.Contains([]string{
			"withcoordinators", "withdeleted", "wolimits", "withsubaccounts",
			"onlydefaults", "rawqos", "withoutlimits",
		}, strings.ToLower(it.value)):
			if strings.EqualFold(it.value, "withcoordinators") {
				format += ",Coordinators"
			}
		case it.is("format", "fields"):
			format = it.value
		default:
			filter = append(filter, it)
		}
	}
	if s.withAssoc && format == defaults[what] {
		switch what {
		case "accounts":
			format += accountAssoc
		case "users":
			format += userAssoc
		}
	}
	var cols []column
	for _, name := range list(format) {
		name, size, sized := strings.Cut(name, "%")
		c := find(name)
		if c == nil {
			fmt.Fprintf(s.w.Err, "sacctmgr: Unknown field '%s'\n", name)
			return slurm.ExitError
		}
		col := *c
		if tree && col.name == "Account" {
			col.width = -20
		}
		if n, err := strconv.Atoi(size); sized && err == nil {
			col.width = n
		}
		cols = append(cols, col)
	}
	if !s.load() {
		return slurm.ExitError
	}
	rows, code := s.rows(what, filter, tree)
	if code != 0 {
		return code
	}
	s.print(cols, rows)
	return 0
}

// rows lists what is asked for.
func (s *run) rows(what string, filter []item, tree bool) ([]row, int) {
	var rows []row
	keep := func(r row) bool {
		for _, it := range filter {
			wanted := list(strings.ToLower(it.value))
			has := ""
			switch {
			case it.key == "" && what == "accounts", it.is("account", "accounts", "acct") && r.p != nil:
				has = string(r.p.Name)
			case it.key == "" && what == "users" && r.u != nil, it.is("user", "users") && r.u != nil:
				has = string(r.u.Name)
			case it.is("user", "users") && r.m != nil:
				has = string(r.m.User)
			case it.key == "" && what == "qos", it.is("name", "names", "qos") && r.q != nil:
				has = string(r.q.Name)
			case it.is("name", "names") && r.u != nil && what == "users":
				has = string(r.u.Name)
			case it.is("name", "names") && r.p != nil:
				has = string(r.p.Name)
			case it.is("cluster", "clusters"):
				has = s.name
			}
			if !slices.Contains(wanted, strings.ToLower(has)) {
				return false
			}
		}
		return true
	}
	add := func(r row) {
		r.s = s
		if keep(r) {
			rows = append(rows, r)
		}
	}
	switch what {
	case "qos":
		order := slices.Clone(s.policy.QOS)
		slices.SortStableFunc(order, func(a, b core.QOS) int { return rank(&a) - rank(&b) })
		slices.SortStableFunc(order, func(a, b core.QOS) int {
			if rank(&a) != rank(&b) {
				return rank(&a) - rank(&b)
			}
			return int(min(1, max(-1, a.Created-b.Created)))
		})
		for i := range order {
			add(row{q: &order[i]})
		}
	case "clusters":
		add(row{p: &core.Project{Name: "root", Assoc: s.account("root").Assoc}})
	case "tres":
		for i, name := range []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages", "gres/gpu"} {
			class, sub, _ := strings.Cut(name, "/")
			id := i + 1
			if class == "gres" {
				id = 1001
			}
			add(row{text: []string{class, sub, strconv.Itoa(id)}})
		}
	case "associations":
		s.walk("root", 0, func(p *core.Project, depth int) {
			d := depth
			if !tree {
				d = 0
			}
			add(row{p: p, depth: d})
			for k := range p.Members {
				md := d
				if tree {
					md = d + 1
				}
				add(row{p: p, m: &p.Members[k], depth: md})
			}
		})
	case "accounts":
		list := slices.Clone(s.policy.Projects)
		slices.SortFunc(list, func(a, b core.Project) int { return strings.Compare(string(a.Name), string(b.Name)) })
		for i := range list {
			p := &list[i]
			add(row{p: p})
			if s.withAssoc {
				for k := range p.Members {
					add(row{p: p, m: &p.Members[k]})
				}
			}
		}
	case "users":
		users := slices.Clone(s.users)
		slices.SortFunc(users, func(a, b core.User) int { return strings.Compare(string(a.Name), string(b.Name)) })
		for i := range users {
			u := &users[i]
			if !s.withAssoc {
				add(row{u: u})
				continue
			}
			list := slices.Clone(s.policy.Projects)
			slices.SortFunc(list, func(a, b core.Project) int { return strings.Compare(string(a.Name), string(b.Name)) })
			for k := range list {
				if m := member(&list[k], string(u.Name)); m != nil {
					add(row{p: &list[k], m: m, u: u})
				}
			}
		}
	}
	return rows, 0
}

// rank puts normal, which was there first, before the others.
func rank(q *core.QOS) int {
	if q.Name == "normal" {
		return 0
	}
	return 1
}

// walk goes through the accounts from one downward; those of one parent in the order they were made.
func (s *run) walk(from core.ProjectName, depth int, do func(*core.Project, int)) {
	p := s.account(string(from))
	if p == nil || depth > len(s.policy.Projects) {
		return
	}
	do(p, depth)
	var kids []*core.Project
	for i := range s.policy.Projects {
		k := &s.policy.Projects[i]
		if k.Name != from && (k.Parent == from || k.Parent == "" && from == "root") {
			kids = append(kids, k)
		}
	}
	slices.SortStableFunc(kids, func(a, b *core.Project) int { return int(min(1, max(-1, a.Created-b.Created))) })
	for _, k := range kids {
		s.walk(k.Name, depth+1, do)
	}
}

// print writes the table, or fields between bars.
func (s *run) print(cols []column, rows []row) {
	line := func(value func(c *column) string) {
		var b strings.Builder
		for i := range cols {
			c := &cols[i]
			v := value(c)
			switch {
			case s.parsable2 && i == len(cols)-1:
				b.WriteString(v)
			case s.parsable || s.parsable2:
				b.WriteString(v + "|")
			default:
				w := max(c.width, -c.width)
				if r := []rune(v); len(r) > w {
					v = string(r[:w-1]) + "+"
				}
				if c.width < 0 {
					fmt.Fprintf(&b, "%-*s ", w, v)
				} else {
					fmt.Fprintf(&b, "%*s ", w, v)
				}
			}
		}
		fmt.Fprintln(s.w.Out, b.String())
	}
	if !s.noHeader {
		line(func(c *column) string {
			if w := max(c.width, -c.width); !s.parsable && !s.parsable2 && len(c.title) > w {
				return c.title[:w] // titles are cut without a mark
			}
			return c.title
		})
		if !s.parsable && !s.parsable2 {
			line(func(c *column) string { return strings.Repeat("-", max(c.width, -c.width)) })
		}
	}
	for i := range rows {
		line(func(c *column) string { return c.value(&rows[i]) })
	}
}
