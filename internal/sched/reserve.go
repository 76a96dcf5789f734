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
	case over(j): // it is being cleaned up
		if j.Pushed != nil {
			return max(j.End, j.Pushed.Until)
		}
		return j.End
	case j.State == core.Running:
		return after(j.Start+core.Time(j.PausedFor.Microseconds()), length(j.Spec))
	case j.Parked():
		return backOf(j)
	}
	return never
}

// reservation is the promise of a start. From at on, what it claims of its nodes is its own. It is not changed any more
// once it is made, but for what its claims leave, which is worked out in each pass.
type reservation struct {
	job    core.JobID
	at, to core.Time
	nodes  []*account // nil once it is dropped
	names  []core.NodeName
	in     string // the advance reservation the job would run in
	lic    []core.License
	claims []claim // one a node
}

func (r *reservation) equal(o *reservation) bool {
	if r.job != o.job || r.at != o.at || r.to != o.to || !slices.Equal(r.nodes, o.nodes) || r.in != o.in || !slices.Equal(r.lic, o.lic) {
		return false
	}
	for i := range r.claims {
		if !r.claims[i].use.equal(&o.claims[i].use) {
			return false
		}
	}
	return true
}

// overdue is how soon what should have ended by now is expected to end.
const overdue core.Time = 1e6

// reserve finds the earliest moment at which a job could start if everything lasts as long as it may, and keeps its
// nodes for it from then on. It respects the reservations made before.
func (ps *pass) reserve(s *slot, j *core.Job) {
	if ps.plan.pushes[j.ID] > 0 && ps.plan.expected[j.ID] != 0 { // it has one, for which others are preempted
		return
	}
	ps.promise(s, j)
}

func (ps *pass) promise(s *slot, j *core.Job) {
	if hetOf(j) != nil {
		ps.holdHet(s, j, true)
		return
	}
	if r := ps.hold(s, j); r != nil {
		ps.plan.planned(r)
	}
}

// hold is reserve without the promise.
func (ps *pass) hold(s *slot, j *core.Job) *reservation {
	ps.self = j.ID
	if hetOf(j) != nil {
		ps.holdHet(s, j, false)
		return nil
	}
	return ps.keep(s, j)
}

// keep keeps nodes for one job.
func (ps *pass) keep(s *slot, j *core.Job) (r *reservation) {
	ps.p.looking = j.ID
	if len(s.ways) > 0 {
		if s = ps.soonest(s, j); s == nil {
			return nil
		}
	}
	sw := ps.sweepOf(s, j)
	if picks := sw.own(j); picks != nil {
		r = sw.reservation(j.ID, picks)
	} else if ps.notBefore == 0 && ps.searchable(s) {
		r = ps.searchFor(s, sw.length).find(&sw, j.ID)
	} else if picks := sw.earliest(); picks != nil {
		r = sw.reservation(j.ID, picks)
	}
	if r != nil {
		ps.lay(r)
	}
	return r
}

// lay keeps a reservation for the rest of the pass.
func (ps *pass) lay(r *reservation) {
	ps.claim(r)
	ps.reserved = append(ps.reserved, r)
	ps.remade(r)
}

// reservation makes one of the nodes that were chosen for the moment the sweep has come to.
func (sw *sweep) reservation(job core.JobID, picks []pick) *reservation {
	r := &reservation{job: job, at: sw.look.then, to: sw.look.end, nodes: make([]*account, len(picks)), claims: make([]claim, len(picks))}
	if s := sw.slot; s.own != nil {
		r.in = s.own.Name
	}
	if s := sw.slot; s.lic != nil {
		r.lic = sw.ps.grant(s, r.at, r.to)
	}
	for i, pk := range picks {
		r.nodes[i] = pk.a
		r.claims[i] = claim{of: r, on: pk.a, job: job, in: r.in, owner: sw.n.owner, from: r.at, to: r.to, use: sw.n.useOn(&picks[i], sw.look.balance(pk.a))}
	}
	return r
}

