package scontrol

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/report"
)

// tally is what some jobs use now.
type tally struct {
	running, accruing, submitted int64
	wall                         float64 // minutes that running jobs have run
	raw                          float64 // seconds of billing of running jobs, times their QOS's factor
	tres                         map[string]int64
	nodes                        map[core.NodeName]bool // several jobs of a node count it once
	spent, left                  map[string]float64     // unit-minutes of running jobs, before and after now
}

// usage is what is used by accounts, users of accounts, and by QOS, their accounts and their users.
type usage struct {
	assoc                      map[[2]string]*tally
	qos                        map[string]*tally
	accountsOfQOS, peopleOfQOS map[string]map[string]*tally
}

func of[K comparable](m map[K]*tally, key K) *tally {
	t := m[key]
	if t == nil {
		t = &tally{tres: map[string]int64{}, nodes: map[core.NodeName]bool{}}
		t.spent, t.left = map[string]float64{}, map[string]float64{}
		m[key] = t
	}
	return t
}

func inner(m map[string]map[string]*tally, key, name string) *tally {
	if m[key] == nil {
		m[key] = map[string]*tally{}
	}
	return of(m[key], name)
}

// usageOf adds up jobs; what an account's jobs use counts for the accounts above it, too.
func usageOf(list *client.JobList, policy *core.Policy) *usage {
	u := &usage{
		assoc: map[[2]string]*tally{}, qos: map[string]*tally{}, accountsOfQOS: map[string]map[string]*tally{},
		peopleOfQOS: map[string]map[string]*tally{},
	}
	parents := map[core.ProjectName]core.ProjectName{}
	for i := range policy.Projects {
		parents[policy.Projects[i].Name] = policy.Projects[i].Parent
	}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if j.Spec == nil || j.State.Final() {
			continue
		}
		account, user, qos := string(j.Spec.Project), string(j.Spec.User), string(j.Spec.QOS)
		into := []*tally{of(u.assoc, [2]string{account, user}), of(u.qos, qos), inner(u.accountsOfQOS, qos, account)}
		into = append(into, inner(u.peopleOfQOS, qos, user), of(u.assoc, [2]string{"root", ""}))
		for name, depth := j.Spec.Project, 0; name != "" && name != "root" && depth < 100; depth++ {
			into = append(into, of(u.assoc, [2]string{string(name), ""}))
			name = parents[name]
		}
		for _, t := range into {
			t.add(j, list.Now)
		}
	}
	return u
}

func (t *tally) add(j *client.Job, now core.Time) {
	if j.State == core.Pending {
		t.submitted++
		if j.IsArray() {
			t.submitted += int64(j.Array.Tasks.Len()) - 1
		}
		if j.Priority != 0 && j.Waiting != core.ReasonDependency && j.Waiting != core.ReasonBeginTime &&
			j.Waiting != core.ReasonArrayTaskLimit {
			t.accruing++
		}
		return
	}
	t.submitted++
	t.running++
	ran := j.Elapsed(now).Minutes()
	rest := max(0, float64(j.Spec.TimeLimit)/60-ran)
	t.wall += ran
	for i := range j.Alloc.Nodes {
		t.nodes[j.Alloc.Nodes[i].Node] = true
	}
	for _, a := range report.JobTRES(j) {
		t.tres[a.Name] += a.Count
		t.spent[a.Name] += ran * float64(a.Count)
		t.left[a.Name] += rest * float64(a.Count)
		if a.Name == "billing" {
			t.raw += ran * 60 * float64(a.Count)
		}
	}
}

func (t *tally) units(name string) int64 {
	if name == "node" {
		return int64(len(t.nodes))
	}
	return t.tres[name]
}

func whole(m map[string]float64) func(name string) int64 {
	return func(name string) int64 { return int64(m[name]) }
}

// assocBlocks are the associations: an account, then its users.
func (v *assocView) assocBlocks() (blocks []string) {
	places := v.places()
	for i := range v.shares {
		s := &v.shares[i]
		if !wanted(v.accounts, string(s.Project)) ||
			s.User != "" && !wanted(v.users, string(s.User), uidText(v.user(s.User))) {
			continue
		}
		p := v.project(s.Project)
		if a, id := p.Assoc, p.ID; s.User == "" {
			blocks = append(blocks, v.assocBlock(s, p, &a, max(id, 1), places))
			continue
		}
		m := p.Member(s.User)
		if s.Project == "root" && s.User == "root" {
			m.ID = 2
		}
		blocks = append(blocks, v.assocBlock(s, p, &m.Assoc, m.ID, places))
	}
	return blocks
}

