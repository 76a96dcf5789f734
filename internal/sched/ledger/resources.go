package ledger

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Resources is an amount of everything a node has. As a free amount, Allocs and Exclusive count jobs that are present;
// as a used amount they are negative, so that subtracting it adds them.
type Resources struct {
	Cpus              int32
	Allocs, Exclusive int32 // allocations, and exclusive ones among them
	UserExclusive     int32 // of the exclusive ones, those that share with others of the same user
	Mem               core.Bytes
	Gres              []int64 // by the node's kinds
}

func (b *Resources) CopyFrom(o *Resources) {
	g := append(b.Gres[:0], o.Gres...)
	*b = *o
	b.Gres = g
}

func (b *Resources) EqualTo(o *Resources) bool {
	return b.Cpus == o.Cpus && b.Mem == o.Mem && b.Allocs == o.Allocs && b.Exclusive == o.Exclusive &&
		b.UserExclusive == o.UserExclusive && slices.Equal(b.Gres, o.Gres)
}

func (b *Resources) Subtract(use *Resources) {
	b.Cpus -= use.Cpus
	b.Mem -= use.Mem
	b.Allocs -= use.Allocs
	b.Exclusive -= use.Exclusive
	b.UserExclusive -= use.UserExclusive
	for i := range use.Gres {
		b.Gres[i] -= use.Gres[i]
	}
}

// LowerTo lowers b to what is free in both.
func (b *Resources) LowerTo(o *Resources) {
	b.Cpus, b.Mem = min(b.Cpus, o.Cpus), min(b.Mem, o.Mem)
	b.Allocs, b.Exclusive, b.UserExclusive = max(b.Allocs, o.Allocs), max(b.Exclusive, o.Exclusive), max(b.UserExclusive,
		o.UserExclusive)
	for i := range o.Gres {
		b.Gres[i] = min(b.Gres[i], o.Gres[i])
	}
}

// NodeReservation is what a reservation takes of a node, and what it leaves.
type NodeReservation struct {
	Reservation *Reservation
	Node        *Node
	Job         core.JobID
	Advance     string // the advance reservation its job would run in
	User        core.UserName
	Start, End  core.Time
	Uses        Resources
	Leaves      Resources // Free when it starts, beside it; jobs that last until then may use no more
}

// IsActive reports whether the reserved job would run at t.
func (c *NodeReservation) IsActive(t core.Time) bool {
	return c.Start <= t && (t < c.End || c.End == alloc.Never)
}

// freeUntil returns what a job that starts now and ends at end may use of the node without delaying a reservation.
func (node *Node) freeUntil(end core.Time, tmp *Resources) *Resources {
	b := &node.Free
	for i := range node.Reserved {
		if c := node.Reserved[i]; alloc.Overlaps(c.Start, end) {
			if b != tmp {
				tmp.CopyFrom(b)
				b = tmp
			}
			b.LowerTo(&c.Leaves)
		}
	}
	return b
}

// freeAt is freeUntil for a job that starts at l.At.
func (node *Node) freeAt(l *View) *Resources {
	t, end, tmp := l.At, l.End, l.Scratch
	b := &node.Free // if nothing has come free on it
	if f := l.Later.Find(node); f != nil {
		b = &f.Free
	} else if l.OverdueAt != 0 {
		b = &l.Later.Compute(node, t, l.OverdueAt).Free
	}
	if len(node.Reserved) == 0 {
		if len(node.AdvanceParts) > 0 {
			return node.FreeBesideAdvance(l, t, end, b)
		}
		return b
	}
	tmp.CopyFrom(b)
	later := false
	for i := range node.Reserved {
		if c := node.Reserved[i]; c.IsActive(t) {
			tmp.Subtract(&c.Uses)
		} else {
			later = later || c.Start > t && alloc.Overlaps(c.Start, end)
		}
	}
	for i := 0; later && i < len(node.Reserved); i++ { // what they leave has been lowered by those that hold it then
		if c := node.Reserved[i]; c.Start > t && alloc.Overlaps(c.Start, end) {
			tmp.LowerTo(&c.Leaves)
		}
	}
	if len(node.AdvanceParts) > 0 {
		return node.FreeBesideAdvance(l, t, end, tmp)
	}
	return tmp
}

// Negated returns the resources with their signs changed, so that subtract adds them.
func (b *Resources) Negated() *Resources {
	n := Resources{Cpus: -b.Cpus, Mem: -b.Mem, Allocs: -b.Allocs, Exclusive: -b.Exclusive, Gres: make([]int64,
		len(b.Gres))}
	for i, g := range b.Gres {
		n.Gres[i] = -g
	}
	return &n
}
