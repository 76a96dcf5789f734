package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// request is what a job asks for: what one task and one node take.
type request struct {
	nodesMin, nodesMax int32
	tasks              int32
	tasksPerNode       int32 // tasks a node may have at most; 0: any
	cpusPerTask        int32
	minCPUs            int32 // on each node
	memPerNode         core.Bytes
	memPerCPU          core.Bytes
	allMem             bool       // --mem=0
	maxMemPerNode      core.Bytes // the partition gives no more on a node; 0: any
	exclusive          bool
	blocks             bool         // whole blocks of nodes that are split
	gres               []core.Gres  // typed ones first, each kind once
	gpu                *core.GPUAsk // which GPUs will do; nil: all
	required, excluded map[core.NodeName]bool
	features           []string
	tmpDisk            core.Bytes     // that each node must have; it is not shared out
	uid                uint32         // whose it is, if he has nodes of his own; see Ledger.KeptUser
	set                *setRequest    // what is asked of the nodes as a whole; nil: nothing
	user               core.UserName  // whose jobs alone may be beside it; "": anybody's
	detail             *requestDetail // what few jobs ask for of each node
	single             singleFit
	invalid            string // a part of the request that cannot be read: it fits nowhere
}

// AllMemory in Shape.MemPerNode asks for all memory of each node.
const AllMemory core.Bytes = -1

// RequestKey names all that placement reads of a request: specs with equal keys have equal needs.
type RequestKey struct {
	nodesMin, nodesMax, tasks, tasksPerNode, cpusPerTask, minCPUs int32
	memPerNode, memPerCPU                                         core.Bytes
	exclusive, blocks                                             bool
	// gres, node lists and constraints, which are rare
	rest string
}

// RequestKeyOf gives the key of a spec's request.
func RequestKeyOf(s *core.Spec) RequestKey {
	sh := &s.Shape
	k := RequestKey{
		sh.NodesMin, sh.NodesMax, sh.Tasks, sh.TasksPerNode, sh.CPUsPerTask, sh.MinCPUs, sh.MemPerNode,
		sh.MemPerCPU, sh.Exclusive, sh.Blocks, "",
	}
	x := s.Extra
	simple := hasNoSetRequest(s)
	if simple && len(sh.Gres) == 0 && sh.More == nil && (x == nil || x.NodeList == "" && x.Exclude == "" &&
		x.Constraint == "" && x.TmpDisk == 0 && x.Distribution == "" && x.GPU == nil) {
		return k
	}
	b := make([]byte, 0, 64)
	b = appendGres(b, sh.Gres)
	if sh.More != nil {
		b = appendDetail(b, sh.More)
	}
	if x != nil {
		b = append(append(b, 0), x.Distribution...)
		b = append(append(b, 0), x.NodeList...)
		b = append(append(b, 0), x.Exclude...)
		b = append(append(b, 0), x.Constraint...)
		b = strconv.AppendInt(append(b, 0), int64(x.TmpDisk), 10)
		if x.GPU != nil {
			b = fmt.Appendf(append(b, 0), "%s %q %d %d %d", x.GPU.Vendor, x.GPU.Names, x.GPU.MemMin, x.GPU.MemMax,
				x.GPU.Capability)
		}
	}
	if !simple {
		b = appendSetRequest(b, s)
	}
	k.rest = string(b)
	return k
}

func appendGres(b []byte, list []core.Gres) []byte {
	for _, g := range list {
		b = append(append(append(b, g.Name...), ':'), g.Type...)
		b = append(strconv.AppendInt(append(b, ':'), g.Count, 10), ',')
	}
	return b
}

func appendDetail(b []byte, m *core.ShapeMore) []byte {
	for _, v := range [...]int64{
		int64(m.TasksPerSocket), int64(m.TasksPerCore), int64(m.TasksPerGPU), int64(m.CPUsPerGPU), int64(m.MemPerGPU),
		int64(m.Sockets), int64(m.Cores), int64(m.Threads), int64(m.CoreSpec), int64(m.ThreadSpec),
	} {
		b = strconv.AppendInt(append(b, ';'), v, 10)
	}
	for _, list := range [...][]core.Gres{m.GPUs, m.GPUsPerTask, m.GPUsPerSocket} {
		b = appendGres(append(b, ';'), list)
	}
	for _, v := range [...]bool{m.OneThread, m.OverSubscribe, m.ExclusiveUser, m.SpreadJob, m.UseMinNodes} {
		b = strconv.AppendBool(append(b, ';'), v)
	}
	return b
}

