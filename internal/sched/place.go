package sched

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
)

// need is a job's shape worked out: what one task and one node take.
type need struct {
	nodesMin, nodesMax int32
	tasks              int32
	perNode            int32 // tasks a node may have at most; 0: any
	cpusPerTask        int32
	minCPUs            int32 // on each node
	memNode            core.Bytes
	memCPU             core.Bytes
	allMem             bool // --mem=0
	gres               []core.Gres
	exclusive          bool
	must, not          map[core.NodeName]bool
	features           []string
}

// AllMemory in Shape.MemPerNode asks for all memory of each node.
const AllMemory core.Bytes = -1

func needOf(s *core.Spec, names Names) need {
	sh := &s.Shape
	n := need{
		nodesMin: max(1, sh.NodesMin), nodesMax: sh.NodesMax, tasks: max(1, sh.Tasks), perNode: sh.TasksPerNode,
		cpusPerTask: max(1, sh.CPUsPerTask), minCPUs: sh.MinCPUs, memNode: sh.MemPerNode, memCPU: sh.MemPerCPU,
		gres: sh.Gres, exclusive: sh.Exclusive,
	}
	if n.memNode == AllMemory {
		n.memNode, n.allMem = 0, true
	}
	if n.nodesMax < n.nodesMin {
		n.nodesMax = n.nodesMin
		if sh.NodesMin == 0 && sh.NodesMax == 0 {
			n.nodesMax = max(n.nodesMin, n.tasks) // not said: as many as the tasks need
		}
	}
	n.tasks = max(n.tasks, n.nodesMin)
	if x := s.Extra; x != nil {
		n.must, n.not = names(x.NodeList), names(x.Exclude)
		n.nodesMin = max(n.nodesMin, int32(len(n.must)))
		n.nodesMax = max(n.nodesMax, n.nodesMin)
		n.tasks = max(n.tasks, n.nodesMin)
		if x.Constraint != "" {
			n.features = splitFeatures(x.Constraint)
		}
	}
	return n
}

// Names expands a hostlist into a set; the caller caches.
type Names func(hostlist string) map[core.NodeName]bool

// room is what a node could give a job: how many of its tasks.
func (n *need) room(a *account, empty bool) (tasks int32) {
	cpus, mem := a.cpus, a.mem
	if empty {
		cpus, mem = a.node.Hardware.CPUs, a.node.Hardware.Memory
	} else if a.whole > 0 || n.exclusive && a.held > 0 {
		return 0
	}
	if cpus < n.minCPUs || n.memNode > mem || n.allMem && mem < a.node.Hardware.Memory {
		return 0
	}
	tasks = cpus / n.cpusPerTask
	if n.memCPU > 0 {
		tasks = min(tasks, int32(min(int64(mem/(n.memCPU*core.Bytes(n.cpusPerTask))), 1<<30)))
	}
	if n.perNode > 0 {
		tasks = min(tasks, n.perNode)
	}
	if tasks <= 0 {
		return 0
	}
	for i := range n.gres {
		g := &n.gres[i]
		have := a.gresFree(g.Name, g.Type)
		if empty {
			have = gresTotal(a.node, g.Name, g.Type)
		}
		if have < g.Count {
			return 0
		}
	}
	return tasks
}

func gresTotal(node *core.Node, name, typ string) int64 {
	var n int64
	for _, g := range node.Hardware.Gres {
		if g.Name == name && (typ == "" || g.Type == typ) {
			n += g.Count
		}
	}
	return n
}

// pick is a node chosen for a job, with the tasks it gets.
type pick struct {
	a     *account
	room  int32
	tasks int32
}

