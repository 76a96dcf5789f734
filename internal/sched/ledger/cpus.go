package ledger

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// CPULayout is how a node's CPUs lie: socket by socket, in each core by core, in each thread by thread.
type CPULayout struct {
	AllocUnit int32 // CPUs that are given together
	Threads   int32 // CPUs of a core
	PerSocket int32 // CPUs of a socket
	Sockets   int32
}

// CpuLayoutOf reads a node's hardware. One that counts cores as its CPUs has threads that nobody sees.
func CpuLayoutOf(h *core.Hardware, g core.AllocUnit) CPULayout {
	out := CPULayout{AllocUnit: 1, Threads: 1, PerSocket: max(1, h.CPUs), Sockets: 1}
	s, c, t := max(1, h.Sockets), max(1, h.Cores), max(1, h.Threads)
	switch h.CPUs {
	case s * c * t:
		out.Threads = t
	case s * c:
	default:
		return out
	}
	out.Sockets, out.PerSocket = s, h.CPUs/s
	if h.CPUs > MaxNamedCPUs {
		return out
	}
	switch g {
	case core.UnitCore:
		out.AllocUnit = out.Threads
	case core.UnitSocket:
		out.AllocUnit = out.PerSocket
	case core.UnitCPU: // one
	}
	return out
}

// RoundUp rounds up to whole allocation units.
func (g *CPULayout) RoundUp(cpus int32) int32 {
	if over := cpus % g.AllocUnit; over > 0 {
		return cpus + g.AllocUnit - over
	}
	return cpus
}

// cpusBooked returns how many CPUs of a node a job adds or removes. A job on part of a unit counts for the whole unit.
func (node *Node) cpusBooked(users []uint8, na *core.NodeAlloc, t alloc.Terms, sign int32) int32 {
	if node.AllocUnit == 1 && (t.MaxSharing <= 1 || len(users) == 0) || len(na.Cores) == 0 {
		return na.CPUs
	}
	n := int32(0)
	for rest := na.Cores; len(rest) > 0; {
		u, k := rest[0]/node.AllocUnit, 1
		for k < len(rest) && rest[k]/node.AllocUnit == u {
			k++
		}
		if t.MaxSharing <= 1 || int(u*node.AllocUnit) >= len(users) {
			n++
		} else if node.changeSharers(users, rest[:k], sign) {
			n++
		}
		rest = rest[k:]
	}
	return n * node.AllocUnit
}

// changeSharers records that a job that shares CPUs comes to a unit or leaves it, and reports whether it is the first
// or the last there.
func (node *Node) changeSharers(users []uint8, cores []int32, sign int32) bool {
	from := cores[0] / node.AllocUnit * node.AllocUnit
	unit := users[from:min(int(from+node.AllocUnit), len(users))]
	alone := sign > 0 || !slices.ContainsFunc(unit, isUsed)
	for _, c := range cores {
		switch {
		case int(c) >= len(users):
		case sign < 0:
			users[c]++
		case users[c] > 0:
			users[c]--
		}
	}
	return alone && (sign < 0 || !slices.ContainsFunc(unit, isUsed))
}

func isUsed(n uint8) bool { return n > 0 }

// cpusWanted is how many CPUs a job would newly take of a node; false if one of them is not to be had.
func (node *Node) cpusWanted(na *core.NodeAlloc, t alloc.Terms) (int32, bool) {
	if len(na.Cores) == 0 {
		return na.CPUs, true
	}
	n, last := int32(0), int32(-1)
	for _, c := range na.Cores {
		free := node.FreeCPUs.Has(c)
		if !free && !node.canJoin(c/node.AllocUnit, t.MaxSharing) {
			return 0, false
		}
		if u := c / node.AllocUnit; u != last {
			if last = u; free {
				n++
			}
		}
	}
	return n * node.AllocUnit, true
}

// canJoin reports whether a job that shares with so many may join those on a unit.
func (node *Node) canJoin(u, share int32) bool {
	if share <= 1 || int((u+1)*node.AllocUnit) > len(node.Sharers) {
		return false
	}
	for c := u * node.AllocUnit; c < (u+1)*node.AllocUnit; c++ {
		if node.Sharers[c] == 0 || int32(node.Sharers[c]) >= share || int32(node.maxSharers[c]) != share {
			return false
		}
	}
	return true
}

// prepareSharing makes the account ready for a job that shares its CPUs.
func (node *Node) prepareSharing(na *core.NodeAlloc, t alloc.Terms) {
	if node.FreeCPUs == nil {
		return
	}
	if node.Sharers == nil {
		node.Sharers, node.maxSharers = make([]uint8, node.Record.Hardware.CPUs), make([]uint8, node.Record.Hardware.CPUs)
	}
	for _, c := range na.Cores {
		if int(c) < len(node.Sharers) && node.Sharers[c] == 0 {
			node.maxSharers[c] = uint8(t.MaxSharing)
		}
	}
}

// clearSharing drops the sharing records of CPUs that no job uses.
func (node *Node) clearSharing() {
	for c := range node.Sharers {
		if node.Sharers[c] == 0 {
			node.maxSharers[c] = 0
		}
	}
	if !slices.ContainsFunc(node.Sharers, isUsed) {
		node.Sharers, node.maxSharers = nil, nil
	}
}

// isShared reports whether other sharing jobs still use a CPU that one of them released.
func (node *Node) isShared(c int32, t alloc.Terms) bool {
	return t.MaxSharing > 1 && int(c) < len(node.Sharers) && node.Sharers[c] > 0
}

