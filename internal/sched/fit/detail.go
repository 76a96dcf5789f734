package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// requestDetail is the part of a request that few jobs have. Without it all checks take a short path. GPUs of a whole
// job are distributed by units: Request.Tasks counts units, and each node gets tasks and GPUs by its units. So node
// choice has one number to look at, as for other jobs.
type requestDetail struct {
	tasks        int32         // of the job, if Request.Tasks counts units instead
	tasksPerUnit int32         // with tasks per GPU a unit is one GPU with so many tasks; 0: tasks are shared out evenly
	gres         []gresRequest // generic resources, typed ones of a name first
	MixedTypes   bool          // several of them are asked for as a whole

	cpusPerGPU         int32
	memPerGPU          core.Bytes
	sockets, cores     int32 // a node must have so many sockets with so many cores free
	threads            int32 // a core must have
	usedThreads        int32 // threads of a core that are used; 0: all
	tasksPerSocket     int32
	tasksPerCore       int32
	specialized        int32 // cores, or threads, that the job leaves alone
	specializedThreads bool
	gresPerSocket      bool // some asks are of so many at each socket

	maxSharing       int32              // up to so many jobs on a CPU
	exclusive        bool               // the partition allocates whole nodes
	limitedPartition core.PartitionName // that is bounded in its CPUs of a node,
	cpuLimit         int32              // which are so many

	evenTasks  bool  // tasks are distributed to all nodes in turn, not to one node after the other
	cyclicCPUs uint8 // CPUs are taken of each socket in turn: 1 by the task, 2 one by one
	Layout     map[core.NodeName]int32
	sequence   []core.NodeName // of the nodes in layout
}

// gresRequest is a generic resource with all the ways it was asked for.
type gresRequest struct {
	name, gresType    string
	node, task, total int64 // on each node, for each task, in the whole job
	gpu               *core.GPUAsk
	socket            int64 // on each of the sockets, which is counted in node already
}

// readDetail sets Detail to the rare part of a shape, if it has one, and adjusts the request.
func (req *Request) readDetail(s *core.Spec) {
	m, x := s.Shape.More, s.Extra
	if isPlainShape(m) && (x == nil || x.Distribution == "") {
		return
	}
	w := &requestDetail{}
	if x != nil {
		w.readDistribution(x)
	}
	if w.Layout != nil {
		req.Tasks = 0
		for _, tasks := range w.Layout {
			req.Tasks += tasks
		}
		req.NodesMin, req.NodesMax = int32(len(w.Layout)), int32(len(w.Layout))
	}
	if m != nil {
		w.readShape(req, &s.Shape)
	} else {
		w.addPerNode(req.Gres)
	}
	for i := range w.gres {
		w.gres[i].gpu = req.gpu
	}
	req.Detail = w
}

// isPlainShape reports whether a shape has no rare part.
func isPlainShape(m *core.ShapeMore) bool {
	return m == nil || m.TasksPerSocket|m.TasksPerCore|m.TasksPerGPU|m.CPUsPerGPU|m.Sockets|m.Cores|m.Threads|
		m.CoreSpec|m.ThreadSpec == 0 &&
		m.MemPerGPU == 0 && len(m.GPUs)+len(m.GPUsPerTask)+len(m.GPUsPerSocket) == 0 && !m.OneThread && !m.OverSubscribe
}

