package state

import (
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
)

// policySet is a policy as it is to be, with the faults found in it.
type policySet struct {
	qos      map[core.QOSName]*core.QOS
	projects map[core.ProjectName]*core.Project
	users    map[core.UserName]*core.User
	faults   []core.Fault
	reason   string // of the first fault
}

// policySet opens the policy as it is; qos and projects may be replaced, and must not be changed.
func (s *State) currentPolicy() *policySet {
	return &policySet{qos: s.view.qos, projects: s.view.projects, users: s.view.users}
}

func (b *policySet) addFault(path, reason, format string, args ...any) {
	if b.reason == "" {
		b.reason = reason
	}
	b.faults = append(b.faults, core.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// err gives the faults as one error, nil if there are none.
func (b *policySet) err() error {
	if len(b.faults) == 0 {
		return nil
	}
	e := core.Errorf(core.Invalid, "%s", b.faults[0].Message).Because(b.reason)
	if n := len(b.faults) - 1; n > 0 {
		e.Message += fmt.Sprintf(" (and %d more)", n)
	}
	e.Faults = b.faults
	return e
}

// maxFactor bounds the factors of a QOS: far above any use, far below where what is charged would run over.
const maxFactor = 1000

func (b *policySet) checkQOS(q *core.QOS) {
	path := "qos." + string(q.Name)
	bad := func(format string, args ...any) {
		b.addFault(path, "invalid_qos", "QOS %s: %s", q.Name, fmt.Sprintf(format, args...))
	}
	if !isValidName(string(q.Name)) {
		b.addFault(path, "invalid_name", "%q is no name for a QOS", q.Name)
		return
	}
	for _, f := range []struct {
		name string
		v    float64
	}{{"usage_factor", q.Factor()}, {"usage_threshold", q.UsageThreshold}, {"limit_factor", q.LimitFactor}} {
		if !(f.v >= 0 && f.v <= maxFactor) { // nor NaN
			bad("%s is %g; it is 0 to %d", f.name, f.v, maxFactor)
		}
	}
	if q.Grace < 0 || q.PreemptExempt < 0 {
		bad("times are not below zero")
	}
	if !q.PreemptMode.Valid() {
		bad("there is no preempt mode %q: there are off, cancel, requeue, suspend and within", q.PreemptMode)
	}
	counts := append(limitCounts(&q.Limits), q.MaxJobsPerAccount, q.MaxSubmitPerAccount, q.MaxAccruePerAccount)
	amounts := append(limitAmounts(&q.Limits), q.MaxTRESPerUser, q.MaxTRESPerAccount, q.MaxRunMinsPerUser,
		q.MaxRunMinsPerAcct, q.MinTRESPerJob)
	if anyNegative(counts, amounts) {
		bad("limits are not below zero")
	}
	for i, name := range q.Preempt {
		_, there := b.qos[name]
		switch {
		case slices.Contains(q.Preempt[:i], name):
			bad("it pushes %s aside twice", name)
		case !there && name != q.Name:
			bad("there is no QOS %q for it to preempt%s", name, hint(name, b.qos))
		case b.preempts(name, q.Name, map[core.QOSName]bool{}):
			bad("it and %s would push each other aside", name)
		}
	}
}

// preempts tells whether jobs of one QOS may push those of another aside, by way of others too.
func (b *policySet) preempts(from, to core.QOSName, seen map[core.QOSName]bool) bool {
	if from == to {
		return true
	}
	q := b.qos[from]
	if q == nil || seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(q.Preempt, func(n core.QOSName) bool { return b.preempts(n, to, seen) })
}

func (b *policySet) checkProject(p *core.Project) {
	path, who := "projects."+string(p.Name), "project "+string(p.Name)
	if !isValidName(string(p.Name)) {
		b.addFault(path, "invalid_name", "%q is no name for a project", p.Name)
		return
	}
	if p.Shares < 0 {
		b.addFault(path, "", "%s: shares are not below zero", who)
	}
	if p.Runtime != "" && p.Runtime != core.RuntimeProcess && p.Runtime != core.RuntimeContainer {
		b.addFault(path, "invalid_runtime", "%s: runtime %q is not known here; there are: %s, %s", who, p.Runtime,
			core.RuntimeProcess, core.RuntimeContainer)
	}
	if p.Parent != "" {
		if _, there := b.projects[p.Parent]; !there {
			b.addFault(path, "invalid_project", "%s: there is no project %q to be its parent%s", who, p.Parent,
				hint(p.Parent, b.projects))
		} else if b.isAbove(p.Name, p.Parent) {
			b.addFault(path, "invalid_project", "%s would be above itself", who)
		}
	}
	b.checkAssoc(path, who, &p.Assoc)
	for i := range p.Members {
		m := &p.Members[i]
		path, who := path+".members."+string(m.User), fmt.Sprintf("%s in project %s", m.User, p.Name)
		if _, there := b.users[m.User]; !there {
			b.addFault(path, "invalid_user", "project %s: there is no user %q%s", p.Name, m.User, hint(m.User, b.users))
		}
		if m.Role.Rank() == 0 {
			b.addFault(path, "", "%s: role %q: there are user, manager and admin", who, m.Role)
		}
		if m.Shares < 0 {
			b.addFault(path, "", "%s: shares are not below zero", who)
		}
		b.checkAssoc(path, who, &m.Assoc)
	}
}

// isAbove tells whether one comes from a project to another by parents; stores of old may hold circles.
func (b *policySet) isAbove(top, from core.ProjectName) bool {
	for range b.projects {
		if from == top {
			return true
		}
		p := b.projects[from]
		if p == nil {
			return false
		}
		from = p.Parent
	}
	return false
}

// checkAssoc looks at what a project, or a member of one, carries.
func (b *policySet) checkAssoc(path, who string, a *core.Association) {
	if anyNegative(limitCounts(&a.Limits), limitAmounts(&a.Limits)) {
		b.addFault(path, "", "%s: limits are not below zero", who)
	}
	for _, name := range a.QOS {
		if _, ok := b.qos[name]; !ok {
			b.addFault(path, "invalid_qos", "%s: there is no QOS %q%s", who, name, hint(name, b.qos))
		}
	}
	if a.DefaultQOS == "" {
		return
	}
	if _, ok := b.qos[a.DefaultQOS]; !ok {
		b.addFault(path, "invalid_qos", "%s: there is no QOS %q%s", who, a.DefaultQOS, hint(a.DefaultQOS, b.qos))
	} else if len(a.QOS) > 0 && !slices.Contains(a.QOS, a.DefaultQOS) {
		b.addFault(path, "invalid_qos", "%s: its default QOS %s is not one that it may use", who, a.DefaultQOS)
	}
}

// hint names what was probably meant.
func hint[K ~string, V any](got K, known map[K]V) string {
	names := make([]string, 0, len(known))
	for _, k := range slices.Sorted(maps.Keys(known)) {
		names = append(names, string(k))
	}
	return nearest.Hint(string(got), names)
}

func limitCounts(l *core.Limits) []*int64 {
	return []*int64{l.GrpJobs, l.GrpSubmit, l.GrpWall, l.MaxJobs, l.MaxSubmit, l.MaxWall, l.GrpJobsAccrue, l.MaxJobsAccrue,
		l.MinPrioThreshold}
}

func limitAmounts(l *core.Limits) []core.TRES {
	return []core.TRES{l.GrpTRES, l.GrpTRESMins, l.GrpTRESRunMins, l.MaxTRESPerJob, l.MaxTRESPerNode, l.MaxTRESMinsPerJob}
}

func anyNegative(counts []*int64, amounts []core.TRES) bool {
	less := func(a core.Amount) bool { return a.Count < 0 }
	return slices.ContainsFunc(counts, func(n *int64) bool { return n != nil && *n < 0 }) ||
		slices.ContainsFunc(amounts, func(t core.TRES) bool { return slices.ContainsFunc(t, less) })
}

func (in *PutQOS) apply(s *State) (None, error) {
	if err := adminOnly(in.By, "adds or changes a QOS"); err != nil {
		return none, err
	}
	q := *in.QOS
	old, ok := s.view.qos[q.Name]
	if ok && in.New {
		return none, core.Errorf(core.Conflict, "QOS %s is there already", q.Name).Because("qos_exists")
	}
	b := s.currentPolicy()
	b.qos = maps.Clone(b.qos)
	b.qos[q.Name] = &q
	if b.checkQOS(&q); b.err() != nil {
		return none, b.err()
	}
	q.Created = s.view.now
	if ok {
		q.Created = old.Created
	}
	s.putQOSRecord(&q)
	return none, nil
}

func (s *State) putQOSRecord(q *core.QOS) {
	ownMap(&s.owned.qos, &s.view.qos)
	old := s.view.qos[q.Name]
	s.view.qos[q.Name] = q
	s.qosChanged(old, q)
	s.changes.QOS = append(slices.DeleteFunc(s.changes.QOS, func(o *core.QOS) bool { return o.Name == q.Name }), q)
	s.event(core.QOSChanged, core.Event{Data: append(appendJSON([]byte(`{"qos":`), string(q.Name)), '}')})
}

func (in *DropQOS) apply(s *State) (None, error) {
	if err := adminOnly(in.By, "removes a QOS"); err != nil {
		return none, err
	}
	if _, ok := s.view.qos[in.Name]; !ok {
		return none, core.Errorf(core.NotFound, "there is no QOS %q", in.Name).Because("invalid_qos")
	}
	if who := s.findQOSReference(s.currentPolicy(), in.Name); who != "" {
		return none, core.Errorf(core.Conflict, "QOS %s stays: %s names it", in.Name, who).Because("qos_in_use")
	}
	s.deleteQOS(in.Name)
	return none, nil
}

func (s *State) deleteQOS(name core.QOSName) {
	ownMap(&s.owned.qos, &s.view.qos)
	old := s.view.qos[name]
	delete(s.view.qos, name)
	s.qosChanged(old, nil)
	s.changes.QOS = slices.DeleteFunc(s.changes.QOS, func(o *core.QOS) bool { return o.Name == name })
	s.changes.GoneQOS = append(s.changes.GoneQOS, name)
	s.event(core.QOSChanged, core.Event{Data: append(appendJSON([]byte(`{"gone":true,"qos":`), string(name)), '}')})
}

// findQOSReference finds something that needs a QOS to be there.
func (s *State) findQOSReference(b *policySet, name core.QOSName) string {
	for _, q := range sorted(b.qos) {
		if q.Name != name && slices.Contains(q.Preempt, name) {
			return "QOS " + string(q.Name)
		}
	}
	uses := func(a *core.Association) bool { return a.DefaultQOS == name || slices.Contains(a.QOS, name) }
	for _, p := range sorted(b.projects) {
		if uses(&p.Assoc) {
			return "project " + string(p.Name)
		}
		for i := range p.Members {
			if uses(&p.Members[i].Assoc) {
				return fmt.Sprintf("%s in project %s", p.Members[i].User, p.Name)
			}
		}
	}
	for i := range s.cfg.Partitions {
		if p := &s.cfg.Partitions[i]; p.QOS == name || slices.Contains(p.AllowQOS, name) {
			return "partition " + string(p.Name)
		}
	}
	for _, j := range s.view.jobs.All() {
		if j.Spec.QOS == name {
			return fmt.Sprintf("job %d", j.ID)
		}
	}
	return ""
}

func (in *DropProject) apply(s *State) (None, error) {
	if err := adminOnly(in.By, "removes a project"); err != nil {
		return none, err
	}
	if _, ok := s.view.projects[in.Name]; !ok {
		return none, core.Errorf(core.NotFound, "there is no project %q", in.Name).Because("invalid_project")
	}
	if why := s.findProjectReference(s.currentPolicy(), in.Name); why != "" {
		return none, core.Errorf(core.Conflict, "project %s stays: %s", in.Name, why).Because("project_in_use")
	}
	s.deleteProject(in.Name)
	return none, nil
}

// findProjectReference tells what needs a project to be there.
func (s *State) findProjectReference(b *policySet, name core.ProjectName) string {
	if name == s.cfg.DefaultProject {
		return "the settings make it everybody's default"
	}
	for _, p := range sorted(b.projects) {
		if p.Parent == name && p.Name != name {
			return fmt.Sprintf("project %s is below it", p.Name)
		}
	}
	for _, u := range sorted(b.users) {
		if u.Default == name {
			return fmt.Sprintf("it is the default of %s", u.Name)
		}
	}
	for _, j := range s.view.jobs.All() {
		if j.Spec.Project == name {
			return fmt.Sprintf("job %d belongs to it", j.ID)
		}
	}
	for _, f := range sorted(s.view.fleets) {
		if f.Project == name {
			return fmt.Sprintf("fleet %s belongs to it", f.Name)
		}
	}
	for key := range s.view.runs {
		if key.project == name {
			return "a run belongs to it"
		}
	}
	return ""
}

func (s *State) deleteProject(name core.ProjectName) {
	ownMap(&s.owned.projects, &s.view.projects)
	delete(s.view.projects, name)
	s.changes.Projects = slices.DeleteFunc(s.changes.Projects, func(o *core.Project) bool { return o.Name == name })
	s.changes.GoneProjects = append(s.changes.GoneProjects, name)
	s.deleteUsage(name)
	s.recalcPrioritiesSoon()
	s.event(core.ProjectChanged,
		core.Event{Data: append(appendJSON([]byte(`{"gone":true,"project":`), string(name)), '}')})
}