func requestOf(s *core.Spec, names alloc.HostsFunc) request {
	sh := &s.Shape
	n := request{
		nodesMin: max(1, sh.NodesMin), nodesMax: sh.NodesMax, tasks: max(1, sh.Tasks), tasksPerNode: sh.TasksPerNode,
		cpusPerTask: max(1, sh.CPUsPerTask), minCPUs: sh.MinCPUs, memPerNode: sh.MemPerNode, memPerCPU: sh.MemPerCPU,
		gres: sortGres(sh.Gres), exclusive: sh.Exclusive,
	}
	if n.memPerNode == AllMemory {
		n.memPerNode, n.allMem = 0, true
	}
	n.gpu = s.More().GPU
	n.readDetail(s)
	n.blocks = sh.Blocks && n.detail == nil && !n.exclusive && n.tasksPerNode == 1
	if n.nodesMax < n.nodesMin {
		n.nodesMax = n.nodesMin
		if sh.NodesMin == 0 && sh.NodesMax == 0 {
			n.nodesMax = max(n.nodesMin, n.tasks) // not said: as many as the tasks need
		}
	}
	if n.detail != nil {
		n.capNodesByGPUs()
	}
	if x := s.Extra; x != nil {
		n.required, n.excluded, n.tmpDisk = names(x.NodeList), names(x.Exclude), x.TmpDisk
	}
	n.raiseNodes(int32(len(n.required)))
	n.readSet(s)
	n.invalid = invalidPart(s)
	return n
}

// raiseNodes raises the number of nodes; every node runs at least one task.
func (n *request) raiseNodes(nodes int32) {
	n.nodesMin = max(n.nodesMin, nodes)
	n.nodesMax = max(n.nodesMax, n.nodesMin)
	n.tasks = max(n.tasks, n.nodesMin)
}

// sortGres brings requests into the order units are given in: those that name a type before those that take any, so
// that "any" does not take what another line must have.
func sortGres(asked []core.Gres) []core.Gres {
	if len(asked) == 0 || len(asked) == 1 && asked[0].Count > 0 {
		return asked
	}
	out := make([]core.Gres, 0, len(asked))
	for _, g := range asked {
		at := slices.IndexFunc(out, func(o core.Gres) bool { return o.Name == g.Name && o.Type == g.Type })
		switch {
		case g.Count <= 0:
		case at >= 0:
			out[at].Count += g.Count
		default:
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b core.Gres) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Type, a.Type))
	})
	return out
}

// tasksIn returns how many tasks of a job a node could take with so much free.
func (n *request) tasksIn(a *ledger.Node, b *ledger.Resources) (tasks int32) {
	mem := b.Mem
	if n.maxMemPerNode > 0 {
		mem = min(mem, n.maxMemPerNode)
	}
	cpus := b.Cpus
	if a.AllocUnit > 1 { // an advance reservation may leave part of a unit
		cpus -= cpus % a.AllocUnit
	}
	if cpus < n.cpusPerTask || cpus < n.minCPUs || mem < n.memPerNode || b.Exclusive > 0 || n.exclusive && b.Allocs > 0 ||
		n.allMem && mem < a.Record.Hardware.Memory {
		return 0
	}
	tasks = cpus / n.cpusPerTask
	if n.memPerCPU > 0 {
		fed := int64(mem / n.memPerCPU) // CPUs there is memory for
		fed -= fed % int64(a.AllocUnit)
		if fed < int64(n.minCPUs) {
			return 0
		}
		tasks = int32(min(int64(tasks), fed/int64(n.cpusPerTask)))
	}
	if n.tasksPerNode > 0 {
		tasks = min(tasks, n.tasksPerNode)
	}
	if tasks <= 0 || len(n.gres) > 0 && !n.gresFits(a, b) || n.blocks && a.Blocks != nil && !n.blocksFit(a, b) {
		return 0
	}
	return tasks
}

