package sacctmgr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// refuseOption says that an option is not known, or its value is not good. Nothing has been changed.
func (s *run) refuseOption(it item, err error) int {
	s.sayBadValue(it, err)
	fmt.Fprintf(s.w.Err, " Unknown option: %s\n Use keyword 'where' to modify condition\n", it.raw)
	return slurm.ExitError
}

// refuseQOSOption is refuseOption as it is said of a QOS: a bad value leaves nothing to do.
func (s *run) refuseQOSOption(it item, err error, nothing string) int {
	if err != nil {
		s.sayBadValue(it, err)
		fmt.Fprintln(s.w.Err, nothing)
		return slurm.ExitError
	}
	fmt.Fprintf(s.w.Out, " Unknown option: %s\n Use keyword 'where' to modify condition\n", it.raw)
	return slurm.ExitError
}

func (s *run) sayBadValue(it item, err error) {
	var bad *badValue
	switch {
	case err == nil:
	case errors.As(err, &bad):
		s.w.Errorf("%s", bad.text)
	default:
		s.w.Errorf("Invalid value for %s (%s)", properName(it.key), it.value)
		s.w.Hint(err.Error())
	}
}

// properName is the name of a key as Slurm writes it.
func properName(typed string) string {
	for _, table := range [][]keyword{associationKeys, qosKeys} {
		key, ok := match(table, typed)
		for _, k := range table {
			if ok && (strings.EqualFold(k.name, key) || k.key == key) {
				return k.name
			}
		}
	}
	return typed
}

// refuseCondition says that a condition is not understood. Nothing has been changed.
func (s *run) refuseCondition(what string, it *item) int {
	fmt.Fprintf(s.w.Err, " Unknown condition: %s\n", it.raw)
	switch what {
	case "qos":
		fmt.Fprintln(s.w.Err, " Use keyword 'set' to modify SLURM_PRINT_VALUE")
	case "associations":
	default:
		fmt.Fprintln(s.w.Err, " Use keyword 'set' to modify value")
	}
	return slurm.ExitError
}

