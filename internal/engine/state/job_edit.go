package state

import (
	"bireme.dev/bireme/internal/core"
)

// jobChanged stores a job's record and brings all that depends on it up to date, in the order written here; old is nil
// for a new job. A job that is no longer live leaves memory. The last three may change other jobs.
func (s *State) jobChanged(old, j *core.Job) {
	s.indexJob(old, j)           // dependencies, limits, reservations, lenders, counts, the ledger, deadlines
	s.charges.JobChanged(old, j) // what its project pays
	if s.rec.StoreJob(j); !j.Live() {
		delete(s.unusable, j.ID)
		s.endRunOf(j)
	}
	s.reservations.UpdateIdle(old, j)
	if s.cfg.PutFaultForTests != nil {
		s.cfg.PutFaultForTests(j)
	}
	s.rec.NoteJob(j)
	s.dependencies.Notify(old, j)
	if ref := j.Spec.More().Het; ref != nil {
		s.jobs.HetJobChanged(old, j, ref)
	}
	s.preemption.ReturnLent(j)
}
