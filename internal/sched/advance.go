package sched

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// advance is an advance reservation as the planner keeps it. Whoever may not use it has to be gone from its nodes before
// it begins, and comes back when it is over; see account.beside.
type advance struct {
	*core.AdvanceReservation
	on      map[core.NodeName]bool // its nodes; nil: it sets none aside
	windows []window               // its occurrences that are not over, soonest first; see roll
	tail    core.Time              // if not 0, it comes again from then on, too far off to tell when
}

// window is one occurrence.
type window struct{ from, to core.Time }

// aside is what an advance reservation has of a node.
type aside struct {
	r    *advance
	cpus int32 // 0: all of it; below 0: none, as it has fewer cores than nodes
}

// tenant is a job on a node of which a part is set aside, or one that has licences.
type tenant struct {
	count int64 // CPUs or licences
	end   core.Time
	in    string // the reservation it runs in
}

// occurrences is how many of a reservation that comes again are told apart.
const occurrences = 32

func newAdvance(r *core.AdvanceReservation, names Names) *advance {
	a := &advance{AdvanceReservation: r}
	if r.Nodes != "" {
		a.on = names(r.Nodes)
	}
	return a
}

// roll finds the occurrences that are not over at now.
func (r *advance) roll(now core.Time, zone *time.Location) {
	if r.Flags&core.ReserveTimeFloat != 0 { // it keeps its distance
		from := now + max(0, r.Start-r.Created)
		r.windows = append(r.windows[:0], window{from, never})
		return
	}
	if len(r.windows) > 0 && r.windows[0].to > now {
		return
	}
	r.windows, r.tail = r.windows[:0], 0
	w := window{}
	w.from, w.to = r.Current(now, zone)
	for again := w.to > now; again; w.from, w.to, again = r.After(w.from, w.to, zone) {
		if len(r.windows) == occurrences {
			r.tail = w.from
			return
		}
		r.windows = append(r.windows, w)
	}
}

// meets tells whether a job that is there from one moment to another is there while r is. slack is how far it may reach
// into r.
func (r *advance) meets(from, end, slack core.Time) bool {
	for _, w := range r.windows {
		if w.from += slack; w.to > from && w.from < w.to {
			return hits(w.from, end) // those after it begin later
		}
	}
	return r.tail != 0 && hits(r.tail, end)
}

// covers tells whether r goes on at a moment.
func (r *advance) covers(t core.Time) bool {
	for _, w := range r.windows {
		if w.from <= t && t < w.to {
			return true
		}
	}
	return r.tail != 0 && t >= r.tail
}

// fits gives the occurrence in which a job that starts at a moment and ends at end would run.
func (r *advance) fits(from, end core.Time) (window, bool) {
	for _, w := range r.windows {
		if w.from <= from && end <= w.to && end != never {
			return w, true
		}
	}
	return window{}, false
}

// shared tells whether r has only a part of its nodes.
func (r *advance) shared() bool { return r.CoreCount > 0 }

// confines tells whether jobs in r may be on its nodes only.
func (r *advance) confines() bool { return r != nil && r.on != nil && r.Flags&core.ReserveFlex == 0 }

// timed tells whether jobs in r may run while it goes on only.
func (r *advance) timed() bool { return r != nil && r.Flags&core.ReserveFlex == 0 }

// over tells whether r does not come again.
func (r *advance) over() bool { return r != nil && len(r.windows) == 0 }

// usable tells whether jobs can run in r at all.
func (r *advance) usable() bool { return r.Flags&core.ReserveTimeFloat == 0 }

// bars tells whether a look has to keep away from what r sets aside.
func (at *look) bars(r *advance) bool {
	return r != at.own && (at.own == nil || at.own.Flags&(core.ReserveMaint|core.ReserveOverlap) == 0)
}

// slack is how far a look may reach into r.
func (at *look) slack(r *advance) core.Time {
	if !at.reach {
		return 0
	}
	return core.Time(r.MaxDelay) * 1e6
}

var noRoom = balance{whole: 1}

