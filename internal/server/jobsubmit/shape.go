package jobsubmit

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// shapeFields are those of nodes, tasks, CPUs, memory and generic resources.
func shapeFields() map[string]field {
	shape := func(d *desc) *core.Shape { return &d.Spec.Shape }
	return map[string]field{
		"min_nodes": number(noVal, func(d *desc) (int64, bool) {
			return int64(shape(d).NodesMin), d.has(core.GivenNodes, shape(d).NodesMin)
		}, setMinNodes),
		"max_nodes": number(noVal, func(d *desc) (int64, bool) {
			return int64(max(shape(d).NodesMax, shape(d).NodesMin)), d.has(core.GivenNodes, shape(d).NodesMin)
		}, func(d *desc, n int64, given bool) {
			if shape(d).NodesMax = 0; given && n < 1<<24 {
				shape(d).NodesMax = int32(n)
			}
		}),
		"num_tasks": number(noVal, func(d *desc) (int64, bool) {
			return int64(shape(d).Tasks), d.has(core.GivenTasks, shape(d).Tasks)
		}, func(d *desc, n int64, given bool) {
			d.give(core.GivenTasks, given)
			if shape(d).Tasks = max(1, shape(d).NodesMin); given {
				shape(d).Tasks = int32(min(max(n, 1), 1<<24))
			}
		}),
		"cpus_per_task": number(noVal16, func(d *desc) (int64, bool) {
			return int64(shape(d).CPUsPerTask), d.has(core.GivenCPUsPerTask, shape(d).CPUsPerTask)
		}, func(d *desc, n int64, given bool) {
			d.give(core.GivenCPUsPerTask, given)
			if shape(d).CPUsPerTask = 1; given {
				shape(d).CPUsPerTask = int32(min(max(n, 1), 1<<20))
			}
		}),
		"min_cpus": number(noVal, func(d *desc) (int64, bool) {
			return int64(max(1, shape(d).Tasks)) * int64(max(1, shape(d).CPUsPerTask)), true
		}, func(d *desc, n int64, given bool) {
			if per := int64(max(1, shape(d).CPUsPerTask)); given && shape(d).Given&core.GivenTasks == 0 && n > 0 {
				shape(d).Tasks = int32(min((n+per-1)/per, 1<<24))
			}
		}),
		"pn_min_cpus": number(noVal16, func(d *desc) (int64, bool) {
			n := shape(d).MinCPUs
			if shape(d).Given&core.GivenCPUsPerTask != 0 {
				n = max(n, shape(d).CPUsPerTask)
			}
			return int64(n), n > 0
		}, func(d *desc, n int64, given bool) {
			if shape(d).MinCPUs = 0; given {
				shape(d).MinCPUs = int32(min(max(n, 0), 1<<20))
			}
		}),
		"ntasks_per_node": number(noVal16, func(d *desc) (int64, bool) {
			n := shape(d).TasksPerNode
			return int64(n), n > 0
		}, func(d *desc, n int64, given bool) {
			given = given && n > 0
			d.give(core.GivenTasksPerNode, given)
			if shape(d).TasksPerNode = 0; given {
				shape(d).TasksPerNode = int32(min(n, 1<<20))
			}
		}),
		"ntasks_per_core":   wideCount(func(m *core.ShapeMore) *int32 { return &m.TasksPerCore }),
		"ntasks_per_socket": wideCount(func(m *core.ShapeMore) *int32 { return &m.TasksPerSocket }),
		"ntasks_per_gpu":    wideCount(func(m *core.ShapeMore) *int32 { return &m.TasksPerGPU }),
		"sockets_per_node":  wideCount(func(m *core.ShapeMore) *int32 { return &m.Sockets }),
		"cores_per_socket":  wideCount(func(m *core.ShapeMore) *int32 { return &m.Cores }),
		"threads_per_core":  wideCount(func(m *core.ShapeMore) *int32 { return &m.Threads }),
		"core_spec":         wideCount(func(m *core.ShapeMore) *int32 { return &m.CoreSpec }),
		"pn_min_memory":     {get: memory, set: setMemory},
		"min_mem_per_node":  {get: memPerNode, set: setMemPerNode},
		"min_mem_per_cpu":   {get: memPerCPUOf, set: setMemPerCPU},
		"pn_min_tmp_disk": number(noVal, func(d *desc) (int64, bool) {
			n := d.Spec.More().TmpDisk
			return int64(n / core.MiB), n > 0
		}, func(d *desc, n int64, given bool) {
			if d.extra().TmpDisk = 0; given {
				d.extra().TmpDisk = core.Bytes(min(max(n, 0), 1<<40)) * core.MiB
			}
		}),
		"tres_per_node": gresField("gpus-per-node", func(d *desc) []core.Gres { return shape(d).Gres },
			func(d *desc, list []core.Gres) { d.give(core.GivenGres, len(list) > 0); shape(d).Gres = list }),
		"tres_per_job": gresField("gpus", func(d *desc) []core.Gres { return shape(d).Wide().GPUs },
			func(d *desc, list []core.Gres) { d.wide().GPUs = list }),
		"tres_per_task": gresField("gpus-per-task", func(d *desc) []core.Gres { return shape(d).Wide().GPUsPerTask },
			func(d *desc, list []core.Gres) { d.wide().GPUsPerTask = list }),
		"tres_per_socket": gresField("gpus-per-socket", func(d *desc) []core.Gres { return shape(d).Wide().GPUsPerSocket },
			func(d *desc, list []core.Gres) { d.wide().GPUsPerSocket = list }),
		"cpus_per_tres": perGPU(func(d *desc) int64 { return int64(shape(d).Wide().CPUsPerGPU) },
			func(d *desc, n int64) { d.wide().CPUsPerGPU = int32(min(n, 1<<20)) }),
		"mem_per_tres": perGPU(func(d *desc) int64 { return int64(shape(d).Wide().MemPerGPU / core.MiB) },
			func(d *desc, n int64) { d.wide().MemPerGPU = core.Bytes(min(n, 1<<40)) * core.MiB }),
		"shared": number(noVal16, shared, setShared),
		"bitflags": number(noVal64, func(d *desc) (n int64, _ bool) {
			if shape(d).Wide().SpreadJob {
				n |= flagSpread
			}
			if shape(d).Wide().UseMinNodes {
				n |= flagMinNodes
			}
			return n, true
		}, func(d *desc, n int64, given bool) {
			d.wide().SpreadJob, d.wide().UseMinNodes = given && n&flagSpread != 0, given && n&flagMinNodes != 0
		}),
	}
}

