package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Choice is a node chosen for a job, with the tasks it gets.
type Choice struct {
	Node     *ledger.Node
	Capacity int32
	Tasks    int32
	gres     []int64 // see chooseTypes
}

// Buffer is memory for the result of Request.Choose. Those who choose nodes one after the other share one.
type Buffer struct{ Choices []Choice }

// Accepts reports whether a job may use a node at all.
func (req *Request) Accepts(node *ledger.Node, view *ledger.View) bool {
	return !node.OtherComponent && (view.WithDown && !node.Record.LoginOnly() || node.Record.Usable()) &&
		(len(req.Excluded) == 0 ||
			!req.Excluded[node.Record.Name]) &&
		node.Record.Hardware.TmpDisk >= req.tmpDisk && (len(req.features) == 0 || hasFeatures(node.Record, req.features)) &&
		(req.Set == nil || req.Set.accepts(node.Record)) && req.mayUseNode(node.Record)
}

// Choose finds nodes for the whole job, or none: the first node that has room for all of it if it may be on one;
// otherwise the first nodes in order that have room, required nodes before all others; or, for requests with a
// setRequest, what setSearch finds. Jobs that ask for GPUs of the whole job get as few nodes as possible (both as Slurm
// 22.05).
func (req *Request) Choose(view ledger.View, buf []Choice) []Choice {
	if req.Invalid != "" {
		return nil
	}
	if req.Detail != nil && req.Detail.MixedTypes {
		return req.chooseTypes(&view, buf)
	}
	if w := req.Set; w != nil && !(view.IfIdle && w.implicit && w.Switches == 0 && w.ledger.OneSwitchJoinsAll()) {
		return setSearch{req: req, buf: buf}.choose(view)
	}
	picks := buf[:0]
	var room int64
	if len(req.Required) > 0 {
		for _, node := range view.Nodes {
			if req.Required[node.Record.Name] && req.Accepts(node, &view) {
				if r := req.TasksAt(&view, node); r > 0 {
					picks = append(picks, Choice{Node: node, Capacity: r})
					room += int64(r)
				}
			}
		}
		if len(picks) < len(req.Required) {
			return nil
		}
	}
	enough := len(picks) >= int(req.NodesMin) && room >= int64(req.Tasks)
	// if idle the question is whether it fits, not where; a search for victims orders nodes by cost
	alone := !view.IfIdle && view.FreeFunc == nil && len(req.Required) == 0 && req.fitsOneNode()
	for _, node := range view.Nodes {
		if !alone && (enough || len(picks) >= int(req.NodesMax)) {
			break
		}
		// Room first: most nodes have none, and that check does not load the node's record.
		r := req.TasksAt(&view, node)
		if r <= 0 || enough && r < req.Tasks || !req.Accepts(node, &view) || len(req.Required) > 0 &&
			req.Required[node.Record.Name] {
			continue
		}
		if alone && r >= req.Tasks {
			picks, enough = append(picks[:0], Choice{Node: node, Capacity: r}), true
			break
		}
		if !enough && len(picks) < int(req.NodesMax) {
			picks = append(picks, Choice{Node: node, Capacity: r})
			room += int64(r)
			enough = len(picks) >= int(req.NodesMin) && room >= int64(req.Tasks)
		}
	}
	if enough && len(picks) > max(1, int(req.NodesMin)) && req.Detail != nil && req.Detail.tasks > 0 && !view.IfIdle {
		return req.chooseFew(view, picks)
	}
	if !enough {
		if len(picks) < int(req.NodesMax) {
			return nil // that was all there is
		}
		return req.chooseFew(view, picks) // others may have more room
	}
	req.assignTasks(picks)
	return picks
}

