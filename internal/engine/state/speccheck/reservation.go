package speccheck

import (
	"bireme.dev/bireme/internal/core"
)

// Bounds of an advance reservation. The names in it are those of users, projects and groups, which are short; 1 is for
// the '-' before one that is not meant.
const (
	// MaxReservations is how many there may be at a time: each is looked at when another is made and in every pass.
	MaxReservations  = 4096
	maxReservedFor   = 4096 // users, accounts or groups
	maxReservedName  = 128 + 1
	maxReservedNodes = 1 << 20 // bytes of a hostlist
)

var reservationTable = fieldTable[core.AdvanceReservation]{
	texts: []textField[core.AdvanceReservation]{
		{"name", 128, func(r *core.AdvanceReservation) string { return r.Name }},
		{"nodes", maxReservedNodes, func(r *core.AdvanceReservation) string { return r.Nodes }},
		{"partition", maxName, func(r *core.AdvanceReservation) string { return string(r.Partition) }},
		{"features", maxPath, func(r *core.AdvanceReservation) string { return r.Features.String() }},
		{"comment", maxPath, func(r *core.AdvanceReservation) string { return r.Comment }},
	},
	numbers: []numberField[core.AdvanceReservation]{
		{"start", 0, MaxMoment, 0, func(r *core.AdvanceReservation) int64 { return int64(r.Start) }},
		{"end", 0, MaxMoment, 0, func(r *core.AdvanceReservation) int64 { return int64(r.End) }},
		{"purge_comp", 0, MaxSeconds, int64(core.Forever), func(r *core.AdvanceReservation) int64 {
			return int64(r.PurgeComp)
		}},
		{"max_start_delay", 0, MaxSeconds, int64(core.Forever), func(r *core.AdvanceReservation) int64 {
			return int64(r.MaxDelay)
		}},
	},
	lists: []listField[core.AdvanceReservation]{
		{"users", func(r *core.AdvanceReservation) (int, error) { return checkReservedFor("users", r.Users) }},
		{"accounts", func(r *core.AdvanceReservation) (int, error) { return checkReservedFor("accounts", r.Projects) }},
		{"groups", func(r *core.AdvanceReservation) (int, error) { return checkReservedFor("groups", r.Groups) }},
		{"licenses", func(r *core.AdvanceReservation) (int, error) {
			return checkAmounts("licenses", r.Licenses, func(l core.License) string { return l.Name })
		}},
		{"tres", func(r *core.AdvanceReservation) (int, error) {
			return checkAmounts("tres", r.TRES, func(a core.Amount) string { return a.Name })
		}},
	},
	// The engine numbers a reservation, and notes when it was made and since when it is idle.
	assigned: []string{"id", "created", "idle_since"},
	checkedBy: map[string]string{
		"node_count": "chooseReservationNodes", "core_count": "chooseReservationNodes", "flags": "ReserveFlag",
	},
}

// checkReservedFor checks a list of those whom a reservation is for.
func checkReservedFor[N ~string](path string, list []N) (size int, err error) {
	if len(list) > maxReservedFor {
		return 0, Invalid(path, "%d entries; the limit is %d", len(list), maxReservedFor)
	}
	for _, n := range list {
		if len(n) > maxReservedName {
			return 0, TooLong(path, len(n), maxReservedName)
		}
		size += len(n) + 16
	}
	return size, nil
}

// checkAmounts checks a list of named amounts.
func checkAmounts[T any](path string, list []T, name func(T) string) (size int, err error) {
	if len(list) > maxGresKinds {
		return 0, Invalid(path, "%d entries; the limit is %d", len(list), maxGresKinds)
	}
	for i := range list {
		n := len(name(list[i]))
		if n > maxWord {
			return 0, TooLong(path, n, maxWord)
		}
		size += n + 24
	}
	return size, nil
}

// ReservationTexts refuses texts and lists of a reservation that are too long.
func ReservationTexts(r *core.AdvanceReservation) error {
	size := 0
	return reservationTable.checkTexts(r, &size)
}

// Reservation refuses texts and lists of a reservation that are too long, and times beyond all calendars.
func Reservation(r *core.AdvanceReservation) error {
	if err := ReservationTexts(r); err != nil {
		return err
	}
	return reservationTable.checkNumbers(r)
}

// OneMoreReservation refuses another reservation where there are as many as may be.
func OneMoreReservation(have int) error {
	if have < MaxReservations {
		return nil
	}
	return core.Errorf(core.Exhausted, "there are %d reservations; the limit is %d: remove some first", have,
		MaxReservations).Because("reservation_limit")
}
