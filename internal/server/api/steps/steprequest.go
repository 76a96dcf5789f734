package steps

import (
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
)

// stepRequest reads what decides where a step's tasks run.
func stepRequest(ask *client.NewStep, most int64) (*core.StepRequest, error) {
	out := &core.StepRequest{
		Nodes: ask.Nodes, Tasks: ask.Tasks, TasksPerNode: ask.TasksPerNode, CPUsPerTask: ask.CPUsPerTask,
		MaxTasksPerNode: most, Relative: ask.Relative, Exact: ask.Exact, Overlap: ask.Overlap,
		Overcommit: ask.Overcommit, MemPerNode: ask.MemPerNode, MemPerCPU: ask.MemPerCPU, Gres: ask.Gres,
		GPUs: ask.GPUs, GPUsPerTask: ask.GPUsPerTask, NoGres: ask.NoGres,
	}
	for i := range ask.Programs {
		out.Programs = append(out.Programs, ask.Programs[i].Ranks...)
	}
	if err := ask.Distribution.Fault(); err != nil {
		return nil, core.Errorf(core.Invalid, "%v", err).Because("invalid_distribution")
	}
	out.Pack = ask.Distribution.Packing() == core.Pack
	if ask.Distribution.OverNodes() == core.SpreadArbitrary {
		if n := ask.NodeList.Len(); n == 0 || n > hostlist.MaxRequest {
			return nil, core.Errorf(core.Invalid, "an arbitrary distribution needs a list with the node of each task").
				Because("invalid_node")
		}
		out.TaskNodes = ask.NodeList.Names()
	}
	var err error
	if out.Not, err = nodeNames(ask.Exclude); err != nil {
		return nil, err
	}
	out.On, err = nodeNames(ask.NodeList)
	return out, err
}

// nodeNames expands a list of nodes, each once, sorted. One that names nobody is a mistake, and not a list of all.
func nodeNames(list core.Hostlist) ([]core.NodeName, error) {
	if err := list.Fault(); err != nil {
		return nil, core.Errorf(core.Invalid, "%v", err).Because("invalid_node")
	}
	if list.Len() > hostlist.MaxRequest {
		return nil, core.Errorf(core.Invalid, "node list %.200q has %d names; the limit is %d", list.String(), list.Len(),
			hostlist.MaxRequest).Because("invalid_node")
	}
	out := list.Names()
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ranksOf returns the ranks of a step's tasks on each of its nodes.
func ranksOf(ask *core.StepRequest, distribution core.Distribution, st *core.Step) [][]int32 {
	if len(ask.TaskNodes) == 0 {
		return slurm.Distribute(st.Tasks, distribution)
	}
	ranks := make([][]int32, len(st.Nodes))
	at := make(map[core.NodeName]int, len(st.Nodes))
	for i, n := range st.Nodes {
		at[n] = i
	}
	for rank, n := range ask.TaskNodes {
		ranks[at[n]] = append(ranks[at[n]], int32(rank))
	}
	return ranks
}
