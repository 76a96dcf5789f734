package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/sorted"
)

// allocEnd is a job that holds nodes, in the order of when they come back at the latest.
type allocEnd struct {
	at    core.Time
	id    core.JobID
	task  int32 // of an array, for starts of the same pass
	alloc *allocation
}

func (e *allocEnd) Compare(f *allocEnd) int {
	switch {
	case e.at != f.at:
		return cmp.Compare(e.at, f.at)
	case e.id != f.id:
		return cmp.Compare(e.id, f.id)
	}
	return cmp.Compare(e.task, f.task)
}

// reservation is the promise of a start. From at on, what it claims of its nodes is its own. It is not changed any more
// once it is made, but for what its claims leave, which is worked out in each pass.
type reservation struct {
	job        core.JobID
	start, end core.Time
	nodes      []*nodeState // nil once it is dropped
	names      []core.NodeName
	advance    string // the advance reservation the job would run in
	licenses   []core.License
	onNodes    []nodeReservation // one a node
}

func (r *reservation) equal(o *reservation) bool {
	if r.job != o.job || r.start != o.start || r.end != o.end || !slices.Equal(r.nodes, o.nodes) ||
		r.advance != o.advance || !slices.Equal(r.licenses, o.licenses) {
		return false
	}
	for i := range r.onNodes {
		if !r.onNodes[i].uses.equal(&o.onNodes[i].uses) {
			return false
		}
	}
	return true
}

// reserve finds the earliest moment at which a job could start if everything lasts as long as it may, and keeps its
// nodes for it from then on. It respects the reservations made before.
func (ps *pass) reserve(s *partitionClass, j *core.Job) {
	if ps.plan.preemptStarts[j.ID] > 0 && ps.plan.expected[j.ID] != 0 { // it has one, for which others are preempted
		return
	}
	ps.reserveStart(s, j)
}

func (ps *pass) reserveStart(s *partitionClass, j *core.Job) {
	if hetRefOf(j) != nil {
		hetPlacement{ps}.reserve(s, j, true)
		return
	}
	if r := ps.reserveNodes(s, j); r != nil {
		ps.plan.addReservation(r)
	}
}

// pool is reserve without the promise.
func (ps *pass) reserveNodes(s *partitionClass, j *core.Job) *reservation {
	ps.currentJob = j.ID
	if hetRefOf(j) != nil {
		hetPlacement{ps}.reserve(s, j, false)
		return nil
	}
	return ps.reserveOne(s, j)
}

// reserveOne keeps nodes for one job.
func (ps *pass) reserveOne(s *partitionClass, j *core.Job) (r *reservation) {
	ps.p.currentJob = j.ID
	if len(s.options) > 0 {
		if s = ps.earliestOption(s, j); s == nil {
			return nil
		}
	}
	sw := ps.newStartSearch(s, j)
	if picks := sw.vacated(j); picks != nil {
		r = sw.reservation(j.ID, picks)
	} else if ps.notBefore == 0 && ps.canCacheSearch(s) {
		r = ps.cachedSearch(s, sw.length).find(&sw, j.ID)
	} else if picks := sw.earliest(); picks != nil {
		r = sw.reservation(j.ID, picks)
	}
	if r != nil {
		ps.addReservation(r)
	}
	return r
}

// addReservation keeps a reservation for the rest of the pass.
func (ps *pass) addReservation(r *reservation) {
	ps.reserveOnNodes(r)
	ps.reserved = append(ps.reserved, r)
	ps.compareWithLast(r)
}

// reservation makes one of the nodes that were chosen for the moment the sweep has come to.
func (sw *startSearch) reservation(job core.JobID, picks []nodeChoice) *reservation {
	r := &reservation{job: job, start: sw.view.at, end: sw.view.end, nodes: make([]*nodeState, len(picks)),
		onNodes: make([]nodeReservation, len(picks))}
	if s := sw.class; s.advance != nil {
		r.advance = s.advance.Name
	}
	if s := sw.class; s.licenses != nil {
		r.licenses = sw.pass.licensesFor(s, r.start, r.end)
	}
	for i, pk := range picks {
		r.nodes[i] = pk.node
		r.onNodes[i] = nodeReservation{reservation: r, node: pk.node, job: job, advance: r.advance, user: sw.req.user,
			start: r.start, end: r.end, uses: sw.req.reservedUsage(&picks[i], sw.view.free(pk.node))}
	}
	return r
}

// reserved lays a reservation on its nodes. What they have free at its start was just worked out, by a sweep or a
// search.
func (ps *pass) reserveOnNodes(r *reservation) {
	for i := range r.onNodes {
		c := &r.onNodes[i]
		a := c.node
		// What is left beside it does not depend on when it ends: later claims have been weighed in use already.
		if c.leaves.copyFrom(&a.free); a.scanned == ps.p.scans {
			c.leaves.copyFrom(&a.freeThen)
		}
		for _, o := range a.reserved {
			if o.isActive(r.start) {
				c.leaves.subtract(&o.uses)
			} else if alloc.Overlaps(o.start, r.end) && o.start >= r.start {
				o.leaves.subtract(&c.uses)
			}
		}
		c.leaves.subtract(&c.uses)
		a.reserved = append(a.reserved, c)
	}
}

