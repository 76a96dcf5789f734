package state

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// resvKeep is what is derived for the life of reservations.
type resvKeep struct {
	users map[string]int // live jobs that run in a reservation, or wait for it
	wake  core.Time      // when one of them is due, if
	known bool           // nothing it depends on has changed since
	eager bool           // what jobs give back, or take, may have nodes swapped
}

// reservationsOf calls do with the reservations a live job runs in, or waits for.
func reservationsOf(j *core.Job, do func(name string)) {
	switch {
	case j == nil || !j.Live():
	case j.Alloc != nil:
		if in := j.Alloc.Inside(); in != "" {
			do(in)
		}
	case j.Spec.Extra != nil && j.Spec.Extra.Reservation != "":
		for name := range strings.SplitSeq(j.Spec.Extra.Reservation, ",") {
			do(name)
		}
	}
}

// indexUsers counts who uses reservations.
func (s *State) indexUsers(old, j *core.Job) {
	reservationsOf(old, func(name string) {
		if s.resv.users[name]--; s.resv.users[name] == 0 {
			delete(s.resv.users, name)
		}
	})
	reservationsOf(j, func(name string) {
		if s.resv.users == nil {
			s.resv.users = map[string]int{}
		}
		s.resv.users[name]++
	})
}

// noteUse keeps since when reservations that go when idle are so.
func (s *State) noteUse(old, j *core.Job) {
	note := func(name string) {
		r, ok := s.view.reservations[name]
		if !ok || r.Flags&core.ReservePurgeCompleted == 0 || (s.resv.users[name] == 0) == (r.IdleSince != 0) {
			return
		}
		next := *r
		next.IdleSince = 0
		if s.resv.users[name] == 0 {
			next.IdleSince = s.view.now
		}
		s.keepReservation(&next)
	}
	reservationsOf(old, note)
	reservationsOf(j, note)
	if r := s.view.reservations[j.Alloc.Inside()]; r != nil && r.End <= s.view.now { // it may be what keeps it
		s.resv.known = false
	}
	if s.resv.eager && (old != nil && old.Alloc != nil || j.Alloc != nil) {
		s.resv.known = false
	}
}

// reservationWake is when the first reservation is due; 0: none is.
func (s *State) reservationWake() core.Time {
	if !s.resv.known {
		s.resv.known, s.resv.eager, s.resv.wake = true, false, 0
		for _, r := range sorted(s.view.reservations) {
			if at := s.dueAt(r); at != 0 && (s.resv.wake == 0 || at < s.resv.wake) {
				s.resv.wake = at
			}
		}
	}
	return s.resv.wake
}

// dueAt is when time changes something about a reservation.
func (s *State) dueAt(r *core.AdvanceReservation) core.Time {
	if r.Flags&core.ReserveTimeFloat != 0 {
		return 0
	}
	out, in := s.swap(r)
	s.resv.eager = s.resv.eager || len(out) > 0 || r.Flags&core.ReserveReplace != 0
	if len(out) > 0 && len(in) > 0 {
		return max(1, s.view.now)
	}
	return sooner(s.lastsUntil(r), purgeAt(r))
}

// lastsUntil is when a reservation goes, or goes on to its next time: at its end, or when those that run in it may no longer
// do so after that.
func (s *State) lastsUntil(r *core.AdvanceReservation) core.Time {
	more := s.cfg.ReservationOverrun
	if r.End > s.view.now || more <= 0 || more >= core.Forever || r.Flags&core.ReserveFlex != 0 || !s.runsIn(r.Name) {
		return r.End // where nobody has to be asked yet, that is when to ask
	}
	return r.End.Add(more.Duration())
}

func (s *State) runsIn(name string) bool {
	if s.resv.users[name] == 0 {
		return false
	}
	for _, j := range s.view.jobs.All() {
		if j.Alloc.Inside() == name && !over(j) {
			return true
		}
	}
	return false
}

