package sacctmgr

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

func (s *remover) remove(args []string) int {
	what, rest := entity(args)
	where, set := items(rest)
	if code := s.unsupported(what); code != 0 {
		return code
	}
	words := map[string][]keyword{
		"accounts": accountWords, "users": userWords, "qos": qosWords, "coordinators": coordinatorWords,
	}[what]
	if words == nil {
		fmt.Fprint(s.w.Err, "No valid entity in delete command\nInput line must include \"Account\", \"Cluster\", "+
			"\"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\"\n")
		return slurm.ExitError
	}
	c, bad := parseCondition(words, append(where, set...))
	switch {
	case bad != nil:
		code := s.refuseCondition(what, bad)
		if what == "qos" && c.empty() {
			fmt.Fprintln(s.w.Err, " No conditions given to remove, not executing.")
		}
		return code
	case c.empty():
		fmt.Fprintln(s.w.Err, " No conditions given to remove, not executing.")
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	switch what {
	case "coordinators":
		return s.removeCoordinators(&c)
	case "users":
		if c.given("wckeys") {
			return s.removeWCKeys(&c)
		}
		return s.removeUsers(&c)
	case "qos":
		return s.removeQOS(&c)
	}
	return s.removeAccounts(&c)
}

// nothing ends a removal that found nothing.
func (s *remover) nothing() int {
	s.say(" Nothing deleted")
	return slurm.ExitError
}

func (s *remover) removeQOS(c *condition) int {
	var first []func() error
	var lines, defaults []string
	for i := range s.policy.QOS {
		q := &s.policy.QOS[i]
		if !s.qosIs(c, q) {
			continue
		}
		lines = append(lines, "  "+string(q.Name))
		first = append(first, func() error { return s.c.Drop(s.ctx, client.DropQOS, string(q.Name)) })
		for _, p := range s.policy.Projects {
			if p.Assoc.DefaultQOS == q.Name {
				defaults = append(defaults, fmt.Sprintf("  DefQOS = %-10s C = %-10s A = %-20s", q.Name, s.name, p.Name))
			}
			for _, m := range p.Members {
				if m.Assoc.DefaultQOS == q.Name {
					defaults = append(defaults, fmt.Sprintf("  DefQOS = %-10s C = %-10s A = %-20s U = %-9s", q.Name, s.name, p.Name,
						m.User))
				}
			}
		}
	}
	if len(lines) == 0 {
		return s.nothing()
	}
	if len(defaults) > 0 {
		fmt.Fprintln(s.w.Err, " Associations listed below have these as their Default QOS.")
		for _, l := range defaults {
			fmt.Fprintln(s.w.Err, l)
		}
		fmt.Fprint(s.w.Err, " Please either remove the qos' listed above from list and resubmit,\n"+
			" or change the default qos to remove the qos.\n Changes Discarded\n")
		return slurm.ExitError
	}
	s.sayAll(" Deleting QOS(s)...", lines)
	return s.commit(core.Policy{}, first...)
}

func (s *remover) removeAccounts(c *condition) int {
	var gone []*core.Project
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		if s.accountIs(c, p) && s.assocIs(c, p, nil) && !c.given("users") && p.Name != "root" {
			gone = append(gone, p)
		}
	}
	if len(gone) == 0 {
		return s.nothing()
	}
	gone = s.below(gone)
	if code := s.activeJobs(func(j *client.Job) bool {
		return slices.ContainsFunc(gone, func(p *core.Project) bool { return p.Name == j.Spec.Project })
	}); code != 0 {
		return code
	}
	var first []func() error
	title, lines := " Deleting accounts...", []string{}
	if c.given("clusters") {
		title = " Deleting account associations..."
	}
	for _, p := range gone {
		if c.given("clusters") {
			lines = append(lines, s.accountLine(p))
		} else if c.has("names", string(p.Name)) {
			lines = append(lines, "  "+string(p.Name))
		}
	}
	for i := len(gone) - 1; i >= 0; i-- { // those below first
		p := gone[i]
		first = append(first, func() error { return s.c.Drop(s.ctx, client.DropProject, string(p.Name)) })
	}
	s.sayAll(title, lines)
	return s.commit(core.Policy{}, first...)
}

