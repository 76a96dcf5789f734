package sched

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// refusal is what is known of a class that could not start. It holds from pass to pass until as much came free on nodes
// that it could use as it lacked. All that can come free is among gains: what a job had that ended, a node that came up,
// what a reservation claimed that is not made again as it was.
type refusal struct {
	seen   int64     // it is up to date with gains before this one; 0: nothing is known
	beyond core.Time // jobs that are still there at this moment were refused; 0: all
	kept   int32     // because of so many reservations, the first that the pass made
	nodes  int32     // it lacked so many nodes with any room,
	tasks  int64     // or room for so many tasks. Neither: it is not known what
	some   bool      // it was found to lack less since
}

// allMade stands for every reservation that a pass will make.
const allMade = math.MaxInt32

// known tells whether a job of a class that would end at end is known not to start: from this pass, or from earlier ones
// if too little came free since that it could use.
func (ps *pass) known(s *slot, end core.Time) bool {
	if s.pass == ps.p.passes && hits(s.until, end) {
		return true
	}
	if !ps.holds(s, end) || !ps.stands(s) {
		return false
	}
	ps.shut(s, s.refusal.beyond)
	return true
}

// holds tells whether only what came free since the class was refused could let a job of it start.
func (ps *pass) holds(s *slot, end core.Time) bool {
	s.catchUp()
	r := &s.refusal
	return r.seen >= ps.p.gains.from && r.seen > 0 && r.kept <= ps.made && hits(r.beyond, end)
}

// stands tells whether that is too little. It is asked for the shortest job that was refused, so the answer is good for
// all of them.
func (ps *pass) stands(s *slot) bool {
	p, r, n := ps.p, &s.refusal, &s.need
	at := look{tmp: &p.tmp, share: true, own: s.own, reach: s.reach}
	if r.beyond != 0 {
		at.end = after(r.beyond, 1)
	}
	var nodes, nodesOld int32
	var tasks, tasksOld int64
	promised := false
	from := r.seen
	if ps.bestGain(s.part).below(s) {
		from = p.gains.next()
	}
	for i := from; i < p.gains.next(); i++ {
		a := p.gains.at(i)
		if a.gained != i || !s.part.has(a) {
			continue
		}
		room := at.room(n, a)
		promised = promised || at.end != 0 && len(a.claims) > 0
		if room <= 0 || n.nodesMax == 1 && room < n.tasks || !n.suits(a, &at) {
			continue
		}
		nodes++
		tasks += int64(room)
		if nodes >= r.nodes && tasks >= r.tasks {
			return false
		}
		if i < p.settled {
			nodesOld, tasksOld = nodes, tasks
		}
	}
	r.some = nodes > 0
	if promised { // it may be by any of those made so far that it is too little
		r.kept = max(r.kept, int32(len(ps.reserved)))
	}
	if p.settled > r.seen { // what came free before the last pass and is still so will stay: it lacks that much less
		r.seen, r.nodes, r.tasks = p.settled, r.nodes-nodesOld, r.tasks-tasksOld
	}
	return true
}

// bestGain is the most that any node among gains has free, of everything: classes that need more need not look at each.
type bestGain struct {
	at    int64 // gains, and
	taken int   // starts, as of
	pass  int64 // and in
	nodes int32
	cpus  int32
	mem   core.Bytes
}

func (ps *pass) bestGain(part *partition) *bestGain {
	p, b := ps.p, &part.best
	if b.at == p.gains.next() && b.taken == len(ps.taken) && b.pass == p.opened {
		return b
	}
	*b = bestGain{at: p.gains.next(), taken: len(ps.taken), pass: p.opened}
	for i, a := range p.gains.nodes {
		if a.gained == p.gains.from+int64(i) && part.has(a) && a.open() {
			b.add(a)
		}
	}
	return b
}

func (b *bestGain) add(a *account) {
	b.nodes++
	b.cpus, b.mem = max(b.cpus, a.now.cpus), max(b.mem, a.now.mem)
}

// below tells whether that is too little for a class.
func (b *bestGain) below(s *slot) bool {
	n := &s.need
	return b.nodes == 0 || n.more == nil && (n.cpusPerTask > b.cpus || n.minCPUs > b.cpus || n.memNode > b.mem)
}

// beyond is the last reservation in the way of a job of a class that would end at end; 0: none is.
func (ps *pass) beyond(s *slot, end core.Time) (beyond core.Time) {
	if len(ps.p.books) > 0 {
		beyond = ps.beyondBooks(s, end)
	}
	for _, r := range ps.reserved {
		if r.nodes != nil && hits(r.at, end) {
			beyond = max(beyond, r.at)
		}
	}
	return beyond
}

