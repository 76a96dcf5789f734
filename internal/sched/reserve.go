package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// reserve finds the earliest time at which a job could start if all running jobs use their time limit, and reserves its
// nodes from then on. Earlier reservations are respected.
func (ps *pass) reserve(s *partitionClass, j *core.Job) {
	if ps.plan.preemptStarts[j.ID] > 0 && ps.plan.expected[j.ID] != 0 { // it has a reservation on nodes of preempted jobs
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

// reserveNodes is reserve without recording the start in the plan.
func (ps *pass) reserveNodes(s *partitionClass, j *core.Job) *ledger.Reservation {
	ps.currentJob = j.ID
	if hetRefOf(j) != nil {
		hetPlacement{ps}.reserve(s, j, false)
		return nil
	}
	return ps.reserveOne(s, j)
}

// reserveOne reserves nodes for one job that is not a het job.
func (ps *pass) reserveOne(s *partitionClass, j *core.Job) (r *ledger.Reservation) {
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
func (ps *pass) addReservation(r *ledger.Reservation) {
	ps.reserveOnNodes(r)
	ps.reserved = append(ps.reserved, r)
	ps.compareWithLast(r)
}

// reservation makes a reservation of the nodes chosen for the time sw.view.At.
func (sw *startSearch) reservation(job core.JobID, picks []fit.Choice) *ledger.Reservation {
	r := &ledger.Reservation{
		Job: job, Start: sw.view.At, End: sw.view.End, Nodes: make([]*ledger.Node, len(picks)),
		OnNodes: make([]ledger.NodeReservation, len(picks)),
	}
	if s := sw.class; s.Advance != nil {
		r.Advance = s.Advance.Name
	}
	if s := sw.class; s.licenses != nil {
		r.Licenses = sw.pass.licensesFor(s, r.Start, r.End)
	}
	for i, pk := range picks {
		r.Nodes[i] = pk.Node
		r.OnNodes[i] = ledger.NodeReservation{
			Reservation: r, Node: pk.Node, Job: job, Advance: r.Advance, User: sw.req.User,
			Start: r.Start, End: r.End, Uses: sw.req.ReservedUsage(&picks[i], sw.view.Free(pk.Node)),
		}
	}
	return r
}

// reserveOnNodes adds a reservation to its nodes. The search that made it has just computed what they have free at its
// start.
func (ps *pass) reserveOnNodes(r *ledger.Reservation) {
	for i := range r.OnNodes {
		c := &r.OnNodes[i]
		a := c.Node
		// What it leaves does not depend on its end: later reservations were respected when it was placed.
		if c.Leaves.CopyFrom(&a.Free); a.Scanned == ps.p.scans {
			c.Leaves.CopyFrom(&a.FreeThen)
		}
		for _, o := range a.Reserved {
			if o.IsActive(r.Start) {
				c.Leaves.Subtract(&o.Uses)
			} else if alloc.Overlaps(o.Start, r.End) && o.Start >= r.Start {
				o.Leaves.Subtract(&c.Uses)
			}
		}
		c.Leaves.Subtract(&c.Uses)
		a.Reserved = append(a.Reserved, c)
	}
}

// startSearch finds the earliest start of a job. It goes through the times at which resources come free.
type startSearch struct {
	pass           *pass
	class          *partitionClass
	req            *fit.Request
	length         core.Time
	part           *partition
	view           ledger.View // the time the search has reached
	fit.RoomTotals             // sums over the nodes at that time
	marks          []roomMark  // changes of room per node, in order of time,
	recording      bool        // recorded only if this is set; see searchCache
	resumeAt       core.Time   // if not 0, the search resumed at this time,
	roomAtResume   []int32     // at which each node could take so many tasks

	points      []changePoint
	last        core.Time // if set, the search stops after this time
	from        core.Time // earliest start allowed; 0: any
	fillsWindow bool      // it runs to the end of its advance reservation's window, if that is longer
}

// vacated searches only the nodes that preempted jobs leave to the job, up to the time by which they are gone.
func (sw *startSearch) vacated(j *core.Job) []fit.Choice {
	own := sw.pass.p.vacatedNodes(j, sw.view.Nodes)
	if own == nil {
		return nil
	}
	sw.view.Nodes, sw.last = own, max(j.Room.By, sw.pass.plan.Now+alloc.OverdueDelay)
	picks := sw.earliest()
	if picks == nil {
		*sw = sw.pass.newStartSearch(sw.class, j)
	}
	return picks
}

// changePoint is a time at which earlier reservations change what the job may use.
type changePoint struct {
	at          core.Time
	reservation *ledger.Reservation
}

func (ps *pass) newStartSearch(s *partitionClass, j *core.Job) startSearch {
	ps.p.scans++
	return startSearch{
		pass: ps, class: s, req: &s.req, part: s.part, length: planTime(j.Spec, s.Advance, ps.plan.Now), from: ps.notBefore,
		fillsWindow: j.Spec.More().Fill && s.Advance.ConfinesTime(),
		view: ledger.View{
			Nodes: ps.p.nodes.Of(&s.Candidates), Scratch: &ps.p.free, Advance: s.Advance,
			MayDelayAdvance: s.mayDelayAdvance, Scan: ps.p.scans,
		},
	}
}

// earliest returns the nodes the job would start on, with the time in sw.view.At, or nil if there is no such time.
func (sw *startSearch) earliest() []fit.Choice {
	p := sw.pass.p
	now := sw.pass.plan.Now
	soon := now + alloc.OverdueDelay
	sw.RoomTotals = fit.NewRoomTotals(sw.req, p.rooms)
	defer func() { p.rooms = sw.Rooms }()
	sw.setTime(now)
	for _, a := range p.nodes.OpenOf(&sw.class.Candidates, &sw.class.req) { // the other nodes have nothing free yet
		if sw.follow(a) {
			sw.measure(a)
		}
	}
	sw.addPoints(now)
	return sw.continueFrom(ledger.EndCursor{List: &p.jobs.Ends}, soon)
}

// resume is earliest from a given time on. rooms says how many tasks each node could take then.
func (sw *startSearch) resume(from core.Time, rooms []int32) []fit.Choice {
	p := sw.pass.p
	soon := sw.pass.plan.Now + alloc.OverdueDelay
	p.scans++
	sw.view.Scan, sw.view.Nodes = p.scans, p.nodes.Of(&sw.class.Candidates)
	sw.view.OverdueAt, sw.resumeAt, sw.roomAtResume = soon, from, rooms
	sw.addPoints(from)
	return sw.continueFrom(p.jobs.Ends.First(func(e *ledger.AllocEnd) bool { return max(e.At, soon) > from }), soon)
}

// continueFrom goes on from a position in the list of job ends.
func (sw *startSearch) continueFrom(w ledger.EndCursor, soon core.Time) []fit.Choice {
	p := sw.pass.p
	for {
		e := w.Current()
		t := alloc.Never
		if e != nil {
			t = max(e.At, soon)
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
		for ; e != nil && max(e.At, soon) <= t; e = w.Current() {
			changed = sw.release(e.Alloc) || changed
			w.Next()
		}
		for len(sw.points) > 0 && sw.points[0].at <= t {
			for _, a := range sw.points[0].reservation.Nodes {
				if sw.follow(a) {
					sw.measure(a)
					changed = true
				}
			}
			changed = changed || sw.class.Advance != nil || sw.class.licenses != nil || sw.points[0].at == sw.from
			sw.points = sw.points[1:]
		}
		if changed && t >= sw.from && sw.MayFit() && (sw.class.Advance == nil && sw.class.licenses == nil || sw.isOpen()) {
			if picks := sw.req.Choose(sw.view, p.choices); picks != nil {
				p.choices = picks
				return picks
			}
		}
	}
}

func (sw *startSearch) setTime(t core.Time) {
	sw.view.At, sw.view.End = t, alloc.AddTime(t, sw.length)
	if sw.fillsWindow {
		if w, ok := sw.class.Advance.WindowFor(t, sw.view.End); ok {
			sw.view.End = w.End
		}
	}
}

// release returns a job's resources to its nodes and reports whether any of these are nodes of the search.
func (sw *startSearch) release(h *ledger.Allocation) (any bool) {
	for i, a := range sw.pass.p.ledger.NodesOf(h) {
		na := &h.Alloc.Nodes[i]
		if a != nil && !na.Done && sw.follow(a) {
			h.ReturnTo(a, i, &a.FreeThen, a.SharersThen)
			sw.measure(a)
			any = true
		}
	}
	return any || sw.class.licenses != nil && len(h.Alloc.Licenses()) > 0
}

// follow reports whether the job may use a node. From then on the search tracks what is free there.
func (sw *startSearch) follow(a *ledger.Node) bool {
	if a.Followed == sw.view.Scan {
		return true
	}
	if a.Ignored == sw.view.Scan {
		return false
	}
	if !sw.req.Accepts(a, &sw.view) || !sw.class.Has(a) {
		a.Ignored = sw.view.Scan
		return false
	}
	a.Followed = sw.view.Scan
	if sw.resumeAt != 0 {
		if a.RoomThen = sw.roomAtResume[a.Index]; a.Scanned != sw.view.Scan {
			a.ComputeFreeAt(sw.resumeAt, sw.view.OverdueAt, sw.view.Scan)
		}
		return true
	}
	a.Scanned, a.RoomThen = sw.view.Scan, 0
	a.FreeThen.CopyFrom(&a.Free)
	a.SharersThen = append(a.SharersThen[:0], a.Sharers...)
	return true
}

func (sw *startSearch) measure(a *ledger.Node) {
	room := sw.tasksOn(a)
	if room == a.RoomThen {
		return
	}
	sw.Change(a.RoomThen, room)
	a.RoomThen = room
	if sw.recording {
		at := sw.view.At
		if at == sw.pass.plan.Now {
			at = 0
		}
		sw.marks = append(sw.marks, roomMark{at, a.Index, room})
	}
}

// tasksOn returns how many tasks the node could take at sw.view.At, capped at what the job can use of one node.
func (sw *startSearch) tasksOn(a *ledger.Node) int32 {
	room := sw.req.TasksAt(&sw.view, a)
	if sw.req.Set == nil {
		return min(room, sw.req.Tasks-sw.req.NodesMin+1)
	}
	return room
}

func (sw *startSearch) addPoints(now core.Time) {
	for _, r := range sw.pass.reserved {
		if len(r.OnNodes) == 0 {
			continue
		}
		for _, t := range r.OnNodes[0].ChangeTimes(sw.pass.p.times[:0], now, sw.length) {
			sw.points = append(sw.points, changePoint{t, r})
		}
	}
	if len(sw.pass.p.advances) > 0 {
		sw.addAdvancePoints(now)
	}
	if sw.from != 0 {
		sw.points = append(sw.points, changePoint{sw.from, &ledger.Reservation{}})
	}
	slices.SortStableFunc(sw.points, func(a, b changePoint) int { return cmp.Compare(a.at, b.at) })
}

// lowerReservations subtracts a job that was just started, and ends at end, from what reservations leave.
func (ps *pass) lowerReservations(h *ledger.Allocation, end core.Time) {
	if len(ps.reserved) > 0 {
		ps.changeReservations(h, end, -1)
	}
}

func (ps *pass) changeReservations(h *ledger.Allocation, end core.Time, sign int32) {
	for i := range h.Alloc.Nodes {
		na := &h.Alloc.Nodes[i]
		a := ps.p.ledger.Nodes[na.Node]
		for k := range a.Reserved {
			if c := a.Reserved[k]; alloc.Overlaps(c.Start, end) {
				a.Book(&c.Leaves, nil, na, h.Terms, sign)
			}
		}
	}
}

// dropReservationsOf drops the reservations of a job that starts now in another of its partitions.
func (ps *pass) dropReservationsOf(id core.JobID) {
	for i, r := range ps.reserved {
		if r.Job != id || r.Nodes == nil {
			continue
		}
		for _, a := range r.Nodes {
			a.Reserved = slices.DeleteFunc(a.Reserved, func(c *ledger.NodeReservation) bool { return c.Reservation == r })
			ps.p.nodes.NoteUnreserved(a)
		}
		ps.reserved[i] = &ledger.Reservation{Job: id, Start: r.Start, End: r.End}
		delete(ps.plan.expected, id)
		delete(ps.plan.reservedOn, id)
		ps.reservationDropped = true
		ps.p.refusalEpoch++ // jobs refused because of it may start now
		for _, part := range ps.p.partitions {
			part.deadClasses = 0
		}
	}
}

// unreserve removes all reservations of the pass from the nodes.
func (ps *pass) unreserve() {
	for _, r := range ps.reserved {
		for _, a := range r.Nodes {
			a.Reserved = a.Reserved[:0]
		}
	}
}