func (w *requestDetail) readShape(req *Request, sh *core.Shape) {
	m := sh.More
	w.cpusPerGPU, w.memPerGPU = m.CPUsPerGPU, m.MemPerGPU
	w.sockets, w.cores, w.threads, w.usedThreads = m.Sockets, m.Cores, m.Threads, m.Threads
	w.tasksPerSocket, w.tasksPerCore = m.TasksPerSocket, m.TasksPerCore
	if m.OneThread {
		w.usedThreads = 1
	}
	if m.OverSubscribe {
		w.maxSharing = 1
	}
	if w.specialized = m.CoreSpec; m.ThreadSpec > 0 {
		w.specialized, w.specializedThreads = m.ThreadSpec, true
	}
	req.Exclusive = req.Exclusive || w.specialized > 0 // as Slurm: it is about the node as a whole
	node, task, job := sh.Counted()
	for _, g := range node {
		w.gresFor(g).node += g.Count
	}
	for _, g := range task {
		w.gresFor(g).task += g.Count
	}
	for _, g := range m.GPUsPerSocket {
		a := w.gresFor(g)
		a.socket += g.Count
		a.node += g.Count * int64(max(1, m.Sockets))
		w.gresPerSocket = true
	}
	var total int64
	for _, g := range job {
		w.gresFor(g).total += g.Count
		total += g.Count
	}
	w.gres = slices.DeleteFunc(w.gres, func(a gresRequest) bool { return a.node|a.task|a.total == 0 })
	slices.SortFunc(w.gres, func(a, b gresRequest) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(b.gresType, a.gresType))
	})
	req.Gres = nil
	w.MixedTypes = w.countTotals() > 1
	switch {
	case total > 0:
		w.tasks, w.tasksPerUnit = req.Tasks, m.TasksPerGPU
		if req.Tasks = max(req.Tasks, int32(total)); w.tasksPerUnit > 0 || w.MixedTypes {
			req.Tasks = int32(total)
		}
	case m.TasksPerGPU > 0:
		var gpus int64
		for i := range w.gres {
			gpus += w.gres[i].gpuCount(w.gres[i].node)
		}
		if most := int32(gpus) * m.TasksPerGPU; most > 0 && (req.tasksPerNode == 0 || req.tasksPerNode > most) {
			req.tasksPerNode = most
		}
	}
}

// addPerNode adds what is asked for on each node.
func (w *requestDetail) addPerNode(list []core.Gres) {
	for _, g := range list {
		w.gres = append(w.gres, gresRequest{name: g.Name, gresType: g.Type, node: g.Count})
	}
}

// capNodes keeps the nodes of a job that asks for GPUs as a whole to as many as can have one.
func (w *requestDetail) capNodes(req *Request) {
	var total int64
	for i := range w.gres {
		total += w.gres[i].total
	}
	if total > 0 && int64(req.NodesMax) > total {
		req.NodesMax = max(req.NodesMin, int32(total))
	}
}

// String describes the detail, for a message.
func (w *requestDetail) String() string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for i := range w.gres {
		a := &w.gres[i]
		name := a.name
		if a.gresType != "" {
			name += ":" + a.gresType
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
		{int64(w.cpusPerGPU), "CPUs a GPU"},
		{int64(w.memPerGPU / core.MiB), "MiB a GPU"},
		{
			int64(w.sockets),
			"sockets a node",
		},
		{int64(w.cores), "cores a socket"},
		{int64(w.threads), "threads a core"},
		{
			int64(w.tasksPerSocket),
			"tasks a socket at most",
		},
		{int64(w.tasksPerCore), "tasks a core at most"},
		{int64(w.tasksPerUnit), "tasks a GPU"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.text)
		}
	}
	if w.limitedPartition != "" {
		fmt.Fprintf(&b, "; partition %s uses %d CPUs of a node at most", w.limitedPartition, w.cpuLimit)
	}
	return b.String()
}

// gresFor finds or adds the entry of a resource.
func (w *requestDetail) gresFor(g core.Gres) *gresRequest {
	i := slices.IndexFunc(w.gres, func(a gresRequest) bool { return a.name == g.Name && a.gresType == g.Type })
	if i < 0 {
		i = len(w.gres)
		w.gres = append(w.gres, gresRequest{name: g.Name, gresType: g.Type})
	}
	return &w.gres[i]
}

func (a *gresRequest) gpuCount(n int64) int64 {
	if a.name != "gpu" {
		return 0
	}
	return n
}

// maxTasksFor returns how many tasks a node gets for so many units, at most.
func (w *requestDetail) maxTasksFor(req *Request, units int32) int32 {
	switch {
	case w.tasks == 0:
		return units
	case w.tasksPerUnit > 0:
		return units * w.tasksPerUnit
	}
	return max(1, shareOf(units, req.Tasks, w.tasks))
}

// shareOf returns a part of something that is divided by units, rounded up.
func shareOf[T int32 | int64](units, of int32, what T) T {
	return T((int64(units)*int64(what) + int64(of) - 1) / int64(of))
}

// gresCount returns the maximum of a resource that so many units and tasks use on a node.
func (w *requestDetail) gresCount(req *Request, a *gresRequest, units, tasks int32) int64 {
	c := a.node + a.task*int64(tasks)
	if a.total > 0 {
		c += shareOf(units, req.Tasks, a.total)
	}
	return c
}

// nodeUsage is what a job takes of one node.
type nodeUsage struct {
	tasks, cpus int32
	mem         core.Bytes
}

