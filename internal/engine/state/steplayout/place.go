package steplayout

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// crowded finds a node with too many tasks; -1: none has.
func crowded(tasks []int32, most int64) int {
	return slices.IndexFunc(tasks, func(n int32) bool { return int64(n) > most })
}

// Place lays a step out on what its job has and no other step has to itself, and says what it holds there. What could
// be had if the others were over is a conflict; what could not be had then either is the caller's mistake.
func Place(j *core.Job, steps []*core.Step, name string, ask *core.StepRequest) (*core.Step, error) {
	nodes, tasks, err := layout(j, ask)
	if err != nil {
		return nil, err
	}
	most := ask.MaxTasksPerNode
	if at := crowded(tasks, most); at >= 0 {
		return nil, core.Errorf(core.Invalid, "%d tasks on node %s; a step may have %d on a node", tasks[at], nodes[at],
			most).Because("too_many_cpus")
	}
	st := &core.Step{Job: j.ID, Name: name, Nodes: nodes, Tasks: tasks}
	kinds := jobKinds(j, ask)
	if all, err := holds(st, j.Alloc.Nodes, j.Alloc.Nodes, ask, kinds); err != nil || ask.Overlap {
		charge(st, j, all, ask)
		return st, err
	}
	if st, err = placeFree(j, steps, st, ask, kinds); err == nil {
		charge(st, j, st.Holds, ask)
	}
	return st, err
}

// jobKinds are the names of the units that a step has because its job asked for them: it does not say itself which
// it wants.
func jobKinds(j *core.Job, ask *core.StepRequest) (names []string) {
	if j.Spec == nil || ask.OwnGres() {
		return nil
	}
	for _, g := range j.Spec.Shape.Total() {
		if g.Count > 0 && !slices.Contains(names, g.Name) {
			names = append(names, g.Name)
		}
	}
	return names
}

// placeFree lays a step out that fits its job, on what no other step holds.
func placeFree(j *core.Job, steps []*core.Step, st *core.Step, ask *core.StepRequest, kinds []string) (
	*core.Step, error,
) {
	may, err := stepNodes(j, ask)
	if err != nil {
		return nil, err
	}
	pool := make([]core.NodeAlloc, 0, len(may))
	free, next := Free(j, steps), 0
	for i := range free { // may has the job's order too
		if next == len(may) || may[next].Node != free[i].Node {
			continue
		}
		if next++; able(&free[i], &j.Alloc.Nodes[i], ask, kinds) {
			pool = append(pool, free[i])
		}
	}
	rest := *ask
	rest.Relative = 0 // counted already
	busy := core.Errorf(core.Conflict, "other steps of job %d have what this one needs", j.ID).Because("nodes_busy")
	if ask.Nodes == 0 && ask.Tasks == 0 && len(pool) < len(may) { // it is for all nodes
		return nil, busy
	}
	left, alloc := *j, *j.Alloc
	left.Alloc = &alloc
	for alloc.Nodes = pool; ; {
		st.Nodes, st.Tasks, err = layout(&left, &rest)
		if err == nil && crowded(st.Tasks, ask.MaxTasksPerNode) < 0 {
			break
		}
		if n := int(ask.Nodes); n > 0 && n < len(alloc.Nodes) { // the first that are free are too small
			alloc.Nodes = roomiest(alloc.Nodes, n)
			continue
		}
		return nil, busy
	}
	if st.Holds, err = holds(st, pool, j.Alloc.Nodes, ask, kinds); err != nil {
		return nil, busy
	}
	return st, nil
}

// able reports whether a node could take a task of the step.
func able(free, whole *core.NodeAlloc, ask *core.StepRequest, kinds []string) bool {
	if free.CPUs == 0 || !ask.Exact && free.CPUs < whole.CPUs || !ask.Overcommit && free.CPUs < max(1, ask.CPUsPerTask) ||
		whole.Mem > 0 && ask.MemPerNode > free.Mem {
		return false
	}
	for i := range whole.Gres {
		if slices.Contains(kinds, whole.Gres[i].Name) && len(free.Gres[i].Units) < len(whole.Gres[i].Units) {
			return false
		}
	}
	list := make([]core.StepHold, 1)
	have := *free
	for _, g := range slices.Concat(ask.GPUsPerTask, ask.Gres) { // those of a task count among those of the node
		for range g.Count - held(list, g) {
			if !takeUnit(&list[0], &have, g) {
				return false
			}
		}
	}
	return true
}

