package state

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
)

// reservationIndex is what is derived for the life of reservations.
type reservationIndex struct {
	jobs      map[string]int // live jobs that run in a reservation, or wait for it
	wake      core.Time      // when one of them is due, if
	wakeValid bool           // nothing it depends on has changed since
	watchJobs bool           // what jobs give back, or take, may have nodes swapped
}

// eachReservationOf calls do with the reservations a live job runs in, or waits for.
func eachReservationOf(j *core.Job, do func(name string)) {
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

// reservationJobChanged counts who uses reservations.
func (s *State) reservationJobChanged(old, j *core.Job) {
	eachReservationOf(old, func(name string) {
		if s.reservations.jobs[name]--; s.reservations.jobs[name] == 0 {
			delete(s.reservations.jobs, name)
		}
	})
	eachReservationOf(j, func(name string) {
		if s.reservations.jobs == nil {
			s.reservations.jobs = map[string]int{}
		}
		s.reservations.jobs[name]++
	})
}

// updateReservationIdle keeps since when reservations that go when idle are so.
func (s *State) updateReservationIdle(old, j *core.Job) {
	note := func(name string) {
		r, ok := s.rec.ReservationsByName()[name]
		if !ok || r.Flags&core.ReservePurgeCompleted == 0 || (s.reservations.jobs[name] == 0) == (r.IdleSince != 0) {
			return
		}
		next := *r
		next.IdleSince = 0
		if s.reservations.jobs[name] == 0 {
			next.IdleSince = s.rec.Now()
		}
		s.putReservationQuietly(&next)
	}
	eachReservationOf(old, note)
	eachReservationOf(j, note)
	if r := s.rec.ReservationsByName()[j.Alloc.Inside()]; r != nil && r.End <= s.rec.Now() { // it may be what keeps it
		s.reservations.wakeValid = false
	}
	if s.reservations.watchJobs && (old != nil && old.Alloc != nil || j.Alloc != nil) {
		s.reservations.wakeValid = false
	}
}

// nextReservationTime is when the first reservation is due; 0: none is.
func (s *State) nextReservationTime() core.Time {
	if !s.reservations.wakeValid {
		s.reservations.wakeValid, s.reservations.watchJobs, s.reservations.wake = true, false, 0
		for _, r := range named.Sorted(s.rec.ReservationsByName()) {
			if at := s.reservationDue(r); at != 0 && (s.reservations.wake == 0 || at < s.reservations.wake) {
				s.reservations.wake = at
			}
		}
	}
	return s.reservations.wake
}

// reservationDue is when time changes something about a reservation.
func (s *State) reservationDue(r *core.AdvanceReservation) core.Time {
	if r.Flags&core.ReserveTimeFloat != 0 {
		return 0
	}
	out, in := s.findReplacementNodes(r)
	s.reservations.watchJobs = s.reservations.watchJobs || len(out) > 0 || r.Flags&core.ReserveReplace != 0
	if len(out) > 0 && len(in) > 0 {
		return max(1, s.rec.Now())
	}
	return live.Sooner(s.reservationEnd(r), purgeAt(r))
}

// reservationEnd is when a reservation goes, or goes on to its next time: at its end, or when those that run in it may
// no longer do so after that.
func (s *State) reservationEnd(r *core.AdvanceReservation) core.Time {
	more := s.cfg.ReservationOverrun
	if r.End > s.rec.Now() || more <= 0 || more >= core.Forever || r.Flags&core.ReserveFlex != 0 ||
		!s.hasRunningJobs(r.Name) {
		return r.End // where nobody has to be asked yet, that is when to ask
	}
	return r.End.Add(more.Duration())
}

func (s *State) hasRunningJobs(name string) bool {
	if s.reservations.jobs[name] == 0 {
		return false
	}
	for j := range s.rec.Jobs() {
		if j.Alloc.Inside() == name && !jobs.IsOver(j) {
			return true
		}
	}
	return false
}

// endJobsInReservation ends what still runs in a reservation whose time is over, as Slurm does; FLEX lets it go on.
func (s *State) endJobsInReservation(r *core.AdvanceReservation) {
	if r.Flags&core.ReserveFlex != 0 || s.cfg.ReservationOverrun >= core.Forever || s.reservations.jobs[r.Name] == 0 {
		return
	}
	var inside []core.JobID
	for j := range s.rec.Jobs() {
		if j.Alloc.Inside() == r.Name && !jobs.IsOver(j) {
			inside = append(inside, j.ID)
		}
	}
	for _, id := range inside {
		if j, ok := s.rec.Job(id); ok && !jobs.IsOver(j) { // another component may have taken it along
			edit := s.jobs.Edit(j)
			edit.End(core.Timeout, core.ReasonTimeLimit, "its reservation "+r.Name+" is over")
			edit.Commit()
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

// runReservationTimers does what is due: what is over comes again or goes, what is idle goes, nodes are swapped.
func (s *State) runReservationTimers() {
	if len(s.rec.ReservationsByName()) == 0 || s.nextReservationTime() > s.rec.Now() {
		return
	}
	for _, r := range named.Sorted(s.rec.ReservationsByName()) {
		if r.Flags&core.ReserveTimeFloat != 0 {
			continue
		}
		idle := purgeAt(r)
		over := idle != 0 && idle <= s.rec.Now()
		switch {
		case !over && s.reservationEnd(r) > s.rec.Now():
			s.replaceReservationNodes(r)
		case r.Repeats():
			s.endJobsInReservation(r)
			next := *r
			if over { // this time is over: the next one counts
				next.Start, next.End, _ = r.After(r.Start, r.End, s.cfg.Zone.Location)
			}
			next.Start, next.End = next.Current(s.rec.Now(), s.cfg.Zone.Location)
			s.putReservationRecord(&next)
		default:
			s.endJobsInReservation(r)
			s.deleteReservation(r)
		}
	}
	s.reservations.wakeValid = false
}

// findReplacementNodes finds nodes that a reservation should have others for, and as many of those. Slurm's default is
// to replace nodes that fail, unless they were named; with REPLACE those that its jobs use are replaced too.
func (s *State) findReplacementNodes(r *core.AdvanceReservation) (out []*core.Node, in []candidate) {
	wants := r.Flags & (core.ReserveReplace | core.ReserveReplaceDown)
	if r.Nodes == "" || r.CoreCount > 0 || r.Flags&(core.ReserveStatic|core.ReserveMaint) != 0 ||
		wants == 0 && r.Flags&(core.ReserveSpecNodes|core.ReserveAllNodes) != 0 {
		return nil, nil
	}
	has := s.reservationNodes(r)
	for _, n := range has {
		if !n.Usable() || wants&core.ReserveReplace != 0 && s.reservationUsesNode(r, n.Name) {
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
	in = s.reservationCandidates(r, not)
	if wants&core.ReserveReplace != 0 { // those that are in use are what is replaced
		in = slices.DeleteFunc(in, func(c candidate) bool { return c.free != 0 })
	}
	return out, in
}

// reservationUsesNode tells whether a job of a reservation is on a node.
func (s *State) reservationUsesNode(r *core.AdvanceReservation, name core.NodeName) bool {
	for id := range s.cluster.OnNode(name) {
		if j, _ := s.rec.Job(id); j.Alloc.Inside() == r.Name {
			return true
		}
	}
	return false
}

func (s *State) replaceReservationNodes(r *core.AdvanceReservation) {
	out, in := s.findReplacementNodes(r)
	n := min(len(out), len(in))
	if n == 0 {
		return
	}
	gone := map[core.NodeName]bool{}
	for _, x := range out[:n] {
		gone[x.Name] = true
	}
	nodes := slices.DeleteFunc(s.reservationNodes(r), func(x *core.Node) bool { return gone[x.Name] })
	for _, c := range in[:n] {
		nodes = append(nodes, c.node)
	}
	slices.SortFunc(nodes, func(a, b *core.Node) int { return cmp.Compare(a.ID, b.ID) })
	next := *r
	next.Nodes = hostlistOf(nodes)
	s.putReservationRecord(&next)
}
