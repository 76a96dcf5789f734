package fit

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Alloc names the very CPUs and units of a choice.
func (req *Request) Alloc(part core.PartitionName, picks []Choice, view ledger.View) *core.Alloc {
	al := &core.Alloc{Partition: part, Nodes: make([]core.NodeAlloc, len(picks))}
	if req.User != "" && !req.Exclusive {
		al.Wide().Own = true
	}
	if req.Detail != nil {
		req.Detail.alloc(req, al, picks, &view)
		return al
	}
	for i, p := range picks {
		u := req.Usage(p.Node, p.Tasks, view.Free(p.Node))
		p.Node.NameUnits(&al.Nodes[i], p.Tasks, &u, ledger.CPUOrder{})
	}
	return al
}

func (w *requestDetail) alloc(req *Request, al *core.Alloc, picks []Choice, view *ledger.View) {
	if req.Exclusive {
		al.Wide().Whole = true
	}
	if w.maxSharing > 1 {
		al.Wide().Share = w.maxSharing
	}
	if w.sequence != nil {
		slices.SortFunc(picks, func(a, b Choice) int {
			return cmp.Compare(slices.Index(w.sequence, a.Node.Record.Name), slices.Index(w.sequence, b.Node.Record.Name))
		})
	}
	tasks, totals := w.distribute(req, picks)
	for i, p := range picks {
		for k := range w.gres {
			totals[i][k] += w.gres[k].node + w.gres[k].task*int64(tasks[i])
		}
		u := w.exactUsage(req, p.Node, tasks[i], totals[i], view.Free(p.Node))
		o := ledger.CPUOrder{SpareCPUs: w.specializedCPUs(p.Node)}
		if view.JoinShared {
			o.MaxSharing = w.maxSharing
		}
		switch w.cyclicCPUs {
		case 1:
			o.PerTurn = max(p.Node.AllocUnit, req.CpusPerTask)
		case 2:
			o.PerTurn = p.Node.AllocUnit
		}
		if w.needsSockets() {
			o.Sockets, o.MaxPerSocket = w.chooseSockets(req, p.Node, tasks[i], u.Cpus)
			o.UnitsPerSocket = w.unitsPerSocket
		}
		p.Node.NameUnits(&al.Nodes[i], tasks[i], &u, o)
	}
}

// chooseSockets chooses the sockets for a job that cares, and how much of each.
func (w *requestDetail) chooseSockets(req *Request, node *ledger.Node, tasks, cpus int32) (
	sockets []int32, most int32,
) {
	for k := range node.Sockets {
		if node.FreeCPUsOn(k) >= max(1, w.cores*node.Threads) && (!w.gresPerSocket || w.hasLocalUnits(node, k, true)) {
			sockets = append(sockets, k)
		}
	}
	switch {
	case w.tasksPerSocket > 0:
		most = w.cpusForTasks(req, node, min(tasks, w.tasksPerSocket))
	case w.sockets > 1:
		most = (cpus + w.sockets - 1) / w.sockets
	}
	return sockets, node.CPULayout.RoundUp(most)
}

// unitsPerSocket is how many units of a kind are asked for at each of a number of sockets.
func (w *requestDetail) unitsPerSocket(g *ledger.Gres) (each, sockets int) {
	for i := range w.gres {
		if q := &w.gres[i]; q.socket > 0 && q.accepts(g) {
			return int(q.socket), int(max(1, w.sockets))
		}
	}
	return 0, 0
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
