package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// alloc names the very CPUs and units of a choice.
func (n *request) alloc(part core.PartitionName, picks []nodeChoice, at nodeView) *core.Alloc {
	al := &core.Alloc{Partition: part, Nodes: make([]core.NodeAlloc, len(picks))}
	if n.user != "" && !n.exclusive {
		al.Wide().Own = true
	}
	if n.detail != nil {
		n.allocDetail(al, picks, &at)
		return al
	}
	for i, p := range picks {
		u := n.usage(p.node, p.tasks, at.free(p.node))
		p.node.nameUnits(&al.Nodes[i], p.tasks, &u, cpuOrder{})
	}
	return al
}

func (n *request) allocDetail(al *core.Alloc, picks []nodeChoice, at *nodeView) {
	w := n.detail
	if n.exclusive {
		al.Wide().Whole = true
	}
	if w.maxSharing > 1 {
		al.Wide().Share = w.maxSharing
	}
	if w.sequence != nil {
		slices.SortFunc(picks, func(a, b nodeChoice) int {
			return cmp.Compare(slices.Index(w.sequence, a.node.record.Name), slices.Index(w.sequence, b.node.record.Name))
		})
	}
	tasks, totals := n.distribute(picks)
	for i, p := range picks {
		for k := range w.gres {
			totals[i][k] += w.gres[k].node + w.gres[k].task*int64(tasks[i])
		}
		u := n.exactUsage(p.node, tasks[i], totals[i], at.free(p.node))
		o := cpuOrder{spareCPUs: w.specializedCPUs(p.node)}
		if at.joinShared {
			o.maxSharing = w.maxSharing
		}
		switch w.cyclicCPUs {
		case 1:
			o.perTurn = max(p.node.allocUnit, n.cpusPerTask)
		case 2:
			o.perTurn = p.node.allocUnit
		}
		if w.needsSockets() {
			o.sockets, o.maxPerSocket = n.chooseSockets(p.node, tasks[i], u.cpus)
			o.unitsPerSocket = w.unitsPerSocket
		}
		p.node.nameUnits(&al.Nodes[i], tasks[i], &u, o)
	}
}

// chooseSockets chooses the sockets for a job that cares, and how much of each.
func (n *request) chooseSockets(a *nodeState, tasks, cpus int32) (sockets []int32, most int32) {
	w := n.detail
	for k := range a.sockets {
		if a.freeCPUsOn(k) >= max(1, w.cores*a.threads) && (!w.gresPerSocket || a.hasLocalUnits(k, w, true)) {
			sockets = append(sockets, k)
		}
	}
	switch {
	case w.tasksPerSocket > 0:
		most = w.cpusForTasks(n, a, min(tasks, w.tasksPerSocket))
	case w.sockets > 1:
		most = (cpus + w.sockets - 1) / w.sockets
	}
	return sockets, a.cpuLayout.roundUp(most)
}

// nameUnits names what a job takes of a node: units that are close to each other, then CPUs that are close to them.
func (a *nodeState) nameUnits(na *core.NodeAlloc, tasks int32, u *resources, o cpuOrder) {
	na.Node, na.Tasks, na.CPUs, na.Mem = a.record.Name, tasks, u.cpus, u.mem
	var near []core.Unit
	for k, count := range u.gres {
		g := &a.gres[k]
		if count <= 0 || g.name == "" {
			continue
		}
		ga := core.GresAlloc{Name: g.name, Type: g.typ}
		if g.units == nil {
			ga.Units = g.free.first(int32(count))
		} else {
			got := a.nearestUnits(g, int(count), u.cpus, near, &o)
			near = append(near, got...)
			for _, unit := range got {
				ga.Units = append(ga.Units, unit.Index)
			}
			slices.Sort(ga.Units)
		}
		na.Gres = append(na.Gres, ga)
	}
	for _, unit := range near {
		if s := unit.Socket - 1; s >= 0 && s < a.sockets && !slices.Contains(o.sockets, s) {
			o.sockets = append(o.sockets, s)
		}
	}
	na.Cores = a.pickCPUs(na.CPUs, o)
}

// unitsPerSocket is how many units of a kind are asked for at each of a number of sockets.
func (w *requestDetail) unitsPerSocket(g *gresState) (each, sockets int) {
	for i := range w.gres {
		if q := &w.gres[i]; q.socket > 0 && q.accepts(g) {
			return int(q.socket), int(max(1, w.sockets))
		}
	}
	return 0, 0
}

// nearestUnits picks units of a kind: so many at each socket where that is asked for, else those that are closest.
func (a *nodeState) nearestUnits(g *gresState, count int, cpus int32, near []core.Unit, o *cpuOrder) []core.Unit {
	var out []core.Unit
	free := g.freeUnits()
	if o.unitsPerSocket != nil {
		each, sockets := o.unitsPerSocket(g)
		for _, s := range o.sockets {
			local := slices.DeleteFunc(slices.Clone(free), func(u core.Unit) bool { return u.Socket != s+1 })
			if sockets > 0 && each > 0 && len(local) >= each && len(out)+each <= count {
				out = append(out, a.closestUnits(local, each, cpus, near)...)
				sockets--
			}
		}
	}
	rest := slices.DeleteFunc(free, func(u core.Unit) bool { return slices.Contains(out, u) })
	return append(out, a.closestUnits(rest, count-len(out), cpus, append(slices.Clip(near), out...))...)
}

// freeUnits are the units of a kind that are free, with what is known of them.
func (g *gresState) freeUnits() []core.Unit {
	var free []core.Unit
	for _, i := range g.free.first(int32(len(g.free) * 64)) {
		u := core.Unit{Name: g.name, Type: g.typ, Index: i}
		if k := slices.IndexFunc(g.units, func(u core.Unit) bool { return u.Index == i }); k >= 0 {
			u = g.units[k]
		}
		free = append(free, u)
	}
	return free
}

// closestUnits picks units of a kind: joined by one set of links if there is one that has enough, else by as few as
// will do;
// among those, at sockets that have CPUs for the job; of equals the smaller set, so that larger ones stay whole.
func (a *nodeState) closestUnits(free []core.Unit, count int, cpus int32, near []core.Unit) []core.Unit {
	if len(free) <= count {
		return free
	}
	links := func(u core.Unit) int32 { return u.Links }
	socket := func(u core.Unit) int32 { return u.Socket }
	c := unitGroups{a: a, cpus: cpus, near: near}
	var out []core.Unit
	c.takeBest(free, count, links, func(set []core.Unit, n int) {
		c.takeBest(set, n, socket, func(set []core.Unit, n int) { out = append(out, set[:n]...) })
	})
	return out
}

// unitGroups divides units into sets and takes from the best.
type unitGroups struct {
	a    *nodeState
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
		if s := u.Socket - 1; s >= 0 && s < c.a.sockets && !slices.Contains(seen, s) {
			seen = append(seen, s)
			sum += c.a.freeCPUsOn(s)
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

// arbitraryLayout reads the nodes of an arbitrary distribution: each is there once for each of its tasks.
func arbitraryLayout(list string) (map[core.NodeName]int32, []core.NodeName) {
	names, err := hostlist.Expand(list, 1<<20)
	if err != nil || len(names) == 0 {
		return nil, nil
	}
	layout := map[core.NodeName]int32{}
	var sequence []core.NodeName
	for _, s := range names {
		name := core.NodeName(s)
		if layout[name]++; layout[name] == 1 {
			sequence = append(sequence, name)
		}
	}
	return layout, sequence
}