// beside is what advance reservations leave, of what is free of a node, to a job that is there from one moment to
// another. A moment of 0 stands for now.
func (a *account) beside(at *look, from, end core.Time, b *balance) *balance {
	parts := false
	for i := range a.asides {
		if s := &a.asides[i]; s.cpus != 0 {
			parts = true
		} else if at.bars(s.r) && s.r.meets(from, end, at.slack(s.r)) {
			return &noRoom
		}
	}
	if parts {
		b = a.besideParts(at, from, end, b)
	}
	return b
}

// besideParts is beside where reservations have some of a node's CPUs: at every moment at which one begins, and at which
// a promised job does, what all have together must fit.
func (a *account) besideParts(at *look, from, end core.Time, b *balance) *balance {
	least, met := int32(math.MaxInt32), false
	for i := range a.asides {
		s := &a.asides[i]
		if s.cpus == 0 {
			continue
		}
		for _, w := range s.r.windows {
			if w.to > from && hits(w.from, end) {
				least = min(least, a.spare(at, max(from, w.from)))
				met = met || s.r == at.own && s.r.confines() || at.bars(s.r)
			}
		}
		if s.r.tail != 0 && hits(s.r.tail, end) {
			least = min(least, a.spare(at, max(from, s.r.tail)))
			met = met || at.bars(s.r)
		}
	}
	for i := range a.claims {
		if c := a.claims[i]; c.from > from && hits(c.from, end) {
			least = min(least, a.spare(at, c.from))
		}
	}
	if b != at.tmp {
		at.tmp.copy(b)
		b = at.tmp
	}
	b.cpus = min(b.cpus, least)
	if met {
		b.held = max(b.held, 1) // it is nobody's alone
	}
	return b
}

// spare is how many CPUs of a node are left at a moment, beside all jobs that are there then and what reservations have
// and their jobs do not use; of its own reservation, a job has what that has left.
func (a *account) spare(at *look, t core.Time) int32 {
	free := int64(a.node.Hardware.CPUs)
	for i := range a.tenants {
		if a.tenants[i].end > t {
			free -= a.tenants[i].count
		}
	}
	for i := range a.claims {
		if a.claims[i].holds(t) {
			free -= int64(a.claims[i].use.cpus)
		}
	}
	own := free
	for i := range a.asides {
		s := &a.asides[i]
		if s.cpus == 0 || !s.r.covers(t) {
			continue
		}
		left := int64(max(0, s.cpus))
		for k := range a.tenants {
			if a.tenants[k].end > t && a.tenants[k].in == s.r.Name {
				left -= a.tenants[k].count
			}
		}
		for k := range a.claims {
			if c := a.claims[k]; c.in == s.r.Name && c.holds(t) {
				left -= int64(c.use.cpus)
			}
		}
		switch {
		case s.r == at.own && s.r.confines():
			own = min(own, left)
		case at.bars(s.r):
			free -= max(0, left)
		}
	}
	return int32(min(free, own))
}