func (n *request) gresFits(a *ledger.Node, b *ledger.Resources) bool {
	typed := int64(0) // of the same name, asked for by type
	for i := range n.gres {
		g := &n.gres[i]
		if i > 0 && n.gres[i-1].Name != g.Name {
			typed = 0
		}
		want := g.Count
		if g.Type != "" {
			typed += g.Count
		} else {
			want += typed
		}
		have := int64(0)
		for k := range a.Gres {
			if u := &a.Gres[k]; u.Serves(g.Name, g.Type, n.gpu) {
				have += b.Gres[k]
			}
		}
		if have < want {
			return false
		}
	}
	return true
}

// usage returns what a job with so many tasks on a node takes of it, out of what is free in b.
func (n *request) usage(a *ledger.Node, tasks int32, b *ledger.Resources) ledger.Resources {
	if n.detail != nil {
		return n.detailUsage(a, tasks, b)
	}
	u := n.plainUsage(a, tasks, b)
	if n.blocks && a.Blocks != nil {
		n.raiseToBlocks(a, &u)
	}
	return u
}

// plainUsage is what it asks for of the node.
func (n *request) plainUsage(a *ledger.Node, tasks int32, b *ledger.Resources) ledger.Resources {
	u := ledger.Resources{Cpus: a.CPULayout.RoundUp(max(tasks*n.cpusPerTask, n.minCPUs)), Mem: n.memPerNode, Allocs: -1}
	n.markExclusive(&u)
	if n.memPerCPU > 0 {
		u.Mem = n.memPerCPU * core.Bytes(u.Cpus)
	}
	if n.allMem {
		u.Mem = a.Record.Hardware.Memory
	}
	if n.exclusive {
		u.Cpus = a.Record.Hardware.CPUs
	}
	if len(a.Gres) == 0 || len(n.gres) == 0 && !n.exclusive {
		return u
	}
	u.Gres = make([]int64, len(a.Gres))
	if n.exclusive { // whole nodes come with all they have
		for i := range u.Gres {
			u.Gres[i] = max(0, b.Gres[i])
		}
		return u
	}
	for _, want := range n.gres {
		left := want.Count
		for i := range a.Gres {
			if g := &a.Gres[i]; g.Serves(want.Name, want.Type, n.gpu) {
				take := max(0, min(left, b.Gres[i]-u.Gres[i]))
				u.Gres[i] += take
				left -= take
			}
		}
	}
	return u
}

// String tells what a job needs, for people.
func (n *request) String() string {
	nodes := fmt.Sprintf("%d node(s)", n.nodesMin)
	if n.nodesMax > n.nodesMin && n.nodesMax < n.tasks {
		nodes = fmt.Sprintf("%d to %d nodes", n.nodesMin, n.nodesMax)
	}
	tasks := n.tasks
	if n.detail != nil && n.detail.tasks > 0 {
		tasks = n.detail.tasks
	}
	t := fmt.Sprintf("%s, %d task(s) of %d CPU(s)", nodes, tasks, n.cpusPerTask)
	if n.minCPUs > n.cpusPerTask {
		t += fmt.Sprintf(", %d CPUs a node or more", n.minCPUs)
	}
	if n.memPerNode > 0 {
		t += fmt.Sprintf(", %d MiB a node", n.memPerNode/core.MiB)
	}
	if n.memPerCPU > 0 {
		t += fmt.Sprintf(", %d MiB a CPU", n.memPerCPU/core.MiB)
	}
	for _, g := range n.gres {
		name := g.Name
		if g.Type != "" {
			name += ":" + g.Type
		}
		t += fmt.Sprintf(", %s:%d a node", name, g.Count)
	}
	if n.gpu != nil {
		t += " (" + n.gpu.String() + ")"
	}
	t += n.detail.String()
	for _, f := range n.features {
		t += ", feature " + f
	}
	if n.set != nil {
		t += n.set.String()
	}
	if n.tmpDisk > 0 {
		t += fmt.Sprintf(", %d MiB of temporary disk", n.tmpDisk/core.MiB)
	}
	return t
}
