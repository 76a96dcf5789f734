package api

import (
	"math"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
)

// maxNodeTasks bounds the tasks of a step on a node, whatever jobs.max_tasks_per_node says: what is dealt out is held in memory.
const maxNodeTasks = 1 << 16

// layout decides how many tasks of a step run on which of the job's nodes, and which they are.
func layout(j *core.Job, ask *client.NewStep) (nodes []core.NodeName, tasks []int32, ranks [][]int32, err error) {
	how, mode, _ := strings.Cut(strings.ToLower(ask.Distribution), ",")
	if strings.HasPrefix(how, "arbitrary") {
		return listed(j, ask)
	}
	pool, err := stepNodes(j, ask)
	if err != nil {
		return nil, nil, nil, err
	}
	count := int(ask.Nodes)
	if count == 0 {
		count = len(pool)
		if ask.Tasks > 0 && ask.NodeList == "" {
			count = min(count, int(ask.Tasks))
		}
	}
	if count > len(pool) {
		return nil, nil, nil, core.Errorf(core.Invalid, "the step asks for %d nodes; it may use %d of job %d", count, len(pool), j.ID).Because("too_many_nodes")
	}
	pool = pool[:count]
	want := ask.Tasks
	if want == 0 {
		want = int32(min(int64(count)*int64(max(1, ask.TasksPerNode)), math.MaxInt32)) // more than fits is told below
	}
	if int64(want) > int64(count)*maxNodeTasks {
		return nil, nil, nil, core.Errorf(core.Invalid, "%d tasks are more than %d on each of %d nodes", want, maxNodeTasks, count).Because("too_many_cpus")
	}
	if want < int32(count) {
		pool = pool[:want]
	}
	deal := share
	if mode == "pack" {
		deal = fill
	}
	tasks, left := deal(roomy(pool, ask), want, max(1, ask.CPUsPerTask), ask.TasksPerNode)
	if left > 0 {
		return nil, nil, nil, core.Errorf(core.Invalid, "%d tasks of %d CPUs do not fit into what job %d has there", want, max(1, ask.CPUsPerTask), j.ID).Because("too_many_cpus")
	}
	used := tasks[:0]
	for i := range pool {
		if tasks[i] > 0 {
			nodes = append(nodes, pool[i].Node)
			used = append(used, tasks[i])
		}
	}
	return nodes, used, slurm.Distribute(used, how), nil
}

// listed lays tasks out as the list of nodes says, one name for each task.
func listed(j *core.Job, ask *client.NewStep) (nodes []core.NodeName, tasks []int32, ranks [][]int32, err error) {
	names, err := hostlist.Expand(ask.NodeList, hostlist.MaxRequest)
	if err != nil || len(names) == 0 {
		return nil, nil, nil, core.Errorf(core.Invalid, "an arbitrary distribution has a list with the node of each task").Because("invalid_node")
	}
	if ask.Tasks != 0 && int(ask.Tasks) != len(names) {
		return nil, nil, nil, core.Errorf(core.Invalid, "the list has the nodes of %d tasks, and there are %d", len(names), ask.Tasks).Because("invalid_shape")
	}
	place := map[core.NodeName]int{} // of the nodes that have tasks
	for rank, name := range names {
		n := core.NodeName(name)
		i, seen := place[n]
		if !seen {
			if at := slices.IndexFunc(j.Alloc.Nodes, func(na core.NodeAlloc) bool { return na.Node == n }); at < 0 {
				return nil, nil, nil, core.Errorf(core.Invalid, "node %s is not of job %d", n, j.ID).Because("invalid_node")
			}
			i, place[n] = len(nodes), len(nodes)
			nodes, tasks, ranks = append(nodes, n), append(tasks, 0), append(ranks, nil)
		}
		tasks[i]++
		ranks[i] = append(ranks[i], int32(rank))
	}
	for i, n := range nodes {
		at := slices.IndexFunc(j.Alloc.Nodes, func(na core.NodeAlloc) bool { return na.Node == n })
		if !ask.Overcommit && int64(tasks[i])*int64(max(1, ask.CPUsPerTask)) > int64(j.Alloc.Nodes[at].CPUs) {
			return nil, nil, nil, core.Errorf(core.Invalid, "%d tasks of %d CPUs do not fit into what job %d has on %s", tasks[i], max(1, ask.CPUsPerTask), j.ID, n).Because("too_many_cpus")
		}
	}
	return nodes, tasks, ranks, nil
}

