// Package advance has advance reservations: nodes and licenses that are set aside for people at times. It checks them,
// chooses their nodes, counts the jobs that use them, and has them end, recur, be purged or get other nodes when time
// or the cluster asks for it.
package advance

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched"
)

// Reservations changes the advance reservations.
type Reservations struct {
	rec     *live.Records
	cfg     *conf.Config
	cluster *cluster.Cluster
	people  *people.Directory
	jobs    *jobs.Editor

	uses      map[string]int // live jobs that run in a reservation, or wait for it
	wake      core.Time      // when the first of them is due; 0: none is
	wakeValid bool           // nothing that wake depends on has changed since
	watchJobs bool           // nodes may be replaced when jobs come or go
}

// New makes the writer of the advance reservations of rec.
func New(rec *live.Records, cfg *conf.Config, cl *cluster.Cluster, p *people.Directory, ed *jobs.Editor) *Reservations {
	return &Reservations{rec: rec, cfg: cfg, cluster: cl, people: p, jobs: ed}
}

// ClusterChanged has the next time worked out again: nodes or settings have changed.
func (a *Reservations) ClusterChanged() { a.wakeValid = false }

// Put creates or replaces a reservation. isNew refuses to replace one.
func (a *Reservations) Put(want *core.AdvanceReservation, isNew bool) (*core.AdvanceReservation, error) {
	r := *want
	old, ok := a.rec.Reservation(r.Name)
	if ok && isNew {
		return nil, core.Errorf(core.Conflict, "reservation %s already exists", r.Name).Because("reservation_exists")
	}
	if err := speccheck.OneMoreReservation(len(a.rec.ReservationsByName())); err != nil && !ok {
		return nil, err
	}
	r.ID, r.Created, r.IdleSince = a.rec.NextReservationID(), a.rec.Now(), 0
	if ok {
		r.ID, r.Created = old.ID, old.Created
	}
	if r.Start == 0 {
		r.Start = a.rec.Now()
	}
	if r.Name == "" {
		r.Name = defaultName(&r)
	}
	if err := a.complete(&r, old); err != nil {
		return nil, err
	}
	a.put(&r)
	return &r, nil
}

// Update changes some fields of a reservation.
func (a *Reservations) Update(name string, change *core.ReservationChange) (*core.AdvanceReservation, error) {
	old, ok := a.rec.Reservation(name)
	if !ok {
		return nil, a.errUnknown(name)
	}
	r := *old
	change.Apply(&r)
	if err := a.complete(&r, old); err != nil {
		return nil, err
	}
	a.put(&r)
	return &r, nil
}

// Delete deletes a reservation that no job runs in. Users of one with the flag user_delete may do so, else
// administrators.
func (a *Reservations) Delete(by core.Identity, name string) error {
	r, ok := a.rec.Reservation(name)
	if !ok {
		return a.errUnknown(name)
	}
	if r.Flags&core.ReserveUserDelete == 0 || !a.userMayUse(r, by.User) {
		if err := people.AdminOnly(by, "may remove reservations"); err != nil {
			return err
		}
	}
	for j := range a.rec.Jobs() {
		if j.Alloc.Inside() == name && j.End == 0 {
			return core.Errorf(core.Conflict, "reservation %s cannot be removed: job %d runs in it", name,
				j.ID).Because("reservation_busy")
		}
	}
	a.deleteRecord(r)
	return nil
}

// defaultName names a reservation as Slurm does: after the first it is for, and its number.
func defaultName(r *core.AdvanceReservation) string {
	who := "resv"
	switch {
	case len(r.Users) > 0:
		who = strings.TrimPrefix(string(r.Users[0]), "-")
	case len(r.Projects) > 0:
		who = strings.TrimPrefix(string(r.Projects[0]), "-")
	case len(r.Groups) > 0:
		who = r.Groups[0]
	}
	return fmt.Sprintf("%s_%d", who, r.ID)
}

func (a *Reservations) errUnknown(name string) error {
	return core.Errorf(core.NotFound, "there is no reservation %q%s", name,
		named.Hint(name, a.rec.ReservationsByName())).Because("invalid_reservation")
}

// put makes a reservation the one that holds.
func (a *Reservations) put(r *core.AdvanceReservation) {
	if r.Flags&core.ReservePurgeCompleted != 0 && a.uses[r.Name] == 0 && r.IdleSince == 0 {
		r.IdleSince = a.rec.Now()
	}
	a.putQuietly(r)
	a.rec.TellPlanner(sched.Changes{Reservations: []*core.AdvanceReservation{a.forPlanner(r)}})
	a.rec.Event(core.ReserveChanged,
		core.Event{Data: append(jsontext.AppendString([]byte(`{"reservation":`), r.Name), '}')})
}

