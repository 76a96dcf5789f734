package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// As Slurm: unless starts are safe, what runs is ended when the minutes that it, or all of its project or QOS, may have
// are used up. It ends as one whose time is up does.

// minutesExhaustedAt is when minutes in all run out, 0: they do not.
func (s *State) minutesExhaustedAt() core.Time {
	l := s.currentLimits()
	if l.tally == nil || s.cfg.Safe {
		return 0
	}
	if !l.exhaustedKnown {
		l.exhaustedKnown, l.exhaustedAt = true, l.tally.RunsOut(s.rec.Now())
	}
	return l.exhaustedAt
}

// endJobsOutOfMinutes ends the jobs whose project or QOS has used up its minutes.
func (s *State) endJobsOutOfMinutes() {
	at := s.minutesExhaustedAt()
	if at == 0 || at > s.rec.Now() {
		return
	}
	l := &s.limits
	why := map[core.JobID]string{}
	var due []core.JobID
	for id, stake := range l.stakes {
		if _, text := l.tally.RanOut(stake, s.rec.Now()); text != "" {
			due = append(due, id)
			why[id] = text
		}
	}
	l.exhaustedKnown = false
	slices.Sort(due)
	for _, id := range due {
		if j, ok := s.rec.Job(id); ok && j.State == core.Running && !jobs.IsOver(j) {
			edit := s.jobs.Edit(j)
			edit.End(core.Timeout, core.ReasonTimeLimit, why[id])
			edit.Commit()
		}
	}
	if at := s.minutesExhaustedAt(); at != 0 && at <= s.rec.Now() { // it was said too early, by the last digits
		l.exhaustedAt = s.rec.Now() + 1e6
	}
}

// ownMinutesEnd is when a job that runs has used up its own minutes; 0: never.
func (s *State) ownMinutesEnd(j *core.Job) core.Time {
	l := &s.limits
	if l.stale || l.tally == nil || !l.rules.OwnMinutes() || j.State != core.Running || jobs.IsOver(j) {
		return 0
	}
	most, _ := l.tally.Lasts(l.stakes[j.ID])
	if most == 0 {
		return 0
	}
	return j.Start.Add(j.PausedFor) + most
}

// resetJobDeadlines notes anew when time ends those that run.
func (s *State) resetJobDeadlines() {
	for j := range s.rec.Jobs() {
		if j.State == core.Running {
			delete(s.jobDeadlines, j.ID)
			s.setJobDeadline(j)
		}
	}
	s.jobDeadlinesStale = true
}