// roomiest are the nodes with the most free CPUs, in the order they are in.
func roomiest(pool []core.NodeAlloc, n int) []core.NodeAlloc {
	by := make([]int, len(pool)) // places in pool
	for i := range by {
		by[i] = i
	}
	slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(pool[b].CPUs, pool[a].CPUs) })
	by = by[:n]
	slices.Sort(by)
	out := make([]core.NodeAlloc, n)
	for i, at := range by {
		out[i] = pool[at]
	}
	return out
}

// cpusFor is how many CPUs so many tasks ask for: of those that share CPUs it may be more than there can be.
func cpusFor(tasks int32, ask *core.StepRequest) int64 {
	return int64(tasks) * int64(max(1, ask.CPUsPerTask))
}

// holds gives what a step takes for itself on each of its nodes, out of what is free there: also all units of the
// given kinds.
func holds(st *core.Step, free, whole []core.NodeAlloc, ask *core.StepRequest, kinds []string) (
	[]core.StepHold, error,
) {
	list := make([]core.StepHold, len(st.Nodes))
	pool := make([]core.NodeAlloc, len(st.Nodes)) // what is free on each
	ofFree, ofWhole := core.NodePlaces{List: free}, core.NodePlaces{List: whole}
	for i, name := range st.Nodes {
		n, all := &free[ofFree.Of(name)], &whole[ofWhole.Of(name)]
		pool[i] = *n
		h := &list[i]
		h.CPUs, h.Cores = n.CPUs, n.Cores
		if ask.Exact {
			h.CPUs = int32(min(int64(n.CPUs), cpusFor(st.Tasks[i], ask)))
			h.Cores = n.Cores[:min(len(n.Cores), int(h.CPUs))]
		}
		for _, g := range n.Gres {
			if len(g.Units) > 0 && slices.Contains(kinds, g.Name) {
				h.Gres = append(h.Gres, g)
			}
		}
		h.Mem = cmp.Or(ask.MemPerNode, min(ask.MemPerCPU*core.Bytes(h.CPUs), all.Mem))
		if all.Mem > 0 && h.Mem > n.Mem {
			return nil, core.Errorf(core.Invalid, "the step requests %d MiB on %s; there are %d", h.Mem>>20, name,
				n.Mem>>20).Because("task_memory")
		}
	}
	return list, holdGres(list, pool, st.Tasks, ask)
}

// holdGres adds the units a step asks for by itself.
func holdGres(list []core.StepHold, pool []core.NodeAlloc, tasks []int32, ask *core.StepRequest) error {
	short := func(g core.Gres) error {
		return core.Errorf(core.Invalid, "the step requests %d %s; its job has fewer there", g.Count,
			g.Name).Because("invalid_gres")
	}
	take := func(i int, g core.Gres) bool {
		for range g.Count {
			if !takeUnit(&list[i], &pool[i], g) {
				return false
			}
		}
		return true
	}
	for i := range list { // those of its tasks count among those of a node, and these among those of the step
		for _, g := range ask.GPUsPerTask {
			if g.Count *= int64(tasks[i]); !take(i, g) {
				return short(g)
			}
		}
		for _, g := range ask.Gres {
			if g.Count -= held(list[i:i+1], g); !take(i, g) {
				return short(g)
			}
		}
	}
	for _, g := range ask.GPUs { // one after the other from each node, until there are enough
		left := g.Count - held(list, g)
		for left > 0 {
			before := left
			for i := 0; i < len(list) && left > 0; i++ {
				if takeUnit(&list[i], &pool[i], g) {
					left--
				}
			}
			if left == before {
				return short(g)
			}
		}
	}
	return nil
}

// held is how many units of a kind are held on nodes.
func held(list []core.StepHold, g core.Gres) (n int64) {
	for i := range list {
		for k := range list[i].Gres {
			if have := &list[i].Gres[k]; have.Name == g.Name && (g.Type == "" || have.Type == g.Type) {
				n += int64(len(have.Units))
			}
		}
	}
	return n
}

// takeUnit moves one unit of a kind from what is free to what is held.
func takeUnit(h *core.StepHold, free *core.NodeAlloc, g core.Gres) bool {
	for i := range free.Gres {
		have := &free.Gres[i]
		if have.Name != g.Name || g.Type != "" && have.Type != g.Type || len(have.Units) == 0 {
			continue
		}
		at := slices.IndexFunc(h.Gres, func(x core.GresAlloc) bool { return x.Name == have.Name && x.Type == have.Type })
		if at < 0 {
			at = len(h.Gres)
			h.Gres = append(h.Gres, core.GresAlloc{Name: have.Name, Type: have.Type})
		}
		h.Gres[at].Units = append(h.Gres[at].Units, have.Units[0])
		rest := slices.Clone(free.Gres)
		rest[i].Units = have.Units[1:]
		free.Gres = rest
		return true
	}
	return false
}
