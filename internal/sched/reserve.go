package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// ending is a job that holds nodes, in the order of when they come back at the latest.
type ending struct {
	at   core.Time
	id   core.JobID
	task int32 // of an array, for starts of the same pass
	h    *holding
}

func (e *ending) compare(f *ending) int {
	switch {
	case e.at != f.at:
		return cmp.Compare(e.at, f.at)
	case e.id != f.id:
		return cmp.Compare(e.id, f.id)
	}
	return cmp.Compare(e.task, f.task)
}

// endOf is when a job that holds nodes gives them back at the latest. One that is suspended may be so forever.
func endOf(j *core.Job) core.Time {
	switch {
	case j.State == core.Running:
		return after(j.Start+core.Time(j.PausedFor.Microseconds()), length(j.Spec))
	case j.State == core.Suspended:
		return never
	}
	return j.End // it is being cleaned up
}

// reservation is the promise of a start. From at on, what it claims of its nodes is its own.
type reservation struct {
	job    core.JobID
	at, to core.Time
	nodes  []*account // nil once it is dropped
	in     string     // the advance reservation the job would run in
	lic    []core.License
	chain  uint64 // fingerprint of this reservation and those before it
}

// mix works values into the fingerprint.
func (r *reservation) mix(values ...uint64) {
	for _, v := range values {
		for v ^= r.chain >> 32; ; v >>= 16 {
			r.chain = (r.chain ^ v) * 1099511628211
			if v == 0 {
				break
			}
		}
	}
}

// overdue is how soon what should have ended by now is expected to end.
const overdue core.Time = 1e6

// reserve finds the earliest moment at which a job could start if everything lasts as long as it may, and keeps its
// nodes for it from then on. It respects the reservations made before.
func (ps *pass) reserve(s *slot, j *core.Job) {
	if r := ps.hold(s, j); r != nil {
		ps.plan.planned(r)
	}
}

// hold is reserve without the promise.
func (ps *pass) hold(s *slot, j *core.Job) *reservation {
	if len(s.ways) > 0 {
		if s = ps.soonest(s, j); s == nil {
			return nil
		}
	}
	sw := ps.sweepOf(s, j)
	picks := sw.earliest()
	if picks == nil {
		return nil
	}
	r := reservation{job: j.ID, at: sw.look.then, to: sw.look.end}
	if s.own != nil {
		r.in = s.own.Name
	}
	if s.lic != nil {
		r.lic = ps.grant(s, r.at, r.to)
	}
	r.chain = 14695981039346656037
	if n := len(ps.reserved); n > 0 {
		r.chain = ps.reserved[n-1].chain
	}
	r.mix(uint64(r.job), uint64(r.at), uint64(r.to-r.at))
	for _, pk := range picks {
		r.mix(uint64(pk.a.node.ID), uint64(pk.tasks))
		b := sw.look.balance(pk.a)
		c := claim{job: j.ID, in: r.in, from: r.at, to: r.to, use: s.need.use(pk.a, pk.tasks, b)}
		// What is left beside it does not depend on when it ends: later claims have been weighed in b already.
		if c.left.copy(&pk.a.now); pk.a.swept == sw.look.sweep {
			c.left.copy(&pk.a.then)
		}
		for i := range pk.a.claims {
			if o := &pk.a.claims[i]; o.holds(r.at) {
				c.left.sub(&o.use)
			} else if hits(o.from, r.to) && o.from >= r.at {
				o.left.sub(&c.use)
			}
		}
		c.left.sub(&c.use)
		pk.a.claims = append(pk.a.claims, c)
		r.nodes = append(r.nodes, pk.a)
	}
	ps.reserved = append(ps.reserved, r)
	return &r
}

// sweep goes through the moments at which resources come free.
type sweep struct {
	ps     *pass
	slot   *slot
	n      *need
	length core.Time
	part   *partition
	look   look // the moment it has come to

	count int32   // nodes with any room
	total int64   // room on all of them
	best  int32   // the most one node ever had
	rooms []int32 // nodes by their room; nil if some has more than roomsMost

	points []point
}

// roomsMost is up to how much room of a node is told apart: one that stands for a whole machine is judged by a choice.
const roomsMost = 4096

// point is a moment at which reservations made before change what the job may use.
type point struct {
	at core.Time
	r  *reservation
}

func (ps *pass) sweepOf(s *slot, j *core.Job) sweep {
	return sweep{
		ps: ps, slot: s, n: &s.need, part: s.part, length: shortest(j.Spec),
		look: look{nodes: ps.p.nodesOf(s), tmp: &ps.p.tmp, own: s.own, reach: s.reach},
	}
}

// earliest returns the nodes the job would start on, with the moment in look; nil if it never could.
func (sw *sweep) earliest() []pick {
	p := sw.ps.p
	p.sweeps++
	sw.look.sweep = p.sweeps
	now := sw.ps.plan.Now
	soon := now + overdue
	sw.rooms = append(p.rooms[:0], 0)
	defer func() { p.rooms = sw.rooms }()
	sw.step(now)
	for _, a := range p.openTo(sw.slot) { // the others have no room yet
		if sw.meet(a) {
			sw.measure(a)
		}
	}
	sw.pointsAfter(now)
	w := walk[ending, *ending]{q: &p.ends}
	for {
		e := w.head()
		t := never
		if e != nil {
			t = max(e.at, soon)
		} else if len(sw.points) == 0 {
			return nil
		}
		if len(sw.points) > 0 {
			t = min(t, sw.points[0].at)
		}
		sw.step(t)
		changed := false
		for ; e != nil && max(e.at, soon) <= t; e = w.head() {
			changed = sw.free(e.h) || changed
			w.next()
		}
		for len(sw.points) > 0 && sw.points[0].at <= t {
			for _, a := range sw.points[0].r.nodes {
				if sw.meet(a) {
					sw.measure(a)
					changed = true
				}
			}
			changed = changed || sw.slot.own != nil || sw.slot.lic != nil
			sw.points = sw.points[1:]
		}
		if changed && sw.enough() && (sw.slot.own == nil && sw.slot.lic == nil || sw.opens()) {
			if picks := sw.n.choose(sw.look, p.buf); picks != nil {
				p.buf = picks
				return picks
			}
		}
	}
}