// chooseFew is for jobs with a node limit whose tasks do not fit on the first nodes that have any room, and for those
// that want as few nodes as possible. Of the sets that suffice it finds the one whose nodes come first in order. So a
// choice does not change while other jobs take what it leaves, which reservations rely on.
func (req *Request) chooseFew(view ledger.View, buf []Choice) []Choice {
	picks := buf[:0]
	for _, must := range [...]bool{true, false} {
		for _, node := range view.Nodes {
			if (len(req.Required) > 0 || must) && req.Required[node.Record.Name] != must {
				continue
			}
			if r := req.TasksAt(&view, node); r > 0 && req.Accepts(node, &view) {
				picks = append(picks, Choice{Node: node, Capacity: r})
			}
		}
	}
	// Start with the roomiest. Each node that comes before one of them replaces the last if the room still suffices.
	most := min(len(picks), int(req.NodesMax))
	order := make([]int, len(picks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order[min(len(req.Required), most):], func(i, k int) int {
		return cmp.Compare(picks[k].Capacity, picks[i].Capacity)
	})
	in := make([]bool, len(picks))
	var room, had int64
	for k, i := range order[:most] {
		if req.Detail != nil && req.Detail.tasks > 0 && k >= max(int(req.NodesMin), len(req.Required)) &&
			room >= int64(req.Tasks) {
			most = k
			break
		}
		in[i] = true
		room += int64(picks[i].Capacity)
	}
	if room < int64(req.Tasks) {
		return nil
	}
	last, k := most-1, 0
	for i, p := range picks {
		for last >= 0 && order[last] < i { // it is decided
			last--
		}
		if !in[i] && last >= 0 {
			if swap := room - int64(picks[order[last]].Capacity) + int64(p.Capacity); swap >= int64(req.Tasks) {
				in[i], in[order[last]], room = true, false, swap
				last--
			}
		}
		if !in[i] {
			continue
		}
		picks[k] = p
		had += int64(p.Capacity)
		if k++; k >= max(int(req.NodesMin), len(req.Required)) && had >= int64(req.Tasks) {
			break
		}
	}
	picks = picks[:k]
	req.assignTasks(picks)
	return picks
}

// assignTasks assigns tasks to nodes: it fills one node after the other, with one task left for each node behind it, or
// distributes them evenly.
func (req *Request) assignTasks(picks []Choice) {
	left := req.Tasks
	for i := range picks {
		picks[i].Tasks = 0
	}
	if len(picks) > 1 && req.fillsNodes() {
		for i := range picks {
			after := int32(len(picks) - i - 1)
			picks[i].Tasks = min(picks[i].Capacity, left-after)
			left -= picks[i].Tasks
		}
		return
	}
	for left > 0 {
		gave := false
		for i := range picks {
			if left > 0 && picks[i].Tasks < picks[i].Capacity {
				picks[i].Tasks++
				left--
				gave = true
			}
		}
		if !gave {
			return
		}
	}
}

// Unsatisfiable says why a job can never start on these nodes, even if nothing ran and all were up.
type Unsatisfiable struct {
	// Reason is what front ends match on: node_config_unavailable, memory_unsatisfiable, invalid_node, invalid_feature.
	Reason   string
	Text     string
	OnlyCPUs bool // it is the CPUs a task asks for alone; Slurm lets such a job wait
}

// NodeSet is the nodes of a partition, for CheckSatisfiable, which remembers there where they are. Nil nodes mean all.
type NodeSet struct {
	Nodes   map[core.NodeName]bool
	order   []*ledger.Node
	version int
}

// CheckSatisfiable reports whether a partition's nodes could hold the job if nothing ran and every node were up.
func CheckSatisfiable(l *ledger.Ledger, s *core.Spec, part *core.Partition, in *NodeSet,
	names alloc.HostsFunc,
) *Unsatisfiable {
	req := RequestOf(s, names)
	req.Uid, req.Project = l.KeptUser(s), l.KeptProject(s)
	req.applySharing(part)
	req.BindLedger(l, nil, false)
	if in.order == nil || in.version != l.Version {
		in.order, in.version = l.NodesIn(in.Nodes), l.Version
	}
	return CheckRequest(l, &req, in.Nodes, in.order)
}

func CheckRequest(l *ledger.Ledger, req *Request, in map[core.NodeName]bool, nodes []*ledger.Node) *Unsatisfiable {
	if req.Invalid != "" {
		return &Unsatisfiable{Reason: "node_config_unavailable", Text: req.Invalid}
	}
	for _, name := range slices.Sorted(maps.Keys(req.Required)) {
		if l.Nodes[name] == nil || in != nil && !in[name] {
			return &Unsatisfiable{Reason: "invalid_node", Text: fmt.Sprintf("node %s is not in the partition", name)}
		}
	}
	if req.Choose(ledger.View{Nodes: nodes, IfIdle: true, WithDown: true}, nil) != nil {
		return nil
	}
	f := &Unsatisfiable{Reason: "node_config_unavailable", Text: "it asks for " + req.String() + "; " +
		describeLargest(nodes)}
	if req.tmpDisk > 0 && len(nodes) > 0 {
		most := slices.MaxFunc(nodes, func(a, b *ledger.Node) int {
			return cmp.Compare(a.Record.Hardware.TmpDisk, b.Record.Hardware.TmpDisk)
		})
		f.Text += fmt.Sprintf(", %d MiB of temporary disk", most.Record.Hardware.TmpDisk/core.MiB)
	}
	users, projects := req.countKept(nodes)
	if users > 0 {
		f.Text += fmt.Sprintf("; %d of them run jobs of another user only", users)
	}
	if projects > 0 {
		f.Text += fmt.Sprintf("; %d of them run jobs of another project only", projects)
	}
	light := *req
	light.MemPerNode, light.memPerCPU = 0, 0
	light.Detail = req.Detail.withoutMemory()
	if light.Choose(ledger.View{Nodes: nodes, IfIdle: true, WithDown: true}, nil) != nil { // it is the memory alone
		f.Reason = "memory_unsatisfiable"
		return f
	}
	for _, want := range req.features {
		if !slices.ContainsFunc(nodes, func(node *ledger.Node) bool { return slices.Contains(node.Record.Features, want) }) {
			return &Unsatisfiable{Reason: "invalid_feature", Text: fmt.Sprintf("no node has the feature %q", want)}
		}
	}
	thin := *req
	thin.CpusPerTask = 1
	f.OnlyCPUs = thin.Choose(ledger.View{Nodes: nodes, IfIdle: true, WithDown: true}, nil) != nil
	return f
}

// describeLargest describes the nodes, for a message.
func describeLargest(nodes []*ledger.Node) string {
	var cpus int32
	var mem core.Bytes
	gres := map[string]int64{}
	var kinds []string
	for _, node := range nodes {
		cpus = max(cpus, node.Record.Hardware.CPUs)
		mem = max(mem, node.Record.Hardware.Memory)
		for _, g := range node.Record.Hardware.Gres {
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
	if len(nodes) == 0 {
		return "there are no nodes"
	}
	t := fmt.Sprintf("there are %d node(s), the largest with %d CPUs and %d MiB", len(nodes), cpus, mem/core.MiB)
	for _, k := range kinds {
		t += fmt.Sprintf(", %s:%d", k, gres[k])
	}
	return t
}
