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
func (at *View) Free(a *Node) *Resources {
	switch {
	case at.IfIdle && at.WithDown && a.healthyCapacity != nil:
		return a.healthyCapacity
	case at.IfIdle:
		return &a.Capacity
	case at.FreeFunc != nil:
		return at.FreeFunc(a)
	case at.At != 0:
		return a.freeAt(at)
	case at.End != 0 && len(a.AdvanceParts) > 0:
		return a.FreeBesideAdvance(at, 0, at.End, a.freeUntil(at.End, at.Scratch))
	case at.End != 0 && len(a.Reserved) > 0:
		return a.freeUntil(at.End, at.Scratch)
	}
	return &a.Free
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
func (at *View) MustAvoid(r *advance.Reservation) bool {
	return at.Advance.MustAvoid(r)
}

// AllowedDelay returns how far the job may reach into r.
func (at *View) AllowedDelay(r *advance.Reservation) core.Time {
	return r.AllowedDelay(at.MayDelayAdvance)
}

var fullNode = Resources{Exclusive: 1}

// FreeBesideAdvance returns what advance reservations leave, of b, to a job on the node between two times. A from of 0
// stands for now.
func (a *Node) FreeBesideAdvance(at *View, from, end core.Time, b *Resources) *Resources {
	parts := false
	for i := range a.AdvanceParts {
		if s := &a.AdvanceParts[i]; s.Cpus != 0 {
			parts = true
		} else if at.MustAvoid(s.Reservation) && s.Reservation.Overlaps(from, end, at.AllowedDelay(s.Reservation)) {
			return &fullNode
		}
	}
	if parts {
		b = a.freeBesideParts(at, from, end, b)
	}
	return b
}

// freeBesideParts is beside where reservations have some of a node's CPUs: at every moment at which one begins, and at
// which a promised job does, what all have together must fit.
func (a *Node) freeBesideParts(at *View, from, end core.Time, b *Resources) *Resources {
	least, met := int32(math.MaxInt32), false
	for i := range a.AdvanceParts {
		s := &a.AdvanceParts[i]
		if s.Cpus == 0 {
			continue
		}
		for _, w := range s.Reservation.Windows {
			if w.End > from && alloc.Overlaps(w.Start, end) {
				least = min(least, a.cpusLeftAt(at, max(from, w.Start)))
				met = met || s.Reservation == at.Advance && s.Reservation.ConfinesNodes() || at.MustAvoid(s.Reservation)
			}
		}
		if s.Reservation.RecursFrom != 0 && alloc.Overlaps(s.Reservation.RecursFrom, end) {
			least = min(least, a.cpusLeftAt(at, max(from, s.Reservation.RecursFrom)))
			met = met || at.MustAvoid(s.Reservation)
		}
	}
	for i := range a.Reserved {
		if c := a.Reserved[i]; c.Start > from && alloc.Overlaps(c.Start, end) {
			least = min(least, a.cpusLeftAt(at, c.Start))
		}
	}
	if b != at.Scratch {
		at.Scratch.CopyFrom(b)
		b = at.Scratch
	}
	b.Cpus = min(b.Cpus, least)
	if met {
		b.Allocs = max(b.Allocs, 1) // it is nobody's alone
	}
	return b
}

// cpusLeftAt returns how many CPUs of a node are left at a time, beside all jobs there and what reservations hold
// unused; of its own reservation a job gets what that has left.
func (a *Node) cpusLeftAt(at *View, t core.Time) int32 {
	free := int64(a.Record.Hardware.CPUs)
	for i := range a.AdvanceJobs {
		if a.AdvanceJobs[i].End > t {
			free -= a.AdvanceJobs[i].Count
		}
	}
	for i := range a.Reserved {
		if a.Reserved[i].IsActive(t) {
			free -= int64(a.Reserved[i].Uses.Cpus)
		}
	}
	own := free
	for i := range a.AdvanceParts {
		s := &a.AdvanceParts[i]
		if s.Cpus == 0 || !s.Reservation.IsActive(t) {
			continue
		}
		left := int64(max(0, s.Cpus))
		for k := range a.AdvanceJobs {
			if a.AdvanceJobs[k].End > t && a.AdvanceJobs[k].Advance == s.Reservation.Name {
				left -= a.AdvanceJobs[k].Count
			}
		}
		for k := range a.Reserved {
			if c := a.Reserved[k]; c.Advance == s.Reservation.Name && c.IsActive(t) {
				left -= int64(c.Uses.Cpus)
			}
		}
		switch {
		case s.Reservation == at.Advance && s.Reservation.ConfinesNodes():
			own = min(own, left)
		case at.MustAvoid(s.Reservation):
			free -= max(0, left)
		}
	}
	return int32(min(free, own))
}

// AddAdvanceJob notes a job on a node of which a part is set aside.
func (a *Node) AddAdvanceJob(na *core.NodeAlloc, in string, end core.Time) {
	if a.PartlyReserved {
		a.AdvanceJobs = append(a.AdvanceJobs, AdvanceJob{Count: int64(na.CPUs), End: end, Advance: in})
	}
}