// claim lays a reservation on its nodes. What they have free at its start was just worked out, by a sweep or a search.
func (ps *pass) claim(r *reservation) {
	for i := range r.claims {
		c := &r.claims[i]
		a := c.on
		// What is left beside it does not depend on when it ends: later claims have been weighed in use already.
		if c.left.copy(&a.now); a.swept == ps.p.sweeps {
			c.left.copy(&a.then)
		}
		for _, o := range a.claims {
			if o.holds(r.at) {
				c.left.sub(&o.use)
			} else if hits(o.from, r.to) && o.from >= r.at {
				o.left.sub(&c.use)
			}
		}
		c.left.sub(&c.use)
		a.claims = append(a.claims, c)
	}
}

// sweep goes through the moments at which resources come free.
type sweep struct {
	ps     *pass
	slot   *slot
	n      *need
	length core.Time
	part   *partition
	look   look      // the moment it has come to
	crowd            // the nodes, as of then
	marks  []mark    // what it saw, if it is
	taking bool      // asked to tell; see search
	after  core.Time // if not 0, it went on from this moment,
	was    []int32   // at which nodes had this room

	points []point
	last   core.Time // if set, later moments are of no interest
	from   core.Time // the job is not to start before; 0: as soon as it can
	fills  bool      // it lasts as long as its reservation, if that is not less than length
}

// own finds the job a place on the nodes that others leave to it, in time.
func (sw *sweep) own(j *core.Job) []pick {
	own := sw.ps.p.own(j, sw.look.nodes)
	if own == nil {
		return nil
	}
	sw.look.nodes, sw.last = own, max(j.Room.By, sw.ps.plan.Now+overdue)
	picks := sw.earliest()
	if picks == nil {
		*sw = sw.ps.sweepOf(sw.slot, j)
	}
	return picks
}

// point is a moment at which reservations made before change what the job may use.
type point struct {
	at core.Time
	r  *reservation
}

func (ps *pass) sweepOf(s *slot, j *core.Job) sweep {
	ps.p.sweeps++
	return sweep{
		ps: ps, slot: s, n: &s.need, part: s.part, length: planLength(j.Spec, s.own, ps.plan.Now), from: ps.notBefore,
		fills: j.Spec.More().Fill && s.own.timed(),
		look:  look{nodes: ps.p.nodesOf(s), tmp: &ps.p.tmp, own: s.own, reach: s.reach, sweep: ps.p.sweeps},
	}
}

// earliest returns the nodes the job would start on, with the moment in look; nil if it never could.
func (sw *sweep) earliest() []pick {
	p := sw.ps.p
	now := sw.ps.plan.Now
	soon := now + overdue
	sw.crowd = newCrowd(sw.n, p.rooms)
	defer func() { p.rooms = sw.rooms }()
	sw.step(now)
	for _, a := range p.openTo(sw.slot) { // the others have no room yet
		if sw.meet(a) {
			sw.measure(a)
		}
	}
	sw.pointsAfter(now)
	return sw.onward(walk[ending, *ending]{q: &p.ends}, soon)
}

// resume is earliest from a moment on at which nodes have so much room.
func (sw *sweep) resume(from core.Time, rooms []int32) []pick {
	p := sw.ps.p
	soon := sw.ps.plan.Now + overdue
	p.sweeps++
	sw.look.sweep, sw.look.nodes = p.sweeps, p.nodesOf(sw.slot)
	sw.look.soon, sw.after, sw.was = soon, from, rooms
	sw.pointsAfter(from)
	return sw.onward(p.ends.first(func(e *ending) bool { return max(e.at, soon) > from }), soon)
}

// onward goes on from where a walk through the endings is.
func (sw *sweep) onward(w walk[ending, *ending], soon core.Time) []pick {
	p := sw.ps.p
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
		if sw.last != 0 && t > sw.last {
			return nil
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
			changed = changed || sw.slot.own != nil || sw.slot.lic != nil || sw.points[0].at == sw.from
			sw.points = sw.points[1:]
		}
		if changed && t >= sw.from && sw.enough() && (sw.slot.own == nil && sw.slot.lic == nil || sw.opens()) {
			if picks := sw.n.choose(sw.look, p.buf); picks != nil {
				p.buf = picks
				return picks
			}
		}
	}
}

func (sw *sweep) step(t core.Time) {
	sw.look.then, sw.look.end = t, after(t, sw.length)
	if sw.fills {
		if w, ok := sw.slot.own.fits(t, sw.look.end); ok {
			sw.look.end = w.to
		}
	}
}

