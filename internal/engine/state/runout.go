package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// As Slurm: unless starts are safe, what runs is ended when the minutes that it, or all of its project or QOS, may have
// are used up. It ends as one whose time is up does.

// minutesWake is when minutes in all run out, 0: they do not.
func (s *State) minutesWake() core.Time {
	l := s.limitsNow()
	if l.tally == nil || s.cfg.Safe {
		return 0
	}
	if !l.known {
		l.known, l.runsOut = true, l.tally.RunsOut(s.view.now)
	}
	return l.runsOut
}

// tickMinutes ends the jobs whose project or QOS has used up its minutes.
func (s *State) tickMinutes() {
	at := s.minutesWake()
	if at == 0 || at > s.view.now {
		return
	}
	l := &s.limits
	why := map[core.JobID]string{}
	var due []core.JobID
	for id, stake := range l.stakes {
		if _, text := l.tally.RanOut(stake, s.view.now); text != "" {
			due = append(due, id)
			why[id] = text
		}
	}
	l.known = false
	slices.Sort(due)
	for _, id := range due {
		if j, ok := s.view.jobs.Get(int64(id)); ok && j.State == core.Running && !over(j) {
			next := clone(j)
			s.end(next, core.Timeout, core.ReasonTimeLimit, why[id])
			s.putJob(next)
		}
	}
	if at := s.minutesWake(); at != 0 && at <= s.view.now { // it was said too early, by the last digits
		l.runsOut = s.view.now + 1e6
	}
}

// minutesEnd is when a job that runs has used up its own minutes; 0: never.
func (s *State) minutesEnd(j *core.Job) core.Time {
	l := &s.limits
	if l.stale || l.tally == nil || !l.rules.OwnMinutes() || j.State != core.Running || over(j) {
		return 0
	}
	most, _ := l.tally.Lasts(l.stakes[j.ID])
	if most == 0 {
		return 0
	}
	return j.Start.Add(j.PausedFor) + most
}

// watchAll notes anew when time ends those that run.
func (s *State) watchAll() {
	for _, j := range s.view.jobs.All() {
		if j.State == core.Running {
			delete(s.timed, j.ID)
			s.watch(j)
		}
	}
	s.stale = true
}