// evict ends what still runs in a reservation whose time is over, as Slurm does; FLEX lets it go on.
func (s *State) evict(r *core.AdvanceReservation) {
	if r.Flags&core.ReserveFlex != 0 || s.cfg.ReservationOverrun >= core.Forever || s.resv.users[r.Name] == 0 {
		return
	}
	var inside []core.JobID
	for _, j := range s.view.jobs.All() {
		if j.Alloc.Inside() == r.Name && !over(j) {
			inside = append(inside, j.ID)
		}
	}
	for _, id := range inside {
		if j, ok := s.view.jobs.Get(int64(id)); ok && !over(j) { // another component may have taken it along
			next := clone(j)
			s.end(next, core.Timeout, core.ReasonTimeLimit, "its reservation "+r.Name+" is over")
			s.putJob(next)
		}
	}
}

// purgeAt is when a reservation has been idle for long enough; 0: it stays.
func purgeAt(r *core.AdvanceReservation) core.Time {
	if r.Flags&core.ReservePurgeCompleted == 0 || r.IdleSince == 0 {
		return 0
	}
	return max(r.IdleSince, r.Start).Add(r.IdleFor().Duration())
}

// tickReservations does what is due: what is over comes again or goes, what is idle goes, nodes are swapped.
func (s *State) tickReservations() {
	if len(s.view.reservations) == 0 || s.reservationWake() > s.view.now {
		return
	}
	for _, r := range sorted(s.view.reservations) {
		if r.Flags&core.ReserveTimeFloat != 0 {
			continue
		}
		idle := purgeAt(r)
		over := idle != 0 && idle <= s.view.now
		switch {
		case !over && s.lastsUntil(r) > s.view.now:
			s.swapNodes(r)
		case r.Repeats():
			s.evict(r)
			next := *r
			if over { // this time is over: the next one counts
				next.Start, next.End, _ = r.After(r.Start, r.End, s.cfg.Zone.Location)
			}
			next.Start, next.End = next.Current(s.view.now, s.cfg.Zone.Location)
			s.storeReservation(&next)
		default:
			s.evict(r)
			s.endReservation(r)
		}
	}
	s.resv.known = false
}

// swap finds nodes that a reservation should have others for, and as many of those. Slurm's default is to replace nodes
// that fail, unless they were named; with REPLACE those that its jobs use are replaced too.
func (s *State) swap(r *core.AdvanceReservation) (out []*core.Node, in []candidate) {
	wants := r.Flags & (core.ReserveReplace | core.ReserveReplaceDown)
	if r.Nodes == "" || r.CoreCount > 0 || r.Flags&(core.ReserveStatic|core.ReserveMaint) != 0 ||
		wants == 0 && r.Flags&(core.ReserveSpecNodes|core.ReserveAllNodes) != 0 {
		return nil, nil
	}
	has := s.nodesOf(r)
	for _, n := range has {
		if !n.Usable() || wants&core.ReserveReplace != 0 && s.usedIn(r, n.Name) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	not := map[core.NodeName]bool{}
	for _, n := range has {
		not[n.Name] = true
	}
	in = s.candidates(r, not)
	if wants&core.ReserveReplace != 0 { // those that are in use are what is replaced
		in = slices.DeleteFunc(in, func(c candidate) bool { return c.free != 0 })
	}
	return out, in
}

// usedIn tells whether a job of a reservation is on a node.
func (s *State) usedIn(r *core.AdvanceReservation, name core.NodeName) bool {
	for id := range s.onNode[name] {
		if j, _ := s.view.jobs.Get(int64(id)); j.Alloc.Inside() == r.Name {
			return true
		}
	}
	return false
}

func (s *State) swapNodes(r *core.AdvanceReservation) {
	out, in := s.swap(r)
	n := min(len(out), len(in))
	if n == 0 {
		return
	}
	gone := map[core.NodeName]bool{}
	for _, x := range out[:n] {
		gone[x.Name] = true
	}
	nodes := slices.DeleteFunc(s.nodesOf(r), func(x *core.Node) bool { return gone[x.Name] })
	for _, c := range in[:n] {
		nodes = append(nodes, c.node)
	}
	slices.SortFunc(nodes, func(a, b *core.Node) int { return cmp.Compare(a.ID, b.ID) })
	next := *r
	next.Nodes = hostlistOf(nodes)
	s.storeReservation(&next)
}