// free gives back what a job holds, and tells whether that was on nodes the sweep looks at.
func (sw *sweep) free(h *holding) (any bool) {
	for i, a := range sw.ps.p.on(h) {
		na := &h.alloc.Nodes[i]
		if a != nil && !na.Done && sw.meet(a) {
			h.back(a, i, &a.then, a.shared)
			sw.measure(a)
			any = true
		}
	}
	return any || sw.slot.lic != nil && len(h.alloc.Licenses()) > 0
}

// meet tells whether the job may be on a node, and makes the sweep follow what is free there from now on.
func (sw *sweep) meet(a *account) bool {
	if a.met == sw.look.sweep {
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
	a.met = sw.look.sweep
	if sw.after != 0 {
		if a.room = sw.was[a.index]; a.swept != sw.look.sweep {
			a.foresee(sw.after, sw.look.soon, sw.look.sweep)
		}
		return true
	}
	a.swept, a.room = sw.look.sweep, 0
	a.then.copy(&a.now)
	a.shared = append(a.shared[:0], a.users...)
	return true
}

func (sw *sweep) measure(a *account) {
	room := sw.room(a)
	if room == a.room {
		return
	}
	sw.change(a.room, room)
	a.room = room
	if sw.taking {
		at := sw.look.then
		if at == sw.ps.plan.Now {
			at = 0
		}
		sw.marks = append(sw.marks, mark{at, a.index, room})
	}
}

// room is what a node has for the job at the moment the sweep has come to, as far as it can be of use.
func (sw *sweep) room(a *account) int32 {
	room := sw.look.room(sw.n, a)
	if sw.n.wish == nil {
		return min(room, sw.n.tasks-sw.n.nodesMin+1)
	}
	return room
}

func (sw *sweep) pointsAfter(now core.Time) {
	for _, r := range sw.ps.reserved {
		if len(r.claims) == 0 {
			continue
		}
		for _, t := range r.claims[0].turns(sw.ps.p.turns[:0], now, sw.length) {
			sw.points = append(sw.points, point{t, r})
		}
	}
	if len(sw.ps.p.books) > 0 {
		sw.edges(now)
	}
	if sw.from != 0 {
		sw.points = append(sw.points, point{sw.from, &reservation{}})
	}
	slices.SortStableFunc(sw.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
}

// turns are the moments at which a claim changes what a job of some length may use.
func (c *claim) turns(out []core.Time, now, length core.Time) []core.Time {
	for _, t := range [...]core.Time{c.from, c.to, c.from - length + 1} {
		if t > now && t < never {
			out = append(out, t)
		}
	}
	if c.from == never {
		out = append(out, never)
	}
	return out
}

// outlasts lowers what reservations leave by a job that was just started and lasts until end.
func (ps *pass) outlasts(h *holding, end core.Time) {
	if len(ps.reserved) > 0 {
		ps.outlives(h, end, -1)
	}
}

func (ps *pass) outlives(h *holding, end core.Time, sign int32) {
	for i := range h.alloc.Nodes {
		na := &h.alloc.Nodes[i]
		a := ps.p.ledger.nodes[na.Node]
		for k := range a.claims {
			if c := a.claims[k]; hits(c.from, end) {
				a.add(&c.left, nil, na, h.terms, sign)
			}
		}
	}
}

// redeem drops the reservations of a job that starts now, in another of its partitions.
func (ps *pass) redeem(id core.JobID) {
	for i, r := range ps.reserved {
		if r.job != id || r.nodes == nil {
			continue
		}
		for _, a := range r.nodes {
			a.claims = slices.DeleteFunc(a.claims, func(c *claim) bool { return c.of == r })
			ps.p.weaken(a)
		}
		ps.reserved[i] = &reservation{job: id, at: r.at, to: r.to}
		delete(ps.plan.expected, id)
		delete(ps.plan.on, id)
		ps.redeemed = true
		ps.p.passes++ // what was refused because of it may start now
		for _, part := range ps.p.parts {
			part.dead = 0
		}
	}
}

// unreserve forgets what a pass promised.
func (ps *pass) unreserve() {
	for _, r := range ps.reserved {
		for _, a := range r.nodes {
			a.claims = a.claims[:0]
		}
	}
}
