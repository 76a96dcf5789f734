package sched

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// shapeWorld is a lawWorld of nodes with sockets, cores, threads and GPUs that say where they are, of partitions that
// share, and of jobs that ask for all of it in every way.
func shapeWorld(t *rapid.T, rule core.Rule, seed uint64, parts int) *lawWorld {
	w := newLawWorld(t, rule, seed, parts)
	w.cfg.AllocUnit = []core.AllocUnit{core.UnitCore, core.UnitCore, core.UnitCPU, core.UnitSocket}[w.r.IntN(4)]
	for i := range w.cfg.Partitions {
		p := &w.cfg.Partitions[i]
		p.OverSubscribe = []string{"", "NO", "YES:2", "FORCE:2", "FORCE:3", "EXCLUSIVE"}[w.r.IntN(6)]
		if w.r.IntN(4) == 0 {
			p.MaxCPUsPerNode = int32(1 + w.r.IntN(6))
		}
	}
	for i, old := range w.nodes {
		n := *old
		h := &n.Hardware
		h.Sockets, h.Cores, h.Threads = int32(1+w.r.IntN(2)), int32(1+w.r.IntN(3)), int32(1+w.r.IntN(2))
		h.CPUs = h.Sockets * h.Cores * h.Threads
		if w.r.IntN(5) == 0 {
			h.CPUs = h.Sockets * h.Cores // threads that nobody sees
		}
		h.Gres, h.Units = nil, nil
		if w.r.IntN(3) > 0 {
			x := int64(w.r.IntN(4))
			h.Gres = []core.Gres{{Name: "gpu", Type: "x", Count: x}, {Name: "gpu", Type: "y", Count: 1}, {Name: "nic", Count: 1}}
			if w.r.IntN(2) == 0 {
				for u := range int32(x) + 1 {
					typ := "x"
					if u == 1 || x == 0 { // between the others
						typ = "y"
					}
					h.Units = append(h.Units, core.Unit{
						Name: "gpu", Type: typ, Index: u, Socket: int32(w.r.IntN(int(h.Sockets) + 1)),
						Links: int32(w.r.IntN(3)),
					})
				}
			}
		}
		w.nodes[i] = &n
	}
	names := w.cfg.Hosts
	w.cfg.Hosts = func(list string) map[core.NodeName]bool { return names(strings.ReplaceAll(list, ",", "")) }
	w.p = New(w.cfg)
	w.p.Apply(Changes{Nodes: w.nodes})
	w.wish = w.shape
	w.started = w.checkShape
	return w
}

