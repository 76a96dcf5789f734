package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

func (in *PutReservation) apply(s *State) (*core.AdvanceReservation, error) {
	if err := people.AdminOnly(in.By, "may make reservations"); err != nil {
		return nil, err
	}
	return s.reservations.Put(in.Reservation, in.New)
}

func (in *UpdateReservation) apply(s *State) (*core.AdvanceReservation, error) {
	if err := people.AdminOnly(in.By, "may change reservations"); err != nil {
		return nil, err
	}
	return s.reservations.Update(in.Name, &in.Change)
}

func (in *DropReservation) apply(s *State) (None, error) {
	return none, s.reservations.Delete(in.By, in.Name)
}