func setMinNodes(d *desc, n int64, given bool) {
	s := &d.Spec.Shape
	d.give(core.GivenNodes, given)
	if s.NodesMin = 0; !given {
		s.NodesMax = 0
		return
	}
	was := s.NodesMax
	s.NodesMin = int32(min(max(n, 0), 1<<24))
	if was < s.NodesMin {
		s.NodesMax = s.NodesMin
	}
	if s.Given&core.GivenTasks == 0 { // as Slurm: one on each
		s.Tasks = max(s.Tasks, s.NodesMin)
	}
}

// wideCount is a count of the rare part of the shape.
func wideCount(at func(*core.ShapeMore) *int32) field {
	return number(noVal16, func(d *desc) (int64, bool) { n := *at(d.Spec.Shape.Wide()); return int64(n), n != 0 },
		func(d *desc, n int64, given bool) {
			if *at(d.wide()) = 0; given {
				*at(d.wide()) = int32(min(max(n, 0), 1<<20))
			}
		})
}

func memory(d *desc) lua.LValue {
	switch s := &d.Spec.Shape; {
	case s.MemPerCPU > 0:
		return lua.LNumber(float64(memPerCPU) + float64(s.MemPerCPU/core.MiB))
	case s.MemPerNode > 0 || s.Given&core.GivenMemPerNode != 0:
		return lua.LNumber(s.MemPerNode / core.MiB)
	}
	return lua.LNumber(noVal64)
}

func setMemory(d *desc, v lua.LValue) bool {
	switch n := lua.LVAsNumber(v); {
	case v == lua.LNil, n >= noVal64:
		return setMemPerNode(d, lua.LNil)
	case !lua.LVCanConvToString(v):
		return false
	case n >= memPerCPU:
		return setMemPerCPU(d, lua.LNumber(float64(n)-float64(memPerCPU)))
	default:
		return setMemPerNode(d, v)
	}
}

