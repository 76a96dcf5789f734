package state

import (
	"bireme.dev/bireme/internal/core"
)

// jobEdit is a change of one job's record: a copy that its methods change, and the events that tell of it. Every edit
// ends with one of the commit methods; nothing else stores a job. Records are never changed in place: snapshots and the
// planner share them.
//
//	edit := s.editJob(j)
//	edit.end(core.Timeout, core.ReasonTimeLimit, "")
//	edit.commit()
type jobEdit struct {
	s        *State
	job      *core.Job // the copy that commit stores
	hasEvent bool      // an event of this edit was emitted
}

// editJob begins a change of a job.
func (s *State) editJob(j *core.Job) jobEdit { return jobEdit{s: s, job: cloneJob(j)} }

// editRecord begins a change with a record that nobody else has: a new job, or a task that leaves its array.
func (s *State) editRecord(j *core.Job) jobEdit { return jobEdit{s: s, job: j} }

// event emits an event of the job, before the change is stored.
func (e *jobEdit) event(kind core.EventKind, ev core.Event) {
	ev.Job, ev.User = e.job.ID, e.job.Spec.User
	e.s.rec.Event(kind, ev)
	e.hasEvent = true
}

// commit stores a change that an event has told of.
func (e *jobEdit) commit() {
	core.Assert(e.hasEvent, "a job was changed without an event")
	e.s.putJob(e.job)
}

// commitWith stores a change and emits its event, after those of the jobs that follow from it.
func (e *jobEdit) commitWith(kind core.EventKind, ev core.Event) {
	e.s.putJob(e.job)
	e.event(kind, ev)
}

// commitSilently stores a change that nobody watches for: it is bookkeeping, or the event of something else tells it.
func (e *jobEdit) commitSilently() { e.s.putJob(e.job) }

// commitIfChanged stores the copy unless it is as j was: a report that comes twice writes nothing.
func (e *jobEdit) commitIfChanged(j *core.Job) {
	if *e.job != *j {
		e.s.putJob(e.job)
	}
}

// putJob replaces a job's record. Only the commit methods of jobEdit call it.
func (s *State) putJob(j *core.Job) {
	old, _ := s.rec.Job(j.ID)
	s.jobChanged(old, j)
}

// jobChanged stores a job's record and brings all that depends on it up to date, in the order written here; old is nil
// for a new job. A job that is no longer live leaves memory. The last three may change other jobs.
func (s *State) jobChanged(old, j *core.Job) {
	s.indexJob(old, j)        // dependencies, limits, reservations, lenders, counts, the ledger, deadlines
	s.usageJobChanged(old, j) // what its project pays
	if s.rec.StoreJob(j); !j.Live() {
		delete(s.unusable, j.ID)
		s.endRunOf(j)
	}
	if len(s.rec.ReservationsByName()) > 0 {
		s.updateReservationIdle(old, j)
	}
	if s.cfg.PutFaultForTests != nil {
		s.cfg.PutFaultForTests(j)
	}
	s.rec.NoteJob(j)
	s.notifyDependents(old, j)
	if ref := j.Spec.More().Het; ref != nil {
		s.hetJobChanged(old, j, ref)
	}
	if len(s.preemption.lenders[j.ID]) > 0 {
		s.returnLentCPUs(j)
	}
}