// JoinableCPUs counts the CPUs on which a job that shares with so many others could join them.
func (node *Node) JoinableCPUs(share int32) int32 {
	n := int32(0)
	for u := range int32(len(node.Sharers)) / node.AllocUnit {
		if node.canJoin(u, share) {
			n += node.AllocUnit
		}
	}
	return n
}

// CPUOrder says in which order CPUs are picked.
type CPUOrder struct {
	Sockets        []int32 // these first; the others after them, those that fit best first
	PerTurn        int32   // so many of each socket in turn; 0: one socket after the other
	MaxPerSocket   int32   // CPUs of one socket, as far as there are others; 0: any
	MaxSharing     int32   // CPUs of jobs that share with so many may be joined, once none is free
	SpareCPUs      int32   // the last CPUs of the node stay out of it
	UnitsPerSocket func(*Gres) (each, sockets int)
}

// pickCPUs picks CPUs of a node, in whole units, in ascending order.
func (node *Node) pickCPUs(cpus int32, o CPUOrder) []int32 {
	if cpus <= 0 || node.FreeCPUs == nil {
		return nil
	}
	if node.Sockets == 1 && o.MaxSharing <= 1 && o.SpareCPUs == 0 && node.AllocUnit == 1 {
		return node.FreeCPUs.first(cpus)
	}
	p := cpuPick{a: node, left: cpus, order: o}
	p.free = make([][]int32, node.Sockets)
	for u := int32(0); (u+1)*node.AllocUnit <= node.Record.Hardware.CPUs-o.SpareCPUs; u++ {
		if node.isIdle(u) {
			s := min(u*node.AllocUnit/node.PerSocket, node.Sockets-1)
			p.free[s] = append(p.free[s], u)
		}
	}
	p.pick()
	if p.left > 0 && o.MaxSharing > 1 {
		for u := range int32(len(node.Sharers)) / node.AllocUnit {
			if p.left > 0 && node.canJoin(u, o.MaxSharing) {
				p.picked = append(p.picked, u)
				p.left -= node.AllocUnit
			}
		}
	}
	slices.Sort(p.picked)
	out := make([]int32, 0, cpus)
	for _, u := range p.picked {
		for c := range node.AllocUnit {
			out = append(out, u*node.AllocUnit+c)
		}
	}
	return out
}

// isIdle reports whether no job uses a unit.
func (node *Node) isIdle(u int32) bool {
	for c := u * node.AllocUnit; c < (u+1)*node.AllocUnit; c++ {
		if !node.FreeCPUs.Has(c) {
			return false
		}
	}
	return true
}

// cpuPick is the choice of units on a node.
type cpuPick struct {
	a      *Node
	order  CPUOrder
	free   [][]int32 // units, by socket
	picked []int32
	left   int32 // CPUs
}

func (p *cpuPick) pick() {
	switch {
	case p.order.PerTurn > 0:
		p.takeInTurns(p.order.PerTurn)
		return
	case p.order.MaxPerSocket > 0:
		p.fillSockets(p.order.MaxPerSocket)
	}
	p.fillSockets(p.left)
}

// fillSockets takes up to most CPUs of each socket.
func (p *cpuPick) fillSockets(most int32) {
	var done []int32
	for p.left > 0 {
		all := slices.DeleteFunc(p.rankSockets(), func(s int32) bool { return slices.Contains(done, s) })
		if len(all) == 0 {
			return
		}
		p.takeFrom(all[0], most)
		done = append(done, all[0])
	}
}

// takeInTurns takes some CPUs of each socket in turn.
func (p *cpuPick) takeInTurns(each int32) {
	for p.left > 0 {
		all := p.rankSockets()
		if len(all) == 0 {
			return
		}
		for _, s := range all {
			p.takeFrom(s, each)
		}
	}
}

// takeFrom takes up to n CPUs of a socket.
func (p *cpuPick) takeFrom(s, n int32) {
	for n = min(n, p.left); n > 0 && len(p.free[s]) > 0; n -= p.a.AllocUnit {
		p.picked = append(p.picked, p.free[s][0])
		p.free[s] = p.free[s][1:]
		p.left -= p.a.AllocUnit
	}
}

// rankSockets lists the sockets that have anything free in the order they are used: those asked for; then the one with
// the least that is still enough, so that emptier ones stay whole for those who need them; then the emptiest.
func (p *cpuPick) rankSockets() []int32 {
	var out []int32
	for s := range p.free {
		if len(p.free[s]) > 0 {
			out = append(out, int32(s))
		}
	}
	if p.order.PerTurn > 0 && len(p.order.Sockets) == 0 {
		return out
	}
	slices.SortStableFunc(out, func(x, y int32) int {
		ax, ay := slices.Index(p.order.Sockets, x), slices.Index(p.order.Sockets, y)
		if ax != ay && (ax < 0 || ay < 0) {
			return -cmp.Compare(min(ax, 0), min(ay, 0))
		}
		fx, fy := int32(len(p.free[x]))*p.a.AllocUnit, int32(len(p.free[y]))*p.a.AllocUnit
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

// FreeCPUsOn counts the CPUs of a socket that are free, whole units of them.
func (node *Node) FreeCPUsOn(socket int32) int32 {
	if node.FreeCPUs == nil {
		return node.Free.Cpus / node.Sockets
	}
	n := int32(0)
	for u := socket * node.PerSocket / node.AllocUnit; (u+1)*node.AllocUnit <= (socket+1)*node.PerSocket; u++ {
		if node.isIdle(u) {
			n += node.AllocUnit
		}
	}
	return n
}
