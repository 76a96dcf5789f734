package sched

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// pick is a node chosen for a job, with the tasks it gets.
type pick struct {
	a     *account
	room  int32
	tasks int32
	kinds []int64 // see chooseKinds
}

// look says which nodes a choice may fall on and as what they count.
type look struct {
	nodes []*account // in the order they are tried
	empty bool       // as if nothing ran
	any   bool       // also nodes that are not up
	end   core.Time  // when the job would end: reservations before that count. 0: they do not
	then  core.Time  // if set, the moment looked at is this one of a sweep, not now
	sweep int64      // the sweep
	share bool       // CPUs of jobs that share theirs count, for those who share too
	soon  core.Time  // if set, the sweep is a search, which leaves it to those who look to work out what is free then
	tmp   *balance   // scratch, for looks that have an end
	hunt  *hunt      // if set, it is this that knows what nodes have free; then is set, too
	own   *advance   // the advance reservation the job would run in
	reach bool       // it may reach into those that let themselves be delayed
}

// balance is what a node has free for a look.
func (at *look) balance(a *account) *balance {
	switch {
	case at.empty && at.any && a.well != nil:
		return a.well
	case at.empty:
		return &a.full
	case at.hunt != nil:
		return at.hunt.found(a)
	case at.then != 0:
		return a.at(at)
	case at.end != 0 && len(a.asides) > 0:
		return a.beside(at, 0, at.end, a.until(at.end, at.tmp))
	case at.end != 0 && len(a.claims) > 0:
		return a.until(at.end, at.tmp)
	}
	return &a.now
}

// suits tells whether a job may be on a node at all.
func (n *need) suits(a *account, at *look) bool {
	return (at.any && !a.node.LoginOnly() || a.node.Usable()) && (len(n.not) == 0 || !n.not[a.node.Name]) &&
		a.node.Hardware.TmpDisk >= n.tmpDisk && (len(n.features) == 0 || hasFeatures(a.node, n.features)) &&
		(n.wish == nil || n.wish.suits(a.node)) && n.by(a.node)
}

// choose finds nodes for the whole job, or none: the first node that has room for all of it if it may be on one; otherwise
// the first nodes in order that have room, nodes that must be used before all others; or, if there is more to it, what seek
// finds. Jobs that ask for GPUs as a whole get as few nodes as will do (both as Slurm 22.05).
func (n *need) choose(at look, buf []pick) []pick {
	if n.unreadable != "" {
		return nil
	}
	if n.more != nil && n.more.kinds {
		return n.chooseKinds(&at, buf)
	}
	if w := n.wish; w != nil && !(at.empty && w.none && w.switches == 0 && w.ledger.joined()) {
		return n.seek(at, buf)
	}
	picks := buf[:0]
	var room int64
	if len(n.must) > 0 {
		for _, a := range at.nodes {
			if n.must[a.node.Name] && n.suits(a, &at) {
				if r := at.room(n, a); r > 0 {
					picks = append(picks, pick{a: a, room: r})
					room += int64(r)
				}
			}
		}
		if len(picks) < len(n.must) {
			return nil
		}
	}
	enough := len(picks) >= int(n.nodesMin) && room >= int64(n.tasks)
	alone := !at.empty && at.hunt == nil && len(n.must) == 0 && n.alone() // if nothing ran, it is asked whether, not where; hunts go by price
	for _, a := range at.nodes {
		if !alone && (enough || len(picks) >= int(n.nodesMax)) {
			break
		}
		// Room first: most nodes have none, and that is told without looking at the node itself.
		r := at.room(n, a)
		if r <= 0 || enough && r < n.tasks || !n.suits(a, &at) || len(n.must) > 0 && n.must[a.node.Name] {
			continue
		}
		if alone && r >= n.tasks {
			picks, enough = append(picks[:0], pick{a: a, room: r}), true
			break
		}
		if !enough && len(picks) < int(n.nodesMax) {
			picks = append(picks, pick{a: a, room: r})
			room += int64(r)
			enough = len(picks) >= int(n.nodesMin) && room >= int64(n.tasks)
		}
	}
	if enough && len(picks) > max(1, int(n.nodesMin)) && n.more != nil && n.more.tasks > 0 && !at.empty {
		return n.chooseFew(at, picks)
	}
	if !enough {
		if len(picks) < int(n.nodesMax) {
			return nil // that was all there is
		}
		return n.chooseFew(at, picks) // others may have more room
	}
	n.spread(picks)
	return picks
}

