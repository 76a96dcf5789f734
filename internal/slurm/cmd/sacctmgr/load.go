package sacctmgr

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// loader reads a file as dump writes it and makes what is not there yet. All of it is read before anything is changed.
type loader struct {
	*run
	parent   core.ProjectName
	projects map[core.ProjectName]bool // that are new or changed
	accounts []core.ProjectName        // new ones
	members  []pairOf                  // new ones
	users    map[string]*core.User     // new ones
	fresh    []string                  // their names, in order
	changed  []string                  // lines
	later    map[string]*client.UpdateUser

	clustered    bool     // the file has named its cluster
	coordinators []pairOf // as the file says; an account may come after the user
}

type pairOf struct {
	account core.ProjectName
	user    string
}

// path is where a file lies that may be named relative to the current directory.
func (s *run) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.w.Dir, name)
}

// loadFile is the verb load.
func (s *run) loadFile(args []string) int {
	began := time.Now()
	file, cluster := "", ""
	for _, a := range args {
		it := parseItem(a)
		key, _ := match([]keyword{{"Clusters", 3, ""}, {"Clean", 3, ""}, {"File", 1, ""}}, it.key)
		switch {
		case it.key == "" && strings.EqualFold(a, "clean"):
			s.w.Errorf("load with clean is not supported: what is there would be lost with it; delete it first")
			return slurm.ExitError
		case it.key == "", key == "file":
			file = it.value
		case key == "clusters":
			cluster = it.value
		default:
			fmt.Fprintf(s.w.Err, " Unknown option: %s\n", a)
			return slurm.ExitError
		}
	}
	if file == "" {
		fmt.Fprintln(s.w.Err, " No filename given, specify one with file=''")
		return slurm.ExitError
	}
	text, err := os.ReadFile(s.path(file))
	if err != nil {
		fmt.Fprintf(s.w.Err, " Unable to read \"%s\": %s\n", file, cmd.ErrnoText(err))
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	l := &loader{
		run: s, projects: map[core.ProjectName]bool{}, users: map[string]*core.User{},
		later: map[string]*client.UpdateUser{},
	}
	if code := l.read(string(text), cluster); code != 0 {
		return code
	}
	if code := l.coordinate(); code != 0 {
		return code
	}
	if code := l.apply(); code != 0 {
		return code
	}
	s.w.Infof("Done adding cluster in usec=%d", time.Since(began).Microseconds())
	return 0
}

// read takes all lines in.
func (l *loader) read(text, cluster string) int {
	n := 0
	for t := range strings.Lines(text) {
		n++
		if t = strings.TrimSpace(t); t == "" || t[0] == '#' {
			continue
		}
		one, ok := parseFlat(t)
		if !ok {
			fmt.Fprintf(l.w.Err, " Misformatted line(%d): %s\n", n, t)
			return slurm.ExitError
		}
		if code := l.take(&one, n, cluster); code != 0 {
			return code
		}
	}
	return 0
}

func (l *loader) take(one *line, n int, cluster string) int {
	if l.clustered = l.clustered || one.kind == "cluster"; !l.clustered {
		fmt.Fprintln(l.w.Err, " You need to specify a cluster name first with 'Cluster - $NAME' in your file")
		return slurm.ExitError
	}
	switch one.kind {
	case "cluster":
		if name := orName(cluster, one.name); !strings.EqualFold(name, l.name) {
			fmt.Fprintf(l.w.Err, " This server keeps the records of cluster %s only; the file is for %s\n", l.name, name)
			return slurm.ExitError
		}
		l.say("For cluster %s", l.name)
		return 0
	case "parent":
		p := l.account(one.name)
		if p == nil {
			fmt.Fprintf(l.w.Err, " line(%d) You need to add this parent (%s) as a child before you can add children to "+
				"it.\n", n, one.name)
			return slurm.ExitError
		}
		l.parent = p.Name
		return 0
	case "account", "project":
		return l.takeAccount(one, n)
	case "user":
		return l.takeUser(one, n)
	}
	fmt.Fprintf(l.w.Err, " Misformatted line(%d): %s\n", n, one.text)
	return slurm.ExitError
}

// refuse says what is wrong with a setting of a line.
func (l *loader) refuse(it item, err error, n int) int {
	if l.sayBadValue(it, err); err == nil {
		fmt.Fprintf(l.w.Err, " Unknown option: %s\n", it.raw)
	}
	fmt.Fprintf(l.w.Err, " Problem with line(%d)\n", n)
	return slurm.ExitError
}

// coordinate makes users coordinators of the accounts that their lines name; one who is not in an account becomes a
// member of it.
func (l *loader) coordinate() int {
	for _, k := range l.coordinators {
		p := l.account(string(k.account))
		if p == nil {
			fmt.Fprintf(l.w.Err, " This account '%s' doesn't exist.\n"+
				"        Contact your admin to add this account.\n", k.account)
			return slurm.ExitError
		}
		m := member(p, k.user)
		if m == nil {
			p.Members = append(p.Members, core.Member{User: core.UserName(k.user)})
			m = member(p, k.user)
		}
		if m.Role.Rank() >= core.RoleManager.Rank() {
			continue
		}
		if m.Role = core.RoleManager; l.users[k.user] == nil {
			l.changed = append(l.changed,
				fmt.Sprintf(" Making User '%s' coordinator for account(s) %s", k.user, k.account))
		}
		l.projects[p.Name] = true
	}
	return 0
}

func (l *loader) takeAccount(one *line, n int) int {
	p := l.account(one.name)
	if p == nil {
		fresh := core.Project{Name: core.ProjectName(strings.ToLower(one.name)), Parent: l.parent}
		if fresh.Parent == "root" {
			fresh.Parent = ""
		}
		l.policy.Projects = append(l.policy.Projects, fresh)
		p = l.account(one.name)
		l.accounts = append(l.accounts, p.Name)
	}
	l.projects[p.Name] = true
	for _, it := range one.set {
		switch key, _ := match(accountKeys, it.key); key {
		case "description":
			p.Description = strings.ToLower(it.value)
		case "organization":
			p.Organization = strings.ToLower(it.value)
		default:
			if known, err := l.setAssoc(target{&p.Shares, &p.Assoc}, it, l.mayUse(p, nil)); !known || err != nil {
				return l.refuse(it, err, n)
			}
		}
	}
	return 0
}

func (l *loader) takeUser(one *line, n int) int {
	p := l.account(orName(string(l.parent), "root"))
	m := member(p, one.name)
	if m == nil {
		p.Members = append(p.Members, core.Member{User: core.UserName(one.name), Role: core.RoleUser})
		m = member(p, one.name)
		l.members = append(l.members, pairOf{p.Name, one.name})
	}
	l.projects[p.Name] = true
	u := l.user(one.name)
	if u == nil {
		if u = l.users[one.name]; u == nil {
			u = &core.User{Name: core.UserName(one.name), UnixName: one.name, Default: p.Name}
			l.users[one.name] = u
			l.fresh = append(l.fresh, one.name)
		}
	}
	change := &client.UpdateUser{}
	for _, it := range one.set {
		if known, err := l.setUser(u, m, p, change, it); !known || err != nil {
			return l.refuse(it, err, n)
		}
	}
	if l.users[one.name] == nil && *change != (client.UpdateUser{}) {
		l.later[one.name] = change
	}
	return 0
}

// setUser sets what a line says of a user, or of its association.
func (l *loader) setUser(u *core.User, m *core.Member, p *core.Project, change *client.UpdateUser, it item) (
	known bool, err error,
) {
	switch key, _ := match(append([]keyword{{"Coordinator", 3, ""}, {"WCKeys", 1, ""}}, userKeys...), it.key); key {
	case "coordinator": // of the accounts named, whichever the line is about
		for _, account := range list(it.value) {
			l.coordinators = append(l.coordinators, pairOf{core.ProjectName(account), string(m.User)})
		}
	case "wckeys":
		keys := list(it.value)
		slices.Sort(keys)
		if !slices.Equal(keys, u.WCKeys) {
			u.WCKeys, change.WCKeys = keys, &keys
		}
	case "defaultwckey":
		if u.DefaultWCKey != it.value {
			u.DefaultWCKey, change.DefaultWCKey = it.value, &it.value
		}
	case "adminlevel":
		role, _, err := adminLevel(it.value)
		if err != nil {
			return true, err
		}
		if u.Role != role {
			u.Role, change.Role = role, &role
		}
	case "defaultaccount":
		d := core.ProjectName(strings.ToLower(it.value))
		if u.Default != d {
			if l.users[string(u.Name)] == nil {
				l.changed = append(l.changed, fmt.Sprintf(" Changed %-21s for %-7s %-10s %8s -> %s", "Default Account", "User",
					u.Name, u.Default, d))
			}
			u.Default, change.Default = d, &d
		}
	default:
		return l.setAssoc(target{&m.Shares, &m.Assoc}, it, l.mayUse(p, nil))
	}
	return true, nil
}

const loadAssoc = "Share,GrpTRESMins,GrpTRESRunMins,GrpTRES,GrpJobs,GrpJobsAccrue,GrpMemory,GrpNodes,GrpSubmit," +
	"GrpWall,MaxTRESMins,MaxTRES,MaxTRESPerNode,MaxJobs,MaxSubmit,MaxNodes,MaxWall,QOS,DefaultQOS"

// tables shows what is new.
func (l *loader) tables() {
	list := &lister{l.run}
	show := func(title, format string, dashes int, rows []row) {
		if len(rows) == 0 || l.quiet {
			return
		}
		for i := range rows {
			rows[i].s = list
		}
		fmt.Fprintln(l.w.Out, title)
		cols, _ := parseFormat(format, false)
		l.print(cols, rows)
		fmt.Fprintf(l.w.Out, "%s\n\n", strings.Repeat("-", dashes))
	}
	var accounts, users, ofAccounts, ofUsers []row
	for _, name := range l.accounts {
		accounts = append(accounts, row{p: l.account(string(name))})
		ofAccounts = append(ofAccounts, row{p: l.account(string(name)), assoc: true})
	}
	for _, name := range l.fresh {
		users = append(users, row{u: l.users[name]})
	}
	for _, m := range l.members {
		p := l.account(string(m.account))
		ofUsers = append(ofUsers, row{p: p, m: member(p, m.user), assoc: true})
	}
	show("Accounts", "Account,Descr,Organization,QOS", 51, accounts)
	show("Account Associations", "Account,ParentName,"+loadAssoc, 62, ofAccounts)
	show("Users", "Name,DefaultAccount,DefaultWCKey,QOS,AdminLevel,Coordinators", 51, users)
	show("User Associations", "User,Account,"+loadAssoc, 62, ofUsers)
}

// apply makes accounts, then users, then members: users must have an account that is there.
func (l *loader) apply() int {
	for _, t := range l.changed {
		l.say("%s", t)
	}
	if len(l.accounts)+len(l.members)+len(l.changed)+len(l.later) == 0 {
		l.say(" Nothing new added.")
	}
	l.tables()
	if !l.immediate && !l.agree() {
		fmt.Fprintln(l.w.Out, " Changes Discarded")
		return 0
	}
	var bare, full core.Policy
	for i := range l.policy.Projects {
		p := l.policy.Projects[i]
		if !l.projects[p.Name] {
			continue
		}
		full.Projects = append(full.Projects, p)
		p.Members = slices.DeleteFunc(slices.Clone(p.Members), func(m core.Member) bool {
			return l.users[string(m.User)] != nil
		})
		bare.Projects = append(bare.Projects, p)
	}
	steps := []func() error{l.putPolicy(l.withNormal(bare))}
	for _, name := range l.fresh {
		u := *l.users[name]
		steps = append(steps, func() error { return l.c.NewUser(l.ctx, &u) })
	}
	steps = append(steps, l.putPolicy(full))
	for name, change := range l.later {
		steps = append(steps, func() error { return l.c.UpdateUser(l.ctx, core.UserName(name), change) })
	}
	for _, do := range steps {
		if err := do(); err != nil {
			return l.failed(err)
		}
	}
	return 0
}

func (l *loader) putPolicy(p core.Policy) func() error {
	return func() error {
		if len(p.Projects)+len(p.QOS) == 0 {
			return nil
		}
		_, err := l.c.ApplyPolicy(l.ctx, &client.ApplyPolicy{Policy: p, Force: true})
		return err
	}
}
