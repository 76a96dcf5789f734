package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// submitOrder orders jobs by when they were submitted: tasks stand where their array does.
func submitOrder(j *core.Job) core.JobID {
	if j.Array != nil {
		return j.Array.Base
	}
	return j.ID
}

// indexJobNames begins to keep live jobs by name.
func (s *State) indexJobNames() {
	s.dependencies.IndexNames()
	for j := range s.rec.Jobs() {
		s.dependencies.AddName(j)
	}
}

// noSuchJob is an id that no job gets.
const noSuchJob core.JobID = 1 << 62

// admitDependency reads a dependency. What it names that never was is dropped, as Slurm 22.05 does.
func (s *State) admitDependency(in *Submit, j *core.Job) error {
	needs, err := grammar.ParseDependency(j.Spec.More().Dependency)
	if err != nil {
		return core.Errorf(core.Invalid, "%v", err).Because("invalid_dependency")
	}
	if in.Strict {
		if err := s.checkDependencyTargets(in, needs); err != nil {
			return err
		}
	}
	for i := range needs.Left {
		n := &needs.Left[i]
		if n.Kind == core.NeedSingleton {
			if !s.dependencies.IndexesNames() {
				s.indexJobNames()
			}
			continue
		}
		if slices.Contains(in.Hidden, n.Job) {
			n.Job = noSuchJob
			continue
		}
		t, live := s.rec.Job(n.Job)
		if live && t.Array != nil && t.Array.Base != t.ID && n.Task == 0 { // a task by its own number
			n.Job, n.Task = t.Array.Base, t.Array.Task+1
		}
		if n.Kind == core.NeedAfterCorr && (j.Array == nil || n.Task > 0 || live && t.Array == nil) {
			n.Kind = core.NeedAfterOK
		}
		if !s.targetIsLive(n) && in.Seen != 0 && in.Seen < s.dependencies.LoadSeq {
			return core.Errorf(core.Unavailable, "how job %d ended has to be looked up again; try again", n.Job)
		}
	}
	j.Needs, j.Reason, j.Eligible = needs, core.ReasonDependency, 0
	return nil
}

// evaluateNewDependency applies what is known already to a job that was just submitted with needs.
func (s *State) evaluateNewDependency(id core.JobID, ended []*core.Job) {
	j, _ := s.rec.Job(id)
	s.reevaluateDependency(id, s.dependencies.EndingsOf(j.Needs, ended), true)
}

// notifyDependents reevaluates the jobs that wait for a job which started or ended.
func (s *State) notifyDependents(old, j *core.Job) {
	d := &s.dependencies
	started := j.State == core.Running && (old == nil || old.State == core.Pending)
	if !j.Live() {
		d.NoteEnding(j)
	}
	if len(d.Dependents) > 0 && (started || !j.Live()) {
		var ends []depend.Ending
		if !j.Live() {
			ends = []depend.Ending{depend.EndingOf(j)}
		}
		for _, id := range d.WaitingFor(j) {
			s.reevaluateDependency(id, ends, false)
		}
	}
	for _, id := range d.WaitingForName(old, j) {
		s.reevaluateDependency(id, nil, false)
	}
}

// reevaluateDependency works out anew what a waiting job needs, knowing of these endings. When the job is new, what
// nobody knows anything of is not waited for.
func (s *State) reevaluateDependency(id core.JobID, ends []depend.Ending, new bool) {
	j, ok := s.rec.Job(id)
	if !ok || j.Needs == nil {
		return
	}
	if j.IsArray() {
		for i := range ends {
			if j = s.releasePairedTasks(j, &ends[i]); j == nil {
				return
			}
		}
	}
	edit := s.jobs.Edit(j)
	next := edit.Job
	needs := *j.Needs
	needs.Left = slices.Clone(needs.Left)
	next.Needs = &needs
	from := core.Time(0)
	met := false
	for i := 0; i < len(needs.Left); {
		n := &needs.Left[i]
		told := false
		for k := range ends {
			if ends[k].Matches(n) {
				told = true
				n.Bad = n.Bad || n.Kind != core.NeedAfterCorr && !ends[k].OK
			}
		}
		how := s.evaluateCondition(j, n)
		if new && !told && n.Kind != core.NeedSingleton && !s.targetIsLive(n) {
			how = conditionMet
		}
		switch how {
		case conditionMet:
			if n.Delay > 0 {
				from = max(from, s.targetStart(n).Add(n.Delay.Duration()))
			}
			met = true
			needs.Left = slices.Delete(needs.Left, i, i+1)
			continue
		case conditionFailed:
			n.Failed = true
		case conditionOpen:
		}
		i++
	}
	s.storeDependency(&edit, j, met && needs.Any, from)
}