// choose finds nodes for the whole job, or none: the first nodes in order that have room, nodes that must be used
// before all others. With empty set it asks what would be if nothing ran.
func (l *Ledger) choose(n *need, in map[core.NodeName]bool, buf []pick, empty bool, usable func(*core.Node) bool) []pick {
	picks := buf[:0]
	var room int64
	add := func(a *account) {
		if !usable(a.node) || n.not[a.node.Name] || !hasFeatures(a.node, n.features) {
			return
		}
		if r := n.room(a, empty); r > 0 {
			picks = append(picks, pick{a: a, room: r})
			room += int64(r)
		}
	}
	enough := func() bool { return int32(len(picks)) >= n.nodesMin && room >= int64(n.tasks) }
	if len(n.must) > 0 {
		for _, a := range l.order {
			if n.must[a.node.Name] && (in == nil || in[a.node.Name]) {
				add(a)
			}
		}
		if len(picks) < len(n.must) {
			return nil
		}
	}
	for _, a := range l.order {
		if enough() || int32(len(picks)) >= n.nodesMax {
			break
		}
		if !n.must[a.node.Name] && (in == nil || in[a.node.Name]) {
			add(a)
		}
	}
	if !enough() {
		// The first nodes in order have too little room for the tasks; the roomiest nodesMax of all may have enough.
		return l.chooseRoomiest(n, in, picks, empty, usable)
	}
	n.spread(picks)
	return picks
}

// chooseRoomiest is for jobs with a node limit whose tasks do not fit the first nodes that have any room.
func (l *Ledger) chooseRoomiest(n *need, in map[core.NodeName]bool, buf []pick, empty bool, usable func(*core.Node) bool) []pick {
	picks := buf[:0]
	for _, a := range l.order {
		if in != nil && !in[a.node.Name] || !usable(a.node) || n.not[a.node.Name] || !hasFeatures(a.node, n.features) {
			continue
		}
		if r := n.room(a, empty); r > 0 {
			picks = append(picks, pick{a: a, room: r})
		}
	}
	if int32(len(picks)) < n.nodesMin {
		return nil
	}
	stableByRoom(picks, n.must)
	picks = picks[:min(len(picks), int(n.nodesMax))]
	var room int64
	for _, p := range picks {
		room += int64(p.room)
	}
	if room < int64(n.tasks) {
		return nil
	}
	for i := len(picks); i > int(n.nodesMin); i-- { // as few as will do
		if room-int64(picks[i-1].room) < int64(n.tasks) {
			break
		}
		room -= int64(picks[i-1].room)
		picks = picks[:i-1]
	}
	n.spread(picks)
	return picks
}

// spread gives each node its tasks: one each, then evenly as far as there is room.
func (n *need) spread(picks []pick) {
	left := n.tasks
	for i := range picks {
		picks[i].tasks = 0
	}
	if n.nodesMin <= 1 && len(picks) > 1 { // the node count followed from the tasks: fill nodes one after the other
		for i := range picks {
			after := int32(len(picks) - i - 1)
			picks[i].tasks = min(picks[i].room, left-after)
			left -= picks[i].tasks
		}
		return
	}
	for left > 0 {
		gave := false
		for i := range picks {
			if left > 0 && picks[i].tasks < picks[i].room {
				picks[i].tasks++
				left--
				gave = true
			}
		}
		if !gave {
			return
		}
	}
}

// alloc names the very CPUs and units of a choice.
func (n *need) alloc(part core.PartitionName, picks []pick) *core.Alloc {
	al := &core.Alloc{Partition: part, Nodes: make([]core.NodeAlloc, len(picks))}
	for i, p := range picks {
		na := &al.Nodes[i]
		na.Node, na.Tasks = p.a.node.Name, p.tasks
		na.CPUs = max(p.tasks*n.cpusPerTask, n.minCPUs)
		na.Mem = n.memNode
		if n.exclusive {
			na.CPUs = p.a.node.Hardware.CPUs
		}
		if n.memCPU > 0 {
			na.Mem = n.memCPU * core.Bytes(max(p.tasks*n.cpusPerTask, n.minCPUs))
		}
		if n.allMem {
			na.Mem = p.a.node.Hardware.Memory
		}
		na.Cores = p.a.free.first(na.CPUs)
		na.Gres = n.gresUnits(p.a)
	}
	return al
}

