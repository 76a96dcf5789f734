package state

import (
	"bireme.dev/bireme/internal/core"
)

// authorizeUpdate refuses changes of somebody else's job. A manager of its project may hold it, release it and let
// others go first, as coordinators in Slurm; all else would be written into a job that runs as its owner.
func (in *UpdateJob) authorizeUpdate(s *State, j *core.Job) error {
	if err := s.rec.AuthorizeJob(in.By, j); err != nil || in.By.Admin || in.By.User == j.Spec.User {
		return err
	}
	if in.TimeLimit == nil && in.Name == nil && in.Partition == nil && in.QOS == nil && in.Site == nil && in.Run == nil &&
		in.Comment == nil &&
		in.Dependency == nil && in.Checkpoint == nil && !in.Wish.Any() && !in.Spec.Any() {
		return nil
	}
	return core.Errorf(core.Denied,
		"job %d belongs to %s: a manager of project %s may stop, hold, release and requeue it and lower its priority, "+
			"but not change what it asks for or where it writes", j.ID, j.Spec.User, j.Spec.Project).Because("access_denied")
}