// below adds the accounts below some, each after the one above it.
func (s *records) below(list []*core.Project) (out []*core.Project) {
	meant := map[core.ProjectName]bool{}
	for _, p := range list {
		s.walk(p.Name, 0, func(k *core.Project, _ int) { meant[k.Name] = true })
	}
	s.walk("root", 0, func(k *core.Project, _ int) {
		if meant[k.Name] {
			out = append(out, k)
		}
	})
	return out
}

// activeJobs refuses a removal while one of the jobs concerned is not finished.
func (s *remover) activeJobs(concerned func(j *client.Job) bool) int {
	jobs, err := s.c.Jobs(s.ctx, client.JobsQuery{})
	if err != nil {
		return s.failed(err)
	}
	found := false
	for i := range jobs.Jobs {
		j := &jobs.Jobs[i]
		if !j.Live() || !concerned(j) {
			continue
		}
		if !found {
			fmt.Fprintln(s.w.Err, " Error with request: Job(s) active, cancel job(s) before remove")
		}
		found = true
		fmt.Fprintf(s.w.Err, "  JobID = %-10d C = %-10s A = %-10s U = %-9s\n", j.ID, s.name, j.Spec.Project, j.Spec.User)
	}
	if found {
		return slurm.ExitError
	}
	return 0
}

func (s *remover) removeUsers(c *condition) int {
	var first []func() error
	var lines, users, left []string
	partial := c.given("accounts") || c.given("clusters") || c.given("partitions") || c.given("qos")
	for i := range s.users {
		u := &s.users[i]
		if !s.userIs(c, u) || !s.inAccounts(c, u) {
			continue
		}
		if !partial {
			users = append(users, "  "+string(u.Name))
			first = append(first, func() error { return s.c.Drop(s.ctx, client.DropUser, string(u.Name)) })
			continue
		}
		all, some, calls := s.leave(c, u)
		lines, first = append(lines, some...), append(first, calls...)
		if all {
			left = append(left, "  "+string(u.Name))
			first = append(first, func() error { return s.c.Drop(s.ctx, client.DropUser, string(u.Name)) })
		}
	}
	if len(lines)+len(users) == 0 {
		return s.nothing()
	}
	if code := s.activeJobs(func(j *client.Job) bool {
		return s.user(string(j.Spec.User)) != nil && s.userIs(c, s.user(string(j.Spec.User))) &&
			c.has("accounts", string(j.Spec.Project))
	}); code != 0 {
		return code
	}
	s.sayAll(" Deleting users...", users)
	s.sayAll(" Deleting user associations...", lines)
	s.sayAll(" Deleting users (No Associations)...", left)
	return s.commit(core.Policy{}, first...)
}

// leave gives the calls that take a user out of the accounts that a condition names, and reports whether none is left.
func (s *remover) leave(c *condition, u *core.User) (all bool, lines []string, calls []func() error) {
	stays, moved := "", false
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		m := member(p, string(u.Name))
		if m == nil {
			continue
		}
		if !c.has("accounts", string(p.Name)) || !s.assocIs(c, p, m) {
			if stays == "" {
				stays = string(p.Name)
			}
			continue
		}
		moved = moved || u.Default == p.Name
		lines = append(lines, fmt.Sprintf("  C = %-10s A = %-10s U = %-9s", s.name, p.Name, u.Name))
		calls = append(calls, func() error { return s.c.PutMember(s.ctx, p.Name, u.Name, core.RoleNone) })
	}
	if d := core.ProjectName(stays); moved && stays != "" {
		calls = append([]func() error{func() error {
			return s.c.UpdateUser(s.ctx, u.Name, &client.UpdateUser{Default: &d})
		}}, calls...)
	}
	return stays == "" && len(lines) > 0, lines, calls
}