// stepNodes gives the parts of the job's allocation a step may use, in the job's order.
func stepNodes(j *core.Job, ask *client.NewStep) ([]core.NodeAlloc, error) {
	pool, list := j.Alloc.Nodes, ask.NodeList
	if ask.Relative > 0 {
		pool = pool[min(int(ask.Relative), len(pool)):]
	}
	if ask.Exclude != "" {
		names, err := nodeNames(ask.Exclude)
		if err != nil {
			return nil, err
		}
		pool = slices.DeleteFunc(slices.Clone(pool), func(n core.NodeAlloc) bool {
			_, named := slices.BinarySearch(names, string(n.Node))
			return named
		})
	}
	if list == "" {
		if len(pool) == 0 {
			return nil, core.Errorf(core.Invalid, "none of the nodes of job %d are left for the step", j.ID).Because("too_many_nodes")
		}
		return pool, nil
	}
	names, err := nodeNames(list)
	if err != nil {
		return nil, err
	}
	var out []core.NodeAlloc
	for _, na := range pool {
		if _, named := slices.BinarySearch(names, string(na.Node)); named {
			out = append(out, na)
		}
	}
	if len(out) < len(names) {
		return nil, core.Errorf(core.Invalid, "not all of %s are nodes of job %d", list, j.ID).Because("invalid_node")
	}
	return out, nil
}

// nodeNames reads a list of nodes, each once, sorted. One that names nobody is a mistake, and not a list of all.
func nodeNames(list string) ([]string, error) {
	names, err := hostlist.Expand(list, hostlist.MaxRequest)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "node list %.200q: %v", list, err).Because("invalid_node")
	}
	if len(names) == 0 {
		return nil, core.Errorf(core.Invalid, "node list %.200q names no node", list).Because("invalid_node")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// roomy gives nodes CPUs for as many tasks as there may be, where these need none of their own.
func roomy(pool []core.NodeAlloc, ask *client.NewStep) []core.NodeAlloc {
	if !ask.Overcommit {
		return pool
	}
	pool = slices.Clone(pool)
	for i := range pool {
		pool[i].CPUs = math.MaxInt32
	}
	return pool
}

// fill gives each node as many tasks as it has CPUs for, one node after the other, as Slurm's Pack.
func fill(pool []core.NodeAlloc, want, perTask, perNode int32) (tasks []int32, left int32) {
	tasks, left = make([]int32, len(pool)), want
	for i := range pool {
		n := min(left, pool[i].CPUs/perTask)
		if perNode > 0 {
			n = min(n, perNode)
		}
		tasks[i] = n
		left -= n
	}
	return tasks, left
}

// share deals tasks out one by one over the nodes, as Slurm counts its block distribution, within each node's CPUs.
func share(pool []core.NodeAlloc, want, perTask, perNode int32) (tasks []int32, left int32) {
	tasks = make([]int32, len(pool))
	room := func(i int) bool {
		return int64(tasks[i]+1)*int64(perTask) <= int64(pool[i].CPUs) && (perNode == 0 || tasks[i] < perNode)
	}
	for left = want; left > 0; {
		dealt := false
		for i := 0; i < len(pool) && left > 0; i++ {
			if room(i) {
				tasks[i]++
				left--
				dealt = true
			}
		}
		if !dealt {
			return tasks, left
		}
	}
	return tasks, 0
}
