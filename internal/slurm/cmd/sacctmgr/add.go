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
	name, ok := match([]keyword{
		{"Accounts", 1, ""},
		{"Associations", 2, ""},
		{"Clusters", 1, ""},
		{"Configuration", 2, ""},
		{"Coordinators", 2, ""},
		{"Problems", 1, ""},
		{"QOS", 1, ""},
		{"Federations", 1, ""},
		{"RunawayJobs", 2, ""},
		{"Jobs", 1, ""},
		{"Users", 1, ""},
		{"Resources", 4, ""},
		{"Reservations", 4, ""},
		{"Stats", 1, ""},
		{"Transactions", 1, ""},
		{"TRES", 2, ""},
		{"Events", 1, ""},
		{"WCKeys", 1, ""},
	}, args[0])
	if !ok {
		return "", args
	}
	return name, args[1:]
}

// unsupported refuses an entity that Slurm has and that is not kept here.
func (s *run) unsupported(what string) int {
	why := map[string]string{
		"clusters":    "this server keeps the records of one cluster, its own",
		"federations": "there is no federation: this server is a cluster of its own",
		"resources":   "licenses are settings of the cluster (Licenses= in slurm.conf)",
		"jobs":        "records of finished jobs are not changed",
	}[what]
	if why == "" {
		return 0
	}
	s.w.Errorf("%s: %s", what, why)
	return slurm.ExitError
}

func (s *adder) add(args []string) int {
	what, rest := entity(args)
	set, _ := items(rest)
	if code := s.unsupported(what); code != 0 {
		return code
	}
	if !slices.Contains([]string{"accounts", "users", "qos", "coordinators"}, what) {
		fmt.Fprint(s.w.Err, "No valid entity in add command\nInput line must include \"Account\", \"Cluster\", "+
			"\"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\"\n")
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
		return s.addCoordinators(set)
	}
	return s.addQOS(set)
}

// split parts the items of an add: what names things, by a table of words, and what is set of them.
func split(words []keyword, set []item) (c condition, rest []item) {
	c = condition{values: map[string][]string{}, flags: map[string]bool{}}
	for _, it := range set {
		key, ok := "names", it.key == ""
		if !ok {
			key, ok = match(words, it.key)
		}
		if !ok || it.op != '=' {
			rest = append(rest, it)
			continue
		}
		c.add(key, it.value)
	}
	return c, rest
}

// ours reports whether the clusters that are named, if any, are ours.
func (s *run) ours(c *condition) bool {
	for _, name := range c.values["clusters"] {
		if name != strings.ToLower(s.name) {
			fmt.Fprintf(s.w.Err, " This cluster '%s' doesn't exist.\n        Contact your admin to add it to accounting.\n",
				name)
			return false
		}
	}
	return true
}

