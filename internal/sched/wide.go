package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// wide is the part of a need that few jobs have. A need without one takes the short way everywhere.
//
// A job that asks for GPUs as a whole is shared out by units: n.tasks counts those, and each node gets its part of the
// tasks and of the GPUs by the units it was given. So the choice of nodes has one number to look at, as for other jobs.
type wide struct {
	tasks   int32 // of the job, if n.tasks counts units instead
	perUnit int32 // with tasks per GPU a unit is one GPU with so many tasks; 0: tasks are shared out evenly
	asks    []ask // generic resources, typed ones of a name first
	kinds   bool  // several of them are asked for as a whole

	cpusPerGPU     int32
	memPerGPU      core.Bytes
	sockets, cores int32 // a node must have so many sockets with so many cores free
	threads        int32 // a core must have
	use            int32 // threads of a core that are used; 0: all
	tasksPerSocket int32
	tasksPerCore   int32
	spared         int32 // cores, or threads, that the job leaves alone
	spareThreads   bool
	perSocket      bool // some asks are of so many at each socket

	share int32              // up to so many jobs on a CPU
	whole bool               // the partition gives whole nodes
	part  core.PartitionName // that is bounded in its CPUs of a node,
	bound int32              // which are so many

	even     bool  // tasks are dealt out to all nodes in turn, not to one node after the other
	turn     uint8 // CPUs are taken of each socket in turn: 1 by the task, 2 one by one
	layout   map[core.NodeName]int32
	sequence []core.NodeName // of the nodes in layout
}

// ask is a generic resource with all the ways it was asked for.
type ask struct {
	name, typ         string
	node, task, total int64 // on each node, for each task, in the whole job
	only              *core.GPUAsk
	socket            int64 // on each of the sockets, which is counted in node already
}

// wideOf reads the rare part of a shape; nil if there is none. It lowers or raises n to match.
func (n *need) wideOf(s *core.Spec) {
	m, x := s.Shape.More, s.Extra
	if plain(m) && (x == nil || x.Distribution == "") {
		return
	}
	w := &wide{}
	if x != nil {
		w.distribute(x)
	}
	if w.layout != nil {
		n.tasks = 0
		for _, tasks := range w.layout {
			n.tasks += tasks
		}
		n.nodesMin, n.nodesMax = int32(len(w.layout)), int32(len(w.layout))
	}
	if m != nil {
		w.more(n, &s.Shape)
	} else {
		w.perNode(n.gres)
	}
	for i := range w.asks {
		w.asks[i].only = n.gpu
	}
	n.more = w
}

// plain tells whether a shape has nothing here that is about what a node gives.
func plain(m *core.ShapeMore) bool {
	return m == nil || m.TasksPerSocket|m.TasksPerCore|m.TasksPerGPU|m.CPUsPerGPU|m.Sockets|m.Cores|m.Threads|m.CoreSpec|m.ThreadSpec == 0 &&
		m.MemPerGPU == 0 && len(m.GPUs)+len(m.GPUsPerTask)+len(m.GPUsPerSocket) == 0 && !m.OneThread && !m.OverSubscribe
}