// shape makes a request of a rare kind, as admission would let it in.
func (w *lawWorld) shape(s *core.Spec) {
	if w.r.IntN(4) == 0 {
		return
	}
	sh := &s.Shape
	m := &core.ShapeMore{}
	gpu := func(n int) []core.Gres {
		return []core.Gres{{Name: "gpu", Type: []string{"", "x", ""}[w.r.IntN(3)], Count: int64(1 + w.r.IntN(n))}}
	}
	switch w.r.IntN(9) {
	case 0:
		sh.Gres, m.GPUs = nil, gpu(4)
		if w.r.IntN(3) == 0 {
			m.GPUs = []core.Gres{{Name: "gpu", Type: "x", Count: int64(1 + w.r.IntN(3))}, {
				Name: "gpu", Type: "y",
				Count: int64(1 + w.r.IntN(2)),
			}}
		}
		if w.r.IntN(2) == 0 {
			sh.NodesMin, sh.NodesMax = 0, 0
		}
		sh.NodesMin = min(sh.NodesMin, int32(core.CountGres(m.GPUs, "gpu")))
	case 1:
		sh.Gres, m.GPUsPerTask = nil, gpu(2)
	case 2:
		sh.Gres, m.GPUs, m.TasksPerGPU = nil, gpu(3), int32(1+w.r.IntN(2))
		sh.NodesMin, sh.NodesMax, sh.Tasks = 0, 0, 0
	case 3:
		sh.Gres, m.GPUsPerSocket, m.Sockets = nil, gpu(1), int32(1+w.r.IntN(2))
	case 4:
		m.Sockets, m.Cores = int32(w.r.IntN(3)), int32(w.r.IntN(3))
	case 5:
		m.TasksPerSocket, m.TasksPerCore = int32(w.r.IntN(3)), int32(w.r.IntN(3))
	case 6:
		m.OneThread, m.CoreSpec = w.r.IntN(2) == 0, int32(w.r.IntN(2))
	case 7:
		s.Extra = &core.Extra{Distribution: []string{"cyclic", "block,pack", "plane=2:cyclic", "block:fcyclic"}[w.r.IntN(4)]}
	case 8:
		k := w.r.IntN(3)
		s.Extra = &core.Extra{Distribution: "arbitrary", NodeList: []string{"a,b,a", "b,b", "a"}[k]}
		sh.NodesMin, sh.Tasks = []int32{2, 1, 1}[k], []int32{3, 2, 1}[k]
		sh.NodesMax = sh.NodesMin
	}
	if gpus := len(m.GPUs) + len(m.GPUsPerTask); gpus > 0 && w.r.IntN(3) == 0 {
		m.CPUsPerGPU = int32(1 + w.r.IntN(2))
		if sh.MemPerNode == 0 {
			m.MemPerGPU = core.GiB / 2
		}
	}
	m.OverSubscribe = !sh.Exclusive && w.r.IntN(3) == 0
	if w.r.IntN(3) == 0 && sh.MemPerNode == 0 && m.MemPerGPU == 0 {
		sh.MemPerCPU = core.GiB / 4
	}
	sh.More = m
	if err := sh.Derive(); err != nil {
		w.t.Fatalf("%+v: %v", sh, err)
	}
	sh.Tasks = max(sh.Tasks, sh.NodesMin, 1)
}

// checkShape counts again what a job that starts has, beside all others, and holds it against what it asked for.
func (w *lawWorld) checkShape(j *core.Job, al *core.Alloc) {
	sh, m := &j.Spec.Shape, j.Spec.Shape.Wide()
	terms := alloc.TermsOf(j.Spec, al)
	var part *core.Partition
	for i := range w.cfg.Partitions {
		if w.cfg.Partitions[i].Name == al.Partition {
			part = &w.cfg.Partitions[i]
		}
	}
	tasks, gpus := int32(0), int64(0)
	for i := range al.Nodes {
		na := &al.Nodes[i]
		tasks += na.Tasks
		mine := int64(0)
		for _, g := range na.Gres {
			if g.Name == "gpu" {
				mine += int64(len(g.Units))
			}
		}
		gpus += mine
		if na.Tasks < 1 || int(na.CPUs) != len(na.Cores) {
			w.t.Fatalf("job %d: %+v", j.ID, na)
		}
		if len(m.GPUs) > 0 && len(m.GPUsPerTask) == 0 && mine < 1 && !terms.Exclusive {
			w.t.Fatalf("job %d has no GPU on %s", j.ID, na.Node)
		}
		if need := int64(m.CPUsPerGPU) * mine; int64(na.CPUs) < need && !terms.Exclusive {
			w.t.Fatalf("job %d has %d CPUs and %d GPUs on %s", j.ID, na.CPUs, mine, na.Node)
		}
		w.checkNode(j, al, na, part)
	}
	want := core.CountGres(sh.Total(), "gpu")
	if len(m.GPUs)+len(m.GPUsPerTask) > 0 && gpus != want && !terms.Exclusive {
		w.t.Fatalf("job %d asked for %d GPUs and has %d", j.ID, want, gpus)
	}
	if tasks < sh.Tasks {
		w.t.Fatalf("job %d asked for %d tasks and has %d", j.ID, sh.Tasks, tasks)
	}
	if x := j.Spec.More(); x.Distribution == "arbitrary" {
		got := ""
		for i := range al.Nodes {
			got += fmt.Sprintf("%s%d", al.Nodes[i].Node, al.Nodes[i].Tasks)
		}
		if want := map[string]string{"a,b,a": "a2b1", "b,b": "b2", "a": "a1"}[x.NodeList]; got != want {
			w.t.Fatalf("job %d is laid out %s, want %s", j.ID, got, want)
		}
	}
}