// chooseFew is for jobs with a node limit whose tasks do not fit the first nodes that have any room, and for those that want
// as few as will do: of the sets that do, it finds the one whose nodes come first in order. So a choice stays what it is while others take what it leaves, which a
// plan with several promises lives by.
func (n *need) chooseFew(at look, buf []pick) []pick {
	picks := buf[:0]
	for _, must := range [...]bool{true, false} {
		for _, a := range at.nodes {
			if (len(n.must) > 0 || must) && n.must[a.node.Name] != must {
				continue
			}
			if r := at.room(n, a); r > 0 && n.suits(a, &at) {
				picks = append(picks, pick{a: a, room: r})
			}
		}
	}
	// The roomiest would do, or none; each that comes before one of them takes the place of the last if that will do, too.
	most := min(len(picks), int(n.nodesMax))
	order := make([]int, len(picks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order[min(len(n.must), most):], func(i, k int) int { return cmp.Compare(picks[k].room, picks[i].room) })
	in := make([]bool, len(picks))
	var room, had int64
	for k, i := range order[:most] {
		if n.more != nil && n.more.tasks > 0 && k >= max(int(n.nodesMin), len(n.must)) && room >= int64(n.tasks) {
			most = k
			break
		}
		in[i] = true
		room += int64(picks[i].room)
	}
	if room < int64(n.tasks) {
		return nil
	}
	last, k := most-1, 0
	for i, p := range picks {
		for last >= 0 && order[last] < i { // it is settled
			last--
		}
		if !in[i] && last >= 0 {
			if swap := room - int64(picks[order[last]].room) + int64(p.room); swap >= int64(n.tasks) {
				in[i], in[order[last]], room = true, false, swap
				last--
			}
		}
		if !in[i] {
			continue
		}
		picks[k] = p
		had += int64(p.room)
		if k++; k >= max(int(n.nodesMin), len(n.must)) && had >= int64(n.tasks) {
			break
		}
	}
	picks = picks[:k]
	n.spread(picks)
	return picks
}

// spread gives each node its tasks: node after node is filled, as long as one is left for each that comes after; or evenly.
func (n *need) spread(picks []pick) {
	left := n.tasks
	for i := range picks {
		picks[i].tasks = 0
	}
	if len(picks) > 1 && n.fills() {
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

// Fault says why a job can never start on these nodes, even if nothing ran and all were up.
type Fault struct {
	Reason string // what tongues match on: node_config_unavailable, memory_unsatisfiable, invalid_node, invalid_feature
	Text   string
	CPUs   bool // it is the CPUs a task asks for alone; Slurm lets such a job wait
}

// Within is the nodes of a partition, for CanEver, which remembers there where they are. Nil nodes mean all.
type Within struct {
	Nodes map[core.NodeName]bool
	order []*account
	shape int
}

// CanEver tells whether a partition's nodes could hold the job if nothing ran and every node were up.
func (l *Ledger) CanEver(s *core.Spec, part *core.Partition, in *Within, names Names) *Fault {
	n := needOf(s, names)
	n.uid = l.UserOf(s)
	n.bounded(part)
	n.settle(l, false)
	if in.order == nil || in.shape != l.shape {
		in.order, in.shape = l.within(in.Nodes), l.shape
	}
	return l.canEver(&n, in.Nodes, in.order)
}

func (l *Ledger) canEver(n *need, in map[core.NodeName]bool, nodes []*account) *Fault {
	if n.unreadable != "" {
		return &Fault{Reason: "node_config_unavailable", Text: n.unreadable}
	}
	for _, name := range slices.Sorted(maps.Keys(n.must)) {
		if l.nodes[name] == nil || in != nil && !in[name] {
			return &Fault{Reason: "invalid_node", Text: fmt.Sprintf("node %s is not in the partition", name)}
		}
	}
	if n.choose(look{nodes: nodes, empty: true, any: true}, nil) != nil {
		return nil
	}
	f := &Fault{Reason: "node_config_unavailable", Text: "it asks for " + n.String() + "; " + biggest(nodes)}
	if n.tmpDisk > 0 && len(nodes) > 0 {
		most := slices.MaxFunc(nodes, func(a, b *account) int { return cmp.Compare(a.node.Hardware.TmpDisk, b.node.Hardware.TmpDisk) })
		f.Text += fmt.Sprintf(", %d MiB of temporary disk", most.node.Hardware.TmpDisk/core.MiB)
	}
	if others := n.keptFrom(nodes); others > 0 {
		f.Text += fmt.Sprintf("; %d of them run jobs of another user only", others)
	}
	light := *n
	light.memNode, light.memCPU = 0, 0
	light.more = n.more.light()
	if light.choose(look{nodes: nodes, empty: true, any: true}, nil) != nil { // it is the memory alone
		f.Reason = "memory_unsatisfiable"
		return f
	}
	for _, want := range n.features {
		if !slices.ContainsFunc(nodes, func(a *account) bool { return slices.Contains(a.node.Features, want) }) {
			return &Fault{Reason: "invalid_feature", Text: fmt.Sprintf("no node has the feature %q", want)}
		}
	}
	thin := *n
	thin.cpusPerTask = 1
	f.CPUs = thin.choose(look{nodes: nodes, empty: true, any: true}, nil) != nil
	return f
}

// biggest tells what there is, for people.
func biggest(nodes []*account) string {
	var cpus int32
	var mem core.Bytes
	gres := map[string]int64{}
	var kinds []string
	for _, a := range nodes {
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
	if len(nodes) == 0 {
		return "there are no nodes"
	}
	t := fmt.Sprintf("there are %d node(s), the largest with %d CPUs and %d MiB", len(nodes), cpus, mem/core.MiB)
	for _, k := range kinds {
		t += fmt.Sprintf(", %s:%d", k, gres[k])
	}
	return t
}