// scan goes through the moments at which resources come free.
type startSearch struct {
	pass         *pass
	class        *partitionClass
	req          *request
	length       core.Time
	part         *partition
	view         nodeView   // the moment it has come to
	roomTotals              // the nodes, as of then
	marks        []roomMark // what it saw, if it is
	recording    bool       // asked to tell; see search
	resumeAt     core.Time  // if not 0, it went on from this moment,
	roomAtResume []int32    // at which nodes had this room

	points      []changePoint
	last        core.Time // if set, later moments are of no interest
	from        core.Time // the job is not to start before; 0: as soon as it can
	fillsWindow bool      // it lasts as long as its reservation, if that is not less than length
}

// advances finds the job a place on the nodes that others leave to it, in time.
func (sw *startSearch) vacated(j *core.Job) []nodeChoice {
	own := sw.pass.p.vacatedNodes(j, sw.view.nodes)
	if own == nil {
		return nil
	}
	sw.view.nodes, sw.last = own, max(j.Room.By, sw.pass.plan.Now+alloc.OverdueDelay)
	picks := sw.earliest()
	if picks == nil {
		*sw = sw.pass.newStartSearch(sw.class, j)
	}
	return picks
}

// changePoint is a moment at which reservations made before change what the job may use.
type changePoint struct {
	at          core.Time
	reservation *reservation
}

func (ps *pass) newStartSearch(s *partitionClass, j *core.Job) startSearch {
	ps.p.scans++
	return startSearch{
		pass: ps, class: s, req: &s.req, part: s.part, length: planTime(j.Spec, s.advance, ps.plan.Now), from: ps.notBefore,
		fillsWindow: j.Spec.More().Fill && s.advance.ConfinesTime(),
		view: nodeView{nodes: ps.p.nodesFor(s), scratch: &ps.p.free, advance: s.advance,
			mayDelayAdvance: s.mayDelayAdvance, scan: ps.p.scans},
	}
}

// earliest returns the nodes the job would start on, with the moment in look; nil if it never could.
func (sw *startSearch) earliest() []nodeChoice {
	p := sw.pass.p
	now := sw.pass.plan.Now
	soon := now + alloc.OverdueDelay
	sw.roomTotals = newRoomTotals(sw.req, p.rooms)
	defer func() { p.rooms = sw.rooms }()
	sw.setTime(now)
	for _, a := range p.openNodesFor(sw.class) { // the others have no room yet
		if sw.follow(a) {
			sw.measure(a)
		}
	}
	sw.addPoints(now)
	return sw.continueFrom(sorted.Cursor[allocEnd, *allocEnd]{List: &p.ends}, soon)
}

// resume is earliest from a moment on at which nodes have so much room.
func (sw *startSearch) resume(from core.Time, rooms []int32) []nodeChoice {
	p := sw.pass.p
	soon := sw.pass.plan.Now + alloc.OverdueDelay
	p.scans++
	sw.view.scan, sw.view.nodes = p.scans, p.nodesFor(sw.class)
	sw.view.overdueAt, sw.resumeAt, sw.roomAtResume = soon, from, rooms
	sw.addPoints(from)
	return sw.continueFrom(p.ends.First(func(e *allocEnd) bool { return max(e.at, soon) > from }), soon)
}

// continueFrom goes on from where a walk through the endings is.
func (sw *startSearch) continueFrom(w sorted.Cursor[allocEnd, *allocEnd], soon core.Time) []nodeChoice {
	p := sw.pass.p
	for {
		e := w.Current()
		t := alloc.Never
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
		sw.setTime(t)
		changed := false
		for ; e != nil && max(e.at, soon) <= t; e = w.Current() {
			changed = sw.release(e.alloc) || changed
			w.Next()
		}
		for len(sw.points) > 0 && sw.points[0].at <= t {
			for _, a := range sw.points[0].reservation.nodes {
				if sw.follow(a) {
					sw.measure(a)
					changed = true
				}
			}
			changed = changed || sw.class.advance != nil || sw.class.licenses != nil || sw.points[0].at == sw.from
			sw.points = sw.points[1:]
		}
		if changed && t >= sw.from && sw.mayFit() && (sw.class.advance == nil && sw.class.licenses == nil || sw.isOpen()) {
			if picks := sw.req.choose(sw.view, p.choices); picks != nil {
				p.choices = picks
				return picks
			}
		}
	}
}

func (sw *startSearch) setTime(t core.Time) {
	sw.view.at, sw.view.end = t, alloc.AddTime(t, sw.length)
	if sw.fillsWindow {
		if w, ok := sw.class.advance.WindowFor(t, sw.view.end); ok {
			sw.view.end = w.End
		}
	}
}