// cpusAndMem computes CPUs and memory for so many tasks and GPUs on a node.
func (w *requestDetail) cpusAndMem(req *Request, node *ledger.Node, tasks int32, gpus int64) nodeUsage {
	c := max(tasks*req.CpusPerTask, req.MinCPUs, int32(gpus)*w.cpusPerGPU)
	p := nodeUsage{tasks: tasks, cpus: node.CPULayout.RoundUp(c)}
	counted := p.cpus // memory goes by the CPUs that are used
	if used := w.threadsUsed(node); used < node.Threads || w.tasksPerCore > 0 || w.tasksPerSocket > 0 {
		p.cpus = max(node.CPULayout.RoundUp((c+used-1)/used*node.Threads), w.cpusForTasks(req, node, tasks))
		counted = p.cpus / node.Threads * used
	}
	switch p.mem = req.MemPerNode; {
	case w.memPerGPU > 0:
		p.mem = w.memPerGPU * core.Bytes(gpus)
	case req.memPerCPU > 0:
		p.mem = req.memPerCPU * core.Bytes(counted)
	}
	if req.allMem {
		p.mem = node.Record.Hardware.Memory
	}
	return p
}

// wholeMem is the memory of a job that has all CPUs and GPUs of a node, where it asks for it by these.
func (w *requestDetail) wholeMem(req *Request, node *ledger.Node, cpus int32, gpus int64) core.Bytes {
	mem, most := core.Bytes(0), node.Record.Hardware.Memory
	if w.memPerGPU > 0 {
		mem = w.memPerGPU * core.Bytes(gpus)
	} else if req.memPerCPU > 0 {
		mem = req.memPerCPU * core.Bytes(cpus)
	}
	return min(mem, most)
}

// cpusForTasks is how many CPUs of a node tasks need if only so many may be on each core, or on each socket.
func (w *requestDetail) cpusForTasks(req *Request, node *ledger.Node, tasks int32) int32 {
	up := func(x, by int32) int32 { return (x + by - 1) / by }
	on := func(tasks int32) int32 { // one socket
		cores := up(tasks*req.CpusPerTask, w.threadsUsed(node))
		if w.tasksPerCore > 0 {
			cores = max(cores, up(tasks, w.tasksPerCore))
		}
		return node.CPULayout.RoundUp(cores * node.Threads)
	}
	if k := w.tasksPerSocket; k > 0 {
		return tasks/k*on(k) + on(tasks%k)
	}
	return on(tasks)
}

// threadsUsed is how many threads of each core the job uses on a node.
func (w *requestDetail) threadsUsed(node *ledger.Node) int32 {
	if w.usedThreads > 0 {
		return min(w.usedThreads, node.Threads)
	}
	return node.Threads
}

// specializedCPUs returns how many CPUs of a node the job leaves alone.
func (w *requestDetail) specializedCPUs(node *ledger.Node) int32 {
	if w.specializedThreads {
		return node.CPULayout.RoundUp(w.specialized)
	}
	return node.CPULayout.RoundUp(w.specialized * node.Threads)
}

// needsSockets reports whether it matters on which sockets CPUs are free.
func (w *requestDetail) needsSockets() bool {
	return w.sockets > 0 || w.cores > 0 || w.tasksPerSocket > 0 || w.gresPerSocket
}

