package state

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/runlife"
)

// apply ends interactive jobs whose time is up or that nobody ever used, and jobs that miss their deadline or whose
// minutes have run out, and works priorities out again when they are due.
func (*Tick) apply(s *State) (None, error) {
	for _, id := range s.deadlines.Due() {
		j, ok := s.rec.Job(id)
		if !ok || !s.deadlines.Has(id) { // another component of its job has taken it along
			continue
		}
		edit := s.jobs.Edit(j)
		if at := jobs.DeadlineOf(j); at != 0 && at <= s.rec.Now() {
			edit.MissDeadline()
			edit.Commit()
			continue
		}
		if at := runlife.Due(j); at != 0 && at <= s.rec.Now() {
			edit.RunExpired()
			continue
		}
		why, message := core.ReasonTimeLimit, ""
		if at := s.deadlines.IdleEnd(j); at != 0 && at <= s.rec.Now() {
			why, message = core.ReasonInactive,
				fmt.Sprintf("no step was started in it within %v; whoever asked for it is gone", s.cfg.InteractiveIdle.Duration())
		}
		if at := s.limits.OwnMinutesEnd(j); at != 0 && at <= s.rec.Now() {
			message = s.limits.OwnMinutesText(id)
		}
		edit.End(core.Timeout, why, message)
		edit.Commit()
	}
	s.limits.EndJobsOutOfMinutes(s.jobs)
	s.reservations.RunTimers()
	s.nodes.RunTimers()
	s.volumes.RunTimers(s.volumeMaker)
	s.ranking.Run()
	return none, nil
}
