package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// grid is how a node's CPUs lie: socket by socket, in each core by core, in each thread by thread.
type grid struct {
	unit    int32 // CPUs that are given together
	threads int32 // CPUs of a core
	socket  int32 // CPUs of a socket
	sockets int32
}

// gridOf reads a node's hardware. One that counts cores as its CPUs has threads that nobody sees.
func gridOf(h *core.Hardware, g Grain) grid {
	out := grid{unit: 1, threads: 1, socket: max(1, h.CPUs), sockets: 1}
	s, c, t := max(1, h.Sockets), max(1, h.Cores), max(1, h.Threads)
	switch h.CPUs {
	case s * c * t:
		out.threads = t
	case s * c:
	default:
		return out
	}
	out.sockets, out.socket = s, h.CPUs/s
	if h.CPUs > namedCPUs {
		return out
	}
	switch g {
	case GrainCore:
		out.unit = out.threads
	case GrainSocket:
		out.unit = out.socket
	}
	return out
}

// whole rounds up to what is given together.
func (g *grid) whole(cpus int32) int32 {
	if over := cpus % g.unit; over > 0 {
		return cpus + g.unit - over
	}
	return cpus
}

// count is how many CPUs of a node come with a job, or go. A job that is on part of a unit, from a time when others could
// be on the rest, counts for all of it.
func (a *account) count(users []uint8, na *core.NodeAlloc, t Terms, sign int32) int32 {
	if a.unit == 1 && (t.Share <= 1 || len(users) == 0) || len(na.Cores) == 0 {
		return na.CPUs
	}
	n := int32(0)
	for rest := na.Cores; len(rest) > 0; {
		u, k := rest[0]/a.unit, 1
		for k < len(rest) && rest[k]/a.unit == u {
			k++
		}
		if t.Share <= 1 || int(u*a.unit) >= len(users) {
			n++
		} else if a.change(users, rest[:k], sign) {
			n++
		}
		rest = rest[k:]
	}
	return n * a.unit
}

// change notes that a job which shares comes to CPUs of one unit, or goes, and tells whether it is the first or the last.
func (a *account) change(users []uint8, cores []int32, sign int32) bool {
	from := cores[0] / a.unit * a.unit
	unit := users[from:min(int(from+a.unit), len(users))]
	alone := sign > 0 || !slices.ContainsFunc(unit, used)
	for _, c := range cores {
		switch {
		case int(c) >= len(users):
		case sign < 0:
			users[c]++
		case users[c] > 0:
			users[c]--
		}
	}
	return alone && (sign < 0 || !slices.ContainsFunc(unit, used))
}

func used(n uint8) bool { return n > 0 }

// wants is how many CPUs a job would newly take of a node; false if one of them is not to be had.
func (a *account) wants(na *core.NodeAlloc, t Terms) (int32, bool) {
	if len(na.Cores) == 0 {
		return na.CPUs, true
	}
	n, last := int32(0), int32(-1)
	for _, c := range na.Cores {
		free := a.free.has(c)
		if !free && !a.joins(c/a.unit, t.Share) {
			return 0, false
		}
		if u := c / a.unit; u != last {
			if last = u; free {
				n++
			}
		}
	}
	return n * a.unit, true
}

// joins tells whether a job that shares with so many may join those that are on a unit.
func (a *account) joins(u, share int32) bool {
	if share <= 1 || int((u+1)*a.unit) > len(a.users) {
		return false
	}
	for c := u * a.unit; c < (u+1)*a.unit; c++ {
		if a.users[c] == 0 || int32(a.users[c]) >= share || int32(a.most[c]) != share {
			return false
		}
	}
	return true
}

// sharing makes the account ready for a job that shares its CPUs.
func (a *account) sharing(na *core.NodeAlloc, t Terms) {
	if a.free == nil {
		return
	}
	if a.users == nil {
		a.users, a.most = make([]uint8, a.node.Hardware.CPUs), make([]uint8, a.node.Hardware.CPUs)
	}
	for _, c := range na.Cores {
		if int(c) < len(a.users) && a.users[c] == 0 {
			a.most[c] = uint8(t.Share)
		}
	}
}

// settle forgets who shared what nobody is on any more.
func (a *account) settle() {
	for c := range a.users {
		if a.users[c] == 0 {
			a.most[c] = 0
		}
	}
	if !slices.ContainsFunc(a.users, used) {
		a.users, a.most = nil, nil
	}
}

// busy tells whether jobs that share are still on a CPU that one of them gave back.
func (a *account) busy(c int32, t Terms) bool {
	return t.Share > 1 && int(c) < len(a.users) && a.users[c] > 0
}

