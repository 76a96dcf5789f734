package sacctmgr

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// entity finds what a command is about; a word may be cut short.
func entity(args []string) (string, []string) {
	if len(args) == 0 {
		return "", nil
	}
	word := strings.ToLower(args[0])
	for _, e := range []struct {
		name  string
		least int
	}{
		{"accounts", 2},
		{"associations", 2},
		{"clusters", 2},
		{"configuration", 4},
		{"coordinators", 4},
		{"problems", 1},
		{"qos", 1},
		{"runawayjobs", 2},
		{"tres", 2},
		{"users", 1},
		{"reservations", 5},
		{"transactions", 3},
		{"events", 1},
		{"wckeys", 1},
		{"stats", 1},
		{"resources", 5},
		{"federations", 1},
	} {
		if len(word) >= e.least && strings.HasPrefix(e.name, word) || word == "account" && e.name == "accounts" {
			return e.name, args[1:]
		}
	}
	return "", args
}

func (s *run) add(args []string) int {
	what, rest := entity(args)
	set, _ := items(rest)
	if !slices.Contains([]string{"accounts", "users", "qos", "coordinators"}, what) {
		fmt.Fprint(s.w.Err, "No valid entity in add command\nInput line must include \"Account\", \"Coordinator\", "+
			"\"QOS\", or \"User\"\n")
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	switch what {
	case "accounts":
		return s.addAccounts(set)
	case "users":
		return s.addUsers(set)
	case "coordinators":
		return s.coordinators(set, core.RoleManager)
	}
	return s.addQOS(set)
}

// names takes the names of what a command is about out of its items: alone, or behind one of some keys.
func names(set []item, keys ...string) (out []string, rest []item) {
	for _, it := range set {
		if it.key == "" || it.is(keys...) {
			for _, n := range list(it.value) {
				if !slices.Contains(out, strings.ToLower(n)) {
					out = append(out, strings.ToLower(n))
				}
			}
			continue
		}
		rest = append(rest, it)
	}
	return out, rest
}

func (s *run) unknown(it item) int {
	fmt.Fprintf(s.w.Out, " Unknown option: %s\n", it.raw)
	return slurm.ExitError
}

func (s *run) bad(it item, err error) int {
	fmt.Fprintf(s.w.Out, " Bad value for %s: %v\n", it.raw, err)
	return slurm.ExitError
}

func (s *run) addAccounts(set []item) int {
	want, set := names(set, "name", "names", "account", "accounts", "acct")
	p := core.Project{}
	for _, it := range set {
		switch {
		case it.is("description", "descr", "desc"):
			p.Description = it.value
		case it.is("organization", "org"):
			p.Organization = it.value
		case it.is("parent"):
			up := s.account(it.value)
			if up == nil {
				fmt.Fprintf(s.w.Out, " Parent account %s doesn't exist.\n", it.value)
				return slurm.ExitError
			}
			p.Parent = up.Name
		case it.is("cluster", "clusters"):
		default:
			known, err := s.setAssoc(target{&p.Shares, &p.Assoc}, it, []core.QOSName{"normal"})
			if err != nil {
				return s.bad(it, err)
			} else if !known {
				return s.unknown(it)
			}
		}
	}
	if p.Parent == "root" {
		p.Parent = ""
	}
	var out core.Policy
	for _, n := range want {
		if s.account(n) != nil {
			continue
		}
		one := p
		one.Name = core.ProjectName(n)
		if one.Description == "" {
			one.Description = n
		}
		if one.Organization == "" {
			if one.Organization = n; p.Parent != "" {
				one.Organization = string(p.Parent)
			}
		}
		if len(one.Assoc.QOS) == 0 && p.Parent == "" { // what it would have of root
			one.Assoc.QOS = []core.QOSName{"normal"}
		}
		out.Projects = append(out.Projects, one)
	}
	if len(out.Projects) == 0 {
		s.say(" Nothing new added.")
		return slurm.ExitError
	}
	s.say(" Adding Account(s)")
	for _, one := range out.Projects {
		s.say("  %s", one.Name)
	}
	s.say(" Settings")
	s.say("  Description     = %s", orName(p.Description, "Account Name"))
	s.say("  Organization    = %s", orName(p.Organization, "Parent/Account Name"))
	s.say(" Associations")
	for _, one := range out.Projects {
		s.say("  A = %-10s C = %-10s", one.Name, s.name)
	}
	s.say(" Settings")
	if p.Shares > 0 {
		s.say("  Fairshare     = %d", p.Shares)
	}
	s.say("  Parent        = %s", orName(string(p.Parent), "root"))
	return s.commit(s.withNormal(out))
}

// withNormal sees that the QOS that everybody has by default is there.
func (s *run) withNormal(p core.Policy) core.Policy {
	if q := s.qos("normal"); q.Created == 0 && !slices.ContainsFunc(p.QOS, func(o core.QOS) bool {
		return o.Name == "normal"
	}) {
		p.QOS = append(p.QOS, *q)
	}
	return p
}

func orName(text, or string) string {
	if text == "" {
		return or
	}
	return text
}

func (s *run) addUsers(set []item) int {
	want, set := names(set, "name", "names", "user", "users")
	var accounts []string
	var def string
	var level core.Role
	m := core.Member{Role: core.RoleUser}
	var rest []item
	for _, it := range set {
		switch {
		case it.is("account", "accounts", "acct"):
			accounts = append(accounts, list(strings.ToLower(it.value))...)
		case it.is("defaultaccount", "defaultacct"):
			def = strings.ToLower(it.value)
		case it.is("adminlevel", "admin"):
			level = adminLevel(it.value)
		case it.is("cluster", "clusters", "partition", "partitions"):
			if strings.HasPrefix(it.key, "partition") {
				fmt.Fprintf(s.w.Out, " %s: associations of one partition are not supported; a QOS of the partition "+
					"(QOS=) can carry such limits\n", it.raw)
				return slurm.ExitError
			}
		default:
			rest = append(rest, it)
		}
	}
	if len(accounts) == 0 && def != "" {
		accounts = []string{def}
	}
	if len(accounts) == 0 {
		fmt.Fprintf(s.w.Out, " Need name of account to add user to.\n")
		return slurm.ExitError
	}
	changed := map[core.ProjectName]*core.Project{}
	var lines []string
	for _, a := range accounts {
		p := s.account(a)
		if p == nil {
			fmt.Fprintf(s.w.Out, " This account '%s' doesn't exist.\n        Contact your admin to add this account.\n", a)
			return slurm.ExitError
		}
		for _, u := range want {
			if member(p, u) != nil {
				continue
			}
			one := m
			one.User = core.UserName(u)
			for _, it := range rest {
				known, err := s.setAssoc(target{&one.Shares, &one.Assoc}, it, s.mayUse(p, nil))
				if err != nil {
					return s.bad(it, err)
				} else if !known {
					return s.unknown(it)
				}
			}
			p.Members = append(p.Members, one)
			changed[p.Name] = p
			lines = append(lines, fmt.Sprintf("  U = %-9.9s A = %-10s C = %-10s", u, p.Name, s.name))
		}
	}
	var first []func() error
	var fresh []string
	for _, u := range want {
		old := s.user(u)
		if old == nil {
			fresh = append(fresh, u)
			// The server makes the user a member of the default account; the policy says with which role.
			made := &core.User{
				Name: core.UserName(u), UnixName: u, Role: level,
				Default: core.ProjectName(orName(def, accounts[0])),
			}
			first = append(first, func() error { return s.c.NewUser(s.ctx, made) })
		}
		if old != nil && (def != "" && string(old.Default) != def || old.Default == "") {
			d := core.ProjectName(orName(def, accounts[0]))
			s.last = append(s.last, func() error {
				return s.c.UpdateUser(s.ctx, core.UserName(u), &client.UpdateUser{Default: &d})
			})
		}
	}
	if len(changed)+len(fresh) == 0 {
		s.say(" Nothing new added.")
		return slurm.ExitError
	}
	if len(fresh) > 0 {
		s.say(" Adding User(s)")
		for _, u := range fresh {
			s.say("  %s", u)
		}
		s.say(" Settings =")
		s.say("  Default Account = %s", orName(def, accounts[0]))
	}
	if len(lines) > 0 {
		s.say(" Associations =")
		for _, l := range lines {
			s.say("%s", l)
		}
		s.say(" Non Default Settings")
		if len(rest) > 0 {
			for _, it := range rest {
				s.say("  %-13s = %s", strings.TrimRight(strings.SplitN(it.raw, "=", 2)[0], "+-"), it.value)
			}
		}
	}
	return s.commit(s.withNormal(core.Policy{Projects: values(changed)}), first...)
}

// values lists changed projects by name.
func values(m map[core.ProjectName]*core.Project) []core.Project {
	var out []core.Project
	for _, p := range m {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b core.Project) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return out
}

func adminLevel(text string) core.Role {
	if strings.HasPrefix(strings.ToLower(text), "a") {
		return core.RoleAdmin
	}
	return core.RoleUser
}

func (s *run) addQOS(set []item) int {
	want, set := names(set, "name", "names", "qos")
	var out core.Policy
	for _, n := range want {
		if s.qos(n) != nil {
			continue
		}
		q := core.QOS{Name: core.QOSName(n), Description: n}
		for _, it := range set {
			known, err := setQOS(&q, it)
			if err != nil {
				return s.bad(it, err)
			} else if !known {
				return s.unknown(it)
			}
		}
		out.QOS = append(out.QOS, q)
	}
	if len(out.QOS) == 0 {
		s.say(" Nothing new added.")
		return slurm.ExitError
	}
	s.say(" Adding QOS(s)")
	for _, q := range out.QOS {
		s.say("  %s", q.Name)
	}
	s.say(" Settings")
	s.say("  Description    = %s", out.QOS[0].Description)
	for _, it := range set {
		if !it.is("description", "descr", "desc") {
			s.say("  %-14s = %s", strings.TrimRight(strings.SplitN(it.raw, "=", 2)[0], "+-"), it.value)
		}
	}
	return s.commit(s.withNormal(out))
}

func (s *run) modify(args []string) int {
	what, rest := entity(args)
	where, set := items(rest)
	if !slices.Contains([]string{"accounts", "users", "qos"}, what) {
		fmt.Fprint(s.w.Err, "No valid entity in modify command\nInput line must include \"Account\", \"QOS\", or \"User\"\n")
		return slurm.ExitError
	}
	if len(set) == 0 {
		s.w.Errorf("You didn't give me anything to set")
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	switch what {
	case "accounts":
		return s.modifyAccounts(where, set)
	case "users":
		return s.modifyUsers(where, set)
	}
	want, _ := names(where, "name", "names", "qos")
	var out core.Policy
	for i := range s.policy.QOS {
		q := &s.policy.QOS[i]
		if len(want) > 0 && !slices.Contains(want, strings.ToLower(string(q.Name))) {
			continue
		}
		for _, it := range set {
			known, err := setQOS(q, it)
			if err != nil {
				return s.bad(it, err)
			} else if !known {
				return s.unknown(it)
			}
		}
		out.QOS = append(out.QOS, *q)
	}
	if len(out.QOS) == 0 {
		s.say(" Nothing modified")
		return slurm.ExitError
	}
	s.say(" Modified qos...")
	for _, q := range out.QOS {
		s.say("  %s", q.Name)
	}
	return s.commit(out)
}

func (s *run) modifyAccounts(where, set []item) int {
	want, _ := names(where, "name", "names", "account", "accounts", "acct")
	changed := map[core.ProjectName]*core.Project{}
	var lines []string
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		if len(want) > 0 && !slices.Contains(want, strings.ToLower(string(p.Name))) {
			continue
		}
		for _, it := range set {
			switch {
			case it.is("description", "descr", "desc"):
				p.Description = it.value
				continue
			case it.is("organization", "org"):
				p.Organization = it.value
				continue
			case it.is("parent"):
				if p.Parent = core.ProjectName(it.value); p.Parent == "root" {
					p.Parent = ""
				}
				continue
			}
			known, err := s.setAssoc(target{&p.Shares, &p.Assoc}, it, s.mayUse(p, nil))
			if err != nil {
				return s.bad(it, err)
			} else if !known {
				return s.unknown(it)
			}
		}
		changed[p.Name] = p
		lines = append(lines, fmt.Sprintf("  C = %-10s A = %-10s", s.name, p.Name))
	}
	return s.modified(" Modified account associations...", lines, changed)
}

func (s *run) modified(title string, lines []string, changed map[core.ProjectName]*core.Project,
	first ...func() error,
) int {
	if len(lines) == 0 {
		s.say(" Nothing modified")
		return slurm.ExitError
	}
	s.say("%s", title)
	for _, l := range lines {
		s.say("%s", l)
	}
	return s.commit(s.withNormal(core.Policy{Projects: values(changed)}), first...)
}

func (s *run) modifyUsers(where, set []item) int {
	var accounts []string
	want, rest := names(where, "name", "names", "user", "users")
	for _, it := range rest {
		if it.is("account", "accounts", "acct") {
			accounts = append(accounts, list(strings.ToLower(it.value))...)
		}
	}
	changed := map[core.ProjectName]*core.Project{}
	var lines []string
	var first []func() error
	var assoc []item
	for _, it := range set {
		switch {
		case it.is("defaultaccount", "defaultacct"):
			for _, u := range want {
				d := core.ProjectName(strings.ToLower(it.value))
				if p := s.account(string(d)); p == nil || member(p, u) == nil {
					fmt.Fprintf(s.w.Out, " User %s is not in account %s\n", u, d)
					return slurm.ExitError
				}
				first = append(first, func() error {
					return s.c.UpdateUser(s.ctx, core.UserName(u), &client.UpdateUser{Default: &d})
				})
				lines = append(lines, "  "+u)
			}
		case it.is("adminlevel", "admin"):
			role := adminLevel(it.value)
			for _, u := range want {
				first = append(first, func() error {
					return s.c.UpdateUser(s.ctx, core.UserName(u), &client.UpdateUser{Role: &role})
				})
				lines = append(lines, "  "+u)
			}
		default:
			assoc = append(assoc, it)
		}
	}
	if len(assoc) == 0 {
		return s.modified(" Modified users...", lines, changed, first...)
	}
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		if len(accounts) > 0 && !slices.Contains(accounts, strings.ToLower(string(p.Name))) {
			continue
		}
		for k := range p.Members {
			m := &p.Members[k]
			if len(want) > 0 && !slices.Contains(want, string(m.User)) {
				continue
			}
			for _, it := range assoc {
				known, err := s.setAssoc(target{&m.Shares, &m.Assoc}, it, s.mayUse(p, nil))
				if err != nil {
					return s.bad(it, err)
				} else if !known {
					return s.unknown(it)
				}
			}
			changed[p.Name] = p
			lines = append(lines, fmt.Sprintf("  C = %-10s A = %-20s U = %-9s", s.name, p.Name, m.User))
		}
	}
	return s.modified(" Modified user associations...", lines, changed, first...)
}