func (sw *sweep) step(t core.Time) {
	sw.look.then, sw.look.end = t, after(t, sw.length)
}

// enough tells whether a choice could succeed at all: it is cheap and right about most moments that are too early.
func (sw *sweep) enough() bool {
	n := sw.n
	if sw.count < n.nodesMin || sw.total < int64(n.tasks) || int64(sw.best)*int64(n.nodesMax) < int64(n.tasks) {
		return false
	}
	if sw.count <= n.nodesMax || sw.rooms == nil {
		return true
	}
	left, tasks := n.nodesMax, int64(n.tasks) // of the roomiest nodes as many as it may have
	for room := len(sw.rooms) - 1; room > 0 && left > 0 && tasks > 0; room-- {
		k := min(left, sw.rooms[room])
		left -= k
		tasks -= int64(k) * int64(room)
	}
	return tasks <= 0
}

// free gives back what a job holds, and tells whether that was on nodes the sweep looks at.
func (sw *sweep) free(h *holding) (any bool) {
	for i, a := range sw.ps.p.on(h) {
		na := &h.alloc.Nodes[i]
		if a != nil && !na.Done && sw.meet(a) {
			a.add(&a.then, a.shared, na, h.terms, 1)
			sw.measure(a)
			any = true
		}
	}
	return any || sw.slot.lic != nil && len(h.alloc.Licenses()) > 0
}

// meet tells whether the job may be on a node, and makes the sweep follow what is free there from now on.
func (sw *sweep) meet(a *account) bool {
	if a.swept == sw.look.sweep {
		return true
	}
	if a.unmet == sw.look.sweep {
		return false
	}
	if !sw.n.suits(a, &sw.look) || sw.part.nodes != nil && !sw.part.nodes[a.node.Name] ||
		sw.slot.own.confines() && !sw.slot.own.on[a.node.Name] {
		a.unmet = sw.look.sweep
		return false
	}
	a.swept, a.room = sw.look.sweep, 0
	a.then.copy(&a.now)
	a.shared = append(a.shared[:0], a.users...)
	return true
}

func (sw *sweep) measure(a *account) {
	room := sw.look.room(sw.n, a)
	if room == a.room {
		return
	}
	sw.total += int64(room - a.room)
	switch {
	case room > roomsMost:
		sw.rooms = nil
	case sw.rooms != nil:
		for int(room) >= len(sw.rooms) {
			sw.rooms = append(sw.rooms, 0)
		}
		sw.rooms[a.room]--
		sw.rooms[room]++
	}
	switch {
	case room > 0 && a.room == 0:
		sw.count++
	case room == 0 && a.room > 0:
		sw.count--
	}
	a.room = room
	sw.best = max(sw.best, room)
}

func (sw *sweep) pointsAfter(now core.Time) {
	for i := range sw.ps.reserved {
		r := &sw.ps.reserved[i]
		ends := r.to
		for _, t := range [...]core.Time{r.at, ends, r.at - sw.length + 1} {
			if t > now && t < never {
				sw.points = append(sw.points, point{t, r})
			}
		}
		if r.at == never {
			sw.points = append(sw.points, point{never, r})
		}
	}
	if len(sw.ps.p.books) > 0 {
		sw.edges(now)
	}
	slices.SortStableFunc(sw.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
}

// outlasts lowers what reservations leave by a job that was just started and lasts until end.
func (ps *pass) outlasts(h *holding, end core.Time) {
	if len(ps.reserved) == 0 {
		return
	}
	for i := range h.alloc.Nodes {
		na := &h.alloc.Nodes[i]
		a := ps.p.ledger.nodes[na.Node]
		for k := range a.claims {
			if c := &a.claims[k]; hits(c.from, end) {
				a.add(&c.left, nil, na, h.terms, -1)
			}
		}
	}
}

// redeem drops the reservations of a job that starts now, in another of its partitions.
func (ps *pass) redeem(id core.JobID) {
	for i := range ps.reserved {
		r := &ps.reserved[i]
		if r.job != id || r.nodes == nil {
			continue
		}
		for _, a := range r.nodes {
			a.claims = slices.DeleteFunc(a.claims, func(c claim) bool { return c.job == id })
		}
		r.nodes = nil
		ps.redeemed = true
		delete(ps.plan.expected, id)
		delete(ps.plan.on, id)
		ps.p.passes++ // what was refused because of it may start now
		for _, part := range ps.p.parts {
			part.dead = 0
		}
	}
}

// unreserve forgets what a pass promised.
func (ps *pass) unreserve() {
	for i := range ps.reserved {
		for _, a := range ps.reserved[i].nodes {
			a.claims = a.claims[:0]
		}
	}
}