// TasksAt returns how many tasks or units of a job a node could take.
func (req *Request) TasksAt(view *ledger.View, node *ledger.Node) int32 {
	b := view.Free(node)
	if req.User != "" {
		free := b.FreeFor(req.User, node, view)
		b = &free
	}
	if req.Detail == nil {
		return req.TasksIn(node, b)
	}
	s, ok := req.supplyAt(view, node, b)
	if !ok {
		return 0
	}
	if req.Detail.MixedTypes {
		_, sum, _ := s.gpuOffer(req.Detail.totals(), 1<<40)
		return int32(sum)
	}
	hi := req.Tasks
	if w := req.Detail; w.Layout != nil {
		hi = w.Layout[node.Record.Name]
		if hi == 0 || !s.fits(hi) {
			return 0
		}
		return hi
	} else if w.tasks == 0 {
		hi = s.cpus / req.CpusPerTask
	}
	if hi <= 0 || !s.fits(1) {
		return 0
	}
	lo := int32(1)
	for lo < hi { // the most that fits
		if mid := hi - (hi-lo)/2; s.fits(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// supplyAt looks at a node; false: the job cannot be there.
func (req *Request) supplyAt(view *ledger.View, node *ledger.Node, b *ledger.Resources) (s nodeSupply, ok bool) {
	if b.Exclusive > 0 || req.Exclusive && b.Allocs > 0 {
		return s, false
	}
	s = nodeSupply{req: req, node: node, free: b, cpus: b.Cpus, mem: b.Mem, tasks: 1<<31 - 1}
	if req.maxMemPerNode > 0 {
		s.mem = min(s.mem, req.maxMemPerNode)
	}
	return s, s.countCPUs(view)
}

// nodeSupply is what a node has for a job under a view.
type nodeSupply struct {
	req   *Request
	node  *ledger.Node
	free  *ledger.Resources
	cpus  int32
	tasks int32 // sockets take no more
	mem   core.Bytes
}

// countCPUs counts the CPUs the job could have; false: it cannot be there.
func (s *nodeSupply) countCPUs(view *ledger.View) bool {
	w, node, h := s.req.Detail, s.node, &s.node.Record.Hardware
	if node.Sockets < w.sockets || w.threads > node.Threads || w.cores > node.PerSocket/node.Threads {
		return false
	}
	if w.maxSharing > 1 && view.JoinShared && view.At == 0 && !view.IfIdle && !node.PartlyReserved {
		s.cpus = node.Free.Cpus + node.JoinableCPUs(w.maxSharing)
		for i := range node.Reserved { // there, those who share count like all others
			if c := node.Reserved[i]; view.End != 0 && alloc.Overlaps(c.Start, view.End) {
				s.cpus = min(s.cpus, c.Leaves.Cpus)
			}
		}
	}
	if w.limitedPartition != "" {
		if i := node.CpuLimitOf(w.limitedPartition); i >= 0 {
			s.cpus = min(s.cpus, int32(s.free.Gres[i]))
		}
	}
	if w.specialized > 0 {
		s.cpus = min(s.cpus, h.CPUs-w.specializedCPUs(node))
	}
	s.cpus -= s.cpus % node.AllocUnit
	return !w.needsSockets() || s.countSockets(view)
}

// countSockets looks at each socket. What is free on which of them is known of this moment only; of a later one it is
// known only if the whole node is free.
func (s *nodeSupply) countSockets(view *ledger.View) bool {
	w, node, req := s.req.Detail, s.node, s.req
	now := !view.IfIdle && view.At == 0
	if !now && s.free.Cpus < node.Capacity.Cpus {
		return false
	}
	var have, sum, tasks, local int32
	for k := range node.Sockets {
		free := node.PerSocket
		if now {
			free = node.FreeCPUsOn(k)
		}
		if free < max(1, w.cores*node.Threads) {
			continue
		}
		have++
		sum += free
		if w.gresPerSocket && w.hasLocalUnits(node, k, now) {
			local++
		}
		if w.tasksPerSocket > 0 {
			fit := free / node.Threads * w.threadsUsed(node) / req.CpusPerTask
			if w.tasksPerCore > 0 {
				fit = min(fit, free/node.Threads*w.tasksPerCore)
			}
			if req.CpusPerTask > node.PerSocket/node.Threads*w.threadsUsed(node) { // a task is wider than a socket
				fit = w.tasksPerSocket
			}
			tasks += min(w.tasksPerSocket, fit)
		}
	}
	if s.cpus = min(s.cpus, sum); w.tasksPerSocket > 0 {
		s.tasks = tasks
	}
	return have >= max(1, w.sockets) && (!w.gresPerSocket || local >= max(1, w.sockets))
}

// hasLocalUnits reports whether a socket has the units asked for at each. Where the node does not tell, it may have.
func (w *requestDetail) hasLocalUnits(node *ledger.Node, socket int32, now bool) bool {
	for i := range w.gres {
		ask := &w.gres[i]
		if ask.socket == 0 {
			continue
		}
		var there int64
		known := false
		for k := range node.Gres {
			g := &node.Gres[k]
			if !ask.accepts(g) {
				continue
			}
			for _, u := range g.Units {
				known = known || u.Socket > 0
				if u.Socket == socket+1 && (!now || g.Free.Has(u.Index)) {
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

func (a *gresRequest) accepts(g *ledger.Gres) bool { return g.Serves(a.name, a.gresType, a.gpu) }

// fits reports whether so many units fit.
func (s *nodeSupply) fits(units int32) bool {
	req, w := s.req, s.req.Detail
	tasks := req.Detail.maxTasksFor(req, units)
	if req.tasksPerNode > 0 && tasks > req.tasksPerNode {
		if w.tasks == 0 || w.tasksPerUnit > 0 {
			return false
		}
		tasks = req.tasksPerNode
	}
	if tasks > s.tasks {
		return false
	}
	var typed, gpus int64
	for i := range w.gres {
		a := &w.gres[i]
		if i > 0 && w.gres[i-1].name != a.name {
			typed = 0
		}
		c := req.Detail.gresCount(req, a, units, tasks)
		gpus += a.gpuCount(c)
		want := c
		if a.gresType != "" {
			typed += c
		} else {
			want += typed
		}
		have := int64(0)
		for k := range s.node.Gres {
			if a.accepts(&s.node.Gres[k]) {
				have += s.free.Gres[k]
			}
		}
		if have < want {
			return false
		}
	}
	p := req.Detail.cpusAndMem(req, s.node, tasks, gpus)
	return p.cpus <= s.cpus && p.mem <= s.mem
}

// ReservedUsage is what a job takes of a node that was chosen for it, for a reservation: as much as it may turn out to
// be.
func (req *Request) ReservedUsage(p *Choice, b *ledger.Resources) ledger.Resources {
	if req.Detail == nil || !req.Detail.MixedTypes {
		return req.Usage(p.Node, p.Tasks, b)
	}
	return req.Detail.worstUsage(req, p.Node, min(p.Capacity, req.Detail.tasks), req.Detail.totals(), b)
}

// usage is what a job with so many units on a node takes of it.
func (w *requestDetail) usage(req *Request, node *ledger.Node, units int32, b *ledger.Resources) ledger.Resources {
	tasks := w.maxTasksFor(req, units)
	counts := w.totals() // of several kinds, as far as it has them
	for i := range counts {
		if !w.MixedTypes {
			counts[i] = w.gresCount(req, &w.gres[i], units, tasks)
		}
	}
	return w.worstUsage(req, node, tasks, counts, b)
}

// worstUsage is exactUsage for a job that may turn out to need other CPUs or units than those that are free then.
func (w *requestDetail) worstUsage(req *Request, node *ledger.Node, tasks int32, counts []int64,
	b *ledger.Resources,
) ledger.Resources {
	if w.MixedTypes {
		for i := range counts {
			counts[i] += w.gres[i].node
		}
	}
	u := w.exactUsage(req, node, tasks, counts, b)
	if w.needsSockets() { // whatever else starts there could be on the wrong socket
		u.Cpus = node.Record.Hardware.CPUs
		for k := range node.Gres {
			for i := range w.gres {
				if q := &w.gres[i]; q.socket > 0 && q.accepts(&node.Gres[k]) {
					u.Gres[k] = max(0, b.Gres[k])
				}
			}
		}
	}
	return u
}

// exactUsage is what a job with so many tasks and resources takes of a node.
func (w *requestDetail) exactUsage(req *Request, node *ledger.Node, tasks int32, counts []int64,
	b *ledger.Resources,
) ledger.Resources {
	u := ledger.Resources{Allocs: -1}
	if len(node.Gres) > 0 {
		u.Gres = make([]int64, len(node.Gres))
	}
	var gpus int64
	for i := range w.gres {
		q, left := &w.gres[i], counts[i]
		gpus += q.gpuCount(left)
		for k := range node.Gres {
			if q.accepts(&node.Gres[k]) {
				take := max(0, min(left, b.Gres[k]-u.Gres[k]))
				u.Gres[k] += take
				left -= take
			}
		}
	}
	p := w.cpusAndMem(req, node, tasks, gpus)
	u.Cpus, u.Mem = p.cpus, p.mem
	at := node.CpuLimitOf(w.limitedPartition)
	req.markExclusive(&u)
	if req.Exclusive { // whole nodes come with all they have
		u.Cpus = node.Record.Hardware.CPUs - w.specializedCPUs(node)
		if at >= 0 {
			u.Cpus = min(u.Cpus, int32(max(0, b.Gres[at])))
		}
		u.Cpus -= u.Cpus % node.AllocUnit
		for k := range u.Gres {
			if k >= len(node.Gres) || node.Gres[k].Name != "mps" && node.Gres[k].Name != "shard" { // parts of a GPU stay
				u.Gres[k] = max(0, b.Gres[k])
			}
		}
		var gpus int64
		for k := range node.Gres {
			if node.Gres[k].Name == "gpu" {
				gpus += u.Gres[k]
			}
		}
		u.Mem = max(u.Mem, w.wholeMem(req, node, u.Cpus, gpus))
	}
	if at >= 0 {
		u.Gres[at] = int64(u.Cpus)
	}
	return u
}

// distribute gives each node its tasks and resources for the units it has: no less than one task, and together what the
// job asks for.
func (w *requestDetail) distribute(req *Request, picks []Choice) (tasks []int32, totals [][]int64) {
	tasks, totals = make([]int32, len(picks)), make([][]int64, len(picks))
	if w.tasks == 0 {
		for i := range picks {
			tasks[i] = picks[i].Tasks
		}
	} else {
		most := make([]int64, len(picks))
		for i := range picks {
			if most[i] = int64(w.maxTasksFor(req, picks[i].Tasks)); w.MixedTypes {
				most[i] = int64(picks[i].Capacity)
			}
			if req.tasksPerNode > 0 {
				most[i] = min(most[i], int64(req.tasksPerNode))
			}
		}
		for i, t := range distributeTotal(int64(w.tasks), most) {
			tasks[i] = int32(max(1, t))
		}
	}
	for i := range picks {
		totals[i] = make([]int64, len(w.gres))
	}
	for k := range w.gres {
		if w.gres[k].total == 0 {
			continue
		}
		if w.MixedTypes {
			for i := range picks {
				totals[i][k] = picks[i].gres[k]
			}
			continue
		}
		most := make([]int64, len(picks))
		for i := range picks {
			most[i] = shareOf(picks[i].Tasks, req.Tasks, w.gres[k].total)
		}
		for i, c := range distributeTotal(w.gres[k].total, most) {
			totals[i][k] = c
		}
	}
	return tasks, totals
}

// distributeTotal gives one to each, then to each in order up to its maximum.
func distributeTotal(total int64, most []int64) []int64 {
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

// fillsNodes reports whether tasks fill one node after the other; else each gets some in turn.
func (req *Request) fillsNodes() bool {
	return req.Detail == nil || !req.Detail.evenTasks
}

// withoutMemory is w without requests for memory.
func (w *requestDetail) withoutMemory() *requestDetail {
	if w == nil {
		return nil
	}
	l := *w
	l.memPerGPU = 0
	return &l
}

// MayShare reports whether the job may be on CPUs that others are on.
func (req *Request) MayShare() bool { return req.Detail != nil && req.Detail.maxSharing > 1 }

// applySharing applies a partition's settings of sharing and CPUs. A request is copied for each partition, but Detail
// is shared, so it is copied here.
func (req *Request) applySharing(p *core.Partition) {
	whole, force, jobs, _ := grammar.ParseSharing(p.OverSubscribe)
	if req.Detail == nil && !whole && !force && p.MaxCPUsPerNode == 0 {
		return
	}
	w := requestDetail{}
	if req.Detail != nil {
		w = *req.Detail
	} else {
		w.addPerNode(req.Gres)
	}
	if w.exclusive = whole; whole {
		req.Exclusive = true
	}
	if p.MaxCPUsPerNode > 0 {
		w.limitedPartition, w.cpuLimit = p.Name, p.MaxCPUsPerNode
	}
	wishes := w.maxSharing > 0
	if w.maxSharing = 0; jobs > 1 && !req.Exclusive && (force || wishes) {
		w.maxSharing = jobs
	}
	req.Detail = &w
}

// readDistribution reads how tasks lie on nodes, sockets and cores.
func (w *requestDetail) readDistribution(x *core.Extra) {
	text, mode, _ := strings.Cut(strings.ToLower(x.Distribution), ",")
	f := append(strings.Split(text, ":"), "")
	kind, _, _ := strings.Cut(f[0], "=")
	switch kind {
	case "plane": // cyclic says who is where, not how many are there
		w.evenTasks = true
	case "arbitrary":
		w.Layout, w.sequence = arbitraryLayout(x.NodeList)
	}
	switch f[1] {
	case "cyclic":
		w.cyclicCPUs = 1
	case "fcyclic":
		w.cyclicCPUs = 2
	}
	if mode == "pack" && w.Layout == nil {
		w.evenTasks = false
	}
}
