package view

import (
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// Visibility holds the rules of who sees what. It is pure: who looks, which role they have in a project, and what the
// settings make private (private_data, Slurm's PrivateData). The zero value is a stranger who sees what is public.
//
// As in Slurm, administrators see everything, everybody sees their own, and a manager of a project sees its jobs,
// usage and members. Submit lines, scripts and environments are not under these rules: they are always their owner's
// (redact.go).
type Visibility struct {
	User    core.UserName
	Admin   bool
	Private config.Private
	Role    func(core.ProjectName) core.Role // of the user in a project; nil: none anywhere
}

// Hides reports whether a kind of records is not for everybody, and not all of it for this viewer.
func (v *Visibility) Hides(kind config.Private) bool { return !v.Admin && v.Private.Has(kind) }

// isSelf reports whether a user is the viewer. A stranger is nobody's self.
func (v *Visibility) isSelf(u core.UserName) bool { return u != "" && u == v.User }

func (v *Visibility) rankIn(p core.ProjectName) int {
	if v.Role == nil || p == "" {
		return 0
	}
	return v.Role(p).Rank()
}

// Manages reports whether the viewer manages a project.
func (v *Visibility) Manages(p core.ProjectName) bool { return v.rankIn(p) >= core.RoleManager.Rank() }

// seesWork reports whether the viewer sees the jobs and runs of a user in a project.
func (v *Visibility) seesWork(owner core.UserName, project core.ProjectName) bool {
	return !v.Hides(config.PrivateJobs) || v.isSelf(owner) || v.Manages(project)
}

// SeesJob reports whether the viewer may know that there is a job.
func (v *Visibility) SeesJob(j *core.Job) bool { return v.seesWork(j.Spec.User, j.Spec.Project) }

// SeesRun reports whether the viewer may know that there is a run.
func (v *Visibility) SeesRun(r *core.Run) bool { return v.seesWork(r.User, r.Project) }

// SeesUsage reports whether the viewer sees what a user has used in a project, and what follows from it.
func (v *Visibility) SeesUsage(owner core.UserName, project core.ProjectName) bool {
	return !v.Hides(config.PrivateUsage) || v.isSelf(owner) || v.Manages(project)
}

// SeesUser reports whether the viewer sees a user's record. Managers too list only themselves, as coordinators do in
// Slurm.
func (v *Visibility) SeesUser(u core.UserName) bool {
	return !v.Hides(config.PrivateUsers) || v.isSelf(u)
}

// seesMember reports whether the viewer sees a user's part in a project (Slurm's association).
func (v *Visibility) seesMember(p core.ProjectName, u core.UserName) bool {
	return v.SeesUser(u) || v.Manages(p)
}

// SeesProject reports whether the viewer sees a project's definition: its place, limits and shares.
func (v *Visibility) SeesProject(p core.ProjectName) bool {
	return !v.Hides(config.PrivateAccounts) || v.Manages(p)
}

// SeesNodes reports whether the viewer sees nodes and their state.
func (v *Visibility) SeesNodes() bool { return !v.Hides(config.PrivateNodes) }

// SeesPartitions reports whether the viewer sees partitions.
func (v *Visibility) SeesPartitions() bool { return !v.Hides(config.PrivatePartitions) }

// seesReservation reports whether the viewer sees a reservation: with PrivateData those that they can use.
func (v *Visibility) seesReservation(usable func() bool) bool {
	return !v.Hides(config.PrivateReservations) || usable()
}

// SeesEvent reports whether an event is the viewer's business: their own things, and nodes unless those are private.
func (v *Visibility) SeesEvent(e *core.Event) bool {
	switch {
	case v.Admin || v.isSelf(e.User):
		return true
	case e.User == "" && e.Node != "":
		return v.SeesNodes() && !v.Hides(config.PrivateEvents)
	}
	return v.isSelf(e.By)
}
