package slurm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// ClusterInfo is what the environment of a job says of its cluster.
type ClusterInfo struct {
	Name string // SLURM_CLUSTER_NAME
	Conf string // SLURM_CONF; empty: not set
	// Counted says that GPUs are numbers only, without devices: the job is not told which devices are its own.
	Counted bool
	Node    Places // nil: nodes are their names
	// HasGPUs reports whether a node has GPUs that jobs are given; nil: none has.
	HasGPUs func(core.NodeName) bool
}

// vars collects KEY=VALUE.
type vars []string

func (v *vars) set(key, value string)   { *v = append(*v, key+"="+value) }
func (v *vars) num(key string, n int64) { v.set(key, strconv.FormatInt(n, 10)) }
func (v *vars) some(key, value string)  { v.when(value != "", key, value) }
func (v *vars) when(b bool, key, val string) {
	if b {
		v.set(key, val)
	}
}

func (v vars) without(prefix string) vars {
	return slices.DeleteFunc(v, func(e string) bool { return strings.HasPrefix(e, prefix) })
}

// BatchEnv is what Slurm puts into the environment of a batch script, as 22.05 with what came until 25.05. It is laid
// over the submitted environment with MergeEnv. SLURM_TASK_PID and TMPDIR are the keeper's to add. The script runs on
// the first node; in containers something of the job's is on each of them, one task of it.
func BatchEnv(j *core.Job, rank int, info ClusterInfo) []string {
	v := jobVars(j, info)
	if j.Spec.More().Het != nil {
		v = v.without("SLURM_CPUS_PER_TASK=") // each component has its own
	}
	v.set("ENVIRONMENT", "BATCH")
	v.num("SLURM_NODEID", int64(rank))
	v.num("SLURM_PROCID", int64(rank))
	v.set("SLURM_LOCALID", "0")
	v.num("SLURM_GTIDS", int64(rank))
	if a := j.Alloc; a != nil && rank < len(a.Nodes) {
		v.set("HOSTNAME", string(a.Nodes[rank].Node))
		v.unsetGPUs(j, a.Nodes[rank].Node, info)
		v.nodeVars(&a.Nodes[rank], info)
		if !info.Counted {
			units := gpuUnits(&a.Nodes[rank])
			v.some("SLURM_JOB_GPUS", units)
			v.gpuVars(units)
		}
	}
	return v
}

// AllocEnv is what salloc and srun export of a job into their own environment: nothing of a node.
func AllocEnv(j *core.Job, info ClusterInfo) []string {
	return slices.DeleteFunc(jobVars(j, info), func(e string) bool {
		return strings.HasPrefix(e, "SLURM_JOB_UID=") || strings.HasPrefix(e, "SLURM_JOB_GID=") ||
			strings.HasPrefix(e, "SLURM_JOB_USER=")
	})
}

