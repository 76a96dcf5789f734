package state

import (
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

// TakeHistory takes over what another system knows: jobs that have ended, with their steps, and what users have used.
// The jobs never were live here: they go to the store alone. The caller has made sure that no other job of the store
// has their ids. New jobs get ids above all of theirs. Reply: *HistoryTaken.
type TakeHistory struct {
	By    core.Identity
	Jobs  []*core.Job // with their specs
	Steps []*core.Step
	// Spent counts for those who have used nothing here yet; what the others have used stays as it is.
	Spent   []core.Spent
	NextJob core.JobID // the next job gets this id, or a greater one
}

// HistoryTaken is the reply to TakeHistory.
type HistoryTaken struct {
	Spent int // of those given, that were taken over
}

func (*TakeHistory) input() {}

// maxTakenJob is the greatest id that every reader of JSON reads exactly.
const maxTakenJob = core.JobID(1) << 53

func (in *TakeHistory) apply(s *State) (*HistoryTaken, error) {
	if err := people.AdminOnly(in.By, "may take over jobs and usage of another system"); err != nil {
		return nil, err
	}
	if err := in.check(s); err != nil {
		return nil, err
	}
	next := in.NextJob
	for _, j := range in.Jobs {
		next = max(next, j.ID+1)
		if j.Array != nil {
			next = max(next, j.Array.Base+1)
		}
		if !s.cfg.Unkept { // the store alone learns of it: nothing is live, and nothing planned
			s.rec.AddSpec(j.SpecID, j.Spec)
			c := s.rec.Changes()
			c.Jobs = append(c.Jobs, j)
		}
	}
	if c := s.rec.Changes(); !s.cfg.Unkept {
		c.Steps = append(c.Steps, in.Steps...)
	}
	s.rec.SkipJobIDs(next)
	out := &HistoryTaken{}
	for i := range in.Spent {
		if s.charges.TakeOver(&in.Spent[i]) {
			out.Spent++
		}
	}
	s.rec.Event(core.HistoryTaken, core.Event{By: in.By.User})
	return out, nil
}

// check finds what cannot be taken over; nothing is changed then.
func (in *TakeHistory) check(s *State) error {
	refuse := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, format, args...).Because("invalid_history")
	}
	if in.NextJob < 0 || in.NextJob > maxTakenJob {
		return refuse("the next job id %d is not between 1 and %d", in.NextJob, maxTakenJob)
	}
	for i, j := range in.Jobs {
		switch {
		case j == nil || j.Spec == nil || j.Spec.User == "":
			return refuse("job %d of the call has no spec with a user", i+1)
		case j.ID < 1 || j.ID >= maxTakenJob || j.SpecID != j.ID:
			return refuse("job %d of the call: %d is not a job id", i+1, j.ID)
		case j.Array != nil && (j.Array.Base < 1 || j.Array.Base >= maxTakenJob):
			return refuse("job %d: %d is not the id of an array", j.ID, j.Array.Base)
		case !j.State.Final() || j.Live() || j.End == 0:
			return refuse("job %d has not ended", j.ID)
		}
		if _, err := s.rec.LiveJob(j.ID); err == nil {
			return core.Errorf(core.Conflict, "there is a job %d here that has not ended", j.ID).Because("job_exists")
		}
	}
	for _, st := range in.Steps {
		if st == nil || !st.State.Final() || st.ID < 0 || len(st.Tasks) != len(st.Nodes) {
			return refuse("a step has not ended, or not as many counts of tasks as nodes")
		}
		if _, err := s.rec.LiveJob(st.Job); err == nil {
			return core.Errorf(core.Conflict, "there is a job %d here that has not ended", st.Job).Because("job_exists")
		}
	}
	for i := range in.Spent {
		x := &in.Spent[i]
		if _, ok := s.rec.Project(x.Project); !ok {
			return refuse("usage of %s: there is no project %q", x.User, x.Project)
		}
		if !isUsage(x) {
			return refuse("usage of %s in %s: it is not a number above 0", x.User, x.Project)
		}
	}
	return nil
}

// isUsage reports whether all amounts are numbers that can be added up.
func isUsage(s *core.Spent) bool {
	ok := func(f float64) bool { return f >= 0 && f <= math.MaxFloat32 }
	sane := ok(s.Raw) && ok(s.Wall)
	for _, t := range s.TRES {
		sane = sane && ok(t.Seconds)
	}
	return sane
}