func (v *assocView) project(name core.ProjectName) *core.Project {
	i := slices.IndexFunc(v.policy.Projects, func(p core.Project) bool { return p.Name == name })
	if i < 0 {
		return &core.Project{Name: name}
	}
	return &v.policy.Projects[i]
}

func (v *assocView) assocBlock(s *client.Share, p *core.Project, a *core.Association, id int64,
	places map[string]int,
) string {
	who, parent, isDefault, factor := "", "", "No", 0.0
	if s.User != "" {
		u := v.user(s.User)
		who, factor = named(u), s.Factor
		if u.Default == s.Project {
			isDefault = "Yes"
		}
	} else if s.Project != "root" {
		up := v.project(p.Parent)
		if p.Parent == "" {
			up = v.project("root")
		}
		parent = fmt.Sprintf("%s(%d)", up.Name, max(up.ID, 1))
	}
	t, l := of(v.use.assoc, [2]string{string(s.Project), string(s.User)}), &a.Limits
	shares, norm, efctv := max(s.Shares, 1), s.Norm, s.Effective
	if s.Project == "root" && s.User == "" {
		shares, norm, efctv = 1, 0, 1
	}
	used := s.NormUsage
	if s.Project == "root" && s.User == "" {
		used = 1
	}
	return v.block([]string{
		fmt.Sprintf("ClusterName=%s Account=%s UserName=%s Partition= Priority=%d ID=%d", v.cluster, s.Project, who,
			a.Priority, id),
		fmt.Sprintf("    SharesRaw/Norm/Level/Factor=%d/%.2f/%d/%.2f", shares, norm, v.levelShares(s), factor),
		fmt.Sprintf("    UsageRaw/Norm/Efctv=%.2f/%.2f/%.2f", s.Usage, used, efctv),
		fmt.Sprintf("    ParentAccount=%s Lft=%d DefAssoc=%s", parent, places[s.Key()], isDefault),
		fmt.Sprintf("    GrpJobs=%s GrpJobsAccrue=%s", limitText(l.GrpJobs, t.running),
			limitText(l.GrpJobsAccrue, t.accruing)),
		fmt.Sprintf("    GrpSubmitJobs=%s GrpWall=%s(%.2f)", limitText(l.GrpSubmit, t.submitted),
			orN(minutesIf(l.GrpWall)), t.wall),
		"    GrpTRES=" + v.tres(l.GrpTRES, t.units),
		"    GrpTRESMins=" + v.tres(l.GrpTRESMins, usedMinutes(s)),
		"    GrpTRESRunMins=" + v.tres(l.GrpTRESRunMins, whole(t.left)),
		fmt.Sprintf("    MaxJobs=%s MaxJobsAccrue=%s MaxSubmitJobs=%s MaxWallPJ=%s", countIf(l.MaxJobs, t.running),
			countIf(l.MaxJobsAccrue, t.accruing), countIf(l.MaxSubmit, t.submitted), minutesIf(l.MaxWall)),
		"    MaxTRESPJ=" + v.limits(l.MaxTRESPerJob), "    MaxTRESPN=" + v.limits(l.MaxTRESPerNode),
		"    MaxTRESMinsPJ=" + v.limits(l.MaxTRESMinsPerJob), "    MinPrioThresh=" + minutesIf(l.MinPrioThreshold),
	})
}

func orN(text string) string {
	if text == "" {
		return "N"
	}
	return text
}

// levelShares are the shares of all that stand beside an association.
func (v *assocView) levelShares(s *client.Share) (sum int64) {
	if s.Project == "root" && s.User == "" {
		return 1
	}
	up := func(s *client.Share) core.ProjectName {
		switch {
		case s.User != "":
			return s.Project
		case s.Project == "root":
			return ""
		case s.Parent == "":
			return "root"
		}
		return s.Parent
	}
	for i := range v.shares {
		if o := &v.shares[i]; up(o) == up(s) && o.Shares != core.SharesParent {
			sum += max(o.Shares, 1)
		}
	}
	return sum
}