func (w *wide) more(n *need, sh *core.Shape) {
	m := sh.More
	w.cpusPerGPU, w.memPerGPU = m.CPUsPerGPU, m.MemPerGPU
	w.sockets, w.cores, w.threads, w.use = m.Sockets, m.Cores, m.Threads, m.Threads
	w.tasksPerSocket, w.tasksPerCore = m.TasksPerSocket, m.TasksPerCore
	if m.OneThread {
		w.use = 1
	}
	if m.OverSubscribe {
		w.share = 1
	}
	if w.spared = m.CoreSpec; m.ThreadSpec > 0 {
		w.spared, w.spareThreads = m.ThreadSpec, true
	}
	n.exclusive = n.exclusive || w.spared > 0 // as Slurm: it is about the node as a whole
	node, task, job := sh.Counted()
	for _, g := range node {
		w.ask(g).node += g.Count
	}
	for _, g := range task {
		w.ask(g).task += g.Count
	}
	for _, g := range m.GPUsPerSocket {
		a := w.ask(g)
		a.socket += g.Count
		a.node += g.Count * int64(max(1, m.Sockets))
		w.perSocket = true
	}
	var total int64
	for _, g := range job {
		w.ask(g).total += g.Count
		total += g.Count
	}
	w.asks = slices.DeleteFunc(w.asks, func(a ask) bool { return a.node|a.task|a.total == 0 })
	slices.SortFunc(w.asks, func(a, b ask) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(b.typ, a.typ))
	})
	n.gres = nil
	w.kinds = w.sorts() > 1
	switch {
	case total > 0:
		w.tasks, w.perUnit = n.tasks, m.TasksPerGPU
		if n.tasks = max(n.tasks, int32(total)); w.perUnit > 0 || w.kinds {
			n.tasks = int32(total)
		}
	case m.TasksPerGPU > 0:
		var gpus int64
		for i := range w.asks {
			gpus += w.asks[i].gpus(w.asks[i].node)
		}
		if most := int32(gpus) * m.TasksPerGPU; most > 0 && (n.perNode == 0 || n.perNode > most) {
			n.perNode = most
		}
	}
}

// perNode takes over what is asked for on each node.
func (w *wide) perNode(list []core.Gres) {
	for _, g := range list {
		w.asks = append(w.asks, ask{name: g.Name, typ: g.Type, node: g.Count})
	}
}

// eachHasOne keeps the nodes of a job that asks for GPUs as a whole to as many as can have one.
func (n *need) eachHasOne() {
	var total int64
	for i := range n.more.asks {
		total += n.more.asks[i].total
	}
	if total > 0 && int64(n.nodesMax) > total {
		n.nodesMax = max(n.nodesMin, int32(total))
	}
}

// String tells of what is rare in a need, for people.
func (w *wide) String() string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for i := range w.asks {
		a := &w.asks[i]
		name := a.name
		if a.typ != "" {
			name += ":" + a.typ
		}
		for _, c := range [...]struct {
			n  int64
			of string
		}{{a.total, "for the job"}, {a.node, "a node"}, {a.task, "a task"}} {
			if c.n > 0 {
				fmt.Fprintf(&b, ", %s:%d %s", name, c.n, c.of)
			}
		}
	}
	for _, c := range [...]struct {
		n    int64
		text string
	}{
		{int64(w.cpusPerGPU), "CPUs a GPU"}, {int64(w.memPerGPU / core.MiB), "MiB a GPU"}, {int64(w.sockets), "sockets a node"},
		{int64(w.cores), "cores a socket"}, {int64(w.threads), "threads a core"}, {int64(w.tasksPerSocket), "tasks a socket at most"},
		{int64(w.tasksPerCore), "tasks a core at most"}, {int64(w.perUnit), "tasks a GPU"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.text)
		}
	}
	if w.part != "" {
		fmt.Fprintf(&b, "; partition %s uses %d CPUs of a node at most", w.part, w.bound)
	}
	return b.String()
}

// ask finds or adds the line of a resource.
func (w *wide) ask(g core.Gres) *ask {
	i := slices.IndexFunc(w.asks, func(a ask) bool { return a.name == g.Name && a.typ == g.Type })
	if i < 0 {
		i = len(w.asks)
		w.asks = append(w.asks, ask{name: g.Name, typ: g.Type})
	}
	return &w.asks[i]
}

func (a *ask) gpus(n int64) int64 {
	if a.name != "gpu" {
		return 0
	}
	return n
}

// most is how many tasks a node gets for so many units, at most.
func (n *need) most(units int32) int32 {
	w := n.more
	switch {
	case w.tasks == 0:
		return units
	case w.perUnit > 0:
		return units * w.perUnit
	}
	return max(1, share(units, n.tasks, w.tasks))
}

