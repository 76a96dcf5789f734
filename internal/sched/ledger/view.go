package ledger

import (
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
)

// View says which nodes a choice may use, at which time, and what counts as free.
type View struct {
	Nodes      []*Node   // in the order they are tried
	IfIdle     bool      // as if nothing ran
	WithDown   bool      // also nodes that are not up
	End        core.Time // when the job would end: reservations before that count. 0: they do not
	At         core.Time // if set, the time of a search; else now
	Later      *Later    // with At: what nodes have free then
	JoinShared bool      // CPUs of jobs that share theirs count, for those who share too
	// If set, what is free at At is computed on demand, and overdue jobs end at this time.
	OverdueAt       core.Time
	Scratch         *Resources             // scratch, for looks that have an end
	FreeFunc        func(*Node) *Resources // if set, it says what nodes have free; at is set, too
	Advance         *advance.Reservation   // the advance reservation the job would run in
	MayDelayAdvance bool                   // it may reach into those that let themselves be delayed
}

// Free returns what a node has free under a view.
func (view *View) Free(node *Node) *Resources {
	switch {
	case view.IfIdle && view.WithDown && node.healthyCapacity != nil:
		return node.healthyCapacity
	case view.IfIdle:
		return &node.Capacity
	case view.FreeFunc != nil:
		return view.FreeFunc(node)
	case view.At != 0:
		return node.freeAt(view)
	case view.End != 0 && len(node.AdvanceParts) > 0:
		return node.FreeBesideAdvance(view, 0, view.End, node.freeUntil(view.End, view.Scratch))
	case view.End != 0 && len(node.Reserved) > 0:
		return node.freeUntil(view.End, view.Scratch)
	}
	return &node.Free
}

// AdvancePart is what an advance reservation has of a node.
type AdvancePart struct {
	Reservation *advance.Reservation
	Cpus        int32 // 0: all of it; below 0: none, as it has fewer cores than nodes
}

// AdvanceJob is a job on a node that is partly reserved, or one that holds licenses.
type AdvanceJob struct {
	Count   int64 // CPUs or licenses
	End     core.Time
	Advance string // the reservation it runs in
}

// MustAvoid reports whether the job must keep away from what r has reserved.
func (view *View) MustAvoid(r *advance.Reservation) bool {
	return view.Advance.MustAvoid(r)
}

// AllowedDelay returns how far the job may reach into r.
func (view *View) AllowedDelay(r *advance.Reservation) core.Time {
	return r.AllowedDelay(view.MayDelayAdvance)
}

var fullNode = Resources{Exclusive: 1}

// FreeBesideAdvance returns what advance reservations leave, of b, to a job on the node between two times. A from of 0
// stands for now.
func (node *Node) FreeBesideAdvance(view *View, from, end core.Time, b *Resources) *Resources {
	parts := false
	for i := range node.AdvanceParts {
		if s := &node.AdvanceParts[i]; s.Cpus != 0 {
			parts = true
		} else if view.MustAvoid(s.Reservation) && s.Reservation.Overlaps(from, end, view.AllowedDelay(s.Reservation)) {
			return &fullNode
		}
	}
	if parts {
		b = node.freeBesideParts(view, from, end, b)
	}
	return b
}

// freeBesideParts is FreeBesideAdvance where reservations have some of a node's CPUs: at every time at which one
// begins, and at which a promised job does, what all have together must fit.
func (node *Node) freeBesideParts(view *View, from, end core.Time, b *Resources) *Resources {
	least, met := int32(math.MaxInt32), false
	for i := range node.AdvanceParts {
		s := &node.AdvanceParts[i]
		if s.Cpus == 0 {
			continue
		}
		for _, w := range s.Reservation.Windows {
			if w.End > from && alloc.Overlaps(w.Start, end) {
				least = min(least, node.cpusLeftAt(view, max(from, w.Start)))
				met = met || s.Reservation == view.Advance && s.Reservation.ConfinesNodes() || view.MustAvoid(s.Reservation)
			}
		}
		if s.Reservation.RecursFrom != 0 && alloc.Overlaps(s.Reservation.RecursFrom, end) {
			least = min(least, node.cpusLeftAt(view, max(from, s.Reservation.RecursFrom)))
			met = met || view.MustAvoid(s.Reservation)
		}
	}
	for i := range node.Reserved {
		if c := node.Reserved[i]; c.Start > from && alloc.Overlaps(c.Start, end) {
			least = min(least, node.cpusLeftAt(view, c.Start))
		}
	}
	if b != view.Scratch {
		view.Scratch.CopyFrom(b)
		b = view.Scratch
	}
	b.Cpus = min(b.Cpus, least)
	if met {
		b.Allocs = max(b.Allocs, 1) // no job may have it exclusively
	}
	return b
}

// cpusLeftAt returns how many CPUs of a node are left at a time, beside all jobs there and what reservations hold
// unused; of its own reservation a job gets what that has left.
func (node *Node) cpusLeftAt(view *View, t core.Time) int32 {
	free := int64(node.Record.Hardware.CPUs)
	for i := range node.AdvanceJobs {
		if node.AdvanceJobs[i].End > t {
			free -= node.AdvanceJobs[i].Count
		}
	}
	for i := range node.Reserved {
		if node.Reserved[i].IsActive(t) {
			free -= int64(node.Reserved[i].Uses.Cpus)
		}
	}
	own := free
	for i := range node.AdvanceParts {
		s := &node.AdvanceParts[i]
		if s.Cpus == 0 || !s.Reservation.IsActive(t) {
			continue
		}
		left := int64(max(0, s.Cpus))
		for k := range node.AdvanceJobs {
			if node.AdvanceJobs[k].End > t && node.AdvanceJobs[k].Advance == s.Reservation.Name {
				left -= node.AdvanceJobs[k].Count
			}
		}
		for k := range node.Reserved {
			if c := node.Reserved[k]; c.Advance == s.Reservation.Name && c.IsActive(t) {
				left -= int64(c.Uses.Cpus)
			}
		}
		switch {
		case s.Reservation == view.Advance && s.Reservation.ConfinesNodes():
			own = min(own, left)
		case view.MustAvoid(s.Reservation):
			free -= max(0, left)
		}
	}
	return int32(min(free, own))
}

// AddAdvanceJob notes a job on a node of which a part is set aside.
func (node *Node) AddAdvanceJob(na *core.NodeAlloc, in string, end core.Time) {
	if node.PartlyReserved {
		node.AdvanceJobs = append(node.AdvanceJobs, AdvanceJob{Count: int64(na.CPUs), End: end, Advance: in})
	}
}
