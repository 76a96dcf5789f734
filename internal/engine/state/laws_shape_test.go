package state

import "bireme.dev/bireme/internal/core"

// inside gives a node sockets, cores and threads, and its GPUs places.
func (c *chaos) inside(h *core.Hardware) {
	h.Sockets, h.Cores, h.Threads = int32(1+c.choose(2)), int32(1+c.choose(2)), int32(1+c.choose(2))
	h.CPUs = h.Sockets * h.Cores * h.Threads
	for _, k := range h.Kinds() {
		for _, i := range k.Index {
			h.Units = append(h.Units,
				core.Unit{
					Name: k.Name, Type: k.Type, Index: i, Socket: int32(c.choose(int(h.Sockets) + 1)),
					Links: int32(c.choose(3)),
				})
		}
	}
}

// widen asks for something in one of the rarer ways, whether it can be or not.
func (c *chaos) widen(s *core.Spec) {
	gpus := func() []core.Gres {
		return []core.Gres{{Name: "gpu", Type: c.pick("", "a"), Count: int64(1 + c.choose(3))}}
	}
	m := &core.ShapeMore{OverSubscribe: c.choose(3) == 0}
	switch c.choose(7) {
	case 0:
		m.GPUs = gpus()
	case 1:
		m.GPUsPerTask = gpus()
	case 2:
		m.GPUs, m.TasksPerGPU = gpus(), int32(1+c.choose(2))
	case 3:
		m.GPUsPerSocket, m.Sockets = gpus(), int32(c.choose(3))
	case 4:
		m.TasksPerSocket, m.TasksPerCore, m.OneThread = int32(c.choose(2)), int32(c.choose(2)), c.choose(2) == 0
	case 5:
		m.Sockets, m.Cores, m.Threads, m.CoreSpec = int32(c.choose(2)), int32(c.choose(3)), int32(c.choose(2)),
			int32(c.choose(2))
	case 6:
		m.GPUs, m.CPUsPerGPU, m.MemPerGPU = gpus(), int32(c.choose(3)), core.Bytes(c.choose(2))*core.GiB
	}
	s.Shape.More = m
}

// mayShare lets partitions share CPUs, or bounds them.
func mayShare(cfg *Config, choose func(int) int) {
	if choose(2) == 0 {
		return
	}
	for i := range cfg.Partitions {
		p := &cfg.Partitions[i]
		p.OverSubscribe = []string{"", "YES:2", "FORCE:2", "EXCLUSIVE"}[choose(4)]
		p.MaxCPUsPerNode = int32(choose(2) * choose(5))
	}
	cfg.Select = []core.AllocUnit{core.UnitCore, core.UnitCPU, core.UnitSocket}[choose(3)]
}