// share is a part of something that is shared out by units, rounded up.
func share[T int32 | int64](units, of int32, what T) T {
	return T((int64(units)*int64(what) + int64(of) - 1) / int64(of))
}

// count is how many of a resource a node gives for so many units and tasks, at most.
func (n *need) count(a *ask, units, tasks int32) int64 {
	c := a.node + a.task*int64(tasks)
	if a.total > 0 {
		c += share(units, n.tasks, a.total)
	}
	return c
}

// portion is what a job takes of one node.
type portion struct {
	tasks, cpus int32
	mem         core.Bytes
}

// portionOf works out CPUs and memory for so many tasks and GPUs on a node.
func (n *need) portionOf(a *account, tasks int32, gpus int64) portion {
	w := n.more
	c := max(tasks*n.cpusPerTask, n.minCPUs, int32(gpus)*w.cpusPerGPU)
	p := portion{tasks: tasks, cpus: a.grid.whole(c)}
	counted := p.cpus // memory goes by the CPUs that are used
	if used := w.used(a); used < a.threads || w.tasksPerCore > 0 || w.tasksPerSocket > 0 {
		p.cpus = max(a.grid.whole((c+used-1)/used*a.threads), w.apart(n, a, tasks))
		counted = p.cpus / a.threads * used
	}
	switch p.mem = n.memNode; {
	case w.memPerGPU > 0:
		p.mem = w.memPerGPU * core.Bytes(gpus)
	case n.memCPU > 0:
		p.mem = n.memCPU * core.Bytes(counted)
	}
	if n.allMem {
		p.mem = a.node.Hardware.Memory
	}
	return p
}

// apart is how many CPUs of a node tasks need if only so many may be on each core, or on each socket.
func (w *wide) apart(n *need, a *account, tasks int32) int32 {
	up := func(x, by int32) int32 { return (x + by - 1) / by }
	on := func(tasks int32) int32 { // one socket
		cores := up(tasks*n.cpusPerTask, w.used(a))
		if w.tasksPerCore > 0 {
			cores = max(cores, up(tasks, w.tasksPerCore))
		}
		return a.grid.whole(cores * a.threads)
	}
	if k := w.tasksPerSocket; k > 0 {
		return tasks/k*on(k) + on(tasks%k)
	}
	return on(tasks)
}

// used is how many threads of each core the job uses on a node.
func (w *wide) used(a *account) int32 {
	if w.use > 0 {
		return min(w.use, a.threads)
	}
	return a.threads
}

// spares is how many CPUs of a node the job leaves alone.
func (w *wide) spares(a *account) int32 {
	if w.spareThreads {
		return a.grid.whole(w.spared)
	}
	return a.grid.whole(w.spared * a.threads)
}

// socketed tells whether it matters on which sockets CPUs are free.
func (w *wide) socketed() bool {
	return w.sockets > 0 || w.cores > 0 || w.tasksPerSocket > 0 || w.perSocket
}

