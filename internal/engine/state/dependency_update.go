package state

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// updateDependency gives a pending job another dependency, or none. The caller weighs it when the record is stored.
func (s *State) updateDependency(in *UpdateJob, next *core.Job, spec *core.Spec) error {
	if next.State != core.Pending {
		return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
	}
	if n := len(*in.Dependency); n > speccheck.MaxLine {
		return speccheck.TooLong("dependency", n, speccheck.MaxLine)
	}
	x := *spec.More()
	x.Dependency = *in.Dependency
	spec.Extra = &x
	was := next.Needs != nil
	if x.Dependency == "" {
		if next.Needs = nil; was {
			next.Reason = core.ReasonNone
			next.Eligible = max(s.view.now, spec.Begin)
		}
		return nil
	}
	trial := *next
	trial.Spec = spec
	if err := s.admitDependency(&Submit{
		By: in.By, Spec: spec, Ended: in.Ended, Seen: in.Seen, Hidden: in.Hidden,
		Strict: in.Strict,
	}, &trial); err != nil {
		return err
	}
	if round := s.findDependencyCycle(next, trial.Needs); round != nil {
		return core.Errorf(core.Invalid, "circular dependencies: %s",
			strings.Join(round, ", which waits for ")).Because("circular_dependency")
	}
	next.Needs, next.Reason, next.Eligible = trial.Needs, trial.Reason, trial.Eligible
	return nil
}

// findDependencyCycle looks for a way from what a job is to wait for back to the job, and tells it. Only an update can
// close one: at submission nobody can wait for the job yet.
func (s *State) findDependencyCycle(j *core.Job, needs *core.Needs) (round []string) {
	seen := map[core.JobID]bool{}
	var follow func(needs *core.Needs) []string
	follow = func(needs *core.Needs) []string {
		for i := range needs.Left {
			n := &needs.Left[i]
			if n.Failed || n.Kind == core.NeedSingleton {
				continue
			}
			name := fmt.Sprintf("%d", n.Job)
			if n.Task > 0 {
				name = fmt.Sprintf("%d_%d", n.Job, n.Task-1)
			}
			if conditionNames(n, j) {
				return []string{name}
			}
			if seen[n.Job] {
				continue
			}
			seen[n.Job] = true
			for _, id := range s.recordsOf(n.Job) {
				o, ok := s.view.jobs.Get(int64(id))
				if !ok || o.Needs == nil || n.Task > 0 && o.Array != nil && !o.IsArray() && o.Array.Task != n.Task-1 {
					continue
				}
				if way := follow(o.Needs); way != nil {
					return append([]string{name}, way...)
				}
			}
		}
		return nil
	}
	if way := follow(needs); way != nil {
		way[0] = fmt.Sprintf("job %d would wait for %s", j.ID, way[0])
		return way
	}
	return nil
}

// conditionNames reports whether a condition names a job, or the array that it is a task of.
func conditionNames(n *core.Need, j *core.Job) bool {
	switch {
	case j.Array == nil:
		return n.Job == j.ID
	case n.Job != j.Array.Base && n.Job != j.ID:
		return false
	case n.Task == 0:
		return true
	case j.IsArray():
		return j.Array.Tasks.Contains(int(n.Task - 1))
	}
	return n.Task-1 == j.Array.Task
}

// recordsOf lists the live records of a job or an array, ascending.
func (s *State) recordsOf(id core.JobID) []core.JobID {
	out := []core.JobID{id}
	for _, task := range s.arrays[id] {
		out = append(out, task)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkDependencyTargets refuses to wait for a job that never was, and tells which there are.
func (s *State) checkDependencyTargets(in *Submit, needs *core.Needs) error {
	for i := range needs.Left {
		n := &needs.Left[i]
		known := !slices.Contains(in.Hidden, n.Job)
		if n.Job == 0 || known &&
			(s.targetIsLive(n) || slices.ContainsFunc(s.dependencies.recentEndings,
				func(e ending) bool { return e.matches(n) }) ||
				slices.ContainsFunc(in.Ended, func(e *core.Job) bool { x := endingOf(e); return x.matches(n) })) {
			continue
		}
		name := fmt.Sprint(n.Job)
		if n.Task > 0 {
			name = fmt.Sprintf("%d_%d", n.Job, n.Task-1)
		}
		return core.Errorf(core.NotFound, "there is no job %s to wait for; %s", name,
			s.describeLiveJobs(in.Spec.User)).Because("invalid_dependency")
	}
	return nil
}

// describeLiveJobs words which jobs of a user are there.
func (s *State) describeLiveJobs(user core.UserName) string {
	const most = 8
	var ids []string
	more := 0
	for _, j := range s.view.jobs.All() {
		switch {
		case j.Spec.User != user:
		case len(ids) == most:
			more++
		default:
			ids = append(ids, fmt.Sprint(j.ID))
		}
	}
	switch {
	case len(ids) == 0:
		return "no job of " + string(user) + " waits or runs"
	case more > 0:
		return fmt.Sprintf("%d jobs of %s wait or run, the first are %s", len(ids)+more, user, strings.Join(ids, ", "))
	}
	return fmt.Sprintf("of %s there are %s", user, strings.Join(ids, ", "))
}
