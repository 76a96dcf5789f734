package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched"
)

func (in *PutReservation) apply(s *State) (*core.AdvanceReservation, error) {
	if err := people.AdminOnly(in.By, "may make reservations"); err != nil {
		return nil, err
	}
	r := *in.Reservation
	old, ok := s.rec.ReservationsByName()[r.Name]
	if ok && in.New {
		return nil, core.Errorf(core.Conflict, "reservation %s already exists", r.Name).Because("reservation_exists")
	}
	if err := speccheck.OneMoreReservation(len(s.rec.ReservationsByName())); err != nil && !ok {
		return nil, err
	}
	r.ID, r.Created, r.IdleSince = s.nextReservationID(), s.rec.Now(), 0
	if ok {
		r.ID, r.Created = old.ID, old.Created
	}
	if r.Start == 0 {
		r.Start = s.rec.Now()
	}
	if r.Name == "" {
		r.Name = defaultReservationName(&r)
	}
	if err := s.completeReservation(&r, old); err != nil {
		return nil, err
	}
	s.putReservationRecord(&r)
	return &r, nil
}

// nextReservationID numbers a reservation: one more than the highest there is.
func (s *State) nextReservationID() int64 {
	n := int64(1)
	for _, r := range s.rec.ReservationsByName() {
		n = max(n, r.ID+1)
	}
	return n
}

// defaultReservationName names a reservation as Slurm does: after the first it is for, and its number.
func defaultReservationName(r *core.AdvanceReservation) string {
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

func (in *UpdateReservation) apply(s *State) (*core.AdvanceReservation, error) {
	if err := people.AdminOnly(in.By, "may change reservations"); err != nil {
		return nil, err
	}
	old, ok := s.rec.ReservationsByName()[in.Name]
	if !ok {
		return nil, s.errNoReservation(in.Name)
	}
	r := *old
	in.Change.Apply(&r)
	if err := s.completeReservation(&r, old); err != nil {
		return nil, err
	}
	s.putReservationRecord(&r)
	return &r, nil
}

func (s *State) errNoReservation(name string) error {
	return core.Errorf(core.NotFound, "there is no reservation %q%s", name,
		named.Hint(name, s.rec.ReservationsByName())).Because("invalid_reservation")
}

// putReservationRecord makes a reservation the one that holds.
func (s *State) putReservationRecord(r *core.AdvanceReservation) {
	if r.Flags&core.ReservePurgeCompleted != 0 && s.reservations.jobs[r.Name] == 0 && r.IdleSince == 0 {
		r.IdleSince = s.rec.Now()
	}
	s.putReservationQuietly(r)
	s.rec.TellPlanner(sched.Changes{Reservations: []*core.AdvanceReservation{s.plannerReservation(r)}})
	s.rec.Event(core.ReserveChanged, core.Event{Data: append(appendJSON([]byte(`{"reservation":`), r.Name), '}')})
}

// putReservationQuietly is putReservationRecord for what concerns nobody else.
func (s *State) putReservationQuietly(r *core.AdvanceReservation) {
	s.rec.PutReservation(r)
	s.reservations.wakeValid = false
}

func (in *DropReservation) apply(s *State) (None, error) {
	r, ok := s.rec.ReservationsByName()[in.Name]
	if !ok {
		return none, s.errNoReservation(in.Name)
	}
	if r.Flags&core.ReserveUserDelete == 0 || !s.userMayUseReservation(r, in.By.User) {
		if err := people.AdminOnly(in.By, "may remove reservations"); err != nil {
			return none, err
		}
	}
	for j := range s.rec.Jobs() {
		if j.Alloc.Inside() == in.Name && j.End == 0 {
			return none, core.Errorf(core.Conflict, "reservation %s cannot be removed: job %d runs in it", in.Name,
				j.ID).Because("reservation_busy")
		}
	}
	s.deleteReservation(r)
	return none, nil
}

// userMayUseReservation tells whether a user may use a reservation, in some project of his.
func (s *State) userMayUseReservation(r *core.AdvanceReservation, user core.UserName) bool {
	if len(r.Users)+len(r.Projects) == 0 {
		return false // it is for groups, and who is in them is not known here
	}
	return r.Admits(user, func(name core.ProjectName) bool { return s.rec.Role(user, name) != core.RoleNone })
}

// deleteReservation removes a reservation. What waits for it alone is let go of, held unless the reservation says
// otherwise.
func (s *State) deleteReservation(r *core.AdvanceReservation) {
	var waiting []*core.Job
	for j := range s.rec.Jobs() {
		if j.State == core.Pending && slices.Contains(strings.Split(j.Spec.More().Reservation, ","), r.Name) {
			waiting = append(waiting, j)
		}
	}
	s.rec.DeleteReservation(r.Name)
	s.reservations.wakeValid = false
	s.rec.Event(core.ReserveChanged,
		core.Event{Data: append(appendJSON([]byte(`{"gone":true,"reservation":`), r.Name), '}')})
	for _, j := range waiting {
		s.dropReservationFromJob(j, r)
	}
}

// dropReservationFromJob takes a reservation that is gone out of a job's wishes, as Slurm does.
func (s *State) dropReservationFromJob(j *core.Job, r *core.AdvanceReservation) {
	edit := s.jobs.Edit(j)
	next := edit.Job
	spec, x := *j.Spec, *j.Spec.More()
	names := slices.DeleteFunc(strings.Split(x.Reservation, ","), func(n string) bool { return n == r.Name })
	x.Reservation = strings.Join(names, ",")
	spec.Extra = &x
	next.Spec, next.SpecID = &spec, jobs.NextSpecID(next)
	s.rec.AddSpec(next.SpecID, &spec)
	if x.Reservation == "" && r.Flags&core.ReserveNoHold == 0 {
		next.Flags |= core.HeldRequeues
		next.Priority, next.Reason = 0, core.ReasonReservationGone
		next.Message = fmt.Sprintf("its reservation %s is gone; `scontrol release` lets it run without one", r.Name)
	}
	edit.CommitWith(core.JobUpdated, core.Event{})
}

// reservationNodes lists the nodes of a reservation in the order of the cluster's.
func (s *State) reservationNodes(r *core.AdvanceReservation) []*core.Node {
	if r.Nodes == "" {
		return nil
	}
	names := s.cluster.Expand(r.Nodes)
	out := make([]*core.Node, 0, len(names))
	for name := range names {
		if n, ok := s.rec.Node(name); ok {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b *core.Node) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func hostlistOf(nodes []*core.Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n.Name)
	}
	return hostlist.FoldSorted(names)
}
