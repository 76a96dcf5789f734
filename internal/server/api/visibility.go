package api

import (
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// visibility holds the rules of who sees what. It is pure: who looks, which role they have in a project, and what the
// settings make private (private_data, Slurm's PrivateData). The zero value is a stranger who sees what is public.
//
// As in Slurm, administrators see everything, everybody sees their own, and a manager of a project sees its jobs, usage and
// members. Submit lines, scripts and environments are not under these rules: they are always their owner's (redact.go).
type visibility struct {
	user    core.UserName
	admin   bool
	private config.Private
	role    func(core.ProjectName) core.Role // of the user in a project; nil: none anywhere
}

// hides tells whether a kind of records is not for everybody, and not all of it for this viewer.
func (v *visibility) hides(kind config.Private) bool { return !v.admin && v.private.Has(kind) }

// isSelf tells whether a user is the viewer. A stranger is nobody's self.
func (v *visibility) isSelf(u core.UserName) bool { return u != "" && u == v.user }

func (v *visibility) rankIn(p core.ProjectName) int {
	if v.role == nil || p == "" {
		return 0
	}
	return v.role(p).Rank()
}

// manages tells whether the viewer manages a project.
func (v *visibility) manages(p core.ProjectName) bool { return v.rankIn(p) >= core.RoleManager.Rank() }

// seesWork tells whether the viewer sees the jobs and runs of a user in a project.
func (v *visibility) seesWork(owner core.UserName, project core.ProjectName) bool {
	return !v.hides(config.PrivateJobs) || v.isSelf(owner) || v.manages(project)
}

// seesJob tells whether the viewer may know that there is a job.
func (v *visibility) seesJob(j *core.Job) bool { return v.seesWork(j.Spec.User, j.Spec.Project) }

// seesRun tells whether the viewer may know that there is a run.
func (v *visibility) seesRun(r *core.Run) bool { return v.seesWork(r.User, r.Project) }

// seesUsage tells whether the viewer sees what a user has used in a project, and what follows from it.
func (v *visibility) seesUsage(owner core.UserName, project core.ProjectName) bool {
	return !v.hides(config.PrivateUsage) || v.isSelf(owner) || v.manages(project)
}

// seesUser tells whether the viewer sees a user's record. Managers too list only themselves, as coordinators do in Slurm.
func (v *visibility) seesUser(u core.UserName) bool {
	return !v.hides(config.PrivateUsers) || v.isSelf(u)
}

// seesMember tells whether the viewer sees a user's part in a project (Slurm's association).
func (v *visibility) seesMember(p core.ProjectName, u core.UserName) bool {
	return v.seesUser(u) || v.manages(p)
}

// seesProject tells whether the viewer sees a project's definition: its place, limits and shares.
func (v *visibility) seesProject(p core.ProjectName) bool {
	return !v.hides(config.PrivateAccounts) || v.manages(p)
}

// seesNodes tells whether the viewer sees nodes and their state.
func (v *visibility) seesNodes() bool { return !v.hides(config.PrivateNodes) }

// seesPartitions tells whether the viewer sees partitions.
func (v *visibility) seesPartitions() bool { return !v.hides(config.PrivatePartitions) }

// seesReservation tells whether the viewer sees a reservation: with PrivateData those that they can use.
func (v *visibility) seesReservation(usable func() bool) bool {
	return !v.hides(config.PrivateReservations) || usable()
}

// seesEvent tells whether an event is the viewer's business: their own things, and nodes unless those are private.
func (v *visibility) seesEvent(e *core.Event) bool {
	switch {
	case v.admin || v.isSelf(e.User):
		return true
	case e.User == "" && e.Node != "":
		return v.seesNodes() && !v.hides(config.PrivateEvents)
	}
	return v.isSelf(e.By)
}
