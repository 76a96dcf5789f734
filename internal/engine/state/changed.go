package state

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// jobChanged stores a job's record and brings all that depends on it up to date, in the order written here; old is nil
// for a new job. A job that is no longer live leaves memory. The last three may change other jobs.
func (s *State) jobChanged(old, j *core.Job) {
	s.indexJob(old, j)           // dependencies, limits, reservations, lenders, counts, the ledger, deadlines
	s.charges.JobChanged(old, j) // what its project pays
	if s.rec.StoreJob(j); !j.Live() {
		delete(s.unusable.jobs, j.ID)
		s.endRunOf(j)
	}
	s.volumes.Left(old, j)
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

// indexJob updates what is derived from jobs alone, in the order written here. New calls it for every job.
func (s *State) indexJob(old, j *core.Job) {
	s.dependencies.JobChanged(old, j)
	s.limits.JobChanged(old, j)
	s.reservations.JobChanged(old, j)
	s.preemption.JobChanged(old, j)
	s.counts.JobChanged(old, j)
	s.volumes.JobChanged(old, j)
	s.cluster.JobChanged(old, j)
	s.deadlines.JobChanged(old, j) // by limits
}

// endRunOf closes the run of a job that has ended. A run of an array ends with the last of its tasks; until then it
// notes the first that failed and the first that was stopped.
func (s *State) endRunOf(j *core.Job) {
	if j.Spec.Run == "" {
		return
	}
	id := j.ID
	if j.Array != nil {
		id = j.Array.Base
	}
	r, ok := s.rec.Run(j.Spec.Project, j.Spec.Run)
	if !ok || !slices.Contains(r.Jobs, id) {
		return
	}
	if r.Service != nil {
		s.endReplica(r, j)
		return
	}
	next := *r
	if j.Array != nil {
		switch j.RunTermination() {
		case core.EndNone, core.RunEndJobsDone:
		case core.RunEndStopped, core.RunEndAborted:
			next.StoppedTask = cmp.Or(r.StoppedTask, j.ID)
		default:
			next.FailedTask = cmp.Or(r.FailedTask, j.ID)
		}
		if _, live := s.rec.Job(id); live || len(s.cluster.Tasks(id)) > 0 {
			if next.FailedTask != r.FailedTask || next.StoppedTask != r.StoppedTask {
				s.rec.PutRun(&next, "")
			}
			return
		}
	}
	next.Ended = s.rec.Now()
	s.rec.PutRun(&next, "")
}

// nodeChanged stores a node's record and brings all that depends on it up to date, in the order written here; old is
// nil for a new node. Only edits of nodes call it.
func (s *State) nodeChanged(old, n *core.Node) {
	s.limits.NodeChanged(old, n) // those in percent of the cluster
	s.cluster.NodeChanged(n)     // the ledger
	s.rec.PutNode(n)
	s.nodes.NodeChanged(n) // its timer, and what is to be done when it is empty
	s.reservations.ClusterChanged()
}

// nodeDeleted deletes a node's record, and all that was derived from it.
func (s *State) nodeDeleted(n *core.Node) {
	s.rec.DeleteNode(n)
	s.cluster.NodeDeleted(n.Name)
	s.reservations.ClusterChanged()
	s.limits.MarkStale()
	s.rec.TellPlannerNodeGone(n.Name)
}

// putProjectRecord stores a project. Limits, priorities and the planner's reservations follow.
func (s *State) putProjectRecord(p *core.Project) {
	old := s.people.StoreProject(p)
	if s.limits.ProjectChanged(old, p) {
		s.ranking.Soon()
	}
	if old == nil || old.Parent != p.Parent {
		s.reservations.ProjectsChanged()
	}
}

func (s *State) deleteProject(name core.ProjectName) {
	s.people.DeleteProject(name)
	s.charges.DeleteProject(name)
	s.credentials.DeleteProject(name)
	s.limits.MarkStale()
	s.ranking.Soon()
}

func (s *State) putQOSRecord(q *core.QOS) {
	s.qosChanged(s.rec.PutQOS(q), q)
}

func (s *State) deleteQOS(name core.QOSName) {
	s.qosChanged(s.rec.DeleteQOS(name), nil)
}

// qosChanged notes what a QOS's change means for limits, for what its jobs cost and for priorities.
func (s *State) qosChanged(old, q *core.QOS) {
	s.limits.MarkStale()
	s.ranking.Soon()
	if old != nil && (q == nil || old.Factor() != q.Factor() || (old.Flags^q.Flags)&core.NoDecay != 0) || old == nil {
		s.charges.Recompute()
	}
}

// limitsRebuilt brings what goes by limits up to date after they were built again.
func (s *State) limitsRebuilt(ownMinutes bool) {
	if ownMinutes {
		s.deadlines.ResetRunning()
	}
	s.preemption.Refresh()
}
