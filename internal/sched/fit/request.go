package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Request is what a job asks for: what one task and one node take.
type Request struct {
	NodesMin, NodesMax int32
	Tasks              int32
	tasksPerNode       int32 // Tasks a node may have at most; 0: any
	CpusPerTask        int32
	MinCPUs            int32 // on each node
	MemPerNode         core.Bytes
	memPerCPU          core.Bytes
	allMem             bool       // --mem=0
	maxMemPerNode      core.Bytes // the partition's limit; 0: none
	Exclusive          bool
	blocks             bool         // whole blocks of nodes that are split
	Gres               []core.Gres  // typed ones first, each kind once
	gpu                *core.GPUAsk // which GPUs will do; nil: all
	Required, Excluded map[core.NodeName]bool
	features           []string
	tmpDisk            core.Bytes       // that each node must have; it is not shared out
	Uid                uint32           // its user, if nodes are kept to that user; see Ledger.KeptUser
	Project            core.ProjectName // likewise; see Ledger.KeptProject
	Set                *setRequest      // what is asked of the nodes as a whole; nil: nothing
	User               core.UserName    // only jobs of this user may share its nodes; "": any
	Detail             *requestDetail   // what few jobs ask for of each node
	single             singleFit
	Invalid            string // a part of the request that cannot be read: it fits nowhere
}

// AllMemory in Shape.MemPerNode asks for all memory of each node.
const AllMemory core.Bytes = -1

// Key names all that placement reads of a request: specs with equal keys have equal needs.
type Key struct {
	nodesMin, nodesMax, tasks, tasksPerNode, cpusPerTask, minCPUs int32
	memPerNode, memPerCPU                                         core.Bytes
	exclusive, blocks                                             bool
	// gres, node lists and constraints, which are rare
	rest string
}

