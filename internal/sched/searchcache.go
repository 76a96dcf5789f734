package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// searchCache is a startSearch that is kept between passes. It knows for all nodes when how many tasks could run there,
// and recomputes that only for nodes that changed.
type searchCache struct {
	class        *partitionClass
	length       core.Time
	usedIn       int64      // the last pass that used it
	marks        []roomMark // by time
	complete     bool       // marks reach to the last end; else to the start that was found
	changedSeq   int64      // cluster.Nodes.Changed was read up to this entry
	reservations []*ledger.Reservation
	found        *ledger.Reservation // the result; nil: the job could never start
}

// roomMark is a time from which on a node can take so many tasks.
type roomMark struct {
	at    core.Time // 0: now
	index int32
	room  int32
}

// canCacheSearch reports whether a cached search finds the same as a new one.
func (ps *pass) canCacheSearch(s *partitionClass) bool {
	return ps.p.nodes.Tracking && len(ps.p.advances) == 0 && s.Advance == nil && s.licenses == nil && s.req.User == ""
}

// cachedSearch returns the cached search for jobs of a class and a length, or a new one.
func (ps *pass) cachedSearch(s *partitionClass, length core.Time) *searchCache {
	for _, sr := range s.part.searches {
		if sr.class == s && sr.length == length {
			sr.usedIn = ps.p.nodes.Passes
			return sr
		}
	}
	kept := s.part.searches[:0]
	for _, sr := range s.part.searches { // drop searches for jobs that are not heads any more
		if sr.usedIn >= ps.p.nodes.Passes-1 {
			kept = append(kept, sr)
		}
	}
	clear(s.part.searches[len(kept):])
	sr := &searchCache{class: s, length: length, usedIn: ps.p.nodes.Passes}
	s.part.searches = append(kept, sr)
	return sr
}

// find returns the job's reservation. It is the same value as in the last pass if nothing about it changed.
func (sr *searchCache) find(sw *startSearch, job core.JobID) *ledger.Reservation {
	ps, p := sw.pass, sw.pass.p
	fresh, ok := sr.changedNodes(ps)
	if ok && len(fresh) == 0 {
		if r := sr.found; r == nil || r.Job == job {
			if r != nil {
				sw.setTime(r.Start)
				for i := range r.OnNodes {
					r.OnNodes[i].Node.ComputeFreeAt(r.Start, ps.plan.Now+alloc.OverdueDelay, p.scans)
				}
			}
			return r
		}
	}
	var picks []fit.Choice
	if ok {
		picks, ok = sr.update(sw, fresh)
	}
	if !ok {
		sw.view.Nodes, sw.view.OverdueAt = p.nodes.In(sw.part.nodes), 0
		sw.marks, sw.recording = sr.marks[:0], true
		picks = sw.earliest()
		sr.marks, sr.complete = sw.marks, picks == nil
	}
	sr.changedSeq = p.nodes.Changed.Next()
	sr.reservations = append(sr.reservations[:0], ps.reserved...)
	if picks == nil {
		sr.found = nil
		return nil
	}
	r := sw.reservation(job, picks)
	if sr.found == nil || !r.Equal(sr.found) {
		sr.found = r
	}
	return sr.found
}

// changedNodes lists the nodes to recompute; false: all of them.
func (sr *searchCache) changedNodes(ps *pass) (fresh []*ledger.Node, ok bool) {
	p := ps.p
	if sr.changedSeq < p.nodes.Changed.First || sr.changedSeq == 0 {
		return nil, false
	}
	fresh = p.changedNodes[:0]
	add := func(a *ledger.Node) {
		if a.ListedBy != p.scans {
			a.ListedBy = p.scans
			fresh = append(fresh, a)
		}
	}
	for i, a := range p.nodes.Changed.Since(sr.changedSeq) {
		if a.ChangedSeq == sr.changedSeq+int64(i) {
			add(a)
		}
	}
	for _, d := range [...][2][]*ledger.Reservation{{sr.reservations, ps.reserved}, {ps.reserved, sr.reservations}} {
		for _, r := range d[0] {
			if !slices.Contains(d[1], r) {
				for _, a := range r.Nodes {
					add(a)
				}
			}
		}
	}
	// An overdue job is expected OverdueDelay from now, so its nodes change with every pass.
	for i := range sr.marks {
		m := &sr.marks[i]
		if m.at >= ps.plan.Now+alloc.OverdueDelay {
			break
		}
		if m.at > 0 {
			add(p.ledger.Order[m.index])
		}
	}
	p.changedNodes = fresh
	return fresh, len(fresh) < 64+len(p.ledger.Order)/4
}

