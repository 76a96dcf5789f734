package slurm

import (
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// StepPart is a step in one job; a step over several components of a het job has one in each.
type StepPart struct {
	Job   *core.Job
	Step  *core.Step
	Ranks [][]int32 // global ranks on each node of Step
	Ask   *client.NewStep
}

// Hold is what the step has on its node at an index: what is its own, or what its job has there.
func (p *StepPart) Hold(node int) *core.NodeAlloc {
	for i := range p.Job.Alloc.Nodes {
		if p.Job.Alloc.Nodes[i].Node == p.Step.Nodes[node] {
			n := p.Job.Alloc.Nodes[i]
			if node < len(p.Step.Holds) {
				h := &p.Step.Holds[node]
				n.CPUs, n.Cores = h.CPUs, h.Cores
				if len(h.Gres) > 0 {
					n.Gres = h.Gres
				}
			}
			if node < len(p.Step.Units) {
				n.Gres = p.Step.Units[node]
			}
			return &n
		}
	}
	return nil
}

// Memory is what the step asks for on its node at an index; 0: nothing less than its job has.
func (p *StepPart) Memory(node int) core.Bytes {
	if p.Ask == nil {
		return 0
	}
	if h := p.Hold(node); h != nil && p.Ask.MemPerNode == 0 {
		return p.Ask.MemPerCPU * core.Bytes(h.CPUs)
	}
	return p.Ask.MemPerNode
}

// StepEnv is what all tasks of a step's part get over the environment srun sent: the job's variables, with task and
// node counts of the step. Counts named after the job stay the job's; of a het job they are those of all components
// together that the step is in.
func StepEnv(all []StepPart, info ClusterInfo) []string {
	j := all[0].Job
	v := jobVars(j, info)
	var total int64
	var names []string
	var tasks []int32
	for _, p := range all {
		for i, n := range p.Step.Nodes {
			names = append(names, string(n))
			total += int64(p.Step.Tasks[i])
		}
		tasks = append(tasks, p.Step.Tasks...)
	}
	v.unsetGPUs(j, all[0].Step.Nodes[0], info)
	over := vars{}
	if len(all) > 1 {
		v = v.without("SLURM_CPUS_PER_TASK=")
		var whole core.Alloc
		var each []int32
		for _, p := range all {
			whole.Nodes = append(whole.Nodes, p.Job.Alloc.Nodes...)
			each = append(each, nodeTasks(p.Job)...)
		}
		over.allocVars(&whole, each)
	}
	id := strconv.Itoa(int(all[0].Step.ID))
	over.set("SLURM_STEP_ID", id)
	over.set("SLURM_STEPID", id)
	over.set("SLURM_STEP_NODELIST", hostlist.FoldSorted(names))
	over.num("SLURM_STEP_NUM_NODES", int64(len(names)))
	over.num("SLURM_STEP_NUM_TASKS", total)
	over.set("SLURM_STEP_TASKS_PER_NODE", runs(tasks))
	if all[0].Ask == nil || !all[0].Ask.PreserveEnv {
		over.num("SLURM_NTASKS", total)
		over.num("SLURM_NPROCS", total)
		over.num("SLURM_NNODES", int64(len(names)))
		over.set("SLURM_TASKS_PER_NODE", runs(tasks))
	}
	batch := j.Spec.Kind == core.Batch
	if batch && j.Alloc != nil && j.Spec.More().Het == nil {
		over.set("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", CPUsPerNode(j.Alloc))
	}
	if batch && j.Spec.More().Distribution == "" {
		how := "cyclic"
		if total > int64(len(names)) {
			how = "block"
		}
		over.set("SLURM_DISTRIBUTION", how)
	}
	return MergeEnv(v, over)
}

// TaskEnv is what one task gets over StepEnv: node is the index of its node in its part of the step, local its number
// on that node.
func TaskEnv(all []StepPart, at, node, local int, info ClusterInfo) []string {
	p := &all[at]
	before := 0
	for i := range all[:at] {
		before += len(all[i].Step.Nodes)
	}
	v := make(vars, 0, 16)
	v.num("SLURM_PROCID", int64(p.Ranks[node][local]))
	v.num("SLURM_LOCALID", int64(local))
	v.num("SLURM_NODEID", int64(before+node))
	v.set("SLURM_GTIDS", joinInts(p.Ranks[node]))
	if p.Job.Alloc == nil {
		return v
	}
	if n := p.Hold(node); n != nil {
		v.nodeVars(n, info)
		if !info.Counted {
			v.some("SLURM_STEP_GPUS", gpuUnits(n))
			v.gpuVars(joinInts(taskUnits(p.bindSpec(), n, local)))
		}
	}
	return v
}

// bindSpec is what says which GPUs a task sees: the step's own options, else those of its job.
func (p *StepPart) bindSpec() *core.Spec {
	a := p.Ask
	if a == nil || a.GPUBind == "" && len(a.GPUsPerTask) == 0 && a.TasksPerGPU == 0 {
		return p.Job.Spec
	}
	spec := core.Spec{Extra: &core.Extra{Kept: &core.KeptOptions{Slurm: map[string]string{"gpu-bind": a.GPUBind}}}}
	spec.Shape.More = &core.ShapeMore{GPUsPerTask: a.GPUsPerTask, TasksPerGPU: a.TasksPerGPU}
	return &spec
}

// NoticePrefix begins the lines that a keeper itself writes to the error output of a step.
const NoticePrefix = "slurmstepd: error: "
