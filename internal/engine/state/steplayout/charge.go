package steplayout

import (
	"math"

	"bireme.dev/bireme/internal/core"
)

// charge records what a step uses of its job, from what it holds on its nodes or would hold if it did not share. One
// that asks for no memory uses that of its CPUs.
func charge(st *core.Step, j *core.Job, list []core.StepHold, ask *core.StepRequest) {
	places := core.NodePlaces{List: j.Alloc.Nodes}
	shape := &core.Shape{}
	if j.Spec != nil {
		shape = &j.Spec.Shape
	}
	var cpus int64
	var kinds, all int // of units: those that it has, and those that its job has
	for i := range list {
		whole := &j.Alloc.Nodes[places.Of(st.Nodes[i])]
		cpus += int64(list[i].CPUs)
		st.Mem += memoryOf(&list[i], whole, shape, ask)
		for k := range list[i].Gres {
			st.Gres = addUnits(st.Gres, list[i].Gres[k].Name, len(list[i].Gres[k].Units))
		}
		kinds, all = kinds+len(list[i].Gres), all+len(whole.Gres)
	}
	st.CPUs = int32(min(cpus, math.MaxInt32))
	if all > 0 && (ask.OwnGres() || kinds < all) {
		st.Units = make([][]core.GresAlloc, len(list))
		for i := range list {
			st.Units[i] = list[i].Gres
		}
	}
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