// removeWCKeys takes WCKeys from users; the users stay.
func (s *remover) removeWCKeys(c *condition) int {
	keys := c.values["wckeys"]
	delete(c.values, "wckeys")
	var first []func() error
	var lines []string
	for i := range s.users {
		u := &s.users[i]
		if !s.userIs(c, u) || !s.inAccounts(c, u) {
			continue
		}
		stay := []string{}
		for _, k := range u.WCKeys {
			if slices.Contains(keys, k) {
				lines = append(lines, fmt.Sprintf("  C = %-10s W = %-20s U = %-9s", s.name, k, u.Name))
			} else {
				stay = append(stay, k)
			}
		}
		if len(stay) == len(u.WCKeys) {
			continue
		}
		change := &client.UpdateUser{WCKeys: &stay}
		if none := ""; slices.Contains(keys, u.DefaultWCKey) {
			change.DefaultWCKey = &none
		}
		first = append(first, func() error { return s.c.UpdateUser(s.ctx, u.Name, change) })
	}
	if len(lines) == 0 {
		return s.nothing()
	}
	s.sayAll(" Deleting user WCKeys...", lines)
	return s.commit(core.Policy{}, first...)
}

// coordination reads who is to coordinate what.
func (s *run) coordination(c *condition) (users, accounts []string, code int) {
	users, accounts = c.values["names"], c.values["accounts"]
	for _, a := range accounts {
		if s.account(a) == nil {
			fmt.Fprintf(s.w.Err, " You specified a non-existent account '%s'.\n", a)
			return nil, nil, slurm.ExitError
		}
	}
	for _, u := range users {
		if s.user(u) == nil {
			fmt.Fprintf(s.w.Err, " You specified a non-existent user '%s'.\n", u)
			return nil, nil, slurm.ExitError
		}
	}
	return users, accounts, 0
}

// addCoordinators makes users managers of accounts; one who is not in an account becomes a member of it.
func (s *adder) addCoordinators(set []item) int {
	c, bad := parseCondition(coordinatorWords, set)
	if bad != nil {
		return s.refuseOption(*bad, nil)
	}
	users, accounts, code := s.coordination(&c)
	switch {
	case code != 0:
		return code
	case len(users) == 0:
		fmt.Fprintln(s.w.Err, " You need to specify a user list here.")
		return slurm.ExitError
	case len(accounts) == 0:
		fmt.Fprintln(s.w.Err, " You need to specify an account list here.")
		return slurm.ExitError
	}
	var first []func() error
	for _, a := range accounts {
		for _, u := range users {
			first = append(first, s.setRole(s.account(a).Name, u, core.RoleManager))
		}
	}
	s.say(" Adding Coordinator User(s)")
	s.sayNames(users)
	s.say(" To Account(s) and all sub-accounts")
	s.sayNames(accounts)
	return s.commit(core.Policy{}, first...)
}

func (s *run) setRole(p core.ProjectName, user string, role core.Role) func() error {
	return func() error { return s.c.PutMember(s.ctx, p, core.UserName(user), role) }
}

func (s *run) sayNames(names []string) {
	for _, n := range names {
		s.say("  %s", n)
	}
}

// removeCoordinators takes the manager's role from members of accounts; they stay members.
func (s *remover) removeCoordinators(c *condition) int {
	users, accounts, code := s.coordination(c)
	if code != 0 {
		return code
	}
	var first []func() error
	var lines []string
	for i := range s.policy.Projects {
		p := &s.policy.Projects[i]
		for _, m := range p.Members {
			if m.Role == core.RoleManager && c.has("accounts", string(p.Name)) && c.has("names", string(m.User)) {
				lines = append(lines, fmt.Sprintf("  U = %-9s A = %-10s", m.User, p.Name))
				first = append(first, s.setRole(p.Name, string(m.User), core.RoleUser))
			}
		}
	}
	if len(users) > 0 {
		s.say(" Removing Coordinators with user name")
		s.sayNames(users)
	}
	if len(accounts) > 0 {
		s.say(" From Account(s)")
		s.sayNames(accounts)
	}
	if len(lines) == 0 {
		s.say(" Nothing removed")
		return slurm.ExitError
	}
	s.sayAll(" Removed Coordinators (sub accounts not listed)...", lines)
	return s.commit(core.Policy{}, first...)
}