func (s *run) remove(args []string) int {
	what, rest := entity(args)
	where, _ := items(rest)
	if !slices.Contains([]string{"accounts", "users", "qos", "coordinators"}, what) {
		fmt.Fprint(s.w.Err, "No valid entity in delete command\nInput line must include \"Account\", "+
			"\"Coordinator\", \"QOS\", or \"User\"\n")
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	switch what {
	case "coordinators":
		return s.coordinators(where, core.RoleUser)
	case "users":
		return s.removeUsers(where)
	}
	want, _ := names(where, "name", "names", "account", "accounts", "acct", "qos")
	var first []func() error
	var lines []string
	for _, n := range want {
		if p := s.account(n); what == "accounts" && p != nil {
			lines = append(lines, "  "+string(p.Name))
			first = append(first, func() error { return s.c.DropProject(s.ctx, p.Name) })
		}
		if q := s.qos(n); what == "qos" && q != nil {
			lines = append(lines, "  "+string(q.Name))
			first = append(first, func() error { return s.c.DropQOS(s.ctx, q.Name) })
		}
	}
	if len(lines) == 0 {
		s.say(" Nothing deleted")
		return slurm.ExitError
	}
	s.say(" Deleting %s...", what)
	for _, l := range lines {
		s.say("%s", l)
	}
	return s.commit(core.Policy{}, first...)
}

func (s *run) removeUsers(where []item) int {
	want, rest := names(where, "name", "names", "user", "users")
	var accounts []string
	for _, it := range rest {
		if it.is("account", "accounts", "acct") {
			accounts = append(accounts, list(strings.ToLower(it.value))...)
		}
	}
	var first []func() error
	var lines []string
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		if len(accounts) > 0 && !slices.Contains(accounts, strings.ToLower(string(p.Name))) {
			continue
		}
		for _, u := range want {
			if member(p, u) != nil {
				lines = append(lines, fmt.Sprintf("  C = %-10s A = %-10s U = %-9s", s.name, p.Name, u))
				first = append(first, func() error { return s.c.PutMember(s.ctx, p.Name, core.UserName(u), core.RoleNone) })
			}
		}
	}
	if len(lines) == 0 {
		s.say(" Nothing deleted")
		return slurm.ExitError
	}
	if len(accounts) == 0 {
		s.say(" Deleting users...")
		for _, u := range want {
			s.say("  %s", u)
		}
	} else {
		s.say(" Deleting user associations...")
		for _, l := range lines {
			s.say("%s", l)
		}
	}
	return s.commit(core.Policy{}, first...)
}