// KeyOf returns the key of a spec's request.
func KeyOf(s *core.Spec) Key {
	sh := &s.Shape
	k := Key{
		sh.NodesMin, sh.NodesMax, sh.Tasks, sh.TasksPerNode, sh.CPUsPerTask, sh.MinCPUs, sh.MemPerNode,
		sh.MemPerCPU, sh.Exclusive, sh.Blocks, "",
	}
	x := s.Extra
	simple := hasNoSetRequest(s)
	if simple && len(sh.Gres) == 0 && sh.More == nil && (x == nil || x.NodeList == "" && x.Exclude == "" &&
		x.Constraint.IsZero() && x.TmpDisk == 0 && x.Distribution == "" && x.GPU == nil) {
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
		b = append(append(b, 0), x.Constraint.String()...)
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

// RequestOf returns the request of a spec.
func RequestOf(s *core.Spec, names alloc.HostsFunc) Request {
	sh := &s.Shape
	req := Request{
		NodesMin: max(1, sh.NodesMin), NodesMax: sh.NodesMax, Tasks: max(1, sh.Tasks), tasksPerNode: sh.TasksPerNode,
		CpusPerTask: max(1, sh.CPUsPerTask), MinCPUs: sh.MinCPUs, MemPerNode: sh.MemPerNode, memPerCPU: sh.MemPerCPU,
		Gres: sortGres(sh.Gres), Exclusive: sh.Exclusive,
	}
	if req.MemPerNode == AllMemory {
		req.MemPerNode, req.allMem = 0, true
	}
	req.gpu = s.More().GPU
	req.readDetail(s)
	req.blocks = sh.Blocks && req.Detail == nil && !req.Exclusive && req.tasksPerNode == 1
	if req.NodesMax < req.NodesMin {
		req.NodesMax = req.NodesMin
		if sh.NodesMin == 0 && sh.NodesMax == 0 {
			req.NodesMax = max(req.NodesMin, req.Tasks) // not said: as many as the tasks need
		}
	}
	if req.Detail != nil {
		req.Detail.capNodes(&req)
	}
	if x := s.Extra; x != nil {
		req.Required, req.Excluded, req.tmpDisk = names(x.NodeList), names(x.Exclude), x.TmpDisk
	}
	req.raiseNodes(int32(len(req.Required)))
	req.readSet(s)
	req.Invalid = invalidPart(s)
	return req
}

// raiseNodes raises the number of nodes; every node runs at least one task.
func (req *Request) raiseNodes(nodes int32) {
	req.NodesMin = max(req.NodesMin, nodes)
	req.NodesMax = max(req.NodesMax, req.NodesMin)
	req.Tasks = max(req.Tasks, req.NodesMin)
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

// TasksIn returns how many tasks of a job a node could take with so much free.
func (req *Request) TasksIn(node *ledger.Node, b *ledger.Resources) (tasks int32) {
	mem := b.Mem
	if req.maxMemPerNode > 0 {
		mem = min(mem, req.maxMemPerNode)
	}
	cpus := b.Cpus
	if node.AllocUnit > 1 { // an advance reservation may leave part of a unit
		cpus -= cpus % node.AllocUnit
	}
	if cpus < req.CpusPerTask || cpus < req.MinCPUs || mem < req.MemPerNode || b.Exclusive > 0 || req.Exclusive &&
		b.Allocs > 0 ||
		req.allMem && mem < node.Record.Hardware.Memory {
		return 0
	}
	tasks = cpus / req.CpusPerTask
	if req.memPerCPU > 0 {
		fed := int64(mem / req.memPerCPU) // CPUs there is memory for
		fed -= fed % int64(node.AllocUnit)
		if fed < int64(req.MinCPUs) {
			return 0
		}
		tasks = int32(min(int64(tasks), fed/int64(req.CpusPerTask)))
	}
	if req.tasksPerNode > 0 {
		tasks = min(tasks, req.tasksPerNode)
	}
	if tasks <= 0 || len(req.Gres) > 0 && !req.gresFits(node, b) || req.blocks && node.Blocks != nil &&
		!req.blocksFit(node, b) {
		return 0
	}
	return tasks
}

func (req *Request) gresFits(node *ledger.Node, b *ledger.Resources) bool {
	typed := int64(0) // of the same name, asked for by type
	for i := range req.Gres {
		g := &req.Gres[i]
		if i > 0 && req.Gres[i-1].Name != g.Name {
			typed = 0
		}
		want := g.Count
		if g.Type != "" {
			typed += g.Count
		} else {
			want += typed
		}
		have := int64(0)
		for k := range node.Gres {
			if u := &node.Gres[k]; u.Serves(g.Name, g.Type, req.gpu) {
				have += b.Gres[k]
			}
		}
		if have < want {
			return false
		}
	}
	return true
}

// Usage returns what a job with so many tasks on a node takes of it, out of what is free in b.
func (req *Request) Usage(node *ledger.Node, tasks int32, b *ledger.Resources) ledger.Resources {
	if req.Detail != nil {
		return req.Detail.usage(req, node, tasks, b)
	}
	u := req.plainUsage(node, tasks, b)
	if req.blocks && node.Blocks != nil {
		req.raiseToBlocks(node, &u)
	}
	return u
}

// plainUsage is Usage without detail and blocks.
func (req *Request) plainUsage(node *ledger.Node, tasks int32, b *ledger.Resources) ledger.Resources {
	u := ledger.Resources{
		Cpus: node.CPULayout.RoundUp(max(tasks*req.CpusPerTask, req.MinCPUs)), Mem: req.MemPerNode,
		Allocs: -1,
	}
	req.markExclusive(&u)
	if req.memPerCPU > 0 {
		u.Mem = req.memPerCPU * core.Bytes(u.Cpus)
	}
	if req.allMem {
		u.Mem = node.Record.Hardware.Memory
	}
	if req.Exclusive {
		u.Cpus = node.Record.Hardware.CPUs
		u.Mem = max(u.Mem, min(req.memPerCPU*core.Bytes(u.Cpus), node.Record.Hardware.Memory))
	}
	if len(node.Gres) == 0 || len(req.Gres) == 0 && !req.Exclusive {
		return u
	}
	u.Gres = make([]int64, len(node.Gres))
	if req.Exclusive { // whole nodes come with all they have
		for i := range u.Gres {
			if name := node.Gres[i].Name; name != "mps" && name != "shard" { // parts of a GPU are not taken with it
				u.Gres[i] = max(0, b.Gres[i])
			}
		}
		return u
	}
	for _, want := range req.Gres {
		left := want.Count
		for i := range node.Gres {
			if g := &node.Gres[i]; g.Serves(want.Name, want.Type, req.gpu) {
				take := max(0, min(left, b.Gres[i]-u.Gres[i]))
				u.Gres[i] += take
				left -= take
			}
		}
	}
	return u
}

// String describes the request, for a message.
func (req *Request) String() string {
	nodes := fmt.Sprintf("%d node(s)", req.NodesMin)
	if req.NodesMax > req.NodesMin && req.NodesMax < req.Tasks {
		nodes = fmt.Sprintf("%d to %d nodes", req.NodesMin, req.NodesMax)
	}
	tasks := req.Tasks
	if req.Detail != nil && req.Detail.tasks > 0 {
		tasks = req.Detail.tasks
	}
	t := fmt.Sprintf("%s, %d task(s) of %d CPU(s)", nodes, tasks, req.CpusPerTask)
	if req.MinCPUs > req.CpusPerTask {
		t += fmt.Sprintf(", %d CPUs a node or more", req.MinCPUs)
	}
	if req.MemPerNode > 0 {
		t += fmt.Sprintf(", %d MiB a node", req.MemPerNode/core.MiB)
	}
	if req.memPerCPU > 0 {
		t += fmt.Sprintf(", %d MiB a CPU", req.memPerCPU/core.MiB)
	}
	for _, g := range req.Gres {
		name := g.Name
		if g.Type != "" {
			name += ":" + g.Type
		}
		t += fmt.Sprintf(", %s:%d a node", name, g.Count)
	}
	if req.gpu != nil {
		t += " (" + req.gpu.String() + ")"
	}
	t += req.Detail.String()
	for _, f := range req.features {
		t += ", feature " + f
	}
	if req.Set != nil {
		t += req.Set.String()
	}
	if req.tmpDisk > 0 {
		t += fmt.Sprintf(", %d MiB of temporary disk", req.tmpDisk/core.MiB)
	}
	return t
}
