package steplayout

import (
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// maxNodeTasks bounds the tasks of a step on a node, whatever jobs.max_tasks_per_node says: what is dealt out is held
// in memory.
const maxNodeTasks = 1 << 16

// layout decides how many tasks of a step run on which of the job's nodes.
func layout(j *core.Job, ask *core.StepRequest) (nodes []core.NodeName, tasks []int32, err error) {
	if len(ask.TaskNodes) > 0 {
		return listed(j, ask)
	}
	pool, err := stepNodes(j, ask)
	if err != nil {
		return nil, nil, err
	}
	count := int(ask.Nodes)
	if count == 0 {
		count = len(pool)
		if ask.Tasks > 0 && len(ask.On) == 0 {
			count = min(count, int(ask.Tasks))
		}
	}
	if count > len(pool) {
		return nil, nil, core.Errorf(core.Invalid, "the step requests %d nodes; it may use %d of job %d", count, len(pool),
			j.ID).Because("too_many_nodes")
	}
	pool = pool[:count]
	want := ask.Tasks
	if want == 0 {
		want = int32(min(int64(count)*int64(max(1, ask.TasksPerNode)), math.MaxInt32)) // more than fits is told below
	}
	if int64(want) > int64(count)*maxNodeTasks {
		return nil, nil, core.Errorf(core.Invalid, "%d tasks are more than %d on each of %d nodes", want, maxNodeTasks,
			count).Because("too_many_cpus")
	}
	if want < int32(count) {
		pool = pool[:want]
	}
	deal := share
	if ask.Pack {
		deal = fill
	}
	tasks, left := deal(roomy(pool, ask), want, max(1, ask.CPUsPerTask), ask.TasksPerNode)
	if left > 0 {
		return nil, nil, core.Errorf(core.Invalid, "%d tasks of %d CPUs do not fit into what job %d has there", want,
			max(1, ask.CPUsPerTask), j.ID).Because("too_many_cpus")
	}
	used := tasks[:0]
	for i := range pool {
		if tasks[i] > 0 {
			nodes = append(nodes, pool[i].Node)
			used = append(used, tasks[i])
		}
	}
	return nodes, used, nil
}

// listed lays tasks out as the list with the node of each task says.
func listed(j *core.Job, ask *core.StepRequest) (nodes []core.NodeName, tasks []int32, err error) {
	if ask.Tasks != 0 && int(ask.Tasks) != len(ask.TaskNodes) {
		return nil, nil, core.Errorf(core.Invalid, "the node list has %d entries for %d tasks",
			len(ask.TaskNodes), ask.Tasks).Because("invalid_shape")
	}
	place := map[core.NodeName]int{} // of the nodes that have tasks
	places := core.NodePlaces{List: j.Alloc.Nodes}
	for _, n := range ask.TaskNodes {
		i, seen := place[n]
		if !seen {
			if places.Of(n) < 0 {
				return nil, nil, core.Errorf(core.Invalid, "node %s is not of job %d", n, j.ID).Because("invalid_node")
			}
			i, place[n] = len(nodes), len(nodes)
			nodes, tasks = append(nodes, n), append(tasks, 0)
		}
		tasks[i]++
	}
	for i, n := range nodes {
		at := places.Of(n)
		if !ask.Overcommit && int64(tasks[i])*int64(max(1, ask.CPUsPerTask)) > int64(j.Alloc.Nodes[at].CPUs) {
			return nil, nil, core.Errorf(core.Invalid, "%d tasks of %d CPUs do not fit into what job %d has on %s", tasks[i],
				max(1, ask.CPUsPerTask), j.ID, n).Because("too_many_cpus")
		}
	}
	return nodes, tasks, nil
}

// stepNodes gives the parts of the job's allocation a step may use, in the job's order.
func stepNodes(j *core.Job, ask *core.StepRequest) ([]core.NodeAlloc, error) {
	pool := j.Alloc.Nodes
	if ask.Relative > 0 {
		pool = pool[min(int(ask.Relative), len(pool)):]
	}
	if len(ask.Not) > 0 {
		pool = slices.DeleteFunc(slices.Clone(pool), func(n core.NodeAlloc) bool {
			_, named := slices.BinarySearch(ask.Not, n.Node)
			return named
		})
	}
	if len(ask.On) == 0 {
		if len(pool) == 0 {
			return nil, core.Errorf(core.Invalid, "none of the nodes of job %d are left for the step",
				j.ID).Because("too_many_nodes")
		}
		return pool, nil
	}
	var out []core.NodeAlloc
	for _, na := range pool {
		if _, named := slices.BinarySearch(ask.On, na.Node); named {
			out = append(out, na)
		}
	}
	if len(out) < len(ask.On) {
		names := make([]string, len(ask.On))
		for i, n := range ask.On {
			names[i] = string(n)
		}
		return nil, core.Errorf(core.Invalid, "not all of %s are nodes of job %d", hostlist.Fold(names),
			j.ID).Because("invalid_node")
	}
	return out, nil
}

// roomy gives nodes CPUs for as many tasks as there may be, where these need none of their own.
func roomy(pool []core.NodeAlloc, ask *core.StepRequest) []core.NodeAlloc {
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

// share deals tasks out one by one over the nodes, as Slurm counts its block distribution, within each node's CPUs. It
// works out how many rounds all nodes take part in as long as they have room: the server's writer waits for it.
func share(pool []core.NodeAlloc, want, perTask, perNode int32) (tasks []int32, left int32) {
	room := make([]int32, len(pool))
	for i := range pool {
		if room[i] = pool[i].CPUs / perTask; perNode > 0 {
			room[i] = min(room[i], perNode)
		}
	}
	dealt := func(rounds int32) (n int64) {
		for _, r := range room {
			n += int64(min(r, rounds))
		}
		return n
	}
	low, high := int32(0), want // whole rounds
	for low < high {
		if mid := low + (high-low+1)/2; dealt(mid) <= int64(want) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	left = want - int32(dealt(low))
	tasks = make([]int32, len(pool))
	for i, r := range room {
		if tasks[i] = min(r, low); r > low && left > 0 {
			tasks[i]++
			left--
		}
	}
	return tasks, left
}
