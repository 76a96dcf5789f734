package cluster

import (
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Reservations is the reservations of a pass, on their nodes.
type Reservations struct {
	List []*ledger.Reservation // in the order they were made
	// Known is how many reservations of the last pass this one has repeated or dropped; AllReservations once it makes no
	// more.
	Known int32

	nodes *Nodes
	last  []*ledger.Reservation // of the last pass
}

// AllReservations stands for every reservation that a pass will make.
const AllReservations = math.MaxInt32

// NewReservations returns an empty list of reservations on these nodes.
func NewReservations(n *Nodes) *Reservations { return &Reservations{nodes: n} }

// Add reserves nodes for the rest of the pass. later has what the search that made the reservation computed: what its
// nodes have free at its start.
func (rs *Reservations) Add(r *ledger.Reservation, later *ledger.Later) {
	for i := range r.OnNodes {
		c := &r.OnNodes[i]
		node := c.Node
		// What it leaves does not depend on its end: later reservations were respected when it was placed.
		if c.Leaves.CopyFrom(&node.Free); later.Find(node) != nil {
			c.Leaves.CopyFrom(&later.Find(node).Free)
		}
		for _, o := range node.Reserved {
			if o.IsActive(r.Start) {
				c.Leaves.Subtract(&o.Uses)
			} else if alloc.Overlaps(o.Start, r.End) && o.Start >= r.Start {
				o.Leaves.Subtract(&c.Uses)
			}
		}
		c.Leaves.Subtract(&c.Uses)
		node.Reserved = append(node.Reserved, c)
	}
	rs.List = append(rs.List, r)
	rs.compareWithLast(r)
}

// compareWithLast compares the reservation just made with the one that the last pass made in its place, and records
// nodes that are not reserved any more.
func (rs *Reservations) compareWithLast(r *ledger.Reservation) {
	i := len(rs.List) - 1
	if rs.Known != AllReservations {
		rs.Known = int32(len(rs.List))
	}
	if i >= len(rs.last) || rs.last[i] == r {
		return
	}
	for k := range rs.last[i].OnNodes {
		if c := &rs.last[i].OnNodes[k]; !r.ReservesSame(c) {
			rs.nodes.NoteUnreserved(c.Node)
		}
	}
}

// End is called when the pass will make no more reservations. Those of the last pass that were not repeated are gone.
func (rs *Reservations) End() {
	if rs.Known == AllReservations {
		return
	}
	for i := len(rs.List); i < len(rs.last); i++ {
		for k := range rs.last[i].OnNodes {
			rs.nodes.NoteUnreserved(rs.last[i].OnNodes[k].Node)
		}
	}
	rs.Known = AllReservations
}

// Keep keeps the reservations for the next pass to compare with.
func (rs *Reservations) Keep() { rs.last = append(rs.last[:0], rs.List...) }

// Clear removes all reservations of the pass from the nodes.
func (rs *Reservations) Clear() {
	for _, r := range rs.List {
		for _, node := range r.Nodes {
			node.Reserved = node.Reserved[:0]
		}
	}
	clear(rs.List)
	rs.List, rs.Known = rs.List[:0], 0
}

// Lower subtracts a job that was just started, and ends at end, from what reservations leave.
func (rs *Reservations) Lower(h *ledger.Allocation, end core.Time) {
	if len(rs.List) > 0 {
		rs.change(h, end, -1)
	}
}

// Raise undoes Lower.
func (rs *Reservations) Raise(h *ledger.Allocation, end core.Time) { rs.change(h, end, 1) }

func (rs *Reservations) change(h *ledger.Allocation, end core.Time, sign int32) {
	for i := range h.Alloc.Nodes {
		na := &h.Alloc.Nodes[i]
		node := rs.nodes.Ledger.Nodes[na.Node]
		for _, c := range node.Reserved {
			if alloc.Overlaps(c.Start, end) {
				node.Book(&c.Leaves, nil, na, h.Terms, sign)
			}
		}
	}
}

// ReturnLent adds CPUs that a job lends until end to what reservations leave: the job that uses them is counted
// separately.
func (rs *Reservations) ReturnLent(h *ledger.Allocation, lent []core.Lent, end core.Time) {
	for i := range lent {
		for _, c := range rs.nodes.Ledger.Nodes[lent[i].Node].Reserved {
			if alloc.Overlaps(c.Start, h.End) && alloc.Overlaps(c.Start, end) {
				c.Leaves.Cpus += lent[i].CPUs
			}
		}
	}
}

// DropOf drops the reservations of a job and reports whether there were any. Their places in List stay.
func (rs *Reservations) DropOf(id core.JobID) (dropped bool) {
	for i, r := range rs.List {
		if r.Job != id || r.Nodes == nil {
			continue
		}
		for _, node := range r.Nodes {
			node.Reserved = slices.DeleteFunc(node.Reserved, func(c *ledger.NodeReservation) bool {
				return c.Reservation == r
			})
			rs.nodes.NoteUnreserved(node)
		}
		rs.List[i] = &ledger.Reservation{Job: id, Start: r.Start, End: r.End}
		dropped = true
	}
	return dropped
}

// Cut drops the reservations that were made last, down to the first n.
func (rs *Reservations) Cut(n int) {
	for i := len(rs.List) - 1; i >= n; i-- {
		r := rs.List[i]
		for _, node := range r.Nodes {
			last := len(node.Reserved) - 1
			c := node.Reserved[last]
			node.Reserved = node.Reserved[:last]
			for _, o := range node.Reserved {
				if !o.IsActive(r.Start) && alloc.Overlaps(o.Start, r.End) && o.Start >= r.Start {
					o.Leaves.Subtract(c.Uses.Negated())
				}
			}
		}
	}
	rs.List = rs.List[:n]
	if rs.Known != AllReservations {
		rs.Known = min(rs.Known, int32(n))
	}
}

// LastBefore returns the latest start of a reservation that a job ending at end would overlap; 0: none.
func (rs *Reservations) LastBefore(end core.Time) (start core.Time) {
	for _, r := range rs.List {
		if r.Nodes != nil && alloc.Overlaps(r.Start, end) {
			start = max(start, r.Start)
		}
	}
	return start
}
