package speccheck

import (
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// Whoever adds a field to reservations says how large it may be.
func TestEveryReservationFieldIsClassified(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{}
	for _, path := range reservationTable.addKinds(kinds) {
		t.Errorf("%s is twice in the table", path)
	}
	for i := range reflect.TypeFor[core.AdvanceReservation]().NumField() {
		f := reflect.TypeFor[core.AdvanceReservation]().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if kinds[name] == "" {
			t.Errorf("%s is not in the table: how long may it be, from where to where does it go?", name)
		}
		delete(kinds, name)
	}
	for path := range kinds {
		t.Errorf("%s is no field of a reservation", path)
	}
}

// A field at its bound passes; beyond it the refusal names field and bound.
func TestReservationBounds(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		set  func(r *core.AdvanceReservation, over int)
		text string
	}{
		{func(r *core.AdvanceReservation, n int) { r.Name = long(128 + n) }, "name has 129 bytes; the limit is 128"},
		{
			func(r *core.AdvanceReservation, n int) { r.Nodes = long(1<<20 + n) },
			"nodes has 1048577 bytes; the limit is 1048576",
		},
		{
			func(r *core.AdvanceReservation, n int) { r.Partition = core.PartitionName(long(1024 + n)) },
			"partition has 1025 bytes; the limit is 1024",
		},
		{
			func(r *core.AdvanceReservation, n int) { r.Features = coretest.Constraint(long(4096 + n)) },
			"features has 4097 bytes; the limit is 4096",
		},
		{func(r *core.AdvanceReservation, n int) { r.Comment = long(4096 + n) }, "comment has 4097 bytes; the limit is 4096"},
		{func(r *core.AdvanceReservation, n int) { r.Comment = strings.Repeat("\x1b", n) }, "comment: "},
		{
			func(r *core.AdvanceReservation, n int) { r.Users = make([]core.UserName, 4096+n) },
			"users: 4097 entries; the limit is 4096",
		},
		{
			func(r *core.AdvanceReservation, n int) { r.Users = []core.UserName{core.UserName(long(129 + n))} },
			"users has 130 bytes; the limit is 129",
		},
		{
			func(r *core.AdvanceReservation, n int) { r.Projects = make([]core.ProjectName, 4096+n) },
			"accounts: 4097 entries; the limit is 4096",
		},
		{
			func(r *core.AdvanceReservation, n int) { r.Groups = make([]string, 4096+n) },
			"groups: 4097 entries; the limit is 4096",
		},
		{
			func(r *core.AdvanceReservation, n int) { r.Licenses = make([]core.License, 64+n) },
			"licenses: 65 entries; the limit is 64",
		},
		{
			func(r *core.AdvanceReservation, n int) { r.Licenses = []core.License{{Name: long(256 + n)}} },
			"licenses has 257 bytes; the limit is 256",
		},
		{func(r *core.AdvanceReservation, n int) { r.TRES = make(core.TRES, 64+n) }, "tres: 65 entries; the limit is 64"},
		{func(r *core.AdvanceReservation, n int) { r.End = MaxMoment + core.Time(n) }, "end: "},
		{func(r *core.AdvanceReservation, n int) { r.PurgeComp = MaxSeconds + core.Seconds(n) }, "purge_comp: "},
	} {
		var at, beyond core.AdvanceReservation
		c.set(&at, 0)
		c.set(&beyond, 1)
		if err := Reservation(&at); err != nil {
			t.Errorf("at the bound: %v; beyond it: %q", err, c.text)
		}
		if err := Reservation(&beyond); err == nil || !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%v, want %q", err, c.text)
		}
	}
}