// memPerNode reads memory by node; unset it is nil, as in Slurm.
func memPerNode(d *desc) lua.LValue {
	if s := &d.Spec.Shape; s.MemPerNode > 0 || s.Given&core.GivenMemPerNode != 0 {
		return lua.LNumber(s.MemPerNode / core.MiB)
	}
	return lua.LNil
}

func memPerCPUOf(d *desc) lua.LValue {
	if n := d.Spec.Shape.MemPerCPU; n > 0 {
		return lua.LNumber(n / core.MiB)
	}
	return lua.LNil
}

func mebibytes(v lua.LValue) (core.Bytes, bool) {
	n := lua.LVAsNumber(v)
	return core.Bytes(min(max(clamp(float64(n)), 0), 1<<40)) * core.MiB, lua.LVCanConvToString(v) && n >= 0
}

func setMemPerNode(d *desc, v lua.LValue) bool {
	s := &d.Spec.Shape
	return setMemoryForm(d, v, &s.MemPerNode, &s.MemPerCPU, core.GivenMemPerNode, core.GivenMemPerCPU)
}

func setMemPerCPU(d *desc, v lua.LValue) bool {
	s := &d.Spec.Shape
	return setMemoryForm(d, v, &s.MemPerCPU, &s.MemPerNode, core.GivenMemPerCPU, core.GivenMemPerNode)
}

// setMemoryForm sets one of the two forms in which a job asks for memory, and clears the other.
func setMemoryForm(d *desc, v lua.LValue, to, other *core.Bytes, given, otherGiven core.ShapeGiven) bool {
	n, ok := mebibytes(v)
	none := v == lua.LNil || lua.LVAsNumber(v) >= noVal64
	if !ok && !none {
		return false
	}
	if none {
		n = 0
	}
	*to, *other = n, 0
	d.give(otherGiven, false)
	d.give(given, !none)
	return true
}

func shared(d *desc) (int64, bool) {
	switch s := &d.Spec.Shape; {
	case s.Exclusive:
		return sharedNone, true
	case s.Wide().OverSubscribe:
		return sharedOK, true
	case s.Wide().ExclusiveUser:
		return sharedUser, true
	}
	return 0, false
}

func setShared(d *desc, n int64, given bool) {
	s := &d.Spec.Shape
	s.Exclusive = given && n == sharedNone
	d.give(core.GivenExclusive, s.Exclusive)
	if s.More != nil || given {
		d.wide().OverSubscribe, d.wide().ExclusiveUser = given && n == sharedOK, given && n == sharedUser
	}
}

// gresField is a list of generic resources as Slurm writes it: gres:gpu:a100:2. Others than GPUs only go by node.
func gresField(option string, get func(*desc) []core.Gres, set func(*desc, []core.Gres)) field {
	return textField(func(d *desc) string {
		var out []string
		for _, g := range get(d) {
			text := "gres:" + g.Name
			if g.Type != "" {
				text += ":" + g.Type
			}
			out = append(out, text+":"+strconv.FormatInt(g.Count, 10))
		}
		return strings.Join(out, ",")
	}, func(d *desc, s string) bool {
		var list []core.Gres
		for item := range strings.SplitSeq(s, ",") {
			item = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(item), "gres:"), "gres/")
			if item == "" {
				continue
			}
			parsed, err := grammar.ParseGRES(strings.ReplaceAll(item, "=", ":"))
			if err != nil {
				return false
			}
			for _, g := range parsed {
				list = append(list, core.Gres{Name: g.Name, Type: g.Type, Count: g.Count})
			}
		}
		if d.Spec.More().SlurmOption(option) != "" {
			d.keep(option, "")
		}
		set(d, list)
		return true
	})
}

// perGPU is a number for each GPU: gres:gpu:4.
func perGPU(get func(*desc) int64, set func(*desc, int64)) field {
	return textField(func(d *desc) string {
		if n := get(d); n > 0 {
			return "gres:gpu:" + strconv.FormatInt(n, 10)
		}
		return ""
	}, func(d *desc, s string) bool {
		text := s[strings.LastIndexAny(s, ":=")+1:]
		n, err := strconv.ParseInt(text, 10, 64)
		if s == "" {
			n, err = 0, nil
		}
		if err == nil && n >= 0 {
			set(d, n)
		}
		return err == nil && n >= 0
	})
}
