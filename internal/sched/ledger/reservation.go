package ledger

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// pools tells whether a promised job would run at t.
func (r *Reservation) IsActive(t core.Time) bool {
	return r.Nodes != nil && r.Start <= t && (t < r.End || r.End == alloc.Never)
}

// ReservesSame tells whether the reservation made last has the same claim.
func (r *Reservation) ReservesSame(c *NodeReservation) bool {
	k := len(c.Node.Reserved) - 1
	if k < 0 {
		return false
	}
	is := c.Node.Reserved[k]
	return is.Reservation == r && is.User == c.User && is.Start == c.Start && is.End == c.End && is.Uses.EqualTo(&c.Uses)
}
