package advance

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
)

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

// JobChanged counts who uses reservations.
func (a *Reservations) JobChanged(old, j *core.Job) {
	eachReservationOf(old, func(name string) {
		if a.uses[name]--; a.uses[name] == 0 {
			delete(a.uses, name)
		}
	})
	eachReservationOf(j, func(name string) {
		if a.uses == nil {
			a.uses = map[string]int{}
		}
		a.uses[name]++
	})
}

// UpdateIdle keeps since when reservations that go when idle are so.
func (a *Reservations) UpdateIdle(old, j *core.Job) {
	if len(a.rec.ReservationsByName()) == 0 {
		return
	}
	note := func(name string) {
		r, ok := a.rec.ReservationsByName()[name]
		if !ok || r.Flags&core.ReservePurgeCompleted == 0 || (a.uses[name] == 0) == (r.IdleSince != 0) {
			return
		}
		next := *r
		next.IdleSince = 0
		if a.uses[name] == 0 {
			next.IdleSince = a.rec.Now()
		}
		a.putQuietly(&next)
	}
	eachReservationOf(old, note)
	eachReservationOf(j, note)
	if r := a.rec.ReservationsByName()[j.Alloc.Inside()]; r != nil && r.End <= a.rec.Now() { // it may be what keeps it
		a.wakeValid = false
	}
	if a.watchJobs && (old != nil && old.Alloc != nil || j.Alloc != nil) {
		a.wakeValid = false
	}
}

// NextTime is when the first reservation is due; 0: none is.
func (a *Reservations) NextTime() core.Time {
	if !a.wakeValid {
		a.wakeValid, a.watchJobs, a.wake = true, false, 0
		for _, r := range named.Sorted(a.rec.ReservationsByName()) {
			if at := a.due(r); at != 0 && (a.wake == 0 || at < a.wake) {
				a.wake = at
			}
		}
	}
	return a.wake
}

// due is when time changes something about a reservation.
func (a *Reservations) due(r *core.AdvanceReservation) core.Time {
	if r.Flags&core.ReserveTimeFloat != 0 {
		return 0
	}
	out, in := a.findReplacements(r)
	a.watchJobs = a.watchJobs || len(out) > 0 || r.Flags&core.ReserveReplace != 0
	if len(out) > 0 && len(in) > 0 {
		return max(1, a.rec.Now())
	}
	return live.Sooner(a.end(r), purgeAt(r))
}

// end is when a reservation goes, or goes on to its next time: at its end, or when those that run in it may
// no longer do so after that.
func (a *Reservations) end(r *core.AdvanceReservation) core.Time {
	more := a.cfg.ReservationOverrun
	if r.End > a.rec.Now() || more <= 0 || more >= core.Forever || r.Flags&core.ReserveFlex != 0 ||
		!a.hasRunningJobs(r.Name) {
		return r.End // where nobody has to be asked yet, that is when to ask
	}
	return r.End.Add(more.Duration())
}

func (a *Reservations) hasRunningJobs(name string) bool {
	if a.uses[name] == 0 {
		return false
	}
	for j := range a.rec.Jobs() {
		if j.Alloc.Inside() == name && !jobs.IsOver(j) {
			return true
		}
	}
	return false
}

// endJobsIn ends what still runs in a reservation whose time is over, as Slurm does; FLEX lets it go on.
func (a *Reservations) endJobsIn(r *core.AdvanceReservation) {
	if r.Flags&core.ReserveFlex != 0 || a.cfg.ReservationOverrun >= core.Forever || a.uses[r.Name] == 0 {
		return
	}
	var inside []core.JobID
	for j := range a.rec.Jobs() {
		if j.Alloc.Inside() == r.Name && !jobs.IsOver(j) {
			inside = append(inside, j.ID)
		}
	}
	for _, id := range inside {
		if j, ok := a.rec.Job(id); ok && !jobs.IsOver(j) { // another component may have taken it along
			edit := a.jobs.Edit(j)
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

// RunTimers does what is due: what is over comes again or goes, what is idle goes, nodes are swapped.
func (a *Reservations) RunTimers() {
	if len(a.rec.ReservationsByName()) == 0 || a.NextTime() > a.rec.Now() {
		return
	}
	for _, r := range named.Sorted(a.rec.ReservationsByName()) {
		if r.Flags&core.ReserveTimeFloat != 0 {
			continue
		}
		idle := purgeAt(r)
		over := idle != 0 && idle <= a.rec.Now()
		switch {
		case !over && a.end(r) > a.rec.Now():
			a.replaceNodes(r)
		case r.Repeats():
			a.endJobsIn(r)
			next := *r
			if over { // this time is over: the next one counts
				next.Start, next.End, _ = r.After(r.Start, r.End, a.cfg.Zone.Location)
			}
			next.Start, next.End = next.Current(a.rec.Now(), a.cfg.Zone.Location)
			a.put(&next)
		default:
			a.endJobsIn(r)
			a.deleteRecord(r)
		}
	}
	a.wakeValid = false
}

// findReplacements finds nodes that a reservation should have others for, and as many of those. Slurm's default is
// to replace nodes that fail, unless they were named; with REPLACE those that its jobs use are replaced too.
func (a *Reservations) findReplacements(r *core.AdvanceReservation) (out []*core.Node, in []candidate) {
	wants := r.Flags & (core.ReserveReplace | core.ReserveReplaceDown)
	if r.Nodes == "" || r.CoreCount > 0 || r.Flags&(core.ReserveStatic|core.ReserveMaint) != 0 ||
		wants == 0 && r.Flags&(core.ReserveSpecNodes|core.ReserveAllNodes) != 0 {
		return nil, nil
	}
	has := a.nodesOf(r)
	for _, n := range has {
		if !n.Usable() || wants&core.ReserveReplace != 0 && a.usesNode(r, n.Name) {
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
	in = a.candidates(r, not)
	if wants&core.ReserveReplace != 0 { // those that are in use are what is replaced
		in = slices.DeleteFunc(in, func(c candidate) bool { return c.free != 0 })
	}
	return out, in
}

// usesNode reports whether a job of a reservation is on a node.
func (a *Reservations) usesNode(r *core.AdvanceReservation, name core.NodeName) bool {
	for id := range a.cluster.OnNode(name) {
		if j, _ := a.rec.Job(id); j.Alloc.Inside() == r.Name {
			return true
		}
	}
	return false
}

func (a *Reservations) replaceNodes(r *core.AdvanceReservation) {
	out, in := a.findReplacements(r)
	n := min(len(out), len(in))
	if n == 0 {
		return
	}
	gone := map[core.NodeName]bool{}
	for _, x := range out[:n] {
		gone[x.Name] = true
	}
	nodes := slices.DeleteFunc(a.nodesOf(r), func(x *core.Node) bool { return gone[x.Name] })
	for _, c := range in[:n] {
		nodes = append(nodes, c.node)
	}
	slices.SortFunc(nodes, func(x, y *core.Node) int { return cmp.Compare(x.ID, y.ID) })
	next := *r
	next.Nodes = hostlistOf(nodes)
	a.put(&next)
}