// jobVars is the part that is the same on all nodes.
func jobVars(j *core.Job, info ClusterInfo) vars {
	s, sh, more := j.Spec, &j.Spec.Shape, j.Spec.More()
	v := make(vars, 0, 64)
	id := strconv.FormatInt(int64(j.ID), 10)
	v.set("SLURM_JOB_ID", id)
	v.set("SLURM_JOBID", id)
	v.set("SLURM_JOB_NAME", s.Name)
	v.some("SLURM_CLUSTER_NAME", info.Name)
	v.some("SLURM_CONF", info.Conf)
	v.some("SLURM_JOB_ACCOUNT", string(s.Project))
	v.some("SLURM_JOB_QOS", string(s.QOS))
	v.some("SLURM_JOB_RESERVATION", more.Reservation)
	v.set("SLURM_JOB_USER", string(s.User))
	v.num("SLURM_JOB_UID", int64(s.UID))
	v.num("SLURM_JOB_GID", int64(s.GID))
	v.some("SLURM_SUBMIT_DIR", s.From.Dir)
	v.some("SLURM_SUBMIT_HOST", s.From.Host)
	if a := j.Alloc; a != nil {
		v.set("SLURM_JOB_PARTITION", string(a.Partition))
		v.allocVars(a, nodeTasks(j))
	}
	if sh.Given&(core.GivenTasks|core.GivenTasksPerNode) != 0 {
		v.num("SLURM_NTASKS", int64(tasksNow(j)))
		v.num("SLURM_NPROCS", int64(tasksNow(j)))
	}
	if sh.Given&core.GivenTasksPerNode != 0 {
		v.set("SLURM_NTASKS_PER_NODE", cmp.Or(more.SlurmOption("ntasks-per-node"), strconv.Itoa(int(sh.TasksPerNode))))
	}
	if sh.Given&core.GivenCPUsPerTask != 0 {
		v.num("SLURM_CPUS_PER_TASK", int64(sh.CPUsPerTask))
	}
	switch {
	case sh.MemPerCPU > 0 && s.Kind != core.Batch && sh.Given&core.GivenMemPerCPU == 0:
		// a site's default is told to scripts only
	case sh.MemPerCPU > 0:
		v.num("SLURM_MEM_PER_CPU", InMiB(sh.MemPerCPU))
	case sh.MemPerNode > 0 || sh.Given&core.GivenMemPerNode != 0:
		v.num("SLURM_MEM_PER_NODE", InMiB(sh.MemPerNode))
	}
	if m := sh.Wide().MemPerGPU; m > 0 {
		v.num("SLURM_MEM_PER_GPU", InMiB(m))
	}
	if j.Start != 0 {
		v.num("SLURM_JOB_START_TIME", j.Start.Unix())
		if s.TimeLimit > 0 && s.TimeLimit < core.Forever {
			v.num("SLURM_JOB_END_TIME", j.Start.Add(s.TimeLimit.Duration()).Unix())
		}
	}
	if n := Restarts(j); n > 0 {
		v.num("SLURM_RESTART_COUNT", int64(n))
	}
	v.some("SLURM_JOB_DEPENDENCY", more.Dependency.String())
	v.some("SLURM_JOB_LICENSES", more.Licenses.String())
	v.some("SLURM_DISTRIBUTION", more.Distribution)
	if size, ok := strings.CutPrefix(strings.ToLower(more.Distribution), "plane="); ok {
		size, _, _ = strings.Cut(size, ":")
		size, _, _ = strings.Cut(size, ",")
		v.set("SLURM_DIST_PLANESIZE", size)
	}
	if more.Segment > 0 {
		v.num("SLURM_JOB_SEGMENT_SIZE", int64(more.Segment))
	}
	v.when(s.IO.Append, "SLURM_OPEN_MODE", "a")
	for _, o := range optionVars {
		v.some(o.name, more.SlurmOption(o.option))
	}
	if a := j.Array; a != nil {
		v.num("SLURM_ARRAY_JOB_ID", int64(a.Base))
		v.num("SLURM_ARRAY_TASK_ID", int64(a.Task))
		v.num("SLURM_ARRAY_TASK_COUNT", int64(a.Count))
		v.num("SLURM_ARRAY_TASK_MIN", int64(a.Min))
		v.num("SLURM_ARRAY_TASK_MAX", int64(a.Max))
		v.num("SLURM_ARRAY_TASK_STEP", int64(a.Step))
	}
	return v
}

// optionVars carry options that are kept as they were given into the job.
var optionVars = []struct{ option, name string }{
	{"gpus", "SLURM_GPUS"},
	{"gpus-per-node", "SLURM_GPUS_PER_NODE"},
	{"gpus-per-task", "SLURM_GPUS_PER_TASK"},
	{"cpus-per-gpu", "SLURM_CPUS_PER_GPU"},
	{"cpu-freq", "SLURM_CPU_FREQ_REQ"},
	{"gpu-bind", "SLURM_GPU_BIND"},
	{"gpu-freq", "SLURM_GPU_FREQ"},
	{"hint", "SLURM_HINT"},
	{"overcommit", "SLURM_OVERCOMMIT"},
	{"profile", "SLURM_PROFILE"},
	{"network", "SLURM_NETWORK"},
	{"threads-per-core", "SLURM_THREADS_PER_CORE"},
	{"tres-per-task", "SLURM_TRES_PER_TASK"},
	{"ntasks-per-core", "SLURM_NTASKS_PER_CORE"},
	{"ntasks-per-socket", "SLURM_NTASKS_PER_SOCKET"},
	{"ntasks-per-gpu", "SLURM_NTASKS_PER_GPU"},
	{"gpus-per-socket", "SLURM_GPUS_PER_SOCKET"},
	{"oom-kill-step", "SLURM_OOMKILLSTEP"},
	{"mem-bind", "SBATCH_MEM_BIND"},
	{"open-mode", "SLURM_OPEN_MODE"},
}

