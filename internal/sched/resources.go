package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// freeNow is an amount of everything a node has. As an amount that is free, held and whole count the jobs that are in
// the way; as an amount that is used, they are negative, so that subtracting it adds them.
type resources struct {
	cpus              int32
	allocs, exclusive int32 // allocations, and exclusive ones among them
	userExclusive     int32 // of the exclusive ones, those that share with others of the same user
	mem               core.Bytes
	gres              []int64 // by the node's kinds
}

func (b *resources) copyFrom(o *resources) {
	g := append(b.gres[:0], o.gres...)
	*b = *o
	b.gres = g
}

func (b *resources) equal(o *resources) bool {
	return b.cpus == o.cpus && b.mem == o.mem && b.allocs == o.allocs && b.exclusive == o.exclusive &&
		b.userExclusive == o.userExclusive && slices.Equal(b.gres, o.gres)
}

func (b *resources) subtract(use *resources) {
	b.cpus -= use.cpus
	b.mem -= use.mem
	b.allocs -= use.allocs
	b.exclusive -= use.exclusive
	b.userExclusive -= use.userExclusive
	for i := range use.gres {
		b.gres[i] -= use.gres[i]
	}
}

// minRefused lowers b to what is free in both.
func (b *resources) lowerTo(o *resources) {
	b.cpus, b.mem = min(b.cpus, o.cpus), min(b.mem, o.mem)
	b.allocs, b.exclusive, b.userExclusive = max(b.allocs, o.allocs), max(b.exclusive, o.exclusive), max(b.userExclusive,
		o.userExclusive)
	for i := range o.gres {
		b.gres[i] = min(b.gres[i], o.gres[i])
	}
}

// reserved is what a reservation takes of a node, and what it leaves.
type nodeReservation struct {
	reservation *reservation
	node        *nodeState
	job         core.JobID
	advance     string // the advance reservation its job would run in
	user        core.UserName
	start, end  core.Time
	uses        resources
	leaves      resources // free when it starts, beside it; jobs that last until then may use no more
}

// pools tells whether a claim's job would run at t.
func (c *nodeReservation) isActive(t core.Time) bool {
	return c.start <= t && (t < c.end || c.end == alloc.Never)
}

// from is what a job that starts now and ends at end may use of the node without delaying a reservation.
func (a *nodeState) freeUntil(end core.Time, tmp *resources) *resources {
	b := &a.free
	for i := range a.reserved {
		if c := a.reserved[i]; alloc.Overlaps(c.start, end) {
			if b != tmp {
				tmp.copyFrom(b)
				b = tmp
			}
			b.lowerTo(&c.leaves)
		}
	}
	return b
}

// eventTime is the same for a job that starts at the moment a sweep has come to.
func (a *nodeState) freeAt(l *nodeView) *resources {
	t, end, tmp := l.at, l.end, l.scratch
	b := &a.freeThen
	if a.scanned != l.scan {
		if l.overdueAt != 0 {
			a.computeFreeAt(t, l.overdueAt, l.scan)
		} else { // nothing has come free on it
			b = &a.free
		}
	}
	if len(a.reserved) == 0 {
		if len(a.advanceParts) > 0 {
			return a.freeBesideAdvance(l, t, end, b)
		}
		return b
	}
	tmp.copyFrom(b)
	later := false
	for i := range a.reserved {
		if c := a.reserved[i]; c.isActive(t) {
			tmp.subtract(&c.uses)
		} else {
			later = later || c.start > t && alloc.Overlaps(c.start, end)
		}
	}
	for i := 0; later && i < len(a.reserved); i++ { // what they leave has been lowered by those that hold it then
		if c := a.reserved[i]; c.start > t && alloc.Overlaps(c.start, end) {
			tmp.lowerTo(&c.leaves)
		}
	}
	if len(a.advanceParts) > 0 {
		return a.freeBesideAdvance(l, t, end, tmp)
	}
	return tmp
}
