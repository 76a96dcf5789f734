package policyset

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
)

// Set is a policy as it is to be, with the faults found in it.
type Set struct {
	QOS      map[core.QOSName]*core.QOS
	Projects map[core.ProjectName]*core.Project
	Users    map[core.UserName]*core.User
	faults   []core.Fault
	reason   string // of the first fault
}

func (b *Set) AddFault(path, reason, format string, args ...any) {
	if b.reason == "" {
		b.reason = reason
	}
	b.faults = append(b.faults, core.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Err gives the faults as one error, nil if there are none.
func (b *Set) Err() error {
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

func (b *Set) CheckQOS(q *core.QOS) {
	path := "qos." + string(q.Name)
	bad := func(format string, args ...any) {
		b.AddFault(path, "invalid_qos", "QOS %s: %s", q.Name, fmt.Sprintf(format, args...))
	}
	if !named.IsValid(string(q.Name)) {
		b.AddFault(path, "invalid_name", "%q is not a valid QOS name", q.Name)
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
		bad("times must not be negative")
	}
	if !q.PreemptMode.Valid() {
		bad("unknown preempt mode %q: expected off, cancel, requeue, suspend or within", q.PreemptMode)
	}
	counts := append(limitCounts(&q.Limits), q.MaxJobsPerProject, q.MaxSubmitPerProject, q.MaxAccruePerProject)
	amounts := append(limitAmounts(&q.Limits), q.MaxTRESPerUser, q.MaxTRESPerProject, q.MaxRunMinsPerUser,
		q.MaxRunMinsPerAcct, q.MinTRESPerJob)
	if anyNegative(counts, amounts) {
		bad("limits must not be negative")
	}
	for i, name := range q.Preempt {
		_, there := b.QOS[name]
		switch {
		case slices.Contains(q.Preempt[:i], name):
			bad("it names %s twice among the QOS that it preempts", name)
		case !there && name != q.Name:
			bad("there is no QOS %q for it to preempt%s", name, named.Hint(name, b.QOS))
		case b.preempts(name, q.Name, map[core.QOSName]bool{}):
			bad("it and %s would preempt each other", name)
		}
	}
}

// preempts reports whether jobs of one QOS may preempt those of another, directly or through others.
func (b *Set) preempts(from, to core.QOSName, seen map[core.QOSName]bool) bool {
	if from == to {
		return true
	}
	q := b.QOS[from]
	if q == nil || seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(q.Preempt, func(n core.QOSName) bool { return b.preempts(n, to, seen) })
}

func (b *Set) CheckProject(p *core.Project) {
	path, who := "projects."+string(p.Name), "project "+string(p.Name)
	if !named.IsValid(string(p.Name)) {
		b.AddFault(path, "invalid_name", "%q is not a valid project name", p.Name)
		return
	}
	if p.Shares < 0 {
		b.AddFault(path, "", "%s: shares must not be negative", who)
	}
	if p.Runtime != "" && p.Runtime != core.RuntimeProcess && p.Runtime != core.RuntimeContainer {
		b.AddFault(path, "invalid_runtime", "%s: unknown runtime %q; expected %s or %s", who, p.Runtime,
			core.RuntimeProcess, core.RuntimeContainer)
	}
	if p.Parent != "" {
		if _, there := b.Projects[p.Parent]; !there {
			b.AddFault(path, "invalid_project", "%s: there is no project %q to be its parent%s", who, p.Parent,
				named.Hint(p.Parent, b.Projects))
		} else if b.isAbove(p.Name, p.Parent) {
			b.AddFault(path, "invalid_project", "%s would be its own ancestor", who)
		}
	}
	b.CheckAssoc(path, who, &p.Assoc)
	for i := range p.Members {
		m := &p.Members[i]
		path, who := path+".members."+string(m.User), fmt.Sprintf("%s in project %s", m.User, p.Name)
		if _, there := b.Users[m.User]; !there {
			b.AddFault(path, "invalid_user", "project %s: there is no user %q%s", p.Name, m.User, named.Hint(m.User, b.Users))
		}
		if m.Role.Rank() == 0 {
			b.AddFault(path, "", "%s: role %q: expected user, manager or admin", who, m.Role)
		}
		if m.Shares < 0 {
			b.AddFault(path, "", "%s: shares must not be negative", who)
		}
		b.CheckAssoc(path, who, &m.Assoc)
	}
}

// isAbove reports whether one comes from a project to another by parents; stores of old may hold circles.
func (b *Set) isAbove(top, from core.ProjectName) bool {
	for range b.Projects {
		if from == top {
			return true
		}
		p := b.Projects[from]
		if p == nil {
			return false
		}
		from = p.Parent
	}
	return false
}

// CheckAssoc looks at what a project, or a member of one, carries.
func (b *Set) CheckAssoc(path, who string, a *core.Association) {
	if anyNegative(limitCounts(&a.Limits), limitAmounts(&a.Limits)) {
		b.AddFault(path, "", "%s: limits must not be negative", who)
	}
	for _, name := range a.QOS {
		if _, ok := b.QOS[name]; !ok {
			b.AddFault(path, "invalid_qos", "%s: there is no QOS %q%s", who, name, named.Hint(name, b.QOS))
		}
	}
	if a.DefaultQOS == "" {
		return
	}
	if _, ok := b.QOS[a.DefaultQOS]; !ok {
		b.AddFault(path, "invalid_qos", "%s: there is no QOS %q%s", who, a.DefaultQOS, named.Hint(a.DefaultQOS, b.QOS))
	} else if len(a.QOS) > 0 && !slices.Contains(a.QOS, a.DefaultQOS) {
		b.AddFault(path, "invalid_qos", "%s: its default QOS %s is not one that it may use", who, a.DefaultQOS)
	}
}

func limitCounts(l *core.Limits) []*int64 {
	return []*int64{
		l.GrpJobs, l.GrpSubmit, l.GrpWall, l.MaxJobs, l.MaxSubmit, l.MaxWall, l.GrpJobsAccrue, l.MaxJobsAccrue,
		l.MinPrioThreshold,
	}
}

func limitAmounts(l *core.Limits) []core.TRES {
	return []core.TRES{l.GrpTRES, l.GrpTRESMins, l.GrpTRESRunMins, l.MaxTRESPerJob, l.MaxTRESPerNode, l.MaxTRESMinsPerJob}
}

func anyNegative(counts []*int64, amounts []core.TRES) bool {
	less := func(a core.Amount) bool { return a.Count < 0 }
	return slices.ContainsFunc(counts, func(n *int64) bool { return n != nil && *n < 0 }) ||
		slices.ContainsFunc(amounts, func(t core.TRES) bool { return slices.ContainsFunc(t, less) })
}
