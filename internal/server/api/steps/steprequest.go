package steps

import (
	"slices"
	"strings"

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
	how, mode, _ := strings.Cut(strings.ToLower(ask.Distribution), ",")
	out.Pack = mode == "pack"
	if strings.HasPrefix(how, "arbitrary") {
		names, err := hostlist.Expand(ask.NodeList, hostlist.MaxRequest)
		if err != nil || len(names) == 0 {
			return nil, core.Errorf(core.Invalid, "an arbitrary distribution needs a list with the node of each task").
				Because("invalid_node")
		}
		for _, n := range names {
			out.TaskNodes = append(out.TaskNodes, core.NodeName(n))
		}
	}
	var err error
	if out.Not, err = nodeNames(ask.Exclude); err != nil {
		return nil, err
	}
	out.On, err = nodeNames(ask.NodeList)
	return out, err
}

// nodeNames reads a list of nodes, each once, sorted. One that names nobody is a mistake, and not a list of all.
func nodeNames(list string) ([]core.NodeName, error) {
	if list == "" {
		return nil, nil
	}
	names, err := hostlist.Expand(list, hostlist.MaxRequest)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "node list %.200q: %v", list, err).Because("invalid_node")
	}
	if len(names) == 0 {
		return nil, core.Errorf(core.Invalid, "node list %.200q names no node", list).Because("invalid_node")
	}
	out := make([]core.NodeName, len(names))
	for i, n := range names {
		out[i] = core.NodeName(n)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ranksOf returns the ranks of a step's tasks on each of its nodes.
func ranksOf(ask *core.StepRequest, distribution string, st *core.Step) [][]int32 {
	if len(ask.TaskNodes) == 0 {
		how, _, _ := strings.Cut(strings.ToLower(distribution), ",")
		return slurm.Distribute(st.Tasks, how)
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
