package core

// CountGres sums what a list has of a name, whatever the type.
func CountGres(list []Gres, name string) (n int64) {
	for _, g := range list {
		if g.Name == name {
			n += g.Count
		}
	}
	return n
}

// Derive completes a shape by what follows from its parts, as Slurm does: tasks from GPUs, GPUs from tasks, nodes from
// both. It refuses parts that contradict each other. A shape that is complete stays as it is.
func (s *Shape) Derive() error {
	m := s.More
	if m == nil {
		return nil
	}
	if len(m.GPUsPerSocket) > 0 && m.Sockets == 0 {
		return badGres("GPUs are asked for by socket and sockets are not: --gpus-per-socket goes with --sockets-per-node")
	}
	if m.MemPerGPU > 0 && (s.MemPerNode != 0 || s.MemPerCPU != 0) {
		return Errorf(Invalid, "memory can be requested per node, per CPU or per GPU, but not in two ways").Because(
			"invalid_shape")
	}
	d := derivation{Shape: s, job: sum(m.GPUs), task: sum(m.GPUsPerTask), node: CountGres(s.Gres, "gpu") +
		sum(m.GPUsPerSocket)*int64(m.Sockets)}
	for _, rule := range []func() error{d.nodes, d.perTask, d.perGPU} {
		if err := rule(); err != nil {
			return err
		}
	}
	if (m.CPUsPerGPU > 0 || m.MemPerGPU > 0) && d.job+d.task+d.node == 0 {
		return badGres("CPUs or memory are asked for by GPU and no GPU is asked for")
	}
	if d.job > 0 && int64(s.NodesMin) > d.job {
		return badGres("%d GPUs are asked for and %d nodes: each node has one at least", d.job, s.NodesMin)
	}
	return nil
}

// derivation is a shape with its counts of GPUs: of the job, a task and a node.
type derivation struct {
	*Shape
	job, task, node int64
}

func badGres(format string, args ...any) error {
	return Errorf(Invalid, format, args...).Because("invalid_gres")
}

func sum(list []Gres) (n int64) {
	for _, g := range list {
		n += g.Count
	}
	return n
}

// nodes: so many in the job and so many on each node give the nodes.
func (d *derivation) nodes() error {
	if d.job == 0 || d.node == 0 {
		return nil
	}
	n := d.job / d.node
	if d.job%d.node != 0 || n > 1<<20 || d.NodesMin > 0 && int64(d.NodesMin) > n || d.NodesMax > 0 &&
		int64(d.NodesMax) < n {
		return badGres("%d GPUs in the job and %d on each node do not agree", d.job, d.node)
	}
	d.NodesMin, d.NodesMax = int32(n), int32(n)
	return nil
}

// perTask: so many for each task, with those of the job or of a node, give the tasks.
func (d *derivation) perTask() error {
	if d.task == 0 {
		return nil
	}
	if d.More.TasksPerGPU > 0 {
		return badGres("GPUs are asked for by task, and tasks by GPU")
	}
	whole, what := d.job, "in the job"
	if d.job == 0 && d.node > 0 {
		whole, what = d.node, "on each node"
	}
	if whole == 0 {
		return nil
	}
	n := whole / d.task
	if whole%d.task != 0 || n > 1<<24 {
		return badGres("%d GPUs %s and %d for each task do not agree", whole, what, d.task)
	}
	if d.job > 0 {
		d.typed(d.More.GPUs)
		if d.Tasks != 0 && int64(d.Tasks) != n {
			return badGres("%d GPUs in the job, %d for each task and %d tasks do not agree", d.job, d.task, d.Tasks)
		}
		d.Tasks = int32(n)
		return nil
	}
	if d.TasksPerNode > int32(n) {
		return badGres("%d GPUs on each node, %d for each task and %d tasks a node do not agree", d.node, d.task,
			d.TasksPerNode)
	}
	if d.TasksPerNode == 0 {
		d.TasksPerNode = int32(n)
	}
	return nil
}

// typed gives GPUs of each task the type that those of the job have.
func (d *derivation) typed(of []Gres) {
	per := d.More.GPUsPerTask
	if len(of) == 1 && len(per) == 1 && of[0].Type != "" && per[0].Type == "" {
		g := per[0]
		g.Type = of[0].Type
		d.More.GPUsPerTask = []Gres{g}
	}
}

// perGPU: so many tasks for each GPU give the tasks, or the GPUs.
func (d *derivation) perGPU() error {
	k := int64(d.More.TasksPerGPU)
	switch {
	case k == 0:
		return nil
	case d.NodesMin > 0 && d.NodesMax > d.NodesMin:
		return badGres("tasks by GPU go with a number of nodes, not with %d to %d", d.NodesMin, d.NodesMax)
	case d.job > 0:
		if d.job*k > 1<<24 || int64(d.Tasks) > d.job*k {
			return badGres("%d GPUs with %d tasks each are not enough for %d tasks", d.job, k, d.Tasks)
		}
		if d.Tasks == 0 {
			d.Tasks = int32(d.job * k)
		}
	case d.node > 0:
		if d.node*k > 1<<24 || int64(d.TasksPerNode) > d.node*k {
			return badGres("%d GPUs on each node with %d tasks each are not enough for %d tasks a node", d.node, k,
				d.TasksPerNode)
		}
		if d.TasksPerNode == 0 {
			d.TasksPerNode = int32(d.node * k)
		}
	case d.Tasks > 0:
		d.job = (int64(d.Tasks) + k - 1) / k
		d.More.GPUs = []Gres{{Name: "gpu", Count: d.job}}
	default:
		return badGres("tasks are asked for by GPU, and neither tasks nor GPUs are counted")
	}
	return nil
}

// Counted gives what of a shape counts on each node, for each task and in the whole job. Of GPUs that are asked for in
// several ways one counts, and the others follow from it: those of a node before those of a task, and these before
// those of the job. Those of a socket are apart.
func (s *Shape) Counted() (node, task, job []Gres) {
	m := s.Wide()
	node, task, job = s.Gres, m.GPUsPerTask, m.GPUs
	if len(m.GPUsPerSocket) > 0 || CountGres(node, "gpu") > 0 {
		task, job = nil, nil
	} else if len(task) > 0 {
		job = nil
	}
	return node, task, job
}

// Total lists the generic resources of the whole job, as far as they follow from the shape: on as few nodes as it
// allows.
func (s *Shape) Total() []Gres {
	m := s.Wide()
	perNode, perTask, job := s.Counted()
	nodes := int64(max(1, s.NodesMin))
	out := make([]Gres, 0, len(perNode)+len(perTask)+len(job)+len(m.GPUsPerSocket))
	times := func(list []Gres, n int64) {
		for _, g := range list {
			g.Count *= n
			out = append(out, g)
		}
	}
	times(perNode, nodes)
	times(m.GPUsPerSocket, nodes*int64(max(1, m.Sockets)))
	times(perTask, int64(max(1, s.Tasks)))
	times(job, 1)
	return out
}
