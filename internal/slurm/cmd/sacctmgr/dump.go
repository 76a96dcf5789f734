package sacctmgr

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// dump writes the accounts and users as a flat file that Slurm's own sacctmgr can load.
func (s *lister) dump(args []string) int {
	where, set := items(args)
	c, bad := parseCondition([]keyword{{"Clusters", 1, "names"}, {"File", 1, "file"}}, append(where, set...))
	if bad != nil {
		fmt.Fprintf(s.w.Err, " Unknown option: %s\n", bad.raw)
		return slurm.ExitError
	}
	if !c.given("names") {
		fmt.Fprintln(s.w.Err, " We need a cluster to dump.")
		return slurm.ExitError
	}
	if !s.load() {
		return slurm.ExitError
	}
	if name := c.values["names"][0]; name != strings.ToLower(s.name) || len(c.values["names"]) > 1 {
		fmt.Fprintf(s.w.Err, " Cluster %s doesn't exist.\n", c.values["names"][len(c.values["names"])-1])
		return slurm.ExitError
	}
	file := ""
	for _, it := range append(where, set...) { // as it was typed
		if key, _ := match([]keyword{{"File", 1, ""}}, it.key); key == "file" {
			file = it.value
		}
	}
	if file == "" {
		file = s.name + ".cfg"
	}
	var b strings.Builder
	line := func(format string, a ...any) {
		text := fmt.Sprintf(format, a...)
		s.w.Infof("%s", text)
		b.WriteString(text + "\n")
	}
	b.WriteString("# Accounts, users and their limits, as sacctmgr load reads them.\n")
	line("Cluster - '%s':Fairshare=1:QOS='normal'", s.name)
	var level func(name core.ProjectName, depth int)
	level = func(name core.ProjectName, depth int) {
		p := s.account(string(name))
		if p == nil || depth > len(s.policy.Projects) {
			return
		}
		var kids []*core.Project
		s.walk(name, 0, func(k *core.Project, d int) {
			if d == 1 {
				kids = append(kids, k)
			}
		})
		if len(kids)+len(p.Members) == 0 {
			return
		}
		line("Parent - '%s'", name)
		for i := range p.Members {
			m := &p.Members[i]
			text := fmt.Sprintf("User - '%s'", m.User)
			if u := s.user(string(m.User)); u != nil {
				text += fmt.Sprintf(":DefaultAccount='%s'", u.Default)
				if u.Role == core.RoleAdmin {
					text += ":AdminLevel='Administrator'"
				}
				if u.DefaultWCKey != "" {
					text += fmt.Sprintf(":DefaultWCKey='%s'", u.DefaultWCKey)
				}
				if len(u.WCKeys) > 0 {
					text += fmt.Sprintf(":WCKeys='%s'", strings.Join(u.WCKeys, ","))
				}
			}
			if m.Role == core.RoleManager {
				text += fmt.Sprintf(":Coordinator='%s'", p.Name)
			}
			line("%s", text+s.assocText(m.Shares, &m.Assoc, s.mayUse(p, nil)))
		}
		for _, k := range kids {
			inherited := s.mayUse(p, nil)
			line("Account - '%s':Description='%s':Organization='%s'%s", k.Name, k.Description, k.Organization,
				s.assocText(k.Shares, &k.Assoc, inherited))
		}
		for _, k := range kids {
			level(k.Name, depth+1)
		}
	}
	level("root", 0)
	if err := os.WriteFile(s.path(file), []byte(b.String()), 0o644); err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	return 0
}

// assocText is what an association carries, as a flat file has it: QOS as the difference to what is inherited.
func (s *lister) assocText(shares int32, a *core.Association, inherited []core.QOSName) string {
	var b strings.Builder
	put := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, ":%s=%s", key, value)
		}
	}
	l := &a.Limits
	put("DefaultQOS", quote(string(a.DefaultQOS)))
	put("Fairshare", fmt.Sprint(max(1, shares)))
	put("GrpTRESMins", amounts(l.GrpTRESMins))
	put("GrpTRESRunMins", amounts(l.GrpTRESRunMins))
	put("GrpTRES", amounts(l.GrpTRES))
	put("GrpJobs", num(l.GrpJobs))
	put("GrpJobsAccrue", num(l.GrpJobsAccrue))
	put("GrpSubmitJobs", num(l.GrpSubmit))
	put("GrpWall", minutesText(l.GrpWall))
	put("MaxTRESMinsPerJob", amounts(l.MaxTRESMinsPerJob))
	put("MaxTRESPerJob", amounts(l.MaxTRESPerJob))
	put("MaxTRESPerNode", amounts(l.MaxTRESPerNode))
	put("MaxJobs", num(l.MaxJobs))
	put("MaxJobsAccrue", num(l.MaxJobsAccrue))
	put("MaxSubmitJobs", num(l.MaxSubmit))
	put("MaxWallDurationPerJob", minutesText(l.MaxWall))
	if a.Priority > 0 {
		put("Priority", fmt.Sprint(a.Priority))
	}
	if text := difference(a.QOS, inherited); text != "" {
		put("QOS", quote(text))
	}
	return b.String()
}

// minutesText is a limit on time in minutes.
func minutesText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10) // a clock has colons, which part the settings of a line
}

func quote(text string) string {
	if text == "" {
		return ""
	}
	return "'" + text + "'"
}

// difference writes a list as what it has more and less than another.
func difference(own, inherited []core.QOSName) string {
	if len(own) == 0 {
		return ""
	}
	var parts []string
	has := func(list []core.QOSName, q core.QOSName) bool {
		for _, x := range list {
			if x == q {
				return true
			}
		}
		return false
	}
	for _, q := range own {
		if !has(inherited, q) {
			parts = append(parts, "+"+string(q))
		}
	}
	for _, q := range inherited {
		if !has(own, q) {
			parts = append(parts, "-"+string(q))
		}
	}
	return strings.Join(parts, ",")
}
