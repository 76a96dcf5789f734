package reserve

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Request is a pending job for which the earliest start is searched, and where it may run.
type Request struct {
	Job             *core.Job
	Fit             *fit.Request // one per class: cached searches are found by it
	Where           *cluster.Candidates
	Licenses        *core.LicenseRequest // nil: none
	MayDelayAdvance bool                 // it may overlap advance reservations that allow a delay
	Length          core.Time            // how long it is planned to run
	FillsWindow     bool                 // it runs to the end of its advance reservation's window, if that is longer
	From            core.Time            // the earliest start allowed; 0: any
	Last            core.Time            // if set, the search stops after this time
}

// search goes through the times at which resources come free, until the job fits.
type search struct {
	*Request
	finder         *Finder
	view           ledger.View // the time the search has reached
	fit.RoomTotals             // sums over the nodes at that time
	marks          []roomMark  // changes of room per node, in order of time,
	recording      bool        // recorded only if this is set; see cache
	resumeAt       core.Time   // if not 0, the search resumed at this time,
	roomAtResume   []int32     // at which each node could take so many tasks
	points         []changePoint
}

// changePoint is a time at which earlier reservations change what the job may use.
type changePoint struct {
	at          core.Time
	reservation *ledger.Reservation
}

func (f *Finder) newSearch() search {
	r := &f.request
	f.later.Reset(len(f.nodes.Ledger.Order))
	return search{Request: r, finder: f, view: ledger.View{
		Nodes: f.nodes.Of(r.Where), Scratch: &f.free, Advance: r.Where.Advance, MayDelayAdvance: r.MayDelayAdvance,
		Later: &f.later,
	}}
}

// reservation makes a reservation of the nodes chosen for the time s.view.At.
func (s *search) reservation(choices []fit.Choice) *ledger.Reservation {
	r := &ledger.Reservation{
		Job: s.Job.ID, Start: s.view.At, End: s.view.End, Nodes: make([]*ledger.Node, len(choices)),
		OnNodes: make([]ledger.NodeReservation, len(choices)),
	}
	if own := s.Where.Advance; own != nil {
		r.Advance = own.Name
	}
	if s.Licenses != nil {
		r.Licenses = s.finder.licenses.For(s.Licenses, s.Where.Advance, r.Start, r.End)
	}
	for i, c := range choices {
		r.Nodes[i] = c.Node
		r.OnNodes[i] = ledger.NodeReservation{
			Reservation: r, Node: c.Node, Job: s.Job.ID, Advance: r.Advance, User: s.Fit.User,
			Start: r.Start, End: r.End, Uses: s.Fit.ReservedUsage(&choices[i], s.view.Free(c.Node)),
		}
	}
	return r
}

// vacated searches only the nodes that preempted jobs leave to the job, up to the time by which they are gone.
func (s *search) vacated() []fit.Choice {
	own := Vacated(s.Job, s.view.Nodes)
	if own == nil {
		return nil
	}
	s.view.Nodes = own
	last := s.Last
	s.Last = max(s.Job.Room.By, s.finder.now+alloc.OverdueDelay)
	choices := s.earliest()
	if s.Last = last; choices == nil {
		*s = s.finder.newSearch()
	}
	return choices
}

// Vacated lists the nodes of a list that jobs were preempted on for j; nil: none.
func Vacated(j *core.Job, nodes []*ledger.Node) []*ledger.Node {
	if j.Room == nil {
		return nil
	}
	var out []*ledger.Node
	for _, node := range nodes {
		if slices.Contains(j.Room.Nodes, node.Record.Name) {
			out = append(out, node)
		}
	}
	return out
}

// earliest returns the nodes the job would start on, with the time in s.view.At, or nil if there is no such time.
func (s *search) earliest() []fit.Choice {
	f := s.finder
	s.RoomTotals = fit.NewRoomTotals(s.Fit, f.rooms)
	defer func() { f.rooms = s.Rooms }()
	s.setTime(f.now)
	for _, node := range f.nodes.OpenOf(s.Where, s.Fit) { // the other nodes have nothing free yet
		if s.follow(node) {
			s.measure(node)
		}
	}
	s.addPoints(f.now)
	return s.continueFrom(ledger.EndCursor{List: &f.jobs.Ends}, f.now+alloc.OverdueDelay)
}

// resume is earliest from a given time on. rooms says how many tasks each node could take then.
func (s *search) resume(from core.Time, rooms []int32) []fit.Choice {
	f := s.finder
	soon := f.now + alloc.OverdueDelay
	f.later.Reset(len(f.nodes.Ledger.Order))
	s.view.Nodes, s.view.OverdueAt, s.resumeAt, s.roomAtResume = f.nodes.Of(s.Where), soon, from, rooms
	s.addPoints(from)
	return s.continueFrom(f.jobs.Ends.First(func(e *ledger.AllocEnd) bool { return max(e.At, soon) > from }), soon)
}