func (v *vars) allocVars(a *core.Alloc, tasks []int32) {
	list := client.AllocList(a)
	v.set("SLURM_JOB_NODELIST", list)
	v.set("SLURM_NODELIST", list)
	v.num("SLURM_JOB_NUM_NODES", int64(len(a.Nodes)))
	v.num("SLURM_NNODES", int64(len(a.Nodes)))
	v.set("SLURM_JOB_CPUS_PER_NODE", CPUsPerNode(a))
	v.set("SLURM_TASKS_PER_NODE", runs(tasks))
}

func CPUsPerNode(a *core.Alloc) string {
	cpus := make([]int32, len(a.Nodes))
	for i := range a.Nodes {
		cpus[i] = a.Nodes[i].CPUs
	}
	return runs(cpus)
}

// nodeVars is what differs from node to node.
func (v *vars) nodeVars(n *core.NodeAlloc, info ClusterInfo) {
	v.set("SLURMD_NODENAME", string(n.Node))
	v.num("SLURM_CPUS_ON_NODE", int64(n.CPUs))
	addr, pattern := string(n.Node), "node"
	if info.Node != nil {
		addr, pattern = info.Node(n.Node)
	}
	v.set("SLURM_TOPOLOGY_ADDR", addr)
	v.set("SLURM_TOPOLOGY_ADDR_PATTERN", pattern)
	gpus, shards := 0, 0
	for _, g := range n.Gres {
		if g.Name == "gpu" {
			gpus += len(g.Units)
		} else if g.Name == "shard" {
			shards += len(g.Units)
		}
	}
	if gpus > 0 {
		v.num("SLURM_GPUS_ON_NODE", int64(gpus))
	}
	if shards > 0 {
		v.num("SLURM_SHARDS_ON_NODE", int64(shards))
	}
}

// unsetGPUs takes away what the submitting environment says of GPUs, by names without a value: a job sees those it was
// given, or none.
func (v *vars) unsetGPUs(j *core.Job, node core.NodeName, info ClusterInfo) {
	if j.Spec.Run == "" && info.HasGPUs != nil && info.HasGPUs(node) {
		*v = append(*v, "SLURM_GPUS_ON_NODE", "SLURM_SHARDS_ON_NODE", "SLURM_STEP_GPUS", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
		if !info.Counted {
			*v = append(*v, "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK")
		}
	}
}

func (v *vars) gpuVars(units string) {
	v.some("CUDA_VISIBLE_DEVICES", units)
	v.some("ROCR_VISIBLE_DEVICES", units)
	v.some("GPU_DEVICE_ORDINAL", units)
	v.some("ZE_AFFINITY_MASK", units)
}

// gpuUnits are the indices of a job's GPUs on a node.
func gpuUnits(n *core.NodeAlloc) string { return joinInts(allUnits(n)) }

func allUnits(n *core.NodeAlloc) []int32 {
	var all []int32
	for _, g := range n.Gres {
		if g.Name == "gpu" {
			all = append(all, g.Units...)
		}
	}
	slices.Sort(all)
	return all
}

func joinInts(list []int32) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}

// runs writes counts as Slurm does: 72(x2),36.
func runs(list []int32) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		k := i
		for k < len(list) && list[k] == list[i] {
			k++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(list[i])))
		if k-i > 1 {
			b.WriteString("(x" + strconv.Itoa(k-i) + ")")
		}
		i = k
	}
	return b.String()
}

// Distribute lays tasks out over the nodes of a step and gives the global ranks on each. Block gives consecutive ranks
// to a node, cyclic deals them out, plane=N deals blocks of N. Counts are those of the nodes, whatever the way.
func Distribute(counts []int32, how string) [][]int32 {
	ranks := make([][]int32, len(counts))
	how, _, _ = strings.Cut(how, ",")
	how, _, _ = strings.Cut(how, ":")
	kind, size, _ := strings.Cut(strings.ToLower(how), "=")
	chunk := int32(1)
	switch kind {
	case "cyclic":
	case "plane":
		if n, err := strconv.ParseInt(size, 10, 32); err == nil && n > 0 {
			chunk = int32(n)
		}
	default:
		var next int32
		for i, n := range counts {
			for range n {
				ranks[i] = append(ranks[i], next)
				next++
			}
		}
		return ranks
	}
	var total, next int32
	for _, n := range counts {
		total += n
	}
	for next < total {
		for i, n := range counts {
			for k := int32(0); k < chunk && int32(len(ranks[i])) < n; k++ {
				ranks[i] = append(ranks[i], next)
				next++
			}
		}
	}
	return ranks
}