// room is how many tasks or units of a job a node could take.
func (at *look) room(n *need, a *account) int32 {
	b := at.balance(a)
	if n.owner != "" {
		free := b.to(n.owner, a, at)
		b = &free
	}
	if n.more == nil {
		return n.room(a, b)
	}
	s, ok := at.supply(n, a, b)
	if !ok {
		return 0
	}
	if n.more.kinds {
		_, sum, _ := s.offer(n.more.totals(), 1<<40)
		return int32(sum)
	}
	hi := n.tasks
	if w := n.more; w.layout != nil {
		hi = w.layout[a.node.Name]
		if hi == 0 || !s.holds(hi) {
			return 0
		}
		return hi
	} else if w.tasks == 0 {
		hi = s.cpus / n.cpusPerTask
	}
	if hi <= 0 || !s.holds(1) {
		return 0
	}
	lo := int32(1)
	for lo < hi { // the most that fits
		if mid := hi - (hi-lo)/2; s.holds(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// supply looks at a node; false: the job cannot be there.
func (at *look) supply(n *need, a *account, b *balance) (s supply, ok bool) {
	if b.whole > 0 || n.exclusive && b.held > 0 {
		return s, false
	}
	s = supply{n: n, a: a, b: b, cpus: b.cpus, mem: b.mem, tasks: 1<<31 - 1}
	if n.memMost > 0 {
		s.mem = min(s.mem, n.memMost)
	}
	return s, s.measure(at)
}

// supply is what a node could give a job at the moment looked at.
type supply struct {
	n     *need
	a     *account
	b     *balance
	cpus  int32
	tasks int32 // sockets take no more
	mem   core.Bytes
}

// measure counts the CPUs the job could have; false: it cannot be there.
func (s *supply) measure(at *look) bool {
	w, a, h := s.n.more, s.a, &s.a.node.Hardware
	if a.sockets < w.sockets || w.threads > a.threads || w.cores > a.socket/a.threads {
		return false
	}
	if w.share > 1 && at.share && at.then == 0 && !at.empty && !a.parted {
		s.cpus = a.now.cpus + a.joinable(w.share)
		for i := range a.claims { // there, those who share count like all others
			if c := a.claims[i]; at.end != 0 && hits(c.from, at.end) {
				s.cpus = min(s.cpus, c.left.cpus)
			}
		}
	}
	if w.part != "" {
		if i := a.boundOf(w.part); i >= 0 {
			s.cpus = min(s.cpus, int32(s.b.gres[i]))
		}
	}
	if w.spared > 0 {
		s.cpus = min(s.cpus, h.CPUs-w.spares(a))
	}
	s.cpus -= s.cpus % a.unit
	return !w.socketed() || s.sockets(at)
}

// sockets looks at each socket. What is free on which of them is known of this moment only; of a later one it is known
// only if the whole node is free.
func (s *supply) sockets(at *look) bool {
	w, a, n := s.n.more, s.a, s.n
	now := !at.empty && at.then == 0
	if !now && s.b.cpus < a.full.cpus {
		return false
	}
	var have, sum, tasks, local int32
	for k := range a.sockets {
		free := a.socket
		if now {
			free = a.freeOn(k)
		}
		if free < max(1, w.cores*a.threads) {
			continue
		}
		have++
		sum += free
		if w.perSocket && a.localTo(k, w, now) {
			local++
		}
		if w.tasksPerSocket > 0 {
			fit := free / a.threads * w.used(a) / n.cpusPerTask
			if w.tasksPerCore > 0 {
				fit = min(fit, free/a.threads*w.tasksPerCore)
			}
			if n.cpusPerTask > a.socket/a.threads*w.used(a) { // a task is wider than a socket
				fit = w.tasksPerSocket
			}
			tasks += min(w.tasksPerSocket, fit)
		}
	}
	if s.cpus = min(s.cpus, sum); w.tasksPerSocket > 0 {
		s.tasks = tasks
	}
	return have >= max(1, w.sockets) && (!w.perSocket || local >= max(1, w.sockets))
}

// freeOn counts the CPUs of a socket that are free, whole units of them.
func (a *account) freeOn(socket int32) int32 {
	if a.free == nil {
		return a.now.cpus / a.sockets
	}
	n := int32(0)
	for u := socket * a.socket / a.unit; (u+1)*a.unit <= (socket+1)*a.socket; u++ {
		if a.idle(u) {
			n += a.unit
		}
	}
	return n
}

// localTo tells whether a socket has the units asked for at each. Where the node does not tell, it may have.
func (a *account) localTo(socket int32, w *wide, now bool) bool {
	for i := range w.asks {
		ask := &w.asks[i]
		if ask.socket == 0 {
			continue
		}
		var there int64
		known := false
		for k := range a.gres {
			g := &a.gres[k]
			if !ask.takes(g) {
				continue
			}
			for _, u := range g.units {
				known = known || u.Socket > 0
				if u.Socket == socket+1 && (!now || g.free.has(u.Index)) {
					there++
				}
			}
		}
		if known && there < ask.socket {
			return false
		}
	}
	return true
}

func (a *ask) takes(g *gresAccount) bool { return g.serves(a.name, a.typ, a.only) }

// holds tells whether so many units fit.
func (s *supply) holds(units int32) bool {
	n, w := s.n, s.n.more
	tasks := n.most(units)
	if n.perNode > 0 && tasks > n.perNode {
		if w.tasks == 0 || w.perUnit > 0 {
			return false
		}
		tasks = n.perNode
	}
	if tasks > s.tasks {
		return false
	}
	var typed, gpus int64
	for i := range w.asks {
		a := &w.asks[i]
		if i > 0 && w.asks[i-1].name != a.name {
			typed = 0
		}
		c := n.count(a, units, tasks)
		gpus += a.gpus(c)
		want := c
		if a.typ != "" {
			typed += c
		} else {
			want += typed
		}
		have := int64(0)
		for k := range s.a.gres {
			if a.takes(&s.a.gres[k]) {
				have += s.b.gres[k]
			}
		}
		if have < want {
			return false
		}
	}
	p := n.portionOf(s.a, tasks, gpus)
	return p.cpus <= s.cpus && p.mem <= s.mem
}

// useOn is what a job takes of a node that was chosen for it, for a reservation: as much as it may turn out to be.
func (n *need) useOn(p *pick, b *balance) balance {
	if n.more == nil || !n.more.kinds {
		return n.use(p.a, p.tasks, b)
	}
	return n.useMost(p.a, min(p.room, n.more.tasks), n.more.totals(), b)
}

// useWide is what a job with so many units on a node takes of it.
func (n *need) useWide(a *account, units int32, b *balance) balance {
	tasks := n.most(units)
	counts := n.more.totals() // of several kinds, as far as it has them
	for i := range counts {
		if !n.more.kinds {
			counts[i] = n.count(&n.more.asks[i], units, tasks)
		}
	}
	return n.useMost(a, tasks, counts, b)
}

// useMost is useOf for a job that may turn out to need other CPUs or units than those that are free then.
func (n *need) useMost(a *account, tasks int32, counts []int64, b *balance) balance {
	if n.more.kinds {
		for i := range counts {
			counts[i] += n.more.asks[i].node
		}
	}
	u := n.useOf(a, tasks, counts, b)
	if n.more.socketed() { // whatever else starts there could be on the wrong socket
		u.cpus = a.node.Hardware.CPUs
		for k := range a.gres {
			for i := range n.more.asks {
				if q := &n.more.asks[i]; q.socket > 0 && q.takes(&a.gres[k]) {
					u.gres[k] = max(0, b.gres[k])
				}
			}
		}
	}
	return u
}

// useOf is what a job with so many tasks and resources takes of a node.
func (n *need) useOf(a *account, tasks int32, counts []int64, b *balance) balance {
	w := n.more
	u := balance{held: -1}
	if len(a.gres) > 0 {
		u.gres = make([]int64, len(a.gres))
	}
	var gpus int64
	for i := range w.asks {
		q, left := &w.asks[i], counts[i]
		gpus += q.gpus(left)
		for k := range a.gres {
			if q.takes(&a.gres[k]) {
				take := max(0, min(left, b.gres[k]-u.gres[k]))
				u.gres[k] += take
				left -= take
			}
		}
	}
	p := n.portionOf(a, tasks, gpus)
	u.cpus, u.mem = p.cpus, p.mem
	at := a.boundOf(w.part)
	n.keeps(&u)
	if n.exclusive { // whole nodes come with all they have
		u.cpus = a.node.Hardware.CPUs - w.spares(a)
		if at >= 0 {
			u.cpus = min(u.cpus, int32(max(0, b.gres[at])))
		}
		u.cpus -= u.cpus % a.unit
		for k := range u.gres {
			u.gres[k] = max(0, b.gres[k])
		}
	}
	if at >= 0 {
		u.gres[at] = int64(u.cpus)
	}
	return u
}

// deal gives each node its tasks and resources for the units it has: no less than one task, and together what the job
// asks for.
func (n *need) deal(picks []pick) (tasks []int32, totals [][]int64) {
	w := n.more
	tasks, totals = make([]int32, len(picks)), make([][]int64, len(picks))
	if w.tasks == 0 {
		for i := range picks {
			tasks[i] = picks[i].tasks
		}
	} else {
		most := make([]int64, len(picks))
		for i := range picks {
			if most[i] = int64(n.most(picks[i].tasks)); w.kinds {
				most[i] = int64(picks[i].room)
			}
			if n.perNode > 0 {
				most[i] = min(most[i], int64(n.perNode))
			}
		}
		for i, t := range dealOut(int64(w.tasks), most) {
			tasks[i] = int32(max(1, t))
		}
	}
	for i := range picks {
		totals[i] = make([]int64, len(w.asks))
	}
	for k := range w.asks {
		if w.asks[k].total == 0 {
			continue
		}
		if w.kinds {
			for i := range picks {
				totals[i][k] = picks[i].kinds[k]
			}
			continue
		}
		most := make([]int64, len(picks))
		for i := range picks {
			most[i] = share(picks[i].tasks, n.tasks, w.asks[k].total)
		}
		for i, c := range dealOut(w.asks[k].total, most) {
			totals[i][k] = c
		}
	}
	return tasks, totals
}

// dealOut gives one to each, and then to each in order up to what it may have.
func dealOut(total int64, most []int64) []int64 {
	out := make([]int64, len(most))
	for i := range most {
		if total > 0 && most[i] > 0 {
			out[i]++
			total--
		}
	}
	for i := range most {
		more := max(0, min(total, most[i]-out[i]))
		out[i] += more
		total -= more
	}
	return out
}

// fills tells whether tasks fill one node after the other; else each gets some in turn.
func (n *need) fills() bool {
	return n.more == nil || !n.more.even
}

// light is w without wishes for memory.
func (w *wide) light() *wide {
	if w == nil {
		return nil
	}
	l := *w
	l.memPerGPU = 0
	return &l
}

// shares tells whether the job may be on CPUs that others are on.
func (n *need) shares() bool { return n.more != nil && n.more.share > 1 }

// bounded applies what a partition says of sharing and of CPUs. A need is copied for each partition, what is rare of it
// is not.
func (n *need) bounded(p *core.Partition) {
	whole, force, jobs, _ := core.ParseSharing(p.OverSubscribe)
	if n.more == nil && !whole && !force && p.MaxCPUsPerNode == 0 {
		return
	}
	w := wide{}
	if n.more != nil {
		w = *n.more
	} else {
		w.perNode(n.gres)
	}
	if w.whole = whole; whole {
		n.exclusive = true
	}
	if p.MaxCPUsPerNode > 0 {
		w.part, w.bound = p.Name, p.MaxCPUsPerNode
	}
	wishes := w.share > 0
	if w.share = 0; jobs > 1 && !n.exclusive && (force || wishes) {
		w.share = jobs
	}
	n.more = &w
}

// distribute reads how tasks lie on nodes, sockets and cores.
func (w *wide) distribute(x *core.Extra) {
	text, mode, _ := strings.Cut(strings.ToLower(x.Distribution), ",")
	f := append(strings.Split(text, ":"), "")
	kind, _, _ := strings.Cut(f[0], "=")
	switch kind {
	case "plane": // cyclic says who is where, not how many are there
		w.even = true
	case "arbitrary":
		w.layout, w.sequence = layoutOf(x.NodeList)
	}
	switch f[1] {
	case "cyclic":
		w.turn = 1
	case "fcyclic":
		w.turn = 2
	}
	if mode == "pack" && w.layout == nil {
		w.even = false
	}
}
