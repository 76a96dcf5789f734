package reserve

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// cache is a search that is kept between passes. It knows for all nodes when how many tasks could run there, and
// recomputes that only for nodes that changed.
type cache struct {
	fit          *fit.Request // of the class
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

// canCache reports whether a cached search finds the same as a new one.
func (f *Finder) canCache(r *Request) bool {
	return f.nodes.Tracking && len(f.advances.List) == 0 && r.Where.Advance == nil && r.Licenses == nil &&
		r.Fit.User == ""
}

// cacheOf returns the cached search for jobs of a class and a length, or a new one.
func (f *Finder) cacheOf(r *Request) *cache {
	list := f.caches[r.Where.Set]
	for _, c := range list {
		if c.fit == r.Fit && c.length == r.Length {
			c.usedIn = f.nodes.Passes
			return c
		}
	}
	kept := list[:0]
	for _, c := range list { // drop searches for jobs that are not heads any more
		if c.usedIn >= f.nodes.Passes-1 {
			kept = append(kept, c)
		}
	}
	clear(list[len(kept):])
	c := &cache{fit: r.Fit, length: r.Length, usedIn: f.nodes.Passes}
	f.caches[r.Where.Set] = append(kept, c)
	return c
}

// ForgetCaches drops all cached searches.
func (f *Finder) ForgetCaches() { clear(f.caches) }

// Renumber adapts the cached searches to new numbers of nodes. old has the nodes by their old numbers.
func (f *Finder) Renumber(old []*ledger.Node) {
	for _, list := range f.caches {
		for _, c := range list {
			c.marks = slices.DeleteFunc(c.marks, func(m roomMark) bool { return old[m.index].Index < 0 })
			for i := range c.marks {
				c.marks[i].index = old[c.marks[i].index].Index
			}
		}
	}
}

// find returns the job's reservation. It is the same value as in the last pass if nothing about it changed.
func (c *cache) find(s *search) *ledger.Reservation {
	f := s.finder
	fresh, ok := c.changedNodes(f)
	if ok && len(fresh) == 0 {
		if r := c.found; r == nil || r.Job == s.Job.ID {
			if r != nil {
				s.setTime(r.Start)
				for i := range r.OnNodes {
					f.later.Compute(r.OnNodes[i].Node, r.Start, f.now+alloc.OverdueDelay)
				}
			}
			return r
		}
	}
	var choices []fit.Choice
	if ok {
		choices, ok = c.update(s, fresh)
	}
	if !ok {
		s.view.Nodes, s.view.OverdueAt = f.nodes.In(s.Where.Set), 0
		s.marks, s.recording = c.marks[:0], true
		choices = s.earliest()
		c.marks, c.complete = s.marks, choices == nil
	}
	c.changedSeq = f.nodes.Changed.Next()
	c.reservations = append(c.reservations[:0], f.reserved.List...)
	if choices == nil {
		c.found = nil
		return nil
	}
	if r := s.reservation(choices); c.found == nil || !r.Equal(c.found) {
		c.found = r
	}
	return c.found
}

// changedNodes lists the nodes to recompute; false: all of them.
func (c *cache) changedNodes(f *Finder) (fresh []*ledger.Node, ok bool) {
	if c.changedSeq < f.nodes.Changed.First || c.changedSeq == 0 {
		return nil, false
	}
	fresh = f.changedNodes[:0]
	scan := f.later.Scan()
	add := func(node *ledger.Node) {
		if node.Index >= 0 {
			if f.scans[node.Index].listed == scan {
				return
			}
			f.scans[node.Index].listed = scan
		}
		fresh = append(fresh, node)
	}
	for i, node := range f.nodes.Changed.Since(c.changedSeq) {
		if node.ChangedSeq == c.changedSeq+int64(i) {
			add(node)
		}
	}
	for _, d := range [...][2][]*ledger.Reservation{{c.reservations, f.reserved.List}, {f.reserved.List, c.reservations}} {
		for _, r := range d[0] {
			if !slices.Contains(d[1], r) {
				for _, node := range r.Nodes {
					add(node)
				}
			}
		}
	}
	// An overdue job is expected OverdueDelay from now, so its nodes change with every pass.
	for i := range c.marks {
		m := &c.marks[i]
		if m.at >= f.now+alloc.OverdueDelay {
			break
		}
		if m.at > 0 {
			add(f.nodes.Ledger.Order[m.index])
		}
	}
	f.changedNodes = fresh
	return fresh, len(fresh) < 64+len(f.nodes.Ledger.Order)/4
}

// update merges the changes into the marks. It returns false if the marks do not reach far enough.
func (c *cache) update(s *search, fresh []*ledger.Node) (choices []fit.Choice, ok bool) {
	f := s.finder
	horizon := alloc.Never
	if !c.complete {
		horizon = c.found.Start
	}
	anew := f.newMarks[:0]
	isNew := append(f.changed[:0], make(ledger.Bitset, (len(f.nodes.Ledger.Order)+63)/64)...)
	for _, node := range fresh {
		if node.Index >= 0 { // it is not gone
			isNew.Set(node.Index)
			anew = s.roomChanges(node, horizon, anew)
		}
	}
	slices.SortFunc(anew, func(a, b roomMark) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
	})
	rooms := append(f.nodeRooms[:0], make([]int32, len(f.nodes.Ledger.Order))...)
	f.newMarks, f.changed, f.nodeRooms = anew, isNew, rooms

	s.RoomTotals = fit.NewRoomTotals(s.Fit, f.rooms)
	defer func() { f.rooms = s.Rooms }()
	out := f.marks[:0]
	old := c.marks
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
				s.Change(rooms[m.index], m.room)
				rooms[m.index] = m.room
				out = append(out, m)
			}
			old = old[1:]
		}
		for len(anew) > 0 && anew[0].at == t {
			m := anew[0]
			s.Change(rooms[m.index], m.room)
			rooms[m.index] = m.room
			out = append(out, m)
			anew = anew[1:]
		}
		if !s.MayFit() {
			continue
		}
		if t == 0 { // it fits now but was not started: the reason is outside this search
			return nil, false
		}
		s.setTime(t)
		if choices = s.chooseAt(rooms); choices != nil {
			c.complete = false
			break
		}
	}
	if choices == nil && !c.complete { // the known part of the time axis is not enough
		s.marks, s.recording = out, true
		choices = s.resume(horizon, rooms)
		out, c.complete = s.marks, choices == nil
	}
	f.marks, c.marks = c.marks, out
	return choices, true
}

