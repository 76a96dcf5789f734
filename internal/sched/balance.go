package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// balance is an amount of everything a node has. As an amount that is free, held and whole count the jobs that are in
// the way; as an amount that is used, they are negative, so that subtracting it adds them.
type balance struct {
	cpus        int32
	held, whole int32 // allocations, and exclusive ones among them
	owned       int32 // of the exclusive ones, those that share with others of the same user
	mem         core.Bytes
	gres        []int64 // by the node's kinds
}

func (b *balance) copy(o *balance) {
	g := append(b.gres[:0], o.gres...)
	*b = *o
	b.gres = g
}

func (b *balance) equal(o *balance) bool {
	return b.cpus == o.cpus && b.mem == o.mem && b.held == o.held && b.whole == o.whole && b.owned == o.owned && slices.Equal(b.gres, o.gres)
}

func (b *balance) sub(use *balance) {
	b.cpus -= use.cpus
	b.mem -= use.mem
	b.held -= use.held
	b.whole -= use.whole
	b.owned -= use.owned
	for i := range use.gres {
		b.gres[i] -= use.gres[i]
	}
}

// least lowers b to what is free in both.
func (b *balance) least(o *balance) {
	b.cpus, b.mem = min(b.cpus, o.cpus), min(b.mem, o.mem)
	b.held, b.whole, b.owned = max(b.held, o.held), max(b.whole, o.whole), max(b.owned, o.owned)
	for i := range o.gres {
		b.gres[i] = min(b.gres[i], o.gres[i])
	}
}

// claim is what a reservation takes of a node, and what it leaves.
type claim struct {
	of       *reservation
	on       *account
	job      core.JobID
	in       string // the advance reservation its job would run in
	owner    core.UserName
	from, to core.Time
	use      balance
	left     balance // free when it starts, beside it; jobs that last until then may use no more
}

// never is the end of what has no limit.
const never core.Time = 1<<63 - 1

// hits tells whether a job that ends at end is there at a moment. What never ends is there at all.
func hits(moment, end core.Time) bool { return moment < end || end == never }

// holds tells whether a claim's job would run at t.
func (c *claim) holds(t core.Time) bool { return c.from <= t && (t < c.to || c.to == never) }

// until is what a job that starts now and ends at end may use of the node without delaying a reservation.
func (a *account) until(end core.Time, tmp *balance) *balance {
	b := &a.now
	for i := range a.claims {
		if c := a.claims[i]; hits(c.from, end) {
			if b != tmp {
				tmp.copy(b)
				b = tmp
			}
			b.least(&c.left)
		}
	}
	return b
}

// at is the same for a job that starts at the moment a sweep has come to.
func (a *account) at(l *look) *balance {
	t, end, tmp := l.then, l.end, l.tmp
	b := &a.then
	if a.swept != l.sweep {
		if l.soon != 0 {
			a.foresee(t, l.soon, l.sweep)
		} else { // nothing has come free on it
			b = &a.now
		}
	}
	if len(a.claims) == 0 {
		if len(a.asides) > 0 {
			return a.beside(l, t, end, b)
		}
		return b
	}
	tmp.copy(b)
	later := false
	for i := range a.claims {
		if c := a.claims[i]; c.holds(t) {
			tmp.sub(&c.use)
		} else {
			later = later || c.from > t && hits(c.from, end)
		}
	}
	for i := 0; later && i < len(a.claims); i++ { // what they leave has been lowered by those that hold it then
		if c := a.claims[i]; c.from > t && hits(c.from, end) {
			tmp.least(&c.left)
		}
	}
	if len(a.asides) > 0 {
		return a.beside(l, t, end, tmp)
	}
	return tmp
}

// length is how long a job may run.
func length(s *core.Spec) core.Time {
	if s.TimeLimit <= 0 || s.TimeLimit >= core.Seconds(never/4e6) {
		return never
	}
	return core.Time(s.TimeLimit) * 1e6
}

// after adds lengths of time without running over.
func after(t, d core.Time) core.Time {
	if d >= never-t {
		return never
	}
	return t + d
}
