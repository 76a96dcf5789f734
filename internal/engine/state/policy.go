package state

import (
	"fmt"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
)

func (s *State) putQOS(in *PutQOS) error {
	if err := adminOnly(in.By, "adds or changes a QOS"); err != nil {
		return err
	}
	q := *in.QOS
	old, ok := s.view.qos[q.Name]
	if ok && in.New {
		return core.Errorf(core.Conflict, "QOS %s is there already", q.Name).Because("qos_exists")
	}
	if err := s.checkQOS(&q); err != nil {
		return err
	}
	q.Created = s.view.now
	if ok {
		q.Created = old.Created
	}
	s.storeQOS(&q)
	return nil
}

// checkQOS tells what is wrong with a QOS that is to be stored.
func (s *State) checkQOS(q *core.QOS) error {
	bad := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, "QOS %s: %s", q.Name, fmt.Sprintf(format, args...)).Because("invalid_qos")
	}
	if !validName(string(q.Name)) {
		return core.Errorf(core.Invalid, "%q is no name for a QOS", q.Name).Because("invalid_name")
	}
	for what, f := range map[string]float64{"usage_factor": q.UsageFactor, "usage_threshold": q.UsageThreshold, "limit_factor": q.LimitFactor} {
		if f < 0 || math.IsNaN(f) || math.IsInf(f, 0) {
			return bad("%s is not below zero", what)
		}
	}
	if q.Grace < 0 || q.PreemptExempt < 0 {
		return bad("times are not below zero")
	}
	switch q.PreemptMode {
	case core.PreemptDefault, core.PreemptOff, core.PreemptCancel, core.PreemptRequeue, core.PreemptSuspend, core.PreemptWithin:
	default:
		return bad("there is no preempt mode %q: there are off, cancel, requeue, suspend and within", q.PreemptMode)
	}
	if why := checkLimits(&q.Limits); why != "" {
		return bad("%s", why)
	}
	for _, n := range []*int64{q.MaxJobsPerAccount, q.MaxSubmitPerAccount} {
		if n != nil && *n < 0 {
			return bad("limits are not below zero")
		}
	}
	for i, name := range q.Preempt {
		if slices.Contains(q.Preempt[:i], name) {
			return bad("it pushes %s aside twice", name)
		}
		if name != q.Name {
			if _, ok := s.view.qos[name]; !ok {
				return bad("there is no QOS %q for it to push aside", name)
			}
		}
		if path := s.pushes(name, q.Name, map[core.QOSName]bool{}); path {
			return bad("it and %s would push each other aside", name)
		}
	}
	return nil
}

// pushes tells whether jobs of one QOS may push those of another aside, by way of others too.
func (s *State) pushes(from, to core.QOSName, seen map[core.QOSName]bool) bool {
	if from == to {
		return true
	}
	q := s.view.qos[from]
	if q == nil || seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(q.Preempt, func(n core.QOSName) bool { return s.pushes(n, to, seen) })
}

// checkLimits tells what is wrong with limits, or "".
func checkLimits(l *core.Limits) string {
	for _, n := range []*int64{l.GrpJobs, l.GrpSubmit, l.GrpWall, l.MaxJobs, l.MaxSubmit, l.MaxWall} {
		if n != nil && *n < 0 {
			return "limits are not below zero"
		}
	}
	for _, t := range []core.TRES{l.GrpTRES, l.GrpTRESMins, l.GrpTRESRunMins, l.MaxTRESPerJob, l.MaxTRESPerNode, l.MaxTRESMinsPerJob} {
		for _, a := range t {
			if a.Count < 0 {
				return "limits are not below zero"
			}
		}
	}
	return ""
}

// checkAssoc tells what is wrong with what a project, or a member of one, carries.
func (s *State) checkAssoc(of string, a *core.Association) error {
	bad := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, "%s: %s", of, fmt.Sprintf(format, args...)).Because("invalid_qos")
	}
	if why := checkLimits(&a.Limits); why != "" {
		return bad("%s", why)
	}
	for _, name := range a.QOS {
		if _, ok := s.view.qos[name]; !ok {
			return bad("there is no QOS %q", name)
		}
	}
	if a.DefaultQOS == "" {
		return nil
	}
	if _, ok := s.view.qos[a.DefaultQOS]; !ok {
		return bad("there is no QOS %q", a.DefaultQOS)
	}
	if len(a.QOS) > 0 && !slices.Contains(a.QOS, a.DefaultQOS) {
		return bad("its default QOS %s is not one that it may use", a.DefaultQOS)
	}
	return nil
}