// update merges the changes into the marks. It returns false if the marks do not reach far enough.
func (sr *searchCache) update(sw *startSearch, fresh []*ledger.Node) (picks []fit.Choice, ok bool) {
	p := sw.pass.p
	horizon := alloc.Never
	if !sr.complete {
		horizon = sr.found.Start
	}
	anew := p.newMarks[:0]
	isNew := append(p.changedSet[:0], make(ledger.Bitset, (len(p.ledger.Order)+63)/64)...)
	for _, a := range fresh {
		if a.Index >= 0 {
			isNew.Set(a.Index)
			anew = sw.roomChanges(a, horizon, anew)
		}
	}
	slices.SortFunc(anew, func(a, b roomMark) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index,
			b.index))
	})
	rooms := append(p.nodeRooms[:0], make([]int32, len(p.ledger.Order))...)
	p.newMarks, p.changedSet, p.nodeRooms = anew, isNew, rooms

	sw.RoomTotals = fit.NewRoomTotals(sw.req, p.rooms)
	defer func() { p.rooms = sw.Rooms }()
	out := p.marks[:0]
	old := sr.marks
	for len(old) > 0 || len(anew) > 0 {
		t := alloc.Never
		if len(old) > 0 {
			t = old[0].at
		}
		if len(anew) > 0 {
			t = min(t, anew[0].at)
		}
		for len(old) > 0 && old[0].at == t {
			if m := old[0]; !isNew.Has(m.index) {
				sw.Change(rooms[m.index], m.room)
				rooms[m.index] = m.room
				out = append(out, m)
			}
			old = old[1:]
		}
		for len(anew) > 0 && anew[0].at == t {
			m := anew[0]
			sw.Change(rooms[m.index], m.room)
			rooms[m.index] = m.room
			out = append(out, m)
			anew = anew[1:]
		}
		if !sw.MayFit() {
			continue
		}
		if t == 0 { // it fits now but was not started: the reason is outside this search
			return nil, false
		}
		sw.setTime(t)
		if picks = sw.chooseAt(rooms); picks != nil {
			sr.complete = false
			break
		}
	}
	if picks == nil && !sr.complete { // the known part of the time axis is not enough
		sw.marks, sw.recording = out, true
		picks = sw.resume(horizon, rooms)
		out, sr.complete = sw.marks, picks == nil
	}
	p.marks, sr.marks = sr.marks, out
	return picks, true
}

// chooseAt chooses among the nodes that have room at sw.view.At.
func (sw *startSearch) chooseAt(rooms []int32) []fit.Choice {
	p := sw.pass.p
	nodes := p.roomNodes[:0]
	for i, room := range rooms {
		if room > 0 {
			nodes = append(nodes, p.ledger.Order[i])
		}
	}
	p.roomNodes = nodes
	p.scans++ // invalidate what was computed for other times
	sw.view.Scan = p.scans
	sw.view.Nodes, sw.view.OverdueAt = nodes, sw.pass.plan.Now+alloc.OverdueDelay
	picks := sw.req.Choose(sw.view, p.choices)
	if picks != nil {
		p.choices = picks
	}
	return picks
}

// roomChanges lists the times up to horizon at which a node's room changes.
func (sw *startSearch) roomChanges(a *ledger.Node, horizon core.Time, out []roomMark) []roomMark {
	if !sw.req.Accepts(a, &sw.view) || !sw.part.nodes.Has(a) {
		return out
	}
	now := sw.pass.plan.Now
	soon := now + alloc.OverdueDelay
	a.Scanned, a.RoomThen = sw.view.Scan, 0
	a.FreeThen.CopyFrom(&a.Free)
	a.SharersThen = append(a.SharersThen[:0], a.Sharers...)
	note := func(t, at core.Time) {
		sw.setTime(t)
		if room := sw.tasksOn(a); room != a.RoomThen {
			a.RoomThen = room
			out = append(out, roomMark{at, a.Index, room})
		}
	}
	note(now, 0)
	points := sw.pass.p.times[:0]
	for _, c := range a.Reserved {
		points = c.ChangeTimes(points, now, sw.length)
	}
	slices.Sort(points)
	sw.pass.p.times = points
	visits := a.Ends
	for len(visits) > 0 || len(points) > 0 {
		t := alloc.Never
		if len(visits) > 0 {
			t = max(visits[0].At, soon)
		}
		if len(points) > 0 {
			t = min(t, points[0])
		}
		if t > horizon {
			break
		}
		for len(visits) > 0 && max(visits[0].At, soon) <= t {
			v := &visits[0]
			v.Alloc.ReturnTo(a, int(v.Index), &a.FreeThen, a.SharersThen)
			visits = visits[1:]
		}
		for len(points) > 0 && points[0] <= t {
			points = points[1:]
		}
		note(t, t)
	}
	a.Scanned = 0 // FreeThen holds the end of the time axis, not the start that is found
	return out
}