// releasePairedTasks frees the tasks of an array whose counterparts have ended, each as a job of its own; it returns
// what is left of the array, or nil.
func (s *State) releasePairedTasks(j *core.Job, e *depend.Ending) *core.Job {
	at := slices.IndexFunc(j.Needs.Left, func(n core.Need) bool {
		return n.Kind == core.NeedAfterCorr && !n.Failed && e.Matches(&n)
	})
	if at < 0 {
		return j
	}
	both := e.Paired(j.Array.Tasks)
	for k := range both.All() {
		task := s.jobs.SplitTask(j, int32(k))
		needs := *j.Needs
		needs.Left = slices.Clone(needs.Left)
		if e.OK {
			needs.Left = slices.Delete(needs.Left, at, at+1)
		} else {
			needs.Left[at].Failed = true
		}
		task.Needs = &needs
		edit := s.jobs.EditRecord(task)
		s.storeDependency(&edit, nil, e.OK && needs.Any, 0)
		rest, ok := s.rec.Job(j.ID)
		if !ok || !rest.IsArray() {
			return nil
		}
		j = rest
	}
	return j
}

// storeDependency stores a job whose needs were worked out anew; j is what it was, nil for a task that was just split
// off.
func (s *State) storeDependency(e *jobs.Edit, j *core.Job, enough bool, from core.Time) {
	if enough || len(e.Job.Needs.Left) == 0 {
		e.Job.Needs = nil
		e.Job.Eligible = max(s.rec.Now(), e.Job.Spec.Begin, from)
	}
	e.Job.Reason = dependencyReason(e.Job)
	if e.Job.Reason == core.ReasonDependencyNever && e.Job.Spec.KillInvalid() {
		e.Job.Start = s.rec.Now()
		e.End(core.Cancelled, core.ReasonDependencyNever, "what it waits for can never happen any more")
		e.Commit()
		return
	}
	if j == nil || j.Reason != e.Job.Reason || j.Needs.String() != e.Job.Needs.String() {
		e.CommitWith(core.JobUpdated, core.Event{Data: append(appendJSON([]byte(`{"needs":`), e.Job.Needs.String()), '}')})
	} else if !slices.Equal(j.Needs.Left, e.Job.Needs.Left) {
		e.CommitSilently() // a task of an array it waits for ended badly: nothing to show yet, but not to be forgotten
	}
}

// dependencyReason is why a job that waits for others does not start.
func dependencyReason(j *core.Job) core.Reason {
	switch {
	case j.Needs == nil:
		return core.ReasonNone
	case j.Needs.Never():
		return core.ReasonDependencyNever
	}
	return core.ReasonDependency
}

type conditionState uint8

const (
	conditionOpen conditionState = iota
	conditionMet
	conditionFailed
)

// evaluateCondition evaluates a condition from live jobs and from what was noted in it.
func (s *State) evaluateCondition(j *core.Job, n *core.Need) conditionState {
	switch {
	case n.Failed:
		return conditionFailed
	case n.Kind == core.NeedSingleton:
		for id := range s.dependencies.SameName(j) {
			if o, ok := s.rec.Job(id); ok && submitOrder(o) < submitOrder(j) {
				return conditionOpen
			}
		}
		return conditionMet
	case n.Kind == core.NeedAfter:
		if s.targetIsPending(n) {
			return conditionOpen
		}
		return conditionMet
	case n.Kind != core.NeedAfterNotOK && n.Kind != core.NeedAfterAny && n.Bad:
		return conditionFailed // one that ended badly is enough
	case s.targetIsLive(n):
		return conditionOpen
	case n.Kind == core.NeedAfterNotOK && !n.Bad:
		return conditionFailed
	}
	return conditionMet
}

// targetStart is when what a need names started: now, unless it has been running.
func (s *State) targetStart(n *core.Need) core.Time {
	if t, ok := s.rec.Job(n.Job); ok && n.Task == 0 && t.Start != 0 {
		return t.Start
	}
	return s.rec.Now()
}

// targetIsLive reports whether something of what a condition names is live.
func (s *State) targetIsLive(n *core.Need) bool {
	if n.Task > 0 {
		_, ok := s.cluster.Tasks(n.Job)[n.Task-1]
		return ok || s.targetIsPending(n)
	}
	_, live := s.rec.Job(n.Job)
	return live || len(s.cluster.Tasks(n.Job)) > 0
}

// targetIsPending reports whether something of what a condition names has not started.
func (s *State) targetIsPending(n *core.Need) bool {
	j, live := s.rec.Job(n.Job)
	if n.Task == 0 {
		return live && j.State == core.Pending
	}
	if id, ok := s.cluster.Tasks(n.Job)[n.Task-1]; ok {
		t, ok := s.rec.Job(id)
		return ok && t.State == core.Pending
	}
	return live && j.IsArray() && j.Array.Tasks.Contains(int(n.Task-1))
}
