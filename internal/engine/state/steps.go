package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/runlife"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/engine/state/steplayout"
)

// apply makes a numbered step in a job that runs, with its parts in other components of a het job, or none of them.
func (in *CreateStep) apply(s *State) (*StepsCreated, error) {
	steps := make([]*core.Step, 0, 1+len(in.Rest))
	rank := int32(0)
	for i := range 1 + len(in.Rest) {
		part := in
		if i > 0 {
			part = &in.Rest[i-1]
		}
		st, err := s.jobs.PrepareStep(in.By, part.Step, part.Request, steps)
		if err != nil {
			return nil, err
		}
		if rank, err = steplayout.CheckPrograms(part.Request, st, rank); err != nil {
			return nil, err
		}
		steps = append(steps, st)
	}
	owners := make([]*core.Job, len(steps))
	for i, st := range steps {
		j, _ := s.rec.Job(st.Job)
		edit := s.jobs.Edit(j)
		next := edit.Job
		next.Steps++
		runlife.Connected(next, st)
		edit.CommitSilently() // the event of the step tells
		owners[i] = next
		s.rec.PutStep(st)
		s.rec.Event(core.StepStarted, core.Event{Job: j.ID, User: j.Spec.User, Data: jobs.StepData(st.ID)})
	}
	return &StepsCreated{Steps: steps, Jobs: owners}, nil
}

// apply changes the limit of steps that run. As in Slurm their owner may raise it: the job's own limit ends them too.
func (in *UpdateStep) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if !in.By.Admin && in.By.User != j.Spec.User {
		return none, core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
	}
	if in.TimeLimit <= 0 || in.TimeLimit > speccheck.MaxSeconds && in.TimeLimit != core.Forever {
		return none, core.Errorf(core.Invalid, "the time limit must be more than 0 and at most %d seconds",
			int64(speccheck.MaxSeconds)).Because("time_limit")
	}
	changed := false
	for _, st := range s.rec.LiveSteps(j.ID) {
		if st.State.Final() || st.Attempt != j.Attempt || in.Step >= 0 && st.ID != in.Step {
			continue
		}
		next := *st
		next.Options.TimeLimit = in.TimeLimit
		s.rec.PutStep(&next)
		changed = true
	}
	if !changed {
		return none, core.Errorf(core.NotFound, "job %d has no such step", j.ID).Because("invalid_job_id")
	}
	s.rec.Event(core.JobUpdated, core.Event{Job: j.ID, User: j.Spec.User, By: in.By.User})
	return none, nil
}