// checkNode looks at one node of a job that starts.
func (w *lawWorld) checkNode(j *core.Job, al *core.Alloc, na *core.NodeAlloc, part *core.Partition) {
	var node *core.Node
	for _, n := range w.nodes {
		if n.Name == na.Node {
			node = n
		}
	}
	grid, m := ledger.CpuLayoutOf(&node.Hardware, w.cfg.AllocUnit), j.Spec.Shape.Wide()
	units := map[int32]int32{} // jobs on each unit of the grid
	cpus, mem := na.CPUs, na.Mem
	sockets := map[int32]int32{}
	for _, c := range na.Cores {
		units[c/grid.AllocUnit]++
		sockets[c/grid.PerSocket]++
	}
	for u, n := range units {
		if n != grid.AllocUnit && !alloc.TermsOf(j.Spec, al).Exclusive {
			w.t.Fatalf("job %d has %d CPUs of unit %d of %s, which has %d", j.ID, n, u, node.Name, grid.AllocUnit)
		}
		units[u] = 1
	}
	for _, id := range w.order {
		o := w.jobs[id]
		if o.State != core.Running || o.ID == j.ID {
			continue
		}
		for i := range o.Alloc.Nodes {
			other := &o.Alloc.Nodes[i]
			if other.Node != na.Node {
				continue
			}
			if mem += other.Mem; o.Alloc.Partition == al.Partition {
				cpus += other.CPUs
			}
			share := alloc.TermsOf(o.Spec, o.Alloc).MaxSharing
			last := int32(-1)
			for _, c := range other.Cores {
				u := c / grid.AllocUnit
				if u == last || units[u] == 0 {
					continue
				}
				last = u
				if units[u]++; share < 2 || share != alloc.TermsOf(j.Spec, al).MaxSharing || units[u] > share {
					w.t.Fatalf("CPU %d of %s has jobs %d and %d, of which at most %d share", c, node.Name, j.ID, o.ID, share)
				}
			}
			for _, g := range other.Gres {
				for _, mine := range na.Gres {
					for _, u := range mine.Units {
						for _, v := range g.Units {
							if g.Name == mine.Name && u == v {
								w.t.Fatalf("%s %d of %s belongs to jobs %d and %d", g.Name, u, node.Name, j.ID, o.ID)
							}
						}
					}
				}
			}
		}
	}
	if mem > node.Hardware.Memory || part.MaxCPUsPerNode > 0 && cpus > part.MaxCPUsPerNode {
		w.t.Fatalf("with job %d, %d bytes of %d are given on %s, and %d CPUs to partition %s", j.ID, mem,
			node.Hardware.Memory, node.Name, cpus, part.Name)
	}
	if m.TasksPerSocket > 0 && j.Spec.Shape.CPUsPerTask <= grid.PerSocket && !alloc.TermsOf(j.Spec, al).Exclusive &&
		int32(len(sockets))*m.TasksPerSocket < na.Tasks {
		w.t.Fatalf("job %d has %d tasks on %d sockets of %s", j.ID, na.Tasks, len(sockets), node.Name)
	}
}

// TestShapesGiveNothingTwice lets jobs of all shapes come and go, on partitions that share nodes and CPUs.
func TestShapesGiveNothingTwice(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleFCFS, core.RuleConservative} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := shapeWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 3)
				for range 40 {
					if w.r.IntN(3) == 0 {
						w.end()
					} else {
						w.submit()
					}
					w.pass()
				}
			})
		})
	}
}

// TestShapesKeepPromises: reservations hold also for jobs that share CPUs or care for sockets, and beside them.
func TestShapesKeepPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := shapeWorld(rt, core.RuleEASY, rapid.Uint64().Draw(rt, "seed"), 1)
		for range 5 + w.r.IntN(30) {
			w.submit()
		}
		w.keepsPromises()
	})
}