// putQuietly is putReservationRecord for what concerns nobody else.
func (a *Reservations) putQuietly(r *core.AdvanceReservation) {
	a.rec.PutReservation(r)
	a.wakeValid = false
}

// userMayUse reports whether a user may use a reservation, in some project of theirs.
func (a *Reservations) userMayUse(r *core.AdvanceReservation, user core.UserName) bool {
	if len(r.Users)+len(r.Projects) == 0 {
		return false // it is for groups, and who is in them is not known here
	}
	return r.Admits(user, func(name core.ProjectName) bool { return a.rec.Role(user, name) != core.RoleNone })
}

// deleteRecord removes a reservation. What waits for it alone is let go of, held unless the reservation says
// otherwise.
func (a *Reservations) deleteRecord(r *core.AdvanceReservation) {
	var waiting []*core.Job
	for j := range a.rec.Jobs() {
		if j.State == core.Pending && slices.Contains(strings.Split(j.Spec.More().Reservation, ","), r.Name) {
			waiting = append(waiting, j)
		}
	}
	a.rec.DeleteReservation(r.Name)
	a.wakeValid = false
	a.rec.Event(core.ReserveChanged,
		core.Event{Data: append(jsontext.AppendString([]byte(`{"gone":true,"reservation":`), r.Name), '}')})
	for _, j := range waiting {
		a.dropFromJob(j, r)
	}
}

// dropFromJob takes a reservation that is gone out of a job's wishes, as Slurm does.
func (a *Reservations) dropFromJob(j *core.Job, r *core.AdvanceReservation) {
	edit := a.jobs.Edit(j)
	next := edit.Job
	spec, x := *j.Spec, *j.Spec.More()
	names := slices.DeleteFunc(strings.Split(x.Reservation, ","), func(n string) bool { return n == r.Name })
	x.Reservation = strings.Join(names, ",")
	spec.Extra = &x
	next.Spec, next.SpecID = &spec, jobs.NextSpecID(next)
	a.rec.AddSpec(next.SpecID, &spec)
	if x.Reservation == "" && r.Flags&core.ReserveNoHold == 0 {
		next.Flags |= core.HeldRequeues
		next.Priority, next.Reason = 0, core.ReasonReservationGone
		next.Message = fmt.Sprintf("its reservation %s is gone; `scontrol release` lets it run without one", r.Name)
	}
	edit.CommitWith(core.JobUpdated, core.Event{})
}

// forPlanner returns a reservation for the planner. It lists all projects below its projects by name.
func (a *Reservations) forPlanner(r *core.AdvanceReservation) *core.AdvanceReservation {
	if len(r.Projects) == 0 {
		return r
	}
	out := *r
	out.Projects = slices.Clone(r.Projects)
	for _, p := range a.rec.Projects() {
		for _, x := range r.Projects {
			name, not := strings.CutPrefix(string(x), "-")
			if core.ProjectName(name) == p.Name || !a.rec.IsUnder(p.Name, []core.ProjectName{core.ProjectName(name)}) {
				continue
			}
			if below := p.Name; not {
				out.Projects = append(out.Projects, "-"+below)
			} else {
				out.Projects = append(out.Projects, below)
			}
		}
	}
	return &out
}

// ForPlanner is all reservations as the planner is told of them, by name.
func (a *Reservations) ForPlanner() []*core.AdvanceReservation {
	list := a.rec.Reservations()
	for i, r := range list {
		list[i] = a.forPlanner(r)
	}
	return list
}

// ProjectsChanged tells the planner again whose jobs reservations are for.
func (a *Reservations) ProjectsChanged() {
	for _, r := range named.Sorted(a.rec.ReservationsByName()) {
		if len(r.Projects) > 0 {
			a.rec.TellPlanner(sched.Changes{Reservations: []*core.AdvanceReservation{a.forPlanner(r)}})
		}
	}
}

// MayUse reports whether a job of a user in these groups may use a reservation.
func (a *Reservations) MayUse(r *core.AdvanceReservation, groups []string, spec *core.Spec) bool {
	if len(r.Groups) > 0 && !slices.ContainsFunc(r.Groups, func(g string) bool { return slices.Contains(groups, g) }) {
		return false
	}
	return r.Admits(spec.User,
		func(p core.ProjectName) bool { return a.rec.IsUnder(spec.Project, []core.ProjectName{p}) })
}