// places are the left numbers of associations in the tree of accounts, by key.
func (v *assocView) places() map[string]int {
	out := map[string]int{}
	next := 0
	var number func(name core.ProjectName, depth int)
	number = func(name core.ProjectName, depth int) {
		next++
		out[(&client.Share{Project: name}).Key()] = next
		for i := range v.shares {
			s := &v.shares[i]
			parent := s.Parent
			if parent == "" {
				parent = "root"
			}
			if s.User == "" && s.Project != "root" && parent == name && depth < len(v.shares) {
				number(s.Project, depth+1)
			}
		}
		for i := range v.shares {
			if s := &v.shares[i]; s.User != "" && s.Project == name {
				next++
				out[s.Key()] = next
				next++
			}
		}
		next++
	}
	number("root", 0)
	return out
}

func (v *assocView) qosBlocks() (blocks []string) {
	list := slices.Clone(v.policy.QOS)
	if !slices.ContainsFunc(list, func(q core.QOS) bool { return q.Name == "normal" }) {
		list = append(list, core.QOS{Name: "normal", ID: 1})
	}
	slices.SortStableFunc(list, func(a, b core.QOS) int { return int(max(a.ID, 1) - max(b.ID, 1)) })
	for i := range list {
		if q := &list[i]; wanted(v.qos, string(q.Name)) {
			blocks = append(blocks, v.qosBlock(q))
		}
	}
	return blocks
}

func (v *assocView) qosBlock(q *core.QOS) string {
	t, l := of(v.use.qos, string(q.Name)), &q.Limits
	factor := q.Factor()
	for _, m := range []map[string]float64{t.spent, t.left} {
		for name := range m {
			m[name] *= factor
		}
	}
	mode := "OFF"
	if q.PreemptMode != "" {
		mode = strings.ToUpper(string(q.PreemptMode))
	}
	lines := []string{
		fmt.Sprintf("QOS=%s(%d)", q.Name, max(q.ID, 1)),
		fmt.Sprintf("    UsageRaw=%f", t.raw*factor),
		fmt.Sprintf("    GrpJobs=%s GrpJobsAccrue=%s GrpSubmitJobs=%s GrpWall=%s(%.2f)", limitText(l.GrpJobs, t.running),
			limitText(l.GrpJobsAccrue, t.accruing), limitText(l.GrpSubmit, t.submitted), orN(minutesIf(l.GrpWall)),
			t.wall*factor),
		"    GrpTRES=" + v.tres(l.GrpTRES, t.units), "    GrpTRESMins=" + v.tres(l.GrpTRESMins, whole(t.spent)),
		"    GrpTRESRunMins=" + v.tres(l.GrpTRESRunMins, whole(t.left)),
		"    MaxWallPJ=" + minutesIf(l.MaxWall), "    MaxTRESPJ=" + v.limits(l.MaxTRESPerJob),
		"    MaxTRESPN=" + v.limits(l.MaxTRESPerNode), "    MaxTRESMinsPJ=" + v.limits(l.MaxTRESMinsPerJob),
		"    MinPrioThresh=" + minutesIf(l.MinPrioThreshold) + " ", "    MinTRESPJ=" + v.limits(q.MinTRESPerJob),
		"    PreemptMode=" + mode, fmt.Sprintf("    Priority=%d", q.Priority), "    Account Limits",
	}
	lines = append(lines, v.shared("No Accounts", "PA", v.use.accountsOfQOS[string(q.Name)], q.MaxJobsPerProject,
		q.MaxAccruePerProject, q.MaxSubmitPerProject, q.MaxTRESPerProject, func(name string) string { return name })...)
	lines = append(lines, "    User Limits")
	return v.block(append(lines, v.shared("No Users", "PU", v.use.peopleOfQOS[string(q.Name)], l.MaxJobs,
		l.MaxJobsAccrue, l.MaxSubmit, q.MaxTRESPerUser, func(name string) string {
			return uidText(v.user(core.UserName(name)))
		})...))
}

// shared are a QOS's limits of each account or each user, for those who use it now.
func (v *assocView) shared(none, suffix string, use map[string]*tally, jobs, accrue, submit *int64, most core.TRES,
	title func(name string) string,
) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(use)) {
		t := use[name]
		lines = append(lines, "      "+title(name),
			fmt.Sprintf("        MaxJobs%s=%s MaxJobsAccrue%s=%s MaxSubmitJobs%s=%s", suffix,
				limitText(jobs, t.running), suffix,
				limitText(accrue, t.accruing), suffix, limitText(submit, t.submitted)),
			fmt.Sprintf("        MaxTRES%s=%s", suffix, v.tres(most, t.units)))
	}
	if len(lines) == 0 {
		return []string{"        " + none}
	}
	return lines
}