// continueFrom goes on from a position in the list of job ends.
func (s *search) continueFrom(ends ledger.EndCursor, soon core.Time) []fit.Choice {
	f := s.finder
	own := s.Where.Advance
	for {
		e := ends.Current()
		t := alloc.Never
		if e != nil {
			t = max(e.At, soon)
		} else if len(s.points) == 0 {
			return nil
		}
		if len(s.points) > 0 {
			t = min(t, s.points[0].at)
		}
		if s.Last != 0 && t > s.Last {
			return nil
		}
		s.setTime(t)
		changed := false
		for ; e != nil && max(e.At, soon) <= t; e = ends.Current() {
			changed = s.release(e.Alloc) || changed
			ends.Next()
		}
		for len(s.points) > 0 && s.points[0].at <= t {
			for _, node := range s.points[0].reservation.Nodes {
				if s.follow(node) {
					s.measure(node)
					changed = true
				}
			}
			changed = changed || own != nil || s.Licenses != nil || s.points[0].at == s.From
			s.points = s.points[1:]
		}
		if changed && t >= s.From && s.MayFit() && (own == nil && s.Licenses == nil || s.isOpen()) {
			if choices := s.Fit.Choose(s.view, f.buffer.Choices); choices != nil {
				f.buffer.Choices = choices
				return choices
			}
		}
	}
}

func (s *search) setTime(t core.Time) {
	s.view.At, s.view.End = t, alloc.AddTime(t, s.Length)
	if s.FillsWindow {
		if w, ok := s.Where.Advance.WindowFor(t, s.view.End); ok {
			s.view.End = w.End
		}
	}
}

// isOpen reports whether the job's advance reservation and licenses allow a start at s.view.At.
func (s *search) isOpen() bool {
	if r := s.Where.Advance; r.IsOver() {
		return false
	} else if r.ConfinesTime() {
		if _, ok := r.WindowFor(s.view.At, s.view.End); !ok {
			return false
		}
	}
	return s.Licenses == nil || s.finder.licenses.For(s.Licenses, s.Where.Advance, s.view.At, s.view.End) != nil
}

// release returns a job's resources to its nodes and reports whether any of these are nodes of the search.
func (s *search) release(h *ledger.Allocation) (any bool) {
	for i, node := range s.finder.nodes.Ledger.NodesOf(h) {
		if node != nil && !h.Alloc.Nodes[i].Done && s.follow(node) {
			free := s.finder.later.Find(node)
			h.ReturnTo(node, i, &free.Free, free.Sharers)
			s.measure(node)
			any = true
		}
	}
	return any || s.Licenses != nil && len(h.Alloc.Licenses()) > 0
}

// follow reports whether the job may use a node. From then on the search tracks what is free there.
func (s *search) follow(node *ledger.Node) bool {
	f := s.finder
	n, scan := &f.scans[node.Index], f.later.Scan()
	if n.followed == scan {
		return true
	}
	if n.ignored == scan {
		return false
	}
	if !s.Fit.Accepts(node, &s.view) || !s.Where.Has(node) {
		n.ignored = scan
		return false
	}
	n.followed = scan
	if s.resumeAt != 0 {
		if n.room = s.roomAtResume[node.Index]; f.later.Find(node) == nil {
			f.later.Compute(node, s.resumeAt, s.view.OverdueAt)
		}
		return true
	}
	n.room = 0
	f.later.Copy(node)
	return true
}

// measure updates how many tasks a node could take at s.view.At.
func (s *search) measure(node *ledger.Node) {
	room, n := s.tasksOn(node), &s.finder.scans[node.Index]
	if room == n.room {
		return
	}
	s.Change(n.room, room)
	n.room = room
	if s.recording {
		at := s.view.At
		if at == s.finder.now {
			at = 0
		}
		s.marks = append(s.marks, roomMark{at, node.Index, room})
	}
}

// tasksOn returns how many tasks the node could take at s.view.At, capped at what the job can use of one node.
func (s *search) tasksOn(node *ledger.Node) int32 {
	room := s.Fit.TasksAt(&s.view, node)
	if s.Fit.Set == nil {
		return min(room, s.Fit.Tasks-s.Fit.NodesMin+1)
	}
	return room
}

// addPoints adds the times after now at which reservations change what the job may use.
func (s *search) addPoints(now core.Time) {
	f := s.finder
	for _, r := range f.reserved.List {
		if len(r.OnNodes) == 0 {
			continue
		}
		for _, t := range r.OnNodes[0].ChangeTimes(f.times[:0], now, s.Length) {
			s.points = append(s.points, changePoint{t, r})
		}
	}
	if len(f.advances.List) > 0 {
		s.addAdvancePoints(now)
	}
	if s.From != 0 {
		s.points = append(s.points, changePoint{s.From, &ledger.Reservation{}})
	}
	slices.SortStableFunc(s.points, func(a, b changePoint) int { return cmp.Compare(a.at, b.at) })
}

// addAdvancePoints adds the times at which advance reservations change what the job may use.
func (s *search) addAdvancePoints(now core.Time) {
	for _, r := range s.finder.advances.List {
		stop := &ledger.Reservation{Nodes: nodesIn(r, s.view.Nodes)}
		for _, w := range r.Windows {
			if r == s.Where.Advance && w.Start > now {
				s.points = append(s.points, changePoint{w.Start, stop})
			}
			if w.End > now && w.End < alloc.Never {
				s.points = append(s.points, changePoint{w.End, stop})
			}
		}
	}
}

func nodesIn(r *advance.Reservation, nodes []*ledger.Node) (out []*ledger.Node) {
	for _, node := range nodes {
		if r.Nodes[node.Record.Name] {
			out = append(out, node)
		}
	}
	return out
}
