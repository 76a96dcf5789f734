package speccheck

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// checkShapeMore refuses numbers that mean nothing in the rare part of a shape.
func checkShapeMore(sh *core.Shape) error {
	m := sh.More
	if m == nil {
		return nil
	}
	for _, c := range []struct {
		name string
		v    int32
	}{
		{"ntasks-per-socket", m.TasksPerSocket},
		{"ntasks-per-core", m.TasksPerCore},
		{"ntasks-per-gpu", m.TasksPerGPU},
		{"cpus-per-gpu", m.CPUsPerGPU},
		{"sockets-per-node", m.Sockets},
		{"cores-per-socket", m.Cores},
		{"threads-per-core", m.Threads},
		{"core-spec", m.CoreSpec},
		{"thread-spec", m.ThreadSpec},
	} {
		if c.v < 0 || c.v > 1<<16 {
			return core.Errorf(core.Invalid, "%s: %d must be from 0 to %d", c.name, c.v, 1<<16).Because("invalid_shape")
		}
	}
	if m.MemPerGPU < 0 {
		return core.Errorf(core.Invalid, "memory must not be negative").Because("invalid_shape")
	}
	if m.OverSubscribe && sh.Exclusive {
		return core.Errorf(core.Invalid,
			"exclusive and oversubscribe cannot be combined").Because("invalid_shape")
	}
	var gpus int64
	for _, list := range [][]core.Gres{m.GPUs, m.GPUsPerTask, m.GPUsPerSocket} {
		for _, g := range list {
			gpus += g.Count
		}
	}
	if gpus > MaxTasks {
		return core.Errorf(core.Invalid, "%d GPUs are too many", gpus).Because("invalid_gres")
	}
	return nil
}

// AllGres lists all generic resources a shape asks for, in whatever way.
func AllGres(sh *core.Shape) []core.Gres {
	if sh.More == nil {
		return sh.Gres
	}
	return slices.Concat(sh.Gres, sh.More.GPUs, sh.More.GPUsPerTask, sh.More.GPUsPerSocket)
}

// RaiseCPUsForMemory gives a job more CPUs if it asks for more memory a CPU than there is for one, as Slurm does: each
// has the memory of its part of them.
func RaiseCPUsForMemory(sh *core.Shape, most core.Bytes) error {
	if most <= 0 {
		return nil
	}
	times := func(m core.Bytes) core.Bytes { return (m + most - 1) / most }
	switch {
	case sh.MemPerCPU > most:
		k := times(sh.MemPerCPU)
		if k*core.Bytes(sh.CPUsPerTask) > MaxTasks {
			return core.Errorf(core.Invalid, "%d MiB per CPU are too much",
				sh.MemPerCPU/core.MiB).Because("memory_unsatisfiable")
		}
		sh.CPUsPerTask *= int32(k)
		sh.MemPerCPU = ((sh.MemPerCPU+k-1)/k + core.MiB - 1) / core.MiB * core.MiB
	case sh.MemPerNode > most:
		if k := times(sh.MemPerNode); k <= MaxTasks {
			sh.MinCPUs = max(sh.MinCPUs, int32(k))
		}
	}
	return nil
}

// MaxListedTasks is how many tasks may be laid out one by one.
const MaxListedTasks = 1 << 16

// IsArbitrary reports whether the node list has a node for each task.
func IsArbitrary(x *core.Extra) bool {
	return strings.HasPrefix(strings.ToLower(x.Distribution), "arbitrary")
}

// ShapeFromNodeList takes tasks and nodes from a list that has a node for each task.
func ShapeFromNodeList(spec *core.Spec) error {
	names, err := hostlist.Expand(spec.Extra.NodeList, MaxListedTasks)
	if err != nil || len(names) == 0 {
		return core.Errorf(core.Invalid,
			"an arbitrary distribution needs a list with the node of each task").Because("invalid_node")
	}
	sh := &spec.Shape
	if sh.Tasks != 0 && int(sh.Tasks) != len(names) {
		return core.Errorf(core.Invalid, "the node list has %d entries for %d tasks", len(names),
			sh.Tasks).Because("invalid_shape")
	}
	sh.Tasks = int32(len(names))
	slices.Sort(names)
	sh.NodesMin = int32(len(slices.Compact(names)))
	sh.NodesMax = sh.NodesMin
	return nil
}

// UnitsAreValid reports whether what a node says of its units can be: each index once, and no more sockets than there
// are.
func UnitsAreValid(h *core.Hardware) bool {
	type index struct {
		name string
		n    int32
	}
	seen := map[index]bool{}
	for _, u := range h.Units {
		at := index{u.Name, u.Index}
		if u.Name == "" || u.Index < 0 || u.Index > 1<<16 || u.Socket < 0 || u.Socket > max(1, h.Sockets) || u.Links < 0 ||
			seen[at] {
			return false
		}
		seen[at] = true
	}
	return h.Sockets >= 0 && h.Cores >= 0 && h.Threads >= 0 && int64(h.Sockets)*int64(h.Cores)*int64(h.Threads) <= 1<<20
}