func (s *modifier) modify(args []string) int {
	what, rest := entity(args)
	where, set := items(rest)
	if code := s.unsupported(what); code != 0 {
		return code
	}
	words := map[string][]keyword{"accounts": accountWords, "users": userWords, "qos": qosWords}[what]
	if words == nil {
		fmt.Fprint(s.w.Err, "No valid entity in modify command\nInput line must include \"Account\", \"Cluster\", "+
			"\"Federation\", \"Job\", \"QOS\", \"Resource\" or \"User\"\n")
		return slurm.ExitError
	}
	c, bad := parseCondition(words, where)
	if bad != nil {
		return s.refuseCondition(what, bad)
	}
	if len(set) == 0 {
		fmt.Fprintln(s.w.Err, " You didn't give me anything to set")
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	switch what {
	case "accounts":
		return s.modifyAccounts(&c, set)
	case "users":
		return s.modifyUsers(&c, set)
	}
	return s.modifyQOS(&c, set)
}

func (s *modifier) modifyQOS(c *condition, set []item) int {
	for _, it := range set {
		var q core.QOS
		if known, err := s.setQOS(&q, it); !known || err != nil {
			return s.refuseQOSOption(it, err, " You didn't give me anything to set")
		}
	}
	var out core.Policy
	for i := range s.policy.QOS {
		q := &s.policy.QOS[i]
		if !s.qosIs(c, q) {
			continue
		}
		for _, it := range set {
			if _, err := s.setQOS(q, it); err != nil {
				return s.refuseQOSOption(it, err, " You didn't give me anything to set")
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

// qosIs reports whether a condition holds for a QOS.
func (s *records) qosIs(c *condition, q *core.QOS) bool {
	return c.has("names", string(q.Name)) && c.has("ids", fmt.Sprint(s.qosID(q))) &&
		c.has("descriptions", q.Description)
}

// accountIs reports whether a condition holds for an account, whatever users it names.
func (s *records) accountIs(c *condition, p *core.Project) bool {
	parent := ""
	if p.Name != "root" {
		parent = orName(string(p.Parent), "root")
	}
	return c.has("names", string(p.Name)) && c.has("accounts", string(p.Name)) && c.has("clusters", s.name) &&
		c.has("parents", parent) && c.has("descriptions", accountDescription(p)) &&
		c.has("organizations", accountOrganization(p))
}

// assocIs reports whether a condition holds for the QOS of an association.
func (s *records) assocIs(c *condition, p *core.Project, m *core.Member) bool {
	def := p.Assoc.DefaultQOS
	id := s.assocID(p, m)
	if m != nil {
		def = m.Assoc.DefaultQOS
	}
	if !c.has("ids", fmt.Sprint(id)) || !c.has("defaultqos", string(def)) || c.given("partitions") {
		return false
	}
	return !c.given("qos") || slices.ContainsFunc(s.mayUse(p, m), func(q core.QOSName) bool {
		return c.has("qos", string(q))
	})
}

// accountLine is how an account's association is listed.
func (s *records) accountLine(p *core.Project) string {
	if p.Name == "root" {
		return fmt.Sprintf("  C = %-10s A = %s", s.name, p.Name)
	}
	return fmt.Sprintf("  C = %-10s A = %s of %s", s.name, p.Name, orName(string(p.Parent), "root"))
}

// memberLine is how a user's association is listed.
func (s *records) memberLine(p *core.Project, user core.UserName) string {
	return fmt.Sprintf("  C = %-10s A = %-20s U = %-9s", s.name, p.Name, user)
}

func (s *modifier) modifyAccounts(c *condition, set []item) int {
	var record, assoc []item
	for _, it := range set {
		key, ok := match(accountKeys, it.key)
		switch {
		case ok && key != "parent":
			record = append(record, it)
		case ok:
			up := s.account(it.value)
			if up == nil {
				fmt.Fprintf(s.w.Err, " Parent Account %s doesn't exist.\n", it.value)
				return slurm.ExitError
			}
			assoc = append(assoc, it)
		default:
			var shares int32
			var a core.Association
			if known, err := s.setAssoc(target{&shares, &a}, it, nil); !known || err != nil {
				return s.refuseOption(it, err)
			}
			assoc = append(assoc, it)
		}
	}
	changed := map[core.ProjectName]*core.Project{}
	var names, lines []string
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		if !s.accountIs(c, p) {
			continue
		}
		if len(record) > 0 && !c.given("users") {
			setRecord(p, record)
			names, changed[p.Name] = append(names, "  "+string(p.Name)), p
		}
		more, code := s.modifyAccount(c, p, assoc)
		if code != 0 {
			return code
		}
		if lines = append(lines, more...); len(more) > 0 {
			changed[p.Name] = p
		}
	}
	if len(names)+len(lines) == 0 {
		s.say(" Nothing modified")
		return slurm.ExitError
	}
	s.sayAll(" Modified accounts...", names)
	s.sayAll(" Modified account associations...", lines)
	return s.commit(s.withNormal(core.Policy{Projects: values(changed)}))
}

// setRecord sets what an account has beside its association.
func setRecord(p *core.Project, set []item) {
	for _, it := range set {
		if key, _ := match(accountKeys, it.key); key == "description" {
			p.Description = strings.ToLower(it.value)
		} else {
			p.Organization = strings.ToLower(it.value)
		}
	}
}

// modifyAccount changes an account's association or, where a condition names users, theirs in it.
func (s *modifier) modifyAccount(c *condition, p *core.Project, set []item) (lines []string, code int) {
	if len(set) == 0 {
		return nil, 0
	}
	if c.given("users") {
		for k := range p.Members {
			m := &p.Members[k]
			if !c.has("users", string(m.User)) || !s.assocIs(c, p, m) {
				continue
			}
			for _, it := range set {
				if known, err := s.setAssoc(target{&m.Shares, &m.Assoc}, it, s.mayUse(p, nil)); !known || err != nil {
					return nil, s.refuseOption(it, err) // a parent has no meaning here
				}
			}
			lines = append(lines, s.memberLine(p, m.User))
		}
		return lines, 0
	}
	if !s.assocIs(c, p, nil) {
		return nil, 0
	}
	for _, it := range set {
		if key, _ := match(accountKeys, it.key); key == "parent" {
			up := s.account(it.value).Name
			if string(up) == orName(string(p.Parent), "root") && len(set) == 1 {
				return nil, 0
			}
			if p.Parent = up; up == "root" {
				p.Parent = ""
			}
			continue
		}
		if _, err := s.setAssoc(target{&p.Shares, &p.Assoc}, it, s.mayUse(p, nil)); err != nil {
			return nil, s.refuseOption(it, err)
		}
	}
	return []string{s.accountLine(p)}, 0
}

// sayAll prints a title and its lines, if there are any.
func (s *run) sayAll(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	s.say("%s", title)
	for _, l := range lines {
		s.say("%s", l)
	}
}

// userIs reports whether a condition holds for a user, whatever accounts it names.
func (s *records) userIs(c *condition, u *core.User) bool {
	level := "none"
	if u.Role == core.RoleAdmin {
		level = "administrator"
	}
	for _, text := range c.values["adminlevels"] {
		if !strings.HasPrefix(level, text) {
			return false
		}
	}
	return c.has("names", string(u.Name)) && c.has("defaultaccounts", string(u.Default)) &&
		c.has("defaultwckeys", u.DefaultWCKey) && c.has("clusters", s.name) &&
		(!c.given("wckeys") || slices.ContainsFunc(u.WCKeys, func(k string) bool { return c.has("wckeys", k) }))
}

func (s *modifier) modifyUsers(c *condition, set []item) int {
	change := client.UpdateUser{}
	var assoc []item
	for _, it := range set {
		key, ok := match(userKeys, it.key)
		switch {
		case ok && key == "adminlevel":
			role, _, err := adminLevel(it.value)
			if err != nil {
				return s.refuseOption(it, err)
			}
			change.Role = &role
		case ok && key == "defaultaccount":
			d := core.ProjectName(strings.ToLower(it.value))
			change.Default = &d
		case ok:
			change.DefaultWCKey = &it.value
		default:
			var shares int32
			var a core.Association
			if known, err := s.setAssoc(target{&shares, &a}, it, nil); !known || err != nil {
				return s.refuseOption(it, err)
			}
			assoc = append(assoc, it)
		}
	}
	var first []func() error
	var names, lines []string
	if change != (client.UpdateUser{}) {
		var code int
		if first, names, code = s.changeUsers(c, &change); code != 0 {
			return code
		}
	}
	changed := map[core.ProjectName]*core.Project{}
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		for k := range p.Members {
			m := &p.Members[k]
			u := s.user(string(m.User))
			if len(assoc) == 0 || u == nil || !s.userIs(c, u) || !c.has("accounts", string(p.Name)) || !s.assocIs(c, p, m) {
				continue
			}
			for _, it := range assoc {
				if _, err := s.setAssoc(target{&m.Shares, &m.Assoc}, it, s.mayUse(p, nil)); err != nil {
					return s.refuseOption(it, err)
				}
			}
			changed[p.Name] = p
			lines = append(lines, s.memberLine(p, m.User))
		}
	}
	if len(names)+len(lines) == 0 {
		s.say(" Nothing modified")
		return slurm.ExitError
	}
	s.sayAll(" Modified users...", names)
	s.sayAll(" Modified user associations...", lines)
	return s.commit(s.withNormal(core.Policy{Projects: values(changed)}), first...)
}

// changeUsers gives the calls that change the records of users.
func (s *modifier) changeUsers(c *condition, change *client.UpdateUser) (
	first []func() error, names []string, code int,
) {
	var apart []string
	for i := range s.users {
		u := &s.users[i]
		if !s.userIs(c, u) || !s.inAccounts(c, u) {
			continue
		}
		if change.Default != nil {
			if p := s.account(string(*change.Default)); p == nil || member(p, string(u.Name)) == nil {
				apart = append(apart, fmt.Sprintf("  U = %s C = %s", u.Name, s.name))
			}
		}
		one := *change
		if k := change.DefaultWCKey; k != nil && *k != "" && !slices.Contains(u.WCKeys, *k) {
			keys := append(slices.Clone(u.WCKeys), *k)
			slices.Sort(keys)
			one.WCKeys = &keys
		}
		names = append(names, "  "+string(u.Name))
		first = append(first, func() error { return s.c.UpdateUser(s.ctx, u.Name, &one) })
	}
	if len(apart) > 0 {
		s.say(" Can't modify because these users aren't associated with new default account '%s'...", *change.Default)
		for _, l := range apart {
			s.say("%s", l)
		}
		return nil, nil, slurm.ExitError
	}
	return first, names, 0
}

// inAccounts reports whether a user is in one of the accounts that a condition names, if it names any.
func (s *records) inAccounts(c *condition, u *core.User) bool {
	if !c.given("accounts") && !c.given("qos") && !c.given("partitions") {
		return true
	}
	return slices.ContainsFunc(s.policy.Projects, func(p core.Project) bool {
		m := member(&p, string(u.Name))
		return m != nil && c.has("accounts", string(p.Name)) && s.assocIs(c, &p, m)
	})
}

// mayUse lists the QOS of an association: its own list, or that of the accounts above; at the root there is normal.
func (s *records) mayUse(p *core.Project, m *core.Member) []core.QOSName {
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