// joinable counts the CPUs on which a job that shares with so many others could join them.
func (a *account) joinable(share int32) int32 {
	n := int32(0)
	for u := range int32(len(a.users)) / a.unit {
		if a.joins(u, share) {
			n += a.unit
		}
	}
	return n
}

// order says in which order CPUs are picked.
type order struct {
	sockets []int32 // these first; the others after them, those that fit best first
	turn    int32   // so many of each socket in turn; 0: one socket after the other
	most    int32   // CPUs of one socket, as far as there are others; 0: any
	share   int32   // CPUs of jobs that share with so many may be joined, once none is free
	keep    int32   // the last CPUs of the node stay out of it
	each    func(*gresAccount) (each, sockets int)
}

// pick names CPUs of a node, whole units of them, in ascending order.
func (a *account) pick(cpus int32, o order) []int32 {
	if cpus <= 0 || a.free == nil {
		return nil
	}
	if a.sockets == 1 && o.share <= 1 && o.keep == 0 && a.unit == 1 {
		return a.free.first(cpus)
	}
	p := picking{a: a, left: cpus, order: o}
	p.free = make([][]int32, a.sockets)
	for u := int32(0); (u+1)*a.unit <= a.node.Hardware.CPUs-o.keep; u++ {
		if a.idle(u) {
			s := min(u*a.unit/a.socket, a.sockets-1)
			p.free[s] = append(p.free[s], u)
		}
	}
	p.take()
	if p.left > 0 && o.share > 1 {
		for u := range int32(len(a.users)) / a.unit {
			if p.left > 0 && a.joins(u, o.share) {
				p.got = append(p.got, u)
				p.left -= a.unit
			}
		}
	}
	slices.Sort(p.got)
	out := make([]int32, 0, cpus)
	for _, u := range p.got {
		for c := range a.unit {
			out = append(out, u*a.unit+c)
		}
	}
	return out
}

// idle tells whether nobody is on a unit.
func (a *account) idle(u int32) bool {
	for c := u * a.unit; c < (u+1)*a.unit; c++ {
		if !a.free.has(c) {
			return false
		}
	}
	return true
}

// picking is the choice of units on a node.
type picking struct {
	a     *account
	order order
	free  [][]int32 // units, by socket
	got   []int32
	left  int32 // CPUs
}

func (p *picking) take() {
	switch {
	case p.order.turn > 0:
		p.turns(p.order.turn)
		return
	case p.order.most > 0:
		p.fill(p.order.most)
	}
	p.fill(p.left)
}

// fill takes up to most CPUs of each socket.
func (p *picking) fill(most int32) {
	var done []int32
	for p.left > 0 {
		all := slices.DeleteFunc(p.ranked(), func(s int32) bool { return slices.Contains(done, s) })
		if len(all) == 0 {
			return
		}
		p.some(all[0], most)
		done = append(done, all[0])
	}
}

// turns takes some CPUs of each socket, one after the other.
func (p *picking) turns(each int32) {
	for p.left > 0 {
		all := p.ranked()
		if len(all) == 0 {
			return
		}
		for _, s := range all {
			p.some(s, each)
		}
	}
}

// some takes up to n CPUs of a socket.
func (p *picking) some(s, n int32) {
	for n = min(n, p.left); n > 0 && len(p.free[s]) > 0; n -= p.a.unit {
		p.got = append(p.got, p.free[s][0])
		p.free[s] = p.free[s][1:]
		p.left -= p.a.unit
	}
}

// ranked lists the sockets that have anything free in the order they are used: those asked for; then the one with the
// least that is still enough, so that emptier ones stay whole for those who need them; then the emptiest.
func (p *picking) ranked() []int32 {
	var out []int32
	for s := range p.free {
		if len(p.free[s]) > 0 {
			out = append(out, int32(s))
		}
	}
	if p.order.turn > 0 && len(p.order.sockets) == 0 {
		return out
	}
	slices.SortStableFunc(out, func(x, y int32) int {
		ax, ay := slices.Index(p.order.sockets, x), slices.Index(p.order.sockets, y)
		if ax != ay && (ax < 0 || ay < 0) {
			return -cmp.Compare(min(ax, 0), min(ay, 0))
		}
		fx, fy := int32(len(p.free[x]))*p.a.unit, int32(len(p.free[y]))*p.a.unit
		switch ex, ey := fx >= p.left, fy >= p.left; {
		case ex && ey:
			return cmp.Or(cmp.Compare(fx, fy), cmp.Compare(ax, ay))
		case ex != ey && ex:
			return -1
		case ex != ey:
			return 1
		}
		return cmp.Or(cmp.Compare(fy, fx), cmp.Compare(ax, ay))
	})
	return out
}
