package translate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// The families of options that ask for one thing in several ways. The way back puts all of a family in force, or none.
var families = map[string][]string{
	"nodes": {"nodes"},
	"tasks": {
		"ntasks", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-task", "cpus-per-gpu", "mincpus", "tres-per-task",
	},
	"memory": {"mem", "mem-per-cpu", "mem-per-gpu"},
	"gpus":   {"gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"},
	"export": {"export"}, "requeue": {"requeue", "no-requeue"}, "image": {"container", "container-image"},
	"workdir": {"chdir", "container-workdir"},
}

// familyOf lists the options that an option stands in the place of.
func familyOf(option string) []string {
	for _, list := range families {
		for _, o := range list {
			if o == option {
				return list
			}
		}
	}
	return []string{option}
}

// keepFamily keeps all options of a family that were given.
func (c *scriptConversion) keepFamily(name string) {
	for _, o := range families[name] {
		if d, ok := c.given[o]; ok {
			c.keep(d)
		}
	}
}

// request writes what the options ask of each node.
func (c *scriptConversion) request() {
	s := &c.req.Spec.Shape
	c.nodes = int(max(1, s.NodesMin))
	if d, ok := c.given["nodes"]; ok {
		c.out.set("nodes", c.nodes)
		if s.NodesMax > s.NodesMin {
			c.notes.add(Differs, d.String(), "nodes is a number: the least that will do")
		}
		if d.Value != strconv.Itoa(c.nodes) || s.TasksPerNode > 0 && s.Tasks > s.TasksPerNode {
			c.keep(d)
		}
	}
	perNode := int64(s.TasksPerNode)
	if _, ok := c.given["nodes"]; !ok && s.NodesMin == 0 && perNode > 0 && int64(s.Tasks) > perNode {
		c.nodes = int((int64(s.Tasks) + perNode - 1) / perNode) // as many as its tasks need
		c.out.set("nodes", c.nodes)
	}
	if perNode == 0 {
		perNode = (int64(max(1, s.Tasks)) + int64(c.nodes) - 1) / int64(c.nodes)
	}
	gpus := c.gpus(s, perNode)
	cpus := perNode * int64(max(1, s.CPUsPerTask))
	cpus = max(cpus, int64(s.MinCPUs), int64(s.Wide().CPUsPerGPU)*gpus)
	c.tasks(s, perNode, cpus)
	c.memory(s, cpus, gpus)
}

// tasks writes the CPUs of a node. Several tasks become one, which tells srun how many there were.
func (c *scriptConversion) tasks(s *core.Shape, perNode, cpus int64) {
	if cpus > 1 {
		c.resources().set("cpu", fmt.Sprintf("%d..", cpus))
	}
	plain := true
	for _, o := range families["tasks"] {
		d, ok := c.given[o]
		if !ok || o == "cpus-per-task" && d.Value == strconv.FormatInt(cpus, 10) && perNode == 1 {
			continue
		}
		plain = false
		if perNode > 1 {
			c.notes.add(Differs, d.String(), fmt.Sprintf("the run has one task on each node, with %d CPUs; srun in its "+
				"commands starts as many as before", cpus))
		}
	}
	if plain {
		return
	}
	c.keepFamily("tasks")
	if _, ok := c.given["nodes"]; !ok && s.Tasks > 1 && s.NodesMin == 0 {
		c.leftNodes()
	}
	if perNode > 1 {
		tasks := perNode * int64(c.nodes)
		if _, ok := c.given["ntasks"]; ok {
			tasks = int64(s.Tasks)
		}
		c.srun = append(c.srun, fmt.Sprintf("SLURM_NTASKS=%d", tasks),
			fmt.Sprintf("SLURM_CPUS_PER_TASK=%d", max(1, s.CPUsPerTask)), fmt.Sprintf("SLURM_NTASKS_PER_NODE=%d", perNode))
	}
}

// leftNodes notes, once, that the script does not say on how many nodes it is.
func (c *scriptConversion) leftNodes() {
	if !c.nodesNoted {
		c.nodesNoted = true
		c.notes.add(Differs, "--nodes", fmt.Sprintf("was left to the cluster; a configuration has nodes, here %d", c.nodes))
	}
}