// coordinators gives members of accounts the role of a manager, or takes it from them.
func (s *run) coordinators(set []item, role core.Role) int {
	want, rest := names(set, "name", "names", "user", "users")
	var first []func() error
	for _, it := range rest {
		if !it.is("account", "accounts", "acct") {
			return s.unknown(it)
		}
		for _, a := range list(strings.ToLower(it.value)) {
			p := s.account(a)
			for _, u := range want {
				if p == nil || role == core.RoleUser && member(p, u) == nil {
					fmt.Fprintf(s.w.Out, " There is no account %s with user %s\n", a, u)
					return slurm.ExitError
				}
				first = append(first, func() error { return s.c.PutMember(s.ctx, p.Name, core.UserName(u), role) })
			}
		}
	}
	if len(first) == 0 {
		s.say(" Nothing new added.")
		return slurm.ExitError
	}
	if role == core.RoleManager {
		s.say(" Adding Coordinator User(s)")
	} else {
		s.say(" Removing Coordinator User(s)")
	}
	for _, u := range want {
		s.say("  %s", u)
	}
	return s.commit(core.Policy{}, first...)
}

// mayUse lists the QOS of an association: its own list, or that of the accounts above; at the root there is normal.
func (s *run) mayUse(p *core.Project, m *core.Member) []core.QOSName {
	if m != nil && len(m.Assoc.QOS) > 0 {
		return m.Assoc.QOS
	}
	for range s.policy.Projects {
		if p == nil {
			break
		}
		if len(p.Assoc.QOS) > 0 {
			return p.Assoc.QOS
		}
		p = s.account(string(p.Parent))
	}
	return []core.QOSName{"normal"}
}