// chooseAt chooses among the nodes that have room at s.view.At.
func (s *search) chooseAt(rooms []int32) []fit.Choice {
	f := s.finder
	nodes := f.roomNodes[:0]
	for i, room := range rooms {
		if room > 0 {
			nodes = append(nodes, f.nodes.Ledger.Order[i])
		}
	}
	f.roomNodes = nodes
	f.later.Reset(len(f.nodes.Ledger.Order)) // invalidate what was computed for other times
	s.view.Nodes, s.view.OverdueAt = nodes, f.now+alloc.OverdueDelay
	choices := s.Fit.Choose(s.view, f.buffer.Choices)
	if choices != nil {
		f.buffer.Choices = choices
	}
	return choices
}

// roomChanges lists the times up to horizon at which a node's room changes.
func (s *search) roomChanges(node *ledger.Node, horizon core.Time, out []roomMark) []roomMark {
	if !s.Fit.Accepts(node, &s.view) || !s.Where.Set.Has(node) {
		return out
	}
	f := s.finder
	soon := f.now + alloc.OverdueDelay
	free, last := f.later.Copy(node), int32(0)
	note := func(t, at core.Time) {
		s.setTime(t)
		if room := s.tasksOn(node); room != last {
			last = room
			out = append(out, roomMark{at, node.Index, room})
		}
	}
	note(f.now, 0)
	points := f.times[:0]
	for _, c := range node.Reserved {
		points = c.ChangeTimes(points, f.now, s.Length)
	}
	slices.Sort(points)
	f.times = points
	ends := node.Ends
	for len(ends) > 0 || len(points) > 0 {
		t := alloc.Never
		if len(ends) > 0 {
			t = max(ends[0].At, soon)
		}
		if len(points) > 0 {
			t = min(t, points[0])
		}
		if t > horizon {
			break
		}
		for len(ends) > 0 && max(ends[0].At, soon) <= t {
			e := &ends[0]
			e.Alloc.ReturnTo(node, int(e.Index), &free.Free, free.Sharers)
			ends = ends[1:]
		}
		for len(points) > 0 && points[0] <= t {
			points = points[1:]
		}
		note(t, t)
	}
	f.later.Forget(node) // it holds the end of the time axis, not the start that is found
	return out
}
