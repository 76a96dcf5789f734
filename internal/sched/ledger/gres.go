package ledger

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Serves reports whether units of a kind satisfy a request.
func (g *Gres) Serves(name, typ string, only *core.GPUAsk) bool {
	return g.Name == name && (typ == "" || g.Typ == typ) && (only == nil || name != "gpu" || only.Fits(g.Typ, g.Vendor,
		g.Mem, g.Capability))
}

// NameUnits names what a job takes of a node: units that are close to each other, then CPUs that are close to them.
func (node *Node) NameUnits(na *core.NodeAlloc, tasks int32, u *Resources, o CPUOrder) {
	na.Node, na.Tasks, na.CPUs, na.Mem = node.Record.Name, tasks, u.Cpus, u.Mem
	var near []core.Unit
	for k, count := range u.Gres {
		g := &node.Gres[k]
		if count <= 0 || g.Name == "" {
			continue
		}
		ga := core.GresAlloc{Name: g.Name, Type: g.Typ}
		if g.Units == nil {
			ga.Units = g.Free.first(int32(count))
		} else {
			got := node.nearestUnits(g, int(count), u.Cpus, near, &o)
			near = append(near, got...)
			for _, unit := range got {
				ga.Units = append(ga.Units, unit.Index)
			}
			slices.Sort(ga.Units)
		}
		na.Gres = append(na.Gres, ga)
	}
	for _, unit := range near {
		if s := unit.Socket - 1; s >= 0 && s < node.Sockets && !slices.Contains(o.Sockets, s) {
			o.Sockets = append(o.Sockets, s)
		}
	}
	na.Cores = node.pickCPUs(na.CPUs, o)
}

// nearestUnits picks units of a kind: so many at each socket where that is asked for, else those that are closest.
func (node *Node) nearestUnits(g *Gres, count int, cpus int32, near []core.Unit, o *CPUOrder) []core.Unit {
	var out []core.Unit
	free := g.freeUnits()
	if o.UnitsPerSocket != nil {
		each, sockets := o.UnitsPerSocket(g)
		for _, s := range o.Sockets {
			local := slices.DeleteFunc(slices.Clone(free), func(u core.Unit) bool { return u.Socket != s+1 })
			if sockets > 0 && each > 0 && len(local) >= each && len(out)+each <= count {
				out = append(out, node.closestUnits(local, each, cpus, near)...)
				sockets--
			}
		}
	}
	rest := slices.DeleteFunc(free, func(u core.Unit) bool { return slices.Contains(out, u) })
	return append(out, node.closestUnits(rest, count-len(out), cpus, append(slices.Clip(near), out...))...)
}

// freeUnits are the units of a kind that are free, with what is known of them.
func (g *Gres) freeUnits() []core.Unit {
	var free []core.Unit
	for _, i := range g.Free.first(int32(len(g.Free) * 64)) {
		u := core.Unit{Name: g.Name, Type: g.Typ, Index: i}
		if k := slices.IndexFunc(g.Units, func(u core.Unit) bool { return u.Index == i }); k >= 0 {
			u = g.Units[k]
		}
		free = append(free, u)
	}
	return free
}

// closestUnits picks units of a kind: joined by one set of links if there is one that has enough, else by as few as
// will do; among those, at sockets that have CPUs for the job; of equals the smaller set, so that larger ones stay
// whole.
func (node *Node) closestUnits(free []core.Unit, count int, cpus int32, near []core.Unit) []core.Unit {
	if len(free) <= count {
		return free
	}
	links := func(u core.Unit) int32 { return u.Links }
	socket := func(u core.Unit) int32 { return u.Socket }
	c := unitGroups{a: node, cpus: cpus, near: near}
	var out []core.Unit
	c.takeBest(free, count, links, func(set []core.Unit, n int) {
		c.takeBest(set, n, socket, func(set []core.Unit, n int) { out = append(out, set[:n]...) })
	})
	return out
}

// unitGroups divides units into sets and takes from the best.
type unitGroups struct {
	a    *Node
	cpus int32
	near []core.Unit // that were taken before, of other kinds
}

func (c *unitGroups) takeBest(units []core.Unit, n int, by func(core.Unit) int32, take func([]core.Unit, int)) {
	var sets [][]core.Unit
	for _, u := range units {
		i := slices.IndexFunc(sets, func(s []core.Unit) bool { return by(s[0]) == by(u) })
		if i < 0 {
			i = len(sets)
			sets = append(sets, nil)
		}
		sets[i] = append(sets[i], u)
	}
	for n > 0 {
		slices.SortStableFunc(sets, func(x, y []core.Unit) int { return c.compare(x, y, n, by) })
		m := min(n, len(sets[0]))
		take(sets[0], m)
		sets, n = sets[1:], n-m
	}
}

// compare orders sets: those that have enough first, and of them those at sockets with CPUs for the job, those that are
// near what was taken before, the smaller; of those that have not, the larger.
func (c *unitGroups) compare(x, y []core.Unit, n int, by func(core.Unit) int32) int {
	ex, ey := len(x) >= n, len(y) >= n
	switch {
	case ex && !ey:
		return -1
	case ey && !ex:
		return 1
	case !ex:
		return cmp.Compare(len(y), len(x))
	}
	unknown := func(s []core.Unit) int {
		if by(s[0]) == 0 { // nothing is known of what joins them
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(unknown(x), unknown(y)), -cmp.Compare(c.hasCPUs(x), c.hasCPUs(y)),
		-cmp.Compare(c.isNear(x, by), c.isNear(y, by)), cmp.Compare(len(x), len(y)))
}

// hasCPUs is 1 if the sockets of a set have the CPUs for the job.
func (c *unitGroups) hasCPUs(set []core.Unit) int {
	var seen []int32
	sum := int32(0)
	for _, u := range set {
		if s := u.Socket - 1; s >= 0 && s < c.a.Sockets && !slices.Contains(seen, s) {
			seen = append(seen, s)
			sum += c.a.FreeCPUsOn(s)
		}
	}
	if len(seen) == 0 || sum >= c.cpus {
		return 1
	}
	return 0
}

func (c *unitGroups) isNear(set []core.Unit, by func(core.Unit) int32) int {
	if slices.ContainsFunc(c.near, func(u core.Unit) bool { return by(u) == by(set[0]) }) {
		return 1
	}
	return 0
}