func (n *need) gresUnits(a *account) []core.GresAlloc {
	var out []core.GresAlloc
	if n.exclusive { // whole nodes come with all they have
		for i := range a.gres {
			if g := &a.gres[i]; g.count > 0 {
				out = append(out, core.GresAlloc{Name: g.name, Type: g.typ, Units: g.free.first(int32(g.count))})
			}
		}
		return out
	}
	for _, want := range n.gres {
		left := want.Count
		for i := range a.gres {
			g := &a.gres[i]
			if left == 0 || g.name != want.Name || want.Type != "" && g.typ != want.Type || g.count == 0 {
				continue
			}
			units := g.free.first(int32(min(left, g.count)))
			left -= int64(len(units))
			out = append(out, core.GresAlloc{Name: g.name, Type: g.typ, Units: units})
		}
	}
	return out
}

// Fault says why a job can never start on these nodes, even if nothing ran and all were up.
type Fault struct {
	Reason string // what tongues match on: node_config_unavailable, too_many_nodes
	Text   string
}

// CanEver tells whether the nodes could hold the job if nothing ran and every node were up; in nil means all nodes.
func (l *Ledger) CanEver(s *core.Spec, in map[core.NodeName]bool, names Names) *Fault {
	n := needOf(s, names)
	if len(n.must) > 0 {
		for name := range n.must {
			if l.nodes[name] == nil || in != nil && !in[name] {
				return &Fault{Reason: "invalid_node", Text: fmt.Sprintf("node %s is not in the partition", name)}
			}
		}
	}
	if l.choose(&n, in, nil, true, func(*core.Node) bool { return true }) != nil {
		return nil
	}
	return &Fault{Reason: "node_config_unavailable", Text: "it asks for " + n.String() + "; " + l.biggest(in)}
}

// String tells what a job needs, for people.
func (n *need) String() string {
	nodes := fmt.Sprintf("%d node(s)", n.nodesMin)
	if n.nodesMax > n.nodesMin && n.nodesMax < n.tasks {
		nodes = fmt.Sprintf("%d to %d nodes", n.nodesMin, n.nodesMax)
	}
	t := fmt.Sprintf("%s, %d task(s) of %d CPU(s)", nodes, n.tasks, n.cpusPerTask)
	if n.memNode > 0 {
		t += fmt.Sprintf(", %d MiB a node", n.memNode/core.MiB)
	}
	if n.memCPU > 0 {
		t += fmt.Sprintf(", %d MiB a CPU", n.memCPU/core.MiB)
	}
	for _, g := range n.gres {
		name := g.Name
		if g.Type != "" {
			name += ":" + g.Type
		}
		t += fmt.Sprintf(", %s:%d a node", name, g.Count)
	}
	return t
}

// biggest tells what there is, for people.
func (l *Ledger) biggest(in map[core.NodeName]bool) string {
	var count, cpus int32
	var mem core.Bytes
	gres := map[string]int64{}
	var kinds []string
	for _, a := range l.order {
		if in != nil && !in[a.node.Name] {
			continue
		}
		count++
		cpus = max(cpus, a.node.Hardware.CPUs)
		mem = max(mem, a.node.Hardware.Memory)
		for _, g := range a.node.Hardware.Gres {
			k := g.Name
			if g.Type != "" {
				k += ":" + g.Type
			}
			if _, seen := gres[k]; !seen {
				kinds = append(kinds, k)
			}
			gres[k] = max(gres[k], g.Count)
		}
	}
	if count == 0 {
		return "there are no nodes"
	}
	t := fmt.Sprintf("there are %d node(s), the largest with %d CPUs and %d MiB", count, cpus, mem/core.MiB)
	for _, k := range kinds {
		t += fmt.Sprintf(", %s:%d", k, gres[k])
	}
	return t
}