func (s *State) storeQOS(q *core.QOS) {
	ours(&s.own.qos, &s.view.qos)
	s.view.qos[q.Name] = q
	s.out.QOS = append(slices.DeleteFunc(s.out.QOS, func(o *core.QOS) bool { return o.Name == q.Name }), q)
	s.event(core.QOSChanged, core.Event{Data: append(appendJSON([]byte(`{"qos":`), string(q.Name)), '}')})
}

func (s *State) dropQOS(in *DropQOS) error {
	if err := adminOnly(in.By, "removes a QOS"); err != nil {
		return err
	}
	if _, ok := s.view.qos[in.Name]; !ok {
		return core.Errorf(core.NotFound, "there is no QOS %q", in.Name).Because("invalid_qos")
	}
	if who := s.whoNames(in.Name); who != "" {
		return core.Errorf(core.Conflict, "QOS %s stays: %s names it", in.Name, who).Because("qos_in_use")
	}
	s.goneQOS(in.Name)
	return nil
}

func (s *State) goneQOS(name core.QOSName) {
	ours(&s.own.qos, &s.view.qos)
	delete(s.view.qos, name)
	s.out.QOS = slices.DeleteFunc(s.out.QOS, func(o *core.QOS) bool { return o.Name == name })
	s.out.GoneQOS = append(s.out.GoneQOS, name)
	s.event(core.QOSChanged, core.Event{Data: append(appendJSON([]byte(`{"gone":true,"qos":`), string(name)), '}')})
}

// whoNames finds something that needs a QOS to be there.
func (s *State) whoNames(name core.QOSName) string {
	for _, q := range sorted(s.view.qos) {
		if q.Name != name && slices.Contains(q.Preempt, name) {
			return "QOS " + string(q.Name)
		}
	}
	uses := func(a *core.Association) bool { return a.DefaultQOS == name || slices.Contains(a.QOS, name) }
	for _, p := range sorted(s.view.projects) {
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

func (s *State) dropProject(in *DropProject) error {
	if err := adminOnly(in.By, "removes a project"); err != nil {
		return err
	}
	if _, ok := s.view.projects[in.Name]; !ok {
		return core.Errorf(core.NotFound, "there is no project %q", in.Name).Because("invalid_project")
	}
	if why := s.whyKept(in.Name); why != "" {
		return core.Errorf(core.Conflict, "project %s stays: %s", in.Name, why).Because("project_in_use")
	}
	s.goneProject(in.Name)
	return nil
}

// whyKept tells what needs a project to be there.
func (s *State) whyKept(name core.ProjectName) string {
	if name == s.cfg.DefaultProject {
		return "the settings make it everybody's default"
	}
	for _, p := range sorted(s.view.projects) {
		if p.Parent == name {
			return fmt.Sprintf("project %s is below it", p.Name)
		}
	}
	for _, u := range sorted(s.view.users) {
		if u.Default == name {
			return fmt.Sprintf("it is the default of %s", u.Name)
		}
	}
	for _, j := range s.view.jobs.All() {
		if j.Spec.Project == name {
			return fmt.Sprintf("job %d belongs to it", j.ID)
		}
	}
	for key := range s.view.runs {
		if key.project == name {
			return "a run belongs to it"
		}
	}
	return ""
}

// above tells whether one comes from a project to another by parents; stores of old may hold circles.
func (s *State) above(top, from core.ProjectName) bool {
	for range s.view.projects {
		if from == top {
			return true
		}
		p := s.view.projects[from]
		if p == nil {
			return false
		}
		from = p.Parent
	}
	return false
}

func (s *State) goneProject(name core.ProjectName) {
	ours(&s.own.projects, &s.view.projects)
	delete(s.view.projects, name)
	s.out.Projects = slices.DeleteFunc(s.out.Projects, func(o *core.Project) bool { return o.Name == name })
	s.out.GoneProjects = append(s.out.GoneProjects, name)
	if s.ranks != nil {
		s.ranks.forget(name)
	}
	s.event(core.ProjectChanged, core.Event{Data: append(appendJSON([]byte(`{"gone":true,"project":`), string(name)), '}')})
}

// forget drops what was spent in a project that is gone.
func (r *ranks) forget(name core.ProjectName) {
	for k := range r.spent {
		if k.project == name {
			delete(r.spent, k)
			delete(r.dirty, k)
		}
	}
}
