package state

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/depend"
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
			next.Eligible = max(s.rec.Now(), spec.Begin)
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
	if round := depend.FindCycle(next, trial.Needs, s.cluster.RecordsOf); round != nil {
		return core.Errorf(core.Invalid, "circular dependencies: %s",
			strings.Join(round, ", which waits for ")).Because("circular_dependency")
	}
	next.Needs, next.Reason, next.Eligible = trial.Needs, trial.Reason, trial.Eligible
	return nil
}

// checkDependencyTargets refuses to wait for a job that never was, and tells which there are.
func (s *State) checkDependencyTargets(in *Submit, needs *core.Needs) error {
	for i := range needs.Left {
		n := &needs.Left[i]
		known := !slices.Contains(in.Hidden, n.Job)
		if n.Job == 0 || known &&
			(s.targetIsLive(n) || s.dependencies.HasEnding(n) ||
				slices.ContainsFunc(in.Ended, func(e *core.Job) bool { x := depend.EndingOf(e); return x.Matches(n) })) {
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
	for j := range s.rec.Jobs() {
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
