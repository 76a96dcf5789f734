package jobs

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/runlife"
)

// Deadlines knows when time ends jobs: interactive ones by their limit or unused, any by a deadline or by minutes of
// their own, runs by their rules.
type Deadlines struct {
	rec        *live.Records
	cfg        *conf.Config
	ownMinutes func(*core.Job) core.Time // when a job has used up minutes of its own; 0: never

	at    map[core.JobID]core.Time
	next  core.Time // the first of at, unless stale
	stale bool
}

// NewDeadlines makes deadlines of no job yet.
func NewDeadlines(rec *live.Records, cfg *conf.Config, ownMinutes func(*core.Job) core.Time) *Deadlines {
	return &Deadlines{rec: rec, cfg: cfg, ownMinutes: ownMinutes, at: map[core.JobID]core.Time{}}
}

// JobChanged notes when time ends a job as it is now; old is nil for a new job.
func (d *Deadlines) JobChanged(old, j *core.Job) {
	if old != nil {
		if _, ok := d.at[old.ID]; ok {
			delete(d.at, old.ID)
			d.stale = true
		}
	}
	if j.Live() {
		d.set(j)
	}
}

// Next is when time ends the first job; 0: never.
func (d *Deadlines) Next() core.Time {
	if d.stale {
		d.stale, d.next = false, 0
		for _, t := range d.at {
			d.next = live.Sooner(d.next, t)
		}
	}
	return d.next
}

// Due lists the jobs that time ends by now, by id.
func (d *Deadlines) Due() []core.JobID {
	var due []core.JobID
	for id, at := range d.at {
		if at <= d.rec.Now() {
			due = append(due, id)
		}
	}
	slices.Sort(due)
	return due
}

// Has reports whether time ends a job.
func (d *Deadlines) Has(id core.JobID) bool { return d.at[id] != 0 }

// All is when time ends jobs, to read.
func (d *Deadlines) All() map[core.JobID]core.Time { return d.at }

// Reset notes again when time ends all
func (d *Deadlines) Reset() {
	clear(d.at)
	d.stale = true
	for j := range d.rec.Jobs() {
		d.set(j)
	}
}

// set notes when time ends a job.
func (d *Deadlines) set(j *core.Job) {
	at := live.Sooner(live.Sooner(d.timeLimitEnd(j), DeadlineOf(j)), d.ownMinutes(j))
	if j.Spec.Rules() != nil {
		at = live.Sooner(at, runlife.Due(j))
	}
	if at != 0 {
		d.at[j.ID] = at
		d.stale = true
	}
}

// timeLimitEnd is when time ends an interactive job, 0: never. The keepers watch batch
func (d *Deadlines) timeLimitEnd(j *core.Job) (at core.Time) {
	if j.State != core.Running || j.Spec.Kind != core.Interactive {
		return d.scriptlessEnd(j)
	}
	if l := j.Spec.TimeLimit; l > 0 && l != core.Forever {
		at = j.Start.Add(l.Duration() + j.PausedFor)
	}
	return live.Sooner(at, d.IdleEnd(j))
}

// IdleEnd is when an allocation that never had a step is given up, 0: never.
func (d *Deadlines) IdleEnd(j *core.Job) core.Time {
	if d.cfg.InteractiveIdle == 0 || j.Steps > 0 || j.Spec.More().Open || j.Spec.Kind != core.Interactive {
		return 0
	}
	return j.Start.Add(d.cfg.InteractiveIdle.Duration() + j.PausedFor)
}

// scriptlessEnd is when time ends a component that has no script, whose keeper would watch it; 0: never.
func (d *Deadlines) scriptlessEnd(j *core.Job) core.Time {
	if j.State != core.Running || IsOver(j) || j.Spec.Batches() || j.Spec.TimeLimit <= 0 ||
		j.Spec.TimeLimit == core.Forever {
		return 0
	}
	return j.Start.Add(j.Spec.TimeLimit.Duration() + j.PausedFor)
}

// ResetRunning notes again when time ends those that run.
func (d *Deadlines) ResetRunning() {
	for j := range d.rec.Jobs() {
		if j.State == core.Running {
			delete(d.at, j.ID)
			d.set(j)
		}
	}
	d.stale = true
}
