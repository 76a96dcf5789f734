package slurm

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
)

// gpuAsk is the counts of GPUs that a request names; 0: it does not.
type gpuAsk struct {
	job, node, socket, task      int64
	tasks, tasksPerNode, sockets int64
	nodesMin, nodesMax           int64
}

func countGPUs(list []core.Gres) (n int64) {
	for _, g := range list {
		if g.Name == "gpu" {
			n += g.Count
		}
	}
	return n
}

// gpuCheck holds the options for GPUs of a request against each other.
type gpuCheck struct{ *Request }

// run refuses requests for GPUs that contradict each other, in Slurm's words and order.
func (c gpuCheck) run() error {
	r := c.Request
	s := &r.Spec.Shape
	for _, o := range []string{"ntasks-per-node", "gpus-per-task", "gpus-per-socket"} {
		if r.more.TasksPerGPU > 0 && r.Given(o) && r.given[o] >= r.given["ntasks-per-gpu"] {
			return &Complaint{Lines: []string{r.tool.String() + ": fatal: --" + o +
				" is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"}, Exit: ExitError}
		}
	}
	if countGPUs(s.Gres)+countGPUs(r.more.GPUs) > 0 && (core.CountGres(s.Gres, "mps") > 0 ||
		core.CountGres(s.Gres, "shard") > 0) || r.Given("gpu-freq") && core.CountGres(s.Gres, "mps") > 0 {
		return badGres(r.tool, "")
	}
	a := gpuAsk{
		job: countGPUs(r.more.GPUs), node: countGPUs(s.Gres), socket: countGPUs(r.more.GPUsPerSocket),
		task: countGPUs(r.more.GPUsPerTask), sockets: int64(r.more.Sockets),
		nodesMin: int64(s.NodesMin), nodesMax: int64(s.NodesMax),
	}
	if s.Given&core.GivenTasks != 0 {
		a.tasks = int64(s.Tasks)
	}
	if s.Given&core.GivenTasksPerNode != 0 {
		a.tasksPerNode = int64(s.TasksPerNode)
		if a.tasks == 0 {
			a.tasks = a.tasksPerNode * max(1, a.nodesMin)
		}
	} else if s.Given&core.GivenNodes != 0 && a.tasks == 0 && a.nodesMin > 1 {
		a.tasks = a.nodesMin
	}
	if r.more.MemPerGPU > 0 && a.job+a.node+a.socket+a.task == 0 && r.more.TasksPerGPU == 0 {
		return badGres(r.tool, fmt.Sprintf("Requested mem_per_tres=gres:gpu:%d but did not request any GPU.",
			r.more.MemPerGPU/core.MiB))
	}
	if r.more.TasksPerGPU > 0 && a.job+a.node+a.tasks == 0 {
		return badGres(r.tool, "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a "+
			"node/ntask specification")
	}
	if k := int64(r.more.TasksPerGPU); k > 0 && a.job+a.node == 0 && a.tasks%k != 0 {
		return badGres(r.tool, "Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu.")
	}
	if why := a.conflict(); why != "" {
		return badGres(r.tool, why)
	}
	if a.node > 0 && a.socket > 0 { // both count the same GPUs
		s.Gres = withoutGPUs(s.Gres)
	}
	return nil
}

// badGres is the refusal of a request for GRES, after its reason.
func badGres(tool Tool, why string) *Complaint {
	c := &Complaint{Exit: ExitError}
	for _, line := range []string{why, "Invalid generic resource (gres) specification"} {
		if line != "" {
			c.Lines = append(c.Lines, tool.String()+": error: "+line)
		}
	}
	return c
}

func withoutGPUs(list []core.Gres) (out []core.Gres) {
	for _, g := range list {
		if g.Name != "gpu" {
			out = append(out, g)
		}
	}
	return out
}

// conflict says why counts do not go together; "": they do.
func (a *gpuAsk) conflict() string {
	const failed = "Failed to validate job spec"
	switch {
	case a.socket > 0 && a.sockets == 0:
		return "--gpus-per-socket option requires --sockets-per-node specification"
	case a.job > 0 && max(a.node, a.socket, a.task) > a.job:
		return "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket"
	case a.node > 0 && a.socket > a.node:
		return "Failed to ensure --gpus >= --gpus-per-task"
	}
	if a.job > 0 && a.node > 0 {
		if a.job%a.node != 0 {
			return failed + ", --gpus is not multiple of --gres=gpu/--gpus-per-node"
		}
		need, low, high := a.job/a.node, max(1, a.nodesMin), a.nodesMax
		if a.nodesMin > 0 && (need < low || high > 0 && need > high) {
			return fmt.Sprintf("%s. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (%d) doesn't fall between "+
				"min_nodes (%d) and max_nodes (%d) boundaries.", failed, need, low, max(low, high))
		}
	}
	if a.node > 0 && a.socket > 0 {
		if a.node%a.socket != 0 {
			return failed + ", --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket."
		}
		if a.node/a.socket != a.sockets {
			return failed + ". Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of sockets differ " +
				"from --sockets-per-node."
		}
	}
	if why := a.taskConflict(); why != "" {
		return failed + why
	}
	if a.job > 0 && a.job < a.nodesMin {
		return failed + ", --gpus < -N"
	}
	return ""
}

func (a *gpuAsk) taskConflict() string {
	switch {
	case a.task == 0:
	case a.job == 0 && a.tasks == 0:
		return ". --gpus-per-task used without either --gpus or -n/--ntasks is not allowed."
	case a.job > 0 && a.job%a.task != 0:
		return ", --gpus not multiple of --gpus-per-task"
	case a.job > 0 && a.tasks > 0 && a.job/a.task != a.tasks && !(a.tasksPerNode > 0 && a.nodesMin == 0):
		return ". Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks."
	case a.node > 0 && a.node%a.task != 0:
		return ", --gres=gpu/--gpus-per-node not multiple of --gpus-per-task."
	case a.node > 0 && a.tasksPerNode > 0 && a.node/a.task != a.tasksPerNode:
		return ". Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks per node differ from " +
			"--ntasks-per-node."
	case a.socket > 0 && a.socket%a.task != 0:
		return ", --gpus-per-socket not multiple of --gpus-per-task."
	}
	return ""
}