// setReservations takes in what changed of the advance reservations. Who may use what changes with them, so jobs that
// are concerned leave the queues and come back.
func (p *Planner) setReservations(c *Changes) {
	if len(c.GoneReservations) == 0 && !slices.ContainsFunc(c.Reservations, func(r *core.AdvanceReservation) bool { return !p.booked(r) }) {
		return
	}
	magnets := slices.ContainsFunc(p.books, (*advance).magnetic)
	books := slices.Clone(p.books) // plans read the old ones
	for _, name := range c.GoneReservations {
		books = slices.DeleteFunc(books, func(r *advance) bool { return r.Name == name })
	}
	for _, r := range c.Reservations {
		books = slices.DeleteFunc(books, func(o *advance) bool { return o.Name == r.Name })
		books = append(books, newAdvance(r, p.cfg.Names))
	}
	slices.SortFunc(books, func(a, b *advance) int { return cmp.Compare(a.Name, b.Name) })
	magnets = magnets || slices.ContainsFunc(books, (*advance).magnetic)

	var moved []*core.Job
	for _, w := range p.pending {
		if w.class != nil && (magnets || w.class.aside || w.job.Spec.More().Reservation != "") {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.forget(p.pending[j.ID])
	}
	p.books, p.bookings = books, p.bookings+1
	p.unsettle()
	p.key = p.keyFunc()
	p.stale = true
	if len(books) == 0 {
		p.layAside()
	}
	for _, j := range moved {
		p.ripe(j)
	}
}

// booked tells whether a reservation is known as it is, in what the plan goes by.
func (p *Planner) booked(r *core.AdvanceReservation) bool {
	old := findBook(p.books, r.Name)
	if old == nil {
		return false
	}
	o := old.AdvanceReservation
	return o.Start == r.Start && o.End == r.End && o.Created == r.Created && o.Nodes == r.Nodes && o.CoreCount == r.CoreCount &&
		o.Flags == r.Flags && o.MaxDelay == r.MaxDelay && slices.Equal(o.Users, r.Users) && slices.Equal(o.Accounts, r.Accounts) &&
		slices.Equal(o.Groups, r.Groups) && slices.Equal(o.Licenses, r.Licenses)
}

func (r *advance) magnetic() bool { return r.Flags&core.ReserveMagnetic != 0 && r.usable() }

// admits tells whether a job may use r.
func (r *advance) admits(s *core.Spec) bool {
	if len(r.Groups) > 0 && s.More().Reservation == "" { // who is in which group is known at submit only
		return false
	}
	return r.usable() && r.Admits(s.User, func(p core.ProjectName) bool { return p == s.Project })
}

func findBook(books []*advance, name string) *advance {
	i, ok := slices.BinarySearchFunc(books, name, func(r *advance, name string) int { return cmp.Compare(r.Name, name) })
	if !ok {
		return nil
	}
	return books[i]
}

// waysOf lists the reservations a job may run in, in the order they are tried, and whether it may run outside of any.
func waysOf(books []*advance, s *core.Spec) (in []*advance, out bool) {
	if x := s.Extra; x != nil && x.Reservation != "" {
		for name := range strings.SplitSeq(x.Reservation, ",") {
			if r := findBook(books, name); r != nil && r.admits(s) {
				in = append(in, r)
			}
		}
		return in, false
	}
	for _, r := range books {
		if r.magnetic() && r.admits(s) {
			in = append(in, r)
		}
	}
	return in, true
}

// asideKey is what tells a job apart from others of its shape as regards reservations and licences: "" for most.
func asideKey(books []*advance, s *core.Spec) string {
	x := s.Extra
	if len(books) == 0 && (x == nil || x.Reservation == "" && x.Licenses == "" && x.Signal == nil) {
		return ""
	}
	in, out := waysOf(books, s)
	key := ""
	for _, r := range in {
		key += r.Name + ","
	}
	if !out {
		key += "!"
	}
	if x != nil {
		if x.Signal != nil && x.Signal.Reserve {
			key += "+"
		}
		if x.Licenses != "" {
			key += "|" + x.Licenses
		}
	}
	return key
}

// asides works out how the jobs of a class use reservations and licences.
func (p *Planner) asides(c *class, spec *core.Spec) {
	c.aside = true
	in, out := waysOf(p.books, spec)
	x := spec.More()
	lic := newAsk(x.Licenses)
	if lic != nil {
		c.licences = lic
		p.asking++
	}
	for i := range c.slots {
		s := &c.slots[i]
		s.lic, s.reach, s.named = lic, x.Signal != nil && x.Signal.Reserve, !out
		s.inside = s.named && lic == nil && !slices.ContainsFunc(in, func(r *advance) bool { return !r.confines() || r.shared() })
		if len(in) == 0 {
			continue
		}
		base := *s
		base.sub, base.named, base.inside = true, false, false
		for _, r := range in {
			way := base
			way.own = r
			s.ways = append(s.ways, way)
		}
		if out {
			s.ways = append(s.ways, base)
		}
	}
}

// lookOf is how a class looks at its nodes for a job that starts now and ends at end.
func (p *Planner) lookOf(s *slot, end core.Time) look {
	return look{nodes: p.openTo(s), end: end, tmp: &p.tmp, own: s.own, reach: s.reach}
}

// nodesOf lists the nodes of a class in the order they are tried: those of its partition, and of them, those of its
// reservation, or those first.
func (p *Planner) nodesOf(s *slot) []*account {
	all := p.accounts(s.part)
	if s.own == nil || s.own.on == nil {
		return all
	}
	if s.shape != p.ledger.shape {
		s.shape, s.order = p.ledger.shape, nil
		for _, a := range all {
			if s.own.on[a.node.Name] {
				s.order = append(s.order, a)
			}
		}
		if !s.own.confines() {
			for _, a := range all {
				if !s.own.on[a.node.Name] {
					s.order = append(s.order, a)
				}
			}
		}
	}
	return s.order
}

// openTo is nodesOf without those that are known to have too little free now. The next call may write over it.
func (p *Planner) openTo(s *slot) []*account {
	if s.plainly() {
		return p.roomy(s)
	}
	if s.own == nil || s.own.on == nil {
		return p.open(s.part)
	}
	return p.nodesOf(s)
}

// assessWays is assess for classes that may run in reservations.
func (p *Planner) assessWays(s *slot) (why *Why) {
	if len(s.ways) == 0 {
		return &Why{Reason: core.ReasonReservationBad, Text: "the reservation it asks for is not there, or not for it"}
	}
	for i := range s.ways {
		w := p.assess(&s.ways[i])
		if w == nil {
			return nil
		}
		if why == nil {
			why = w
		}
	}
	return why
}

// layAside notes on every node what reservations have of it.
func (p *Planner) layAside() {
	if p.laid == p.ledger.shape && p.laidFor == p.bookings {
		return
	}
	p.laid, p.laidFor = p.ledger.shape, p.bookings
	for _, a := range p.ledger.order {
		a.asides, a.parted = a.asides[:0], false
	}
	p.parted = p.parted[:0]
	for _, r := range p.books {
		var on []*account
		for _, a := range p.ledger.order {
			if r.on[a.node.Name] {
				on = append(on, a)
			}
		}
		slices.SortFunc(on, func(a, b *account) int { return cmp.Compare(a.node.ID, b.node.ID) })
		for i, a := range on {
			s := aside{r: r}
			if r.shared() {
				if s.cpus = r.cores(i, len(on)) * max(1, a.node.Hardware.Threads); s.cpus == 0 {
					s.cpus = -1
				}
				if !a.parted {
					p.parted = append(p.parted, a)
				}
				a.parted = true
			}
			a.asides = append(a.asides, s)
		}
	}
}

// cores is how many cores a reservation has of the nth of its nodes: as evenly as it goes.
func (r *advance) cores(n, of int) int32 {
	each := r.CoreCount / int32(of)
	if int32(n) < r.CoreCount%int32(of) {
		each++
	}
	return each
}

// overlay begins a pass on a cluster that has advance reservations.
func (ps *pass) overlay() {
	p, now := ps.p, ps.plan.Now
	p.layAside()
	mark := newFingerprint() // of all of them
	mark.mix(uint64(p.bookings))
	for _, r := range p.books {
		r.roll(now, p.cfg.Zone)
		mark.mix(uint64(r.tail), uint64(len(r.windows)))
		for _, w := range r.windows {
			mark.mix(uint64(w.from), uint64(w.to))
			for _, edge := range [...]core.Time{w.from, w.to} {
				if edge > now && edge < never && r.usable() {
					ps.plan.wake(edge)
				}
			}
		}
	}
	for _, r := range p.books {
		if len(r.windows) > 0 && r.windows[0].from > now {
			if ps.plan.shut == nil {
				ps.plan.shut = map[string]core.Time{}
			}
			ps.plan.shut[r.Name] = r.windows[0].from
		}
	}
	if mark != p.laidAs { // what they set aside may be had, or the other way round
		p.laidAs = mark
		p.unsettle()
	}
	if len(p.parted) == 0 {
		return
	}
	for _, a := range p.parted {
		a.tenants = a.tenants[:0]
	}
	for _, h := range p.holding {
		for i, a := range p.on(h) {
			if na := &h.alloc.Nodes[i]; a != nil && !na.Done {
				a.lodge(na, h.alloc.Inside(), max(h.end, now+overdue))
			}
		}
	}
}

// lodge notes a job on a node of which a part is set aside.
func (a *account) lodge(na *core.NodeAlloc, in string, end core.Time) {
	if a.parted {
		a.tenants = append(a.tenants, tenant{count: int64(na.CPUs), end: end, in: in})
	}
}

// beyondBooks is the last moment before end at which a reservation begins that is in the way of a class.
func (ps *pass) beyondBooks(s *slot, end core.Time) (beyond core.Time) {
	at := look{own: s.own, reach: s.reach}
	for _, r := range ps.p.books {
		if !at.bars(r) {
			continue
		}
		slack := at.slack(r)
		if r.shared() {
			slack = 0
		}
		for _, w := range r.windows {
			if hits(w.from+slack, end) {
				beyond = max(beyond, w.from+slack)
			}
		}
		if r.tail != 0 && hits(r.tail, end) {
			beyond = max(beyond, r.tail)
		}
	}
	return beyond
}

// inside walks the jobs that ask for reservations of whole nodes, before all others, who have no use for those.
func (ps *pass) inside() {
	p := ps.p
	var lanes []lane
	for _, part := range p.parts {
		if part.inside.len > 0 {
			lanes = append(lanes, lane{part: part, at: cursor{q: &part.inside}})
		}
	}
	for {
		var best *lane
		var head *entry
		for i := range lanes {
			l := &lanes[i]
			if e := l.at.head(); e != nil && (best == nil || higher(l.part, e, best.part, head)) {
				best, head = l, e
			}
		}
		if best == nil {
			break
		}
		if !ps.limited(head) && !ps.try(head.slot, head.job) {
			ps.waitInside(head)
		}
		best.at.next()
	}
}

// waitInside promises a start to the first jobs that wait in a reservation; those behind may start if they do not delay
// them.
func (ps *pass) waitInside(e *entry) {
	if ps.plan.inside == nil {
		ps.plan.inside = map[string]core.JobID{}
	}
	name := e.slot.ways[0].own.Name
	if ps.within == nil {
		ps.within = map[string]int{}
	}
	if ps.within[name] == ps.p.cfg.depth() {
		return
	}
	if ps.within[name]++; ps.within[name] == 1 {
		ps.plan.inside[name] = e.job.ID
	}
	ps.reserve(e.slot, e.job)
}

// placeAny tries the ways a job may run one after the other.
func (ps *pass) placeAny(s *slot, j *core.Job, task int32) bool {
	over := false
	for i := range s.ways {
		if ps.place(&s.ways[i], j, task) {
			return true
		}
		over = over || ps.over
	}
	ps.over = over
	return false
}

// soonest finds the way in which a job could start first.
func (ps *pass) soonest(s *slot, j *core.Job) (best *slot) {
	first := never
	for i := range s.ways {
		sw := ps.sweepOf(&s.ways[i], j)
		if picks := sw.earliest(); picks != nil && (best == nil || sw.look.then < first) {
			best, first = &s.ways[i], sw.look.then
		}
	}
	return best
}

// opens tells whether a job may start at the moment a sweep has come to.
func (sw *sweep) opens() bool {
	if r := sw.slot.own; r.over() {
		return false
	} else if r.timed() {
		if _, ok := r.fits(sw.look.then, sw.look.end); !ok {
			return false
		}
	}
	return sw.slot.lic == nil || sw.ps.grant(sw.slot, sw.look.then, sw.look.end) != nil
}

// edges are the moments at which advance reservations change what the job may use.
func (sw *sweep) edges(now core.Time) {
	for _, r := range sw.ps.p.books {
		var nodes []*account
		for _, a := range sw.look.nodes {
			if r.on[a.node.Name] {
				nodes = append(nodes, a)
			}
		}
		stop := &reservation{nodes: nodes}
		for _, w := range r.windows {
			if r == sw.slot.own && w.from > now {
				sw.points = append(sw.points, point{w.from, stop})
			}
			if w.to > now && w.to < never {
				sw.points = append(sw.points, point{w.to, stop})
			}
		}
	}
}

// aside writes down what a job that is being placed has beside its nodes.
func (ps *pass) aside(s *slot, al *core.Alloc, end core.Time) {
	if s.own == nil && s.lic == nil {
		return
	}
	more := al.Wide()
	if s.own != nil {
		more.Reservation = s.own.Name
	}
	if s.lic != nil {
		more.Licenses = ps.grant(s, ps.plan.Now, end)
	}
}

// settle books that, and shows the job to reservations that have a part of its nodes.
func (ps *pass) settle(al *core.Alloc, end core.Time) {
	if al.More != nil {
		ps.p.seat(al, 1)
		ps.sit(al, end)
	}
	if len(ps.p.parted) == 0 {
		return
	}
	for i := range al.Nodes {
		na := &al.Nodes[i]
		ps.p.ledger.nodes[na.Node].lodge(na, al.Inside(), end)
	}
}

// away finds out whether advance reservations alone keep a job from starting: even if nothing ran, what they leave could
// not hold it.
func (ps *pass) away(s *slot, j *core.Job) {
	if s.named || len(s.ways) > 0 {
		return
	}
	at := look{own: s.own, reach: s.reach}
	end := after(ps.plan.Now, shortest(j.Spec))
	why, left, some := core.ReasonReserved, ps.p.leftOver[:0], false
	for _, a := range ps.p.nodesOf(s) {
		barred := false
		for i := range a.asides {
			if r := a.asides[i].r; a.asides[i].cpus == 0 && at.bars(r) && r.meets(ps.plan.Now, end, at.slack(r)) {
				if barred, some = true, true; r.Flags&core.ReserveMaint != 0 && (j.Spec.More().NodeList == "" || r.covers(ps.plan.Now)) {
					why = core.ReasonMaintenance
				}
			}
		}
		if !barred {
			left = append(left, a)
		}
	}
	ps.p.leftOver = left
	if !some || s.need.choose(look{nodes: left, empty: true}, ps.p.buf) != nil {
		return
	}
	if why == core.ReasonReserved && j.Spec.More().NodeList == "" {
		why = core.ReasonResources // as Slurm, which names reservations only to who named nodes
	}
	if ps.plan.away == nil {
		ps.plan.away = map[core.JobID]core.Reason{}
	}
	ps.plan.away[j.ID] = why
}

// whyInside tells why a job that asks for reservations waits.
func (p *Plan) whyInside(j *core.Job) Why {
	at, estimate, _ := p.Expected(j.ID)
	w := Why{Reason: core.ReasonReservation, Expected: at, Estimate: estimate}
	for name := range strings.SplitSeq(j.Spec.More().Reservation, ",") {
		if from, shut := p.shut[name]; shut {
			w.Text = fmt.Sprintf("reservation %s begins at %s", name, from.Go().UTC().Format("2006-01-02T15:04:05Z"))
			return w
		}
		switch head := p.inside[name]; head {
		case 0:
			continue
		case j.ID:
			w.Text = "it is first in reservation " + name + " and waits for what that has in use, or has no time for it"
		default:
			w.Reason, w.Text = core.ReasonPriority, fmt.Sprintf("job %d is ahead of it in reservation %s", head, name)
		}
		return w
	}
	if w = p.whyQueued(j); w.Reason == core.ReasonResources {
		w.Reason, w.Text = core.ReasonReservation, "it is first in its partition and waits for what its reservation has in use, or has no time for it"
	}
	return w
}
