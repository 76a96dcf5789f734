package steplayout

import (
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// charge records what a step uses of its job, from what it holds on its nodes or would hold if it did not share. One
// that asks for no units uses those that its job asked for, and one that asks for no memory that of its CPUs.
func charge(st *core.Step, j *core.Job, list []core.StepHold, ask *core.StepRequest) {
	places := core.NodePlaces{List: j.Alloc.Nodes}
	plain := len(ask.Gres)+len(ask.GPUs)+len(ask.GPUsPerTask) == 0
	var asked []core.Gres
	shape := &core.Shape{}
	if j.Spec != nil {
		shape = &j.Spec.Shape
	}
	if plain {
		asked = shape.Total()
	}
	var cpus int64
	for i := range list {
		whole := &j.Alloc.Nodes[places.Of(st.Nodes[i])]
		cpus += int64(list[i].CPUs)
		st.Mem += memoryOf(&list[i], whole, shape, ask)
		units := list[i].Gres
		if plain {
			units = whole.Gres
		}
		for k := range units {
			name := units[k].Name
			if !plain || slices.ContainsFunc(asked, func(g core.Gres) bool { return g.Name == name }) {
				st.Gres = addUnits(st.Gres, name, len(units[k].Units))
			}
		}
	}
	st.CPUs = int32(min(cpus, math.MaxInt32))
}

// memoryOf is the memory that a step may use on a node.
func memoryOf(h *core.StepHold, whole *core.NodeAlloc, shape *core.Shape, ask *core.StepRequest) core.Bytes {
	switch perCPU := shape.MemPerCPU; {
	case ask.MemPerNode > 0 || ask.MemPerCPU > 0:
		return min(h.Mem, whole.Mem)
	case perCPU > 0:
		return min(perCPU*core.Bytes(h.CPUs), whole.Mem)
	}
	return whole.Mem
}

func addUnits(list []core.Gres, name string, n int) []core.Gres {
	for i := range list {
		if list[i].Name == name {
			list[i].Count += int64(n)
			return list
		}
	}
	return append(list, core.Gres{Name: name, Count: int64(n)})
}
