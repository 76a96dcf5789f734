package ledger

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// IsActive reports whether the reserved job would run at t.
func (r *Reservation) IsActive(t core.Time) bool {
	return r.Nodes != nil && r.Start <= t && (t < r.End || r.End == alloc.Never)
}

// ReservesSame reports whether the reservation made last reserves the same on the node.
func (r *Reservation) ReservesSame(c *NodeReservation) bool {
	k := len(c.Node.Reserved) - 1
	if k < 0 {
		return false
	}
	is := c.Node.Reserved[k]
	return is.Reservation == r && is.User == c.User && is.Start == c.Start && is.End == c.End && is.Uses.EqualTo(&c.Uses)
}