func (s *adder) addAccounts(set []item) int {
	c, set := split([]keyword{
		{"Names", 1, "names"}, {"Accounts", 1, "names"}, {"Acct", 4, "names"}, {"Clusters", 1, "clusters"},
	}, set)
	p := core.Project{}
	for _, it := range set {
		key, _ := match(accountKeys, it.key)
		switch key {
		case "description":
			p.Description = strings.ToLower(it.value)
		case "organization":
			p.Organization = strings.ToLower(it.value)
		case "parent":
			up := s.account(it.value)
			if up == nil {
				fmt.Fprintf(s.w.Err, " Parent account '%s' doesn't exist.\n        Contact your admin to add this account.\n",
					it.value)
				return slurm.ExitError
			}
			p.Parent = up.Name
		default:
			if known, err := s.setAssoc(target{&p.Shares, &p.Assoc}, it, []core.QOSName{"normal"}); !known || err != nil {
				return s.refuseOption(it, err)
			}
		}
	}
	parent := p.Parent
	if p.Parent == "root" {
		p.Parent = ""
	}
	if !s.ours(&c) {
		return slurm.ExitError
	}
	var out core.Policy
	for _, n := range c.values["names"] {
		if s.account(n) == nil {
			out.Projects = append(out.Projects, newAccount(&p, n))
		}
	}
	switch {
	case !c.given("names"):
		fmt.Fprintln(s.w.Err, " Need name of account to add.")
		return slurm.ExitError
	case len(out.Projects) == 0:
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
	if len(set) > 0 {
		s.sayAll(" Settings", assocSettings(p.Shares, &p.Assoc, orName(string(parent), "root")))
	}
	return s.commit(s.withNormal(out))
}

// newAccount is an account of a name, with what was said of all that are added.
func newAccount(p *core.Project, name string) core.Project {
	one := *p
	one.Name = core.ProjectName(name)
	if one.Description == "" {
		one.Description = name
	}
	if one.Organization == "" {
		if one.Organization = name; p.Parent != "" {
			one.Organization = string(p.Parent)
		}
	}
	if len(one.Assoc.QOS) == 0 && p.Parent == "" { // what it would have of root
		one.Assoc.QOS = []core.QOSName{"normal"}
	}
	return one
}

// withNormal sees that the QOS that everybody has by default is there.
func (s *records) withNormal(p core.Policy) core.Policy {
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

// newUsers is what an add of users says.
type newUsers struct {
	names, accounts, wckeys []string
	def, defWCKey           string
	level                   core.Role
	levelText               string
	rest                    []item // of the associations
}

// userKeys are what can be set of a user, beside the associations.
var userKeys = []keyword{
	{"AdminLevel", 2, "adminlevel"},
	{"DefaultAccount", 8, "defaultaccount"},
	{"DefaultAcct", 11, "defaultaccount"},
	{"DefaultWCKey", 8, "defaultwckey"},
}

// accountKeys are what can be set of an account, beside its association.
var accountKeys = []keyword{
	{"Descriptions", 1, "description"},
	{"Organizations", 1, "organization"},
	{"Parent", 2, "parent"},
}

// parseNewUsers reads what an add of users says.
func (s *adder) parseNewUsers(set []item) (n newUsers, code int) {
	c, set := split([]keyword{
		{"Names", 1, "names"},
		{"Users", 1, "names"},
		{"Accounts", 2, "accounts"},
		{"Acct", 4, "accounts"},
		{"Clusters", 1, "clusters"},
		{"Partitions", 3, "partitions"},
		{"WCKeys", 1, "wckeys"},
	}, set)
	n.names, n.accounts, n.wckeys = c.values["names"], c.values["accounts"], c.values["wckeys"]
	for _, it := range set {
		switch key, _ := match(userKeys, it.key); key {
		case "defaultaccount":
			n.def = strings.ToLower(it.value)
		case "defaultwckey":
			n.defWCKey = it.value
		case "adminlevel":
			var err error
			if n.level, n.levelText, err = adminLevel(it.value); err != nil {
				return n, s.refuseOption(it, err)
			}
		default:
			var shares int32
			var a core.Association
			if known, err := s.setAssoc(target{&shares, &a}, it, nil); !known || err != nil {
				return n, s.refuseOption(it, err)
			}
			n.rest = append(n.rest, it)
		}
	}
	switch {
	case !s.ours(&c):
		return n, slurm.ExitError
	case c.given("partitions"):
		s.w.Errorf("partition=%s: associations of one partition are not supported; a QOS of the partition (QOS=) can carry "+
			"such limits", strings.Join(c.values["partitions"], ","))
		return n, slurm.ExitError
	case len(n.names) == 0:
		fmt.Fprintln(s.w.Err, " Need name of user to add.")
		return n, slurm.ExitError
	}
	if n.defWCKey != "" && !slices.Contains(n.wckeys, n.defWCKey) {
		n.wckeys = append(n.wckeys, n.defWCKey)
	}
	if len(n.accounts) == 0 && n.def != "" {
		n.accounts = []string{n.def}
	}
	if n.def != "" && !slices.Contains(n.accounts, n.def) {
		n.accounts = append(n.accounts, n.def)
	}
	if len(n.accounts) == 0 && (len(n.wckeys) == 0 || slices.ContainsFunc(n.names, func(u string) bool {
		return !s.shown(u)
	})) {
		fmt.Fprintln(s.w.Err, " Need name of account to add user to.")
		return n, slurm.ExitError
	}
	return n, 0
}

func (s *adder) addUsers(set []item) int {
	n, code := s.parseNewUsers(set)
	if code != 0 {
		return code
	}
	changed := map[core.ProjectName]*core.Project{}
	var lines, keys []string
	for _, a := range n.accounts {
		if s.account(a) == nil {
			fmt.Fprintf(s.w.Err, " This account '%s' doesn't exist.\n        Contact your admin to add this account.\n"+
				" No associations or wckeys created.\n", a)
			return slurm.ExitError
		}
	}
	var settings []string
	for _, u := range n.names {
		for _, a := range n.accounts {
			p := s.account(a)
			if member(p, u) != nil {
				continue
			}
			one := core.Member{User: core.UserName(u), Role: core.RoleUser}
			for _, it := range n.rest { // they were read before
				if _, err := s.setAssoc(target{&one.Shares, &one.Assoc}, it, s.mayUse(p, nil)); err != nil {
					return s.refuseOption(it, err)
				}
			}
			p.Members = append(p.Members, one)
			changed[p.Name] = p
			lines = append(lines, fmt.Sprintf("  U = %-9.9s A = %-10s C = %-10s", u, p.Name, s.name))
			settings = assocSettings(one.Shares, &one.Assoc, "")
		}
	}
	first, fresh, keys := s.makeUsers(&n)
	if len(changed)+len(fresh)+len(keys) == 0 {
		s.say(" Nothing new added.")
		return slurm.ExitError
	}
	s.sayUsers(&n, fresh, lines, keys, settings)
	return s.commit(s.withNormal(core.Policy{Projects: values(changed)}), first...)
}

// makeUsers gives the calls that make users who are not there, and the lines of their new WCKeys.
func (s *adder) makeUsers(n *newUsers) (first []func() error, fresh, keys []string) {
	def := n.def
	if def == "" && len(n.accounts) > 0 {
		def = n.accounts[0]
	}
	for _, u := range n.names {
		name, old := core.UserName(u), s.user(u)
		if !s.shown(u) {
			fresh = append(fresh, u)
		}
		made := core.User{Name: name, UnixName: u, Role: n.level}
		if old != nil {
			made = *old
		} else {
			// The server makes the user a member of the default account; the policy says with which role.
			made.Default = core.ProjectName(def)
			first = append(first, func() error { return s.c.NewUser(s.ctx, &made) })
		}
		change := &client.UpdateUser{}
		// Nobody added a user who is in the account root alone: the first account is the default, as of a new user.
		unplaced := old != nil && old.Default == "root" && u != "root"
		if old != nil && def != "" && (n.def != "" && string(old.Default) != def || !s.shown(u) || unplaced) {
			d := core.ProjectName(def)
			change.Default = &d
		}
		if old != nil && n.level != "" && n.level != old.Role {
			change.Role = &n.level
		}
		list := slices.Clone(made.WCKeys)
		for _, k := range n.wckeys {
			if !slices.Contains(list, k) {
				list = append(list, k)
				keys = append(keys, fmt.Sprintf("  U = %-9.9s W = %-10s C = %-10s", u, k, s.name))
			}
		}
		if len(list) > len(made.WCKeys) {
			slices.Sort(list)
			change.WCKeys = &list
		}
		if n.defWCKey != "" && n.defWCKey != made.DefaultWCKey {
			change.DefaultWCKey = &n.defWCKey
		}
		if *change != (client.UpdateUser{}) {
			s.last = append(s.last, func() error { return s.c.UpdateUser(s.ctx, name, change) })
		}
	}
	return first, fresh, keys
}

// sayUsers prints what an add of users does.
func (s *adder) sayUsers(n *newUsers, fresh, lines, keys, settings []string) {
	block := func(title string, lines []string) {
		if len(lines) > 0 {
			s.say("%s", title)
			for _, l := range lines {
				s.say("%s", l)
			}
		}
	}
	if len(fresh) > 0 {
		s.say(" Adding User(s)")
		for _, u := range fresh {
			s.say("  %s", u)
		}
		if n.def != "" || n.defWCKey != "" || n.levelText != "" {
			s.say(" Settings =")
		}
		if n.def != "" {
			s.say("  Default Account = %s", n.def)
		}
		if n.defWCKey != "" {
			s.say("  Default WCKey   = %s", n.defWCKey)
		}
		if n.levelText != "" {
			s.say("  Admin Level     = %s", n.levelText)
		}
	}
	block(" Associations =", lines)
	block(" WCKeys =", keys)
	if len(lines) > 0 {
		s.say(" Non Default Settings")
		for _, l := range settings {
			s.say("%s", l)
		}
	}
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

// adminLevel reads a user's level and gives its name.
func adminLevel(text string) (core.Role, string, error) {
	key, _ := match([]keyword{{"None", 1, ""}, {"Administrator", 1, ""}, {"Operator", 1, ""}}, text)
	switch key {
	case "none":
		return core.RoleUser, "None", nil
	case "administrator":
		return core.RoleAdmin, "Administrator", nil
	case "operator":
		return "", "", &badValue{"AdminLevel Operator is not supported: give Administrator or None; a coordinator steers " +
			"the jobs of an account"}
	}
	return "", "", &badValue{fmt.Sprintf("Invalid AdminLevel value given '%s'", text)}
}

func (s *adder) addQOS(set []item) int {
	c, set := split([]keyword{{"Names", 1, "names"}, {"QOSLevel", 1, "names"}}, set)
	var out core.Policy
	shape := core.QOS{}
	for _, it := range set {
		if known, err := s.setQOS(&shape, it); !known || err != nil {
			return s.refuseQOSOption(it, err, " Need name of qos to add.")
		}
	}
	for _, n := range c.values["names"] {
		if s.qos(n) != nil {
			continue
		}
		q := shape
		q.Name = core.QOSName(n)
		if q.Description == "" {
			q.Description = n
		}
		out.QOS = append(out.QOS, q)
	}
	switch {
	case !c.given("names"):
		fmt.Fprintln(s.w.Err, " Need name of qos to add.")
		return slurm.ExitError
	case len(out.QOS) == 0:
		s.say(" Nothing new added.")
		return slurm.ExitError
	}
	s.say(" Adding QOS(s)")
	for _, q := range out.QOS {
		s.say("  %s", q.Name)
	}
	s.say(" Settings")
	s.say("  Description    = %s", out.QOS[len(out.QOS)-1].Description)
	for _, l := range qosSettings(&shape) {
		s.say("%s", l)
	}
	return s.commit(s.withNormal(out))
}
