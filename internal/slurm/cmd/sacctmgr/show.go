package sacctmgr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// listing is what is shown of an entity.
var listing = map[string]struct {
	words []keyword
	rows  func(s *lister, c *condition) ([]row, error)
}{
	"accounts":     {accountWords, (*lister).accountRows},
	"associations": {associationWords, (*lister).assocRows},
	"users":        {userWords, (*lister).userRows},
	"qos":          {qosWords, (*lister).qosRows},
	"clusters":     {clusterWords, (*lister).clusterRows},
	"tres":         {tresWords, (*lister).tresRows},
	"wckeys":       {wckeyWords, (*lister).wckeyRows},
	"problems":     {associationWords, (*lister).problemRows},
	"events":       {eventWords, (*lister).eventRows},
	"reservations": {[]keyword{{"Names", 1, "names"}, {"Clusters", 1, "clusters"}}, (*lister).reservationRows},
	"federations":  {[]keyword{{"Names", 1, "names"}, {"Clusters", 1, "clusters"}}, (*lister).noRows},
	"resources":    {[]keyword{{"Names", 1, "names"}, {"Clusters", 1, "clusters"}}, (*lister).noRows},
	"transactions": {transactionWords, (*lister).transactionRows},
}

func (s *lister) show(args []string) int {
	what, rest := entity(args)
	if what == "runawayjobs" { // what runs is in the engine's state: a record cannot outlive its job
		if !s.load() {
			return slurm.ExitError
		}
		fmt.Fprintf(s.w.Out, "Runaway Jobs: No runaway jobs found on cluster %s\n", s.name)
		return 0
	}
	switch what {
	case "configuration":
		return s.showConfig()
	case "stats":
		return s.showStats()
	}
	l, ok := listing[what]
	if !ok {
		fmt.Fprint(s.w.Err, `No valid entity in list command
Input line must include "Account", "Association", "Cluster", "Configuration",
"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",
"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"
`)
		if what != "" {
			s.w.Hint(what + " cannot be shown here")
		}
		return slurm.ExitError
	}
	where, set := items(rest)
	c, bad := parseCondition(l.words, append(where, set...))
	if bad != nil {
		return s.refuseCondition(what, bad)
	}
	s.withAssoc = s.withAssoc || c.flags["withassoc"]
	s.rawQOS = c.flags["withrawqos"]
	format := c.format
	if format == "" {
		format = s.defaultFormat(what, &c)
	}
	cols, bad2 := parseFormat(format, c.flags["tree"])
	if bad2 != "" {
		fmt.Fprintf(s.w.Err, "Unknown field '%s'\n", bad2)
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	rows, err := l.rows(s, &c)
	if err != nil {
		return s.failed(err)
	}
	for i := range rows {
		rows[i].s = s
	}
	s.print(cols, rows)
	return 0
}

// defaultFormat is the columns of a listing where nobody says.
func (s *lister) defaultFormat(what string, c *condition) string {
	format := defaults[what]
	switch {
	case s.withAssoc && what == "accounts":
		format += accountAssoc
	case s.withAssoc && what == "users":
		format += userAssoc
	case c.flags["wolimits"] && what == "associations":
		format = "Cluster,Account,User,Partition"
	}
	if c.flags["withcoordinators"] {
		format += ",Coordinators"
	}
	return format
}

// parseFormat reads a list of fields; bad is the first that is not known.
func parseFormat(format string, tree bool) (cols []column, bad string) {
	for _, name := range list(format) {
		name, size, sized := strings.Cut(name, "%")
		c := find(name)
		if c == nil {
			return nil, strings.ToLower(name)
		}
		col := *c
		if tree && col.title == "Account" {
			col.width = -20
		}
		if n, err := strconv.Atoi(size); sized && err == nil && n != 0 {
			col.width = n
		}
		cols = append(cols, col)
	}
	return cols, ""
}

func (s *lister) qosRows(c *condition) (rows []row, _ error) {
	order := slices.Clone(s.policy.QOS)
	slices.SortStableFunc(order, func(a, b core.QOS) int {
		if rank(&a) != rank(&b) {
			return rank(&a) - rank(&b)
		}
		return int(min(1, max(-1, a.Created-b.Created)))
	})
	for i := range order {
		if s.qosIs(c, &order[i]) {
			rows = append(rows, row{q: &order[i]})
		}
	}
	return rows, nil
}

func (s *lister) assocRows(c *condition) (rows []row, _ error) {
	accounts := c.values["accounts"]
	if c.flags["withsubaccounts"] {
		delete(c.values, "accounts")
	}
	inside := 0 // deeper than this: below one of the accounts
	s.walk("root", 0, func(p *core.Project, depth int) {
		if inside > 0 && depth+1 <= inside {
			inside = 0
		}
		if inside == 0 && slices.Contains(accounts, strings.ToLower(string(p.Name))) {
			inside = depth + 1
		}
		if c.flags["withsubaccounts"] && len(accounts) > 0 && inside == 0 || !s.accountIs(c, p) {
			return
		}
		d := 0
		if c.flags["tree"] {
			d = depth
		}
		if !c.given("users") && !c.flags["onlydefaults"] && s.assocIs(c, p, nil) {
			rows = append(rows, row{p: p, depth: d, assoc: true})
		}
		for k := range p.Members {
			m := &p.Members[k]
			u := s.user(string(m.User))
			if !c.has("users", string(m.User)) || !s.assocIs(c, p, m) ||
				c.flags["onlydefaults"] && (u == nil || u.Default != p.Name) {
				continue
			}
			if c.flags["tree"] {
				d = depth + 1
			}
			rows = append(rows, row{p: p, m: m, depth: d, assoc: true})
		}
	})
	return rows, nil
}

func (s *lister) accountRows(c *condition) (rows []row, _ error) {
	for _, p := range s.accountsByName() {
		if !s.accountIs(c, p) {
			continue
		}
		if !c.given("users") && s.assocIs(c, p, nil) {
			rows = append(rows, row{p: p, assoc: s.withAssoc})
		}
		for k := range p.Members {
			if m := &p.Members[k]; s.withAssoc && c.has("users", string(m.User)) && s.assocIs(c, p, m) {
				rows = append(rows, row{p: p, m: m, assoc: true})
			}
		}
	}
	return rows, nil
}

func (s *records) accountsByName() []*core.Project {
	list := make([]*core.Project, len(s.policy.Projects))
	for i := range s.policy.Projects {
		list[i] = &s.policy.Projects[i]
	}
	slices.SortFunc(list, func(a, b *core.Project) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return list
}

func (s *lister) userRows(c *condition) (rows []row, _ error) {
	users := slices.Clone(s.users)
	slices.SortFunc(users, func(a, b core.User) int { return strings.Compare(string(a.Name), string(b.Name)) })
	for i := range users {
		u := &users[i]
		if !s.userIs(c, u) || !s.inAccounts(c, u) {
			continue
		}
		if !s.withAssoc {
			rows = append(rows, row{u: u})
			continue
		}
		for _, p := range s.accountsByName() {
			if m := member(p, string(u.Name)); m != nil && c.has("accounts", string(p.Name)) && s.assocIs(c, p, m) {
				rows = append(rows, row{p: p, m: m, u: u, assoc: true})
			}
		}
	}
	return rows, nil
}

// rank puts normal, which was there first, before the others.
func rank(q *core.QOS) int {
	if q.Name == "normal" {
		return 0
	}
	return 1
}

// walk goes through the accounts from one downward; those of one parent by name.
func (s *records) walk(from core.ProjectName, depth int, do func(*core.Project, int)) {
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
	slices.SortFunc(kids, func(a, b *core.Project) int { return strings.Compare(string(a.Name), string(b.Name)) })
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
