package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// search finds when a job could start, as a sweep does, and is kept from pass to pass: it knows for all nodes when how
// much room comes free on them, and works that out again only for nodes on which something changed since.
type search struct {
	slot   *slot
	length core.Time
	pass   int64  // that last wanted it
	marks  []mark // by time
	whole  bool   // it went to the end of all that runs; else marks go to the moment that was found
	news   int64  // up to date with news before this one
	saw    []*reservation
	found  *reservation // what came of it; nil: the job could never start
}

// mark is a moment from which on a node has so much room.
type mark struct {
	at    core.Time // 0: now
	index int32
	room  int32
}

// searchable tells whether a search gives what a sweep would.
func (ps *pass) searchable(s *slot) bool {
	return ps.p.tracking && len(ps.p.books) == 0 && s.own == nil && s.lic == nil && s.need.owner == ""
}

// searchFor finds the search for jobs of a class of one length, or begins one.
func (ps *pass) searchFor(s *slot, length core.Time) *search {
	for _, sr := range s.part.searches {
		if sr.slot == s && sr.length == length {
			sr.pass = ps.p.opened
			return sr
		}
	}
	kept := s.part.searches[:0]
	for _, sr := range s.part.searches { // those of heads that are gone
		if sr.pass >= ps.p.opened-1 {
			kept = append(kept, sr)
		}
	}
	clear(s.part.searches[len(kept):])
	sr := &search{slot: s, length: length, pass: ps.p.opened}
	s.part.searches = append(kept, sr)
	return sr
}

// find gives the job's reservation, the same one as in the last pass if nothing about it changed.
func (sr *search) find(sw *sweep, job core.JobID) *reservation {
	ps, p := sw.ps, sw.ps.p
	fresh, ok := sr.changed(ps)
	if ok && len(fresh) == 0 {
		if r := sr.found; r == nil || r.job == job {
			if r != nil {
				sw.step(r.at)
				for i := range r.claims {
					r.claims[i].on.foresee(r.at, ps.plan.Now+overdue, p.sweeps)
				}
			}
			return r
		}
	}
	var picks []pick
	if ok {
		picks, ok = sr.update(sw, fresh)
	}
	if !ok {
		sw.look.nodes, sw.look.soon = p.accounts(sw.part), 0
		sw.marks, sw.taking = sr.marks[:0], true
		picks = sw.earliest()
		sr.marks, sr.whole = sw.marks, picks == nil
	}
	sr.news = p.news.next()
	sr.saw = append(sr.saw[:0], ps.reserved...)
	if picks == nil {
		sr.found = nil
		return nil
	}
	r := sw.reservation(job, picks)
	if sr.found == nil || !r.equal(sr.found) {
		sr.found = r
	}
	return sr.found
}

// changed lists the nodes that must be looked at anew; false: all of them.
func (sr *search) changed(ps *pass) (fresh []*account, ok bool) {
	p := ps.p
	if sr.news < p.news.from || sr.news == 0 {
		return nil, false
	}
	fresh = p.fresh[:0]
	add := func(a *account) {
		if a.listed != p.sweeps {
			a.listed = p.sweeps
			fresh = append(fresh, a)
		}
	}
	for i, a := range p.news.since(sr.news) {
		if a.news == sr.news+int64(i) {
			add(a)
		}
	}
	for _, d := range [...][2][]*reservation{{sr.saw, ps.reserved}, {ps.reserved, sr.saw}} {
		for _, r := range d[0] {
			if !slices.Contains(d[1], r) {
				for _, a := range r.nodes {
					add(a)
				}
			}
		}
	}
	// What should have ended is expected a little later in each pass, and what time alone changes may have come true.
	for i := range sr.marks {
		m := &sr.marks[i]
		if m.at >= ps.plan.Now+overdue {
			break
		}
		if m.at > 0 {
			add(p.ledger.order[m.index])
		}
	}
	p.fresh = fresh
	return fresh, len(fresh) < 64+len(p.ledger.order)/4
}

