package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// There are only so many reservations: one more is refused with the limit, those there are can be changed, and once one
// is removed another can be made.
func TestNumberOfReservationsIsBounded(t *testing.T) {
	t.Parallel()
	now := core.At(time.Unix(1_700_000_000, 0))
	day := core.Time(24 * time.Hour / time.Microsecond)
	of := func(name string) *core.AdvanceReservation {
		return &core.AdvanceReservation{
			Name: name, Start: now + day, End: now + 2*day, Users: []core.UserName{"alice"},
			Licenses: []core.License{{Name: "l", Total: 1}},
		}
	}
	img := &Image{NextJob: 1, NextNode: 1, Now: now, Users: []*core.User{{Name: "alice", UID: ptr(uint32(1000))}}}
	for i := range speccheck.MaxReservations {
		r := of(fmt.Sprintf("r%d", i))
		r.ID = int64(i + 1)
		img.Reservations = append(img.Reservations, r)
	}
	s := New(Config{Licenses: []core.License{{Name: "l", Total: 1 << 20}}}, img)
	s.Advance(now)
	_, err := s.Apply(&PutReservation{By: root, Reservation: of("more"), New: true})
	if core.CodeOf(err) != core.Exhausted || !strings.Contains(err.Error(), "the limit is 4096") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := s.Apply(&PutReservation{By: root, Reservation: of("r7")}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if _, err := s.Apply(&DropReservation{By: root, Name: "r7"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(&PutReservation{By: root, Reservation: of("more"), New: true}); err != nil {
		t.Errorf("after one was removed: %v", err)
	}
}
