package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/runlife"
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
