package limits

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// As Slurm: unless starts are safe, what runs is ended when the minutes that it, or all of its project or QOS, may have
// are used up. It ends as one whose time is up does.

// ExhaustedAt is when minutes in all run out, 0: they do not.
func (l *Limits) ExhaustedAt() core.Time {
	l.Current()
	if l.Tally == nil || l.cfg.Safe {
		return 0
	}
	if !l.exhaustedKnown {
		l.exhaustedKnown, l.exhaustedAt = true, l.Tally.RunsOut(l.rec.Now())
	}
	return l.exhaustedAt
}

// EndJobsOutOfMinutes ends the jobs whose project or QOS has used up its minutes.
func (l *Limits) EndJobsOutOfMinutes(ed *jobs.Editor) {
	at := l.ExhaustedAt()
	if at == 0 || at > l.rec.Now() {
		return
	}

	why := map[core.JobID]string{}
	var due []core.JobID
	for id, use := range l.Uses {
		if _, text := l.Tally.RanOut(use, l.rec.Now()); text != "" {
			due = append(due, id)
			why[id] = text
		}
	}
	l.exhaustedKnown = false
	slices.Sort(due)
	for _, id := range due {
		if j, ok := l.rec.Job(id); ok && j.State == core.Running && !jobs.IsOver(j) {
			edit := ed.Edit(j)
			edit.End(core.Timeout, core.ReasonTimeLimit, why[id])
			edit.Commit()
		}
	}
	if at := l.ExhaustedAt(); at != 0 && at <= l.rec.Now() { // it was said too early, by the last digits
		l.exhaustedAt = l.rec.Now() + 1e6
	}
}

// OwnMinutesEnd is when a job that runs has used up its own minutes; 0: never.
func (l *Limits) OwnMinutesEnd(j *core.Job) core.Time {
	if l.stale || l.Tally == nil || !l.Rules.OwnMinutes() || j.State != core.Running || jobs.IsOver(j) {
		return 0
	}
	most, _ := l.Tally.Lasts(l.Uses[j.ID])
	if most == 0 {
		return 0
	}
	return j.Start.Add(j.PausedFor) + most
}

// OwnMinutesText says why a job that has used up its own minutes ends.
func (l *Limits) OwnMinutesText(id core.JobID) string {
	_, text := l.Tally.Lasts(l.Uses[id])
	return text
}