// refuse notes that no job of a class can start that is still there at the last reservation that was in the way of this
// one; without any, none can. It holds until enough comes free.
func (ps *pass) refuse(s *slot, end core.Time) {
	p, n := ps.p, &s.need
	r := refusal{seen: p.gains.next(), beyond: ps.beyond(s, end), nodes: 1, tasks: int64(n.tasks)}
	if r.beyond != 0 || len(p.books) > 0 {
		switch {
		case ps.bare(s) || n.choose(look{nodes: p.openTo(s), share: true}, p.buf) == nil:
			r.beyond = 0
		case r.beyond == 0: // its own reservation has no room for it
			s.refusal = refusal{}
			return
		}
	}
	at := look{tmp: &p.tmp, share: true, own: s.own, reach: s.reach}
	if r.beyond != 0 {
		r.kept, at.end = int32(len(ps.reserved)), after(r.beyond, 1)
	}
	if n.nodesMax > 1 {
		r.nodes, r.tasks = n.nodesMin, int64(n.tasks)
		for _, a := range p.openTo(s) {
			if room := at.room(n, a); room > 0 && n.suits(a, &at) {
				r.nodes--
				r.tasks -= int64(room)
			}
		}
	}
	if s.refusal = r; s.lic != nil { // it may be licences that it lacked
		s.refusal = refusal{}
	}
	ps.shut(s, r.beyond)
}

// refuseBare is refuse for a class of which it is known that it lacks everything.
func (ps *pass) refuseBare(s *slot) {
	n := &s.need
	s.refusal = refusal{seen: ps.p.gains.next(), nodes: 1, tasks: int64(n.tasks)}
	if n.nodesMax > 1 {
		s.refusal.nodes = n.nodesMin
	}
	ps.shut(s, 0)
}

// refuseStill is refuse for a job that was only looked at for what came free since its class was refused.
func (ps *pass) refuseStill(s *slot, end core.Time) {
	r := refusal{seen: ps.p.gains.next(), beyond: ps.beyond(s, end), kept: int32(len(ps.reserved)), nodes: 1, tasks: 1}
	if was := s.refusal.beyond; was != 0 {
		r.beyond = max(r.beyond, was)
	}
	s.refusal = r
	ps.shut(s, r.beyond)
}

// shut notes that no job of a class can start in this pass any more that is still there at a moment; 0: none at all.
func (ps *pass) shut(s *slot, until core.Time) {
	s.pass, s.until = ps.p.passes, until
	if until == 0 && !s.sub && s.push == nil && s.members.len > 0 { // what may push others aside may yet find somebody
		s.part.dead++
	}
}

// few tells whether a job of a class can start only on nodes on which something came free: no other has any room.
func (ps *pass) few(s *slot, end core.Time) bool {
	return s.need.nodesMax == 1 && s.need.tasks == 1 && s.own == nil && ps.holds(s, end)
}

// gained lists the nodes of a partition among gains that have anything to give, in the order they are tried.
func (p *Planner) gained(part *partition) []*account {
	if part.gainedAt != p.gains.next() {
		part.gainedAt = p.gains.next()
		part.gained = part.gained[:0]
		for i, a := range p.gains.nodes {
			if a.gained == p.gains.from+int64(i) && part.has(a) && a.open() {
				part.gained = append(part.gained, a)
			}
		}
		slices.SortFunc(part.gained, func(a, b *account) int { return cmp.Compare(a.index, b.index) })
	}
	return part.gained
}

// weaken notes that what a reservation kept on a node may be had now.
func (p *Planner) weaken(a *account) {
	if a.index >= 0 && a.open() {
		a.gained = p.gains.next()
		p.gains.nodes = append(p.gains.nodes, a)
	}
}

// remade compares the reservation just made with the one that the last pass made in its place.
func (ps *pass) remade(r *reservation) {
	p, i := ps.p, len(ps.reserved)-1
	if ps.made != allMade {
		ps.made = int32(len(ps.reserved))
	}
	if i >= len(p.last) || p.last[i] == r {
		return
	}
	for k := range p.last[i].claims {
		if c := &p.last[i].claims[k]; !r.claimsAs(c) {
			p.weaken(c.on)
		}
	}
}

// claimsAs tells whether the reservation made last has the same claim.
func (r *reservation) claimsAs(c *claim) bool {
	k := len(c.on.claims) - 1
	if k < 0 {
		return false
	}
	is := c.on.claims[k]
	return is.of == r && is.owner == c.owner && is.from == c.from && is.to == c.to && is.use.equal(&c.use)
}

// allHeads is for when no more reservations will be made: those of the last pass that were not are gone.
func (ps *pass) allHeads() {
	if ps.made == allMade {
		return
	}
	p := ps.p
	for i := len(ps.reserved); i < len(p.last); i++ {
		for k := range p.last[i].claims {
			p.weaken(p.last[i].claims[k].on)
		}
	}
	ps.made = allMade
}

// unsettle forgets what was refused, for changes that are not told by gains.
func (p *Planner) unsettle() {
	p.gains.cut(p.gains.next())
	p.gains.from++
}