// update works in what changed. It returns false if the marks do not go far enough.
func (sr *search) update(sw *sweep, fresh []*account) (picks []pick, ok bool) {
	p := sw.ps.p
	horizon := never
	if !sr.whole {
		horizon = sr.found.at
	}
	anew := p.anew[:0]
	isNew := append(p.isNew[:0], make(bitset, len(p.openSet))...)
	for _, a := range fresh {
		if a.index >= 0 {
			isNew.set(a.index)
			anew = sw.trace(a, horizon, anew)
		}
	}
	slices.SortFunc(anew, func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index)) })
	rooms := append(p.roomOf[:0], make([]int32, len(p.ledger.order))...)
	p.anew, p.isNew, p.roomOf = anew, isNew, rooms

	sw.crowd = newCrowd(sw.n, p.rooms)
	defer func() { p.rooms = sw.rooms }()
	out := p.marks[:0]
	old := sr.marks
	for len(old) > 0 || len(anew) > 0 {
		t := never
		if len(old) > 0 {
			t = old[0].at
		}
		if len(anew) > 0 {
			t = min(t, anew[0].at)
		}
		for len(old) > 0 && old[0].at == t {
			if m := old[0]; !isNew.has(m.index) {
				sw.change(rooms[m.index], m.room)
				rooms[m.index] = m.room
				out = append(out, m)
			}
			old = old[1:]
		}
		for len(anew) > 0 && anew[0].at == t {
			m := anew[0]
			sw.change(rooms[m.index], m.room)
			rooms[m.index] = m.room
			out = append(out, m)
			anew = anew[1:]
		}
		if !sw.enough() {
			continue
		}
		if t == 0 { // it could start now, and does not for a reason that is not known here
			return nil, false
		}
		sw.step(t)
		if picks = sw.pick(rooms); picks != nil {
			sr.whole = false
			break
		}
	}
	if picks == nil && !sr.whole { // it must wait longer than it seemed
		sw.marks, sw.taking = out, true
		picks = sw.resume(horizon, rooms)
		out, sr.whole = sw.marks, picks == nil
	}
	p.marks, sr.marks = sr.marks, out
	return picks, true
}

// pick chooses among the nodes that have room at the moment the sweep has come to.
func (sw *sweep) pick(rooms []int32) []pick {
	p := sw.ps.p
	nodes := p.some[:0]
	for i, room := range rooms {
		if room > 0 {
			nodes = append(nodes, p.ledger.order[i])
		}
	}
	p.some = nodes
	p.sweeps++ // what nodes had free at other moments does not count
	sw.look.sweep = p.sweeps
	sw.look.nodes, sw.look.soon = nodes, sw.ps.plan.Now+overdue
	picks := sw.n.choose(sw.look, p.buf)
	if picks != nil {
		p.buf = picks
	}
	return picks
}

// trace lists the moments up to a horizon at which a node's room changes.
func (sw *sweep) trace(a *account, horizon core.Time, out []mark) []mark {
	if !sw.n.suits(a, &sw.look) || !sw.part.has(a) {
		return out
	}
	now := sw.ps.plan.Now
	soon := now + overdue
	a.swept, a.room = sw.look.sweep, 0
	a.then.copy(&a.now)
	a.shared = append(a.shared[:0], a.users...)
	note := func(t, at core.Time) {
		sw.step(t)
		if room := sw.room(a); room != a.room {
			a.room = room
			out = append(out, mark{at, a.index, room})
		}
	}
	note(now, 0)
	points := sw.ps.p.turns[:0]
	for _, c := range a.claims {
		points = c.turns(points, now, sw.length)
	}
	slices.Sort(points)
	sw.ps.p.turns = points
	visits := a.visits
	for len(visits) > 0 || len(points) > 0 {
		t := never
		if len(visits) > 0 {
			t = max(visits[0].at, soon)
		}
		if len(points) > 0 {
			t = min(t, points[0])
		}
		if t > horizon {
			break
		}
		for len(visits) > 0 && max(visits[0].at, soon) <= t {
			v := &visits[0]
			v.h.back(a, int(v.i), &a.then, a.shared)
			visits = visits[1:]
		}
		for len(points) > 0 && points[0] <= t {
			points = points[1:]
		}
		note(t, t)
	}
	a.swept = 0 // what it will be at the moment that is found is another matter
	return out
}
