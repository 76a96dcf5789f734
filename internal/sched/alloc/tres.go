package alloc

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
)

// RequestedTRES is what a spec asks for at least: of the whole job, and of the node that has most of each. What the job
// gets may be more, as with whole nodes; that is known when it is placed.
func RequestedTRES(spec *core.Spec) (all, node core.TRES) {
	sh, wide := &spec.Shape, spec.Shape.Wide()
	nodes, tasks := int64(max(1, sh.NodesMin)), int64(max(1, sh.Tasks))
	gres := sh.Total()
	gpus := core.CountGres(gres, "gpu")
	cpus := max(tasks*int64(max(1, sh.CPUsPerTask)), int64(sh.MinCPUs)*nodes, gpus*int64(wide.CPUsPerGPU))
	mem := max(0, int64(sh.MemPerNode/core.MiB)) * nodes
	switch {
	case sh.MemPerCPU > 0:
		mem = int64(sh.MemPerCPU/core.MiB) * cpus
	case wide.MemPerGPU > 0:
		mem = int64(wide.MemPerGPU/core.MiB) * gpus
	}
	part := func(n int64) int64 { return (n + nodes - 1) / nodes }
	all, node = tresOf(nodes, cpus, mem), tresOf(1, part(cpus), part(mem))
	all, node = addGres(all, gres, 1), addGres(node, gres, nodes)
	if req := spec.More().Licenses.Request(); req != nil && !req.Any { // of a choice it is not known yet which
		all = addLicenses(all, req.List)
	}
	return all, node
}

// AllocatedTRES is what a job holds: all of it, and of the node that has most of each.
func AllocatedTRES(al *core.Alloc) (all, node core.TRES) {
	var cpus, mostCPUs, mem, mostMem int64
	var gres, most []core.Gres
	for i := range al.Nodes {
		na := &al.Nodes[i]
		cpus, mostCPUs = cpus+int64(na.CPUs), max(mostCPUs, int64(na.CPUs))
		mem, mostMem = mem+int64(na.Mem/core.MiB), max(mostMem, int64(na.Mem/core.MiB))
		for _, ga := range na.Gres {
			g := core.Gres{Name: ga.Name, Type: ga.Type, Count: int64(len(ga.Units))}
			gres, most = sumGres(gres, g, false), sumGres(most, g, true)
		}
	}
	return addLicenses(addGres(tresOf(int64(len(al.Nodes)), cpus, mem), gres, 1), al.Licenses()), addGres(tresOf(1,
		mostCPUs, mostMem), most, 1)
}

func addLicenses(t core.TRES, list []core.License) core.TRES {
	for _, l := range list {
		if storage.OfLicense(l.Name) != "" {
			continue // it is no resource that is counted
		}
		t = t.Plus(core.TRES{{Name: "license/" + l.Name, Count: l.Total}}, 1)
	}
	return t
}

func tresOf(nodes, cpus, mem int64) core.TRES {
	return core.TRES{{Name: "cpu", Count: cpus}, {Name: "mem", Count: mem}, {Name: "node", Count: nodes}}
}

// sumGres adds to a list, or with most keeps the larger count.
func sumGres(list []core.Gres, g core.Gres, most bool) []core.Gres {
	for i := range list {
		if x := &list[i]; x.Name == g.Name && x.Type == g.Type {
			if most {
				x.Count = max(x.Count, g.Count)
			} else {
				x.Count += g.Count
			}
			return list
		}
	}
	return append(list, g)
}

// addGres adds generic resources, spread over so many nodes, under their name and, if they have one, their type.
func addGres(t core.TRES, list []core.Gres, nodes int64) core.TRES {
	for _, g := range list {
		n := (g.Count + nodes - 1) / nodes
		t = t.Plus(core.TRES{{Name: "gres/" + g.Name, Count: n}}, 1)
		if g.Type != "" {
			t = t.Plus(core.TRES{{Name: "gres/" + g.Name + ":" + g.Type, Count: n}}, 1)
		}
	}
	return t
}
