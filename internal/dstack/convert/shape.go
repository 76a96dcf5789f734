package convert

import (
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

// request is what one node of a run must have, in core's words.
type request struct {
	cpus   int32
	memory core.Bytes
	disk   core.Bytes
	shm    core.Bytes
	gpus   core.Gres    // Count 0: none
	ask    *core.GPUAsk // which GPUs will do; nil: those of gpus.Type
}

// gigabytes is a size in GB, of which dstack means powers of 1024.
func gigabytes(f *config.Float) core.Bytes {
	if f == nil || *f <= 0 {
		return 0
	}
	return core.Bytes(float64(*f) * float64(core.GiB))
}

// requestOf reads resources. Of ranges it takes the minimum.
func requestOf(r *config.Resources) request {
	q := request{
		cpus: int32(min(1<<20, max(1, config.Value(r.CPU.Count.Min)))), memory: gigabytes(r.Memory.Min),
		shm: gigabytes(r.ShmSize),
	}
	if d := r.Disk; d != nil && !isDefaultDisk(d) {
		q.disk = gigabytes(d.Size.Min)
	}
	if r.GPU != nil {
		q.gpu(r.GPU)
	}
	return q
}

// isDefaultDisk reports whether a disk is what clients send when a configuration says nothing.
func isDefaultDisk(d *config.Disk) bool {
	def := config.DefaultResources().Disk
	return d.Size.Max == nil && config.Value(d.Size.Min) == config.Value(def.Size.Min)
}

func (q *request) gpu(g *config.GPU) {
	count := config.Value(g.Count.Min)
	ask := core.GPUAsk{Vendor: config.Value(g.Vendor), Names: g.Name}
	if m := g.Memory; m != nil {
		ask.MemMin, ask.MemMax = gigabytes(m.Min), gigabytes(m.Max)
	}
	if c := g.ComputeCapability; c != nil {
		ask.Capability = int32(10*c[0] + c[1])
	}
	if t := g.TotalMemory; t != nil {
		count = shareMemory(&ask, count, g.Count.Max, gigabytes(t.Min), gigabytes(t.Max))
	}
	if count <= 0 {
		return
	}
	q.gpus = core.Gres{Name: "gpu", Count: min(count, 1<<20)}
	switch {
	case len(g.Name) == 1 && ask.Vendor == "" && ask.MemMin+ask.MemMax == 0 && ask.Capability == 0:
		q.gpus.Type = strings.ToLower(g.Name[0]) // GRES types are lower case by custom, dstack's GPU names upper case
	case len(g.Name) > 0 || ask.Vendor != "" || ask.MemMin+ask.MemMax > 0 || ask.Capability > 0:
		q.ask = &ask
	}
}

// shareMemory divides what all GPUs are to have together among them: of a count that may grow, so many are asked for
// that each needs no more than its own least memory. It returns the count.
func shareMemory(ask *core.GPUAsk, count int64, most *int64, low, high core.Bytes) int64 {
	if low > 0 && ask.MemMin > 0 && count > 0 {
		need := int64((low + ask.MemMin - 1) / ask.MemMin)
		if most != nil {
			need = min(need, *most)
		}
		count = max(count, need)
	}
	n := core.Bytes(max(1, count))
	if low > 0 {
		ask.MemMin = max(ask.MemMin, (low+n-1)/n)
	}
	if each := high / n; high > 0 && (ask.MemMax == 0 || each < ask.MemMax) {
		ask.MemMax = each
	}
	return count
}

// shape asks for the run's part on each of its nodes: one task a node, as dstack runs one container a node.
func (q *request) shape(nodes int32) core.Shape {
	s := core.Shape{
		NodesMin: nodes, NodesMax: nodes, Tasks: nodes, TasksPerNode: 1, CPUsPerTask: q.cpus, Blocks: true,
		Given: core.GivenNodes | core.GivenTasks | core.GivenTasksPerNode,
	}
	if q.cpus > 1 {
		s.Given |= core.GivenCPUsPerTask
	}
	if q.memory > 0 {
		s.MemPerNode, s.Given = q.memory, s.Given|core.GivenMemPerNode
	}
	if q.gpus.Count > 0 {
		s.Gres, s.Given = []core.Gres{q.gpus}, s.Given|core.GivenGres
	}
	return s
}
