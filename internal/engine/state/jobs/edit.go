package jobs

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/live"
)

// Editor begins changes of jobs.
type Editor struct {
	rec     *live.Records
	cfg     *conf.Config
	changed func(old, j *core.Job) // stores a record and brings all that depends on it up to date
}

// NewEditor makes the editor of the jobs of rec. Every commit calls changed; old is nil for a new job.
func NewEditor(rec *live.Records, cfg *conf.Config, changed func(old, j *core.Job)) *Editor {
	return &Editor{rec: rec, cfg: cfg, changed: changed}
}

// Edit is a change of one job's record: a copy that its methods change, and the events that tell of it. Every edit
// ends with one of the commit methods; nothing else stores a job. Records are never changed in place: snapshots and the
// planner share them.
//
//	edit := editor.Edit(j)
//	edit.End(core.Timeout, core.ReasonTimeLimit, "")
//	edit.Commit()
type Edit struct {
	Job      *core.Job // the copy that is stored
	ed       *Editor
	hasEvent bool // an event of this edit was emitted
}

// Edit begins a change of a job.
func (ed *Editor) Edit(j *core.Job) Edit { return Edit{ed: ed, Job: Clone(j)} }

// EditRecord begins a change with a record that nobody else has: a new job, or a task that leaves its array.
func (ed *Editor) EditRecord(j *core.Job) Edit { return Edit{ed: ed, Job: j} }

// Event emits an event of the job, before the change is stored.
func (e *Edit) Event(kind core.EventKind, ev core.Event) {
	ev.Job, ev.User = e.Job.ID, e.Job.Spec.User
	e.ed.rec.Event(kind, ev)
	e.hasEvent = true
}

// Commit stores a change that an event has told of.
func (e *Edit) Commit() {
	core.Assert(e.hasEvent, "a job was changed without an event")
	e.ed.put(e.Job)
}

// CommitWith stores a change and emits its event, after those of the jobs that follow from it.
func (e *Edit) CommitWith(kind core.EventKind, ev core.Event) {
	e.ed.put(e.Job)
	e.Event(kind, ev)
}

// CommitSilently stores a change that nobody watches for: it is bookkeeping, or the event of something else tells it.
func (e *Edit) CommitSilently() { e.ed.put(e.Job) }

// CommitIfChanged stores the copy unless it is as j was: a report that comes twice writes nothing.
func (e *Edit) CommitIfChanged(j *core.Job) {
	if *e.Job != *j {
		e.ed.put(e.Job)
	}
}

// put replaces a job's record. Only the commit methods of Edit call it.
func (ed *Editor) put(j *core.Job) {
	old, _ := ed.rec.Job(j.ID)
	ed.changed(old, j)
}

// Clone copies a record, to be changed.
func Clone(j *core.Job) *core.Job { c := *j; return &c }
