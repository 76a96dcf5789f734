package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched"
)

func (s *State) putReservation(in *PutReservation) (*core.AdvanceReservation, error) {
	if err := adminOnly(in.By, "makes or changes reservations"); err != nil {
		return nil, err
	}
	r := *in.Reservation
	old, ok := s.view.reservations[r.Name]
	if ok && in.New {
		return nil, core.Errorf(core.Conflict, "reservation %s is there already", r.Name).Because("reservation_exists")
	}
	if err := checkReservation(&r); err != nil {
		return nil, err
	}
	r.ID, r.Created = s.view.seq+1, s.view.now // the number of the event that tells of it: never used twice
	if ok {
		r.ID, r.Created = old.ID, old.Created
	}
	s.storeReservation(&r)
	return &r, nil
}

func checkReservation(r *core.AdvanceReservation) error {
	if !validName(r.Name) {
		return core.Errorf(core.Invalid, "%q is no name for a reservation", r.Name).Because("invalid_name")
	}
	if r.End <= r.Start {
		return core.Errorf(core.Invalid, "reservation %s would end before it starts", r.Name).Because("invalid_time_value")
	}
	return nil
}

func (s *State) storeReservation(r *core.AdvanceReservation) {
	ours(&s.own.reservations, &s.view.reservations)
	s.view.reservations[r.Name] = r
	named := func(o *core.AdvanceReservation) bool { return o.Name == r.Name }
	s.out.Reservations = append(slices.DeleteFunc(s.out.Reservations, named), r)
	s.fresh.Merge(sched.Changes{Reservations: []*core.AdvanceReservation{r}})
	s.event(core.ReserveChanged, core.Event{Data: append(appendJSON([]byte(`{"reservation":`), r.Name), '}')})
}

func (s *State) dropReservation(in *DropReservation) error {
	if err := adminOnly(in.By, "removes reservations"); err != nil {
		return err
	}
	if _, ok := s.view.reservations[in.Name]; !ok {
		return core.Errorf(core.NotFound, "there is no reservation %q", in.Name).Because("invalid_reservation")
	}
	s.goneReservation(in.Name)
	return nil
}

func (s *State) goneReservation(name string) {
	ours(&s.own.reservations, &s.view.reservations)
	delete(s.view.reservations, name)
	s.out.Reservations = slices.DeleteFunc(s.out.Reservations, func(o *core.AdvanceReservation) bool { return o.Name == name })
	s.out.GoneReservations = append(s.out.GoneReservations, name)
	s.fresh.Merge(sched.Changes{GoneReservations: []string{name}})
	s.event(core.ReserveChanged, core.Event{Data: append(appendJSON([]byte(`{"gone":true,"reservation":`), name), '}')})
}