// release gives back what a job holds, and tells whether that was on nodes the sweep looks at.
func (sw *startSearch) release(h *allocation) (any bool) {
	for i, a := range sw.pass.p.nodesOf(h) {
		na := &h.alloc.Nodes[i]
		if a != nil && !na.Done && sw.follow(a) {
			h.returnTo(a, i, &a.freeThen, a.sharersThen)
			sw.measure(a)
			any = true
		}
	}
	return any || sw.class.licenses != nil && len(h.alloc.Licenses()) > 0
}

// follow tells whether the job may be on a node, and makes the sweep follow what is free there from now on.
func (sw *startSearch) follow(a *nodeState) bool {
	if a.followed == sw.view.scan {
		return true
	}
	if a.ignored == sw.view.scan {
		return false
	}
	if !sw.req.accepts(a, &sw.view) || sw.part.nodes != nil && !sw.part.nodes[a.record.Name] ||
		sw.class.advance.ConfinesNodes() && !sw.class.advance.Nodes[a.record.Name] {
		a.ignored = sw.view.scan
		return false
	}
	a.followed = sw.view.scan
	if sw.resumeAt != 0 {
		if a.roomThen = sw.roomAtResume[a.index]; a.scanned != sw.view.scan {
			a.computeFreeAt(sw.resumeAt, sw.view.overdueAt, sw.view.scan)
		}
		return true
	}
	a.scanned, a.roomThen = sw.view.scan, 0
	a.freeThen.copyFrom(&a.free)
	a.sharersThen = append(a.sharersThen[:0], a.sharers...)
	return true
}

func (sw *startSearch) measure(a *nodeState) {
	room := sw.tasksOn(a)
	if room == a.roomThen {
		return
	}
	sw.change(a.roomThen, room)
	a.roomThen = room
	if sw.recording {
		at := sw.view.at
		if at == sw.pass.plan.Now {
			at = 0
		}
		sw.marks = append(sw.marks, roomMark{at, a.index, room})
	}
}

// timesIn is what a node has for the job at the moment the sweep has come to, as far as it can be of use.
func (sw *startSearch) tasksOn(a *nodeState) int32 {
	room := sw.view.tasksOn(sw.req, a)
	if sw.req.set == nil {
		return min(room, sw.req.tasks-sw.req.nodesMin+1)
	}
	return room
}

func (sw *startSearch) addPoints(now core.Time) {
	for _, r := range sw.pass.reserved {
		if len(r.onNodes) == 0 {
			continue
		}
		for _, t := range r.onNodes[0].changeTimes(sw.pass.p.times[:0], now, sw.length) {
			sw.points = append(sw.points, changePoint{t, r})
		}
	}
	if len(sw.pass.p.advances) > 0 {
		sw.addAdvancePoints(now)
	}
	if sw.from != 0 {
		sw.points = append(sw.points, changePoint{sw.from, &reservation{}})
	}
	slices.SortStableFunc(sw.points, func(a, b changePoint) int { return cmp.Compare(a.at, b.at) })
}

// times are the moments at which a claim changes what a job of some length may use.
func (c *nodeReservation) changeTimes(out []core.Time, now, length core.Time) []core.Time {
	for _, t := range [...]core.Time{c.start, c.end, c.start - length + 1} {
		if t > now && t < alloc.Never {
			out = append(out, t)
		}
	}
	if c.start == alloc.Never {
		out = append(out, alloc.Never)
	}
	return out
}

// lowerReservations lowers what reservations leave by a job that was just started and lasts until end.
func (ps *pass) lowerReservations(h *allocation, end core.Time) {
	if len(ps.reserved) > 0 {
		ps.changeReservations(h, end, -1)
	}
}

func (ps *pass) changeReservations(h *allocation, end core.Time, sign int32) {
	for i := range h.alloc.Nodes {
		na := &h.alloc.Nodes[i]
		a := ps.p.ledger.nodes[na.Node]
		for k := range a.reserved {
			if c := a.reserved[k]; alloc.Overlaps(c.start, end) {
				a.book(&c.leaves, nil, na, h.terms, sign)
			}
		}
	}
}

// dropReservationsOf drops the reservations of a job that starts now, in another of its partitions.
func (ps *pass) dropReservationsOf(id core.JobID) {
	for i, r := range ps.reserved {
		if r.job != id || r.nodes == nil {
			continue
		}
		for _, a := range r.nodes {
			a.reserved = slices.DeleteFunc(a.reserved, func(c *nodeReservation) bool { return c.reservation == r })
			ps.p.noteUnreserved(a)
		}
		ps.reserved[i] = &reservation{job: id, start: r.start, end: r.end}
		delete(ps.plan.expected, id)
		delete(ps.plan.reservedOn, id)
		ps.reservationDropped = true
		ps.p.refusalEpoch++ // what was refused because of it may start now
		for _, part := range ps.p.partitions {
			part.deadClasses = 0
		}
	}
}

// unreserve forgets what a pass promised.
func (ps *pass) unreserve() {
	for _, r := range ps.reserved {
		for _, a := range r.nodes {
			a.reserved = a.reserved[:0]
		}
	}
}