func (c *scriptConversion) memory(s *core.Shape, cpus, gpus int64) {
	bytes := s.MemPerNode
	switch {
	case s.MemPerCPU > 0:
		bytes = s.MemPerCPU * core.Bytes(cpus)
		c.keepFamily("memory")
	case s.Wide().MemPerGPU > 0:
		bytes = s.Wide().MemPerGPU * core.Bytes(gpus)
		c.keepFamily("memory")
	}
	if bytes == 0 {
		if d, ok := c.given["mem"]; ok {
			c.notes.add(NoEqual, d.String(), "memory is a size; leave it out for the partition's default")
			c.keep(d)
		}
		return
	}
	c.resources().set("memory", inUnits(int64((bytes+core.MiB-1)/core.MiB))+"..")
}

var plainType = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9._-]*$`) })

// vendors are types that the short form of gpu would read otherwise.
var vendors = map[string]bool{
	"nvidia": true, "amd": true, "google": true, "tpu": true, "intel": true, "tenstorrent": true, "tt": true,
}

// gpus writes the GPUs of a node and returns how many there are.
func (c *scriptConversion) gpus(s *core.Shape, perNode int64) int64 {
	node, task, job := s.Counted()
	var list []core.Gres
	times := func(gres []core.Gres, n int64) {
		for _, g := range gres {
			g.Count *= n
			list = append(list, g)
		}
	}
	times(node, 1)
	times(s.Wide().GPUsPerSocket, int64(max(1, s.Wide().Sockets)))
	times(task, perNode)
	uneven := func(option string, all, each int64) {
		if d, ok := c.given[option]; ok && each*int64(c.nodes) != all {
			c.notes.add(Differs, d.String(), fmt.Sprintf("the nodes of a run are alike: %d GPUs on each of %d, %d in all", each,
				c.nodes, each*int64(c.nodes)))
		}
	}
	for _, g := range task {
		if g.Name == "gpu" && s.Tasks > 0 {
			uneven("gpus-per-task", g.Count*int64(s.Tasks), g.Count*perNode)
		}
	}
	for _, g := range job {
		all := g.Count
		g.Count = (all + int64(c.nodes) - 1) / int64(c.nodes)
		list = append(list, g)
		if g.Name == "gpu" {
			uneven("gpus", all, g.Count)
		}
		if _, ok := c.given["nodes"]; !ok && all > 1 && s.NodesMin == 0 {
			c.leftNodes()
		}
	}
	exact := true
	for _, o := range families["gpus"] {
		if _, ok := c.given[o]; ok && o != "gres" {
			exact = false
		}
	}
	var gpu core.Gres
	for _, g := range list {
		switch {
		case g.Name != "gpu":
			c.notes.add(NoEqual, "--gres="+gresText(g), "resources has CPUs, memory, GPUs and disk only")
			exact = false
		case gpu.Count > 0:
			c.notes.add(NoEqual, "--gres="+gresText(g), "GPUs of one node are of one kind")
			exact = false
		default:
			gpu = g
		}
	}
	if gpu.Count > 0 {
		exact = c.gpu(gpu) && exact
	}
	if !exact {
		c.keepFamily("gpus")
	}
	return gpu.Count
}

// gpu writes resources.gpu, and reports whether the way back finds the same in it.
func (c *scriptConversion) gpu(g core.Gres) bool {
	switch {
	case g.Type == "":
		c.resources().set("gpu", g.Count)
		return true
	case plainType().MatchString(g.Type) && !vendors[g.Type]:
		c.resources().set("gpu", fmt.Sprintf("%s:%d", g.Type, g.Count))
		return true
	}
	named := &keys{}
	named.set("name", g.Type)
	named.set("count", g.Count)
	c.resources().set("gpu", named)
	if strings.ToLower(g.Type) != g.Type {
		c.notes.add(Differs, "--gres="+gresText(g), "a configuration's GPU is a type in lower case: "+
			strings.ToLower(g.Type))
	}
	return false
}

func gresText(g core.Gres) string {
	if g.Type != "" {
		return fmt.Sprintf("%s:%s:%d", g.Name, g.Type, g.Count)
	}
	return fmt.Sprintf("%s:%d", g.Name, g.Count)
}
