package report

import (
	"cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// JobJSON is a job as squeue --json of Slurm 22.05 (openapi v0.0.38) writes it. Fields we have nothing for hold what
// Slurm writes when they are unset.
type JobJSON struct {
	Account            string        `json:"account"`
	AccrueTime         int64         `json:"accrue_time"`
	AdminComment       string        `json:"admin_comment"`
	ArrayJobID         int64         `json:"array_job_id"`
	ArrayTaskID        *int32        `json:"array_task_id"`
	ArrayMaxTasks      int32         `json:"array_max_tasks"`
	ArrayTaskString    string        `json:"array_task_string"`
	AssociationID      int64         `json:"association_id"`
	BatchFeatures      string        `json:"batch_features"`
	BatchFlag          bool          `json:"batch_flag"`
	BatchHost          string        `json:"batch_host"`
	Flags              []string      `json:"flags"`
	BurstBuffer        string        `json:"burst_buffer"`
	Cluster            string        `json:"cluster"`
	ClusterFeatures    string        `json:"cluster_features"`
	Command            string        `json:"command"`
	Comment            string        `json:"comment"`
	Contiguous         bool          `json:"contiguous"`
	BillableTRES       float64       `json:"billable_tres"`
	CPUsPerTask        *int32        `json:"cpus_per_task"`
	Deadline           int64         `json:"deadline"`
	DelayBoot          int64         `json:"delay_boot"`
	Dependency         string        `json:"dependency"`
	DerivedExitCode    int32         `json:"derived_exit_code"`
	EligibleTime       int64         `json:"eligible_time"`
	EndTime            int64         `json:"end_time"`
	ExcludedNodes      string        `json:"excluded_nodes"`
	ExitCode           int32         `json:"exit_code"`
	Features           string        `json:"features"`
	GresDetail         []string      `json:"gres_detail"`
	GroupID            uint32        `json:"group_id"`
	JobID              int64         `json:"job_id"`
	JobResources       *ResourceJSON `json:"job_resources,omitempty"`
	JobState           string        `json:"job_state"`
	Licenses           string        `json:"licenses"`
	MaxCPUs            int32         `json:"max_cpus"`
	MaxNodes           int32         `json:"max_nodes"`
	Name               string        `json:"name"`
	Nodes              string        `json:"nodes"`
	Nice               *int32        `json:"nice"`
	TasksPerNode       int32         `json:"tasks_per_node"`
	CPUs               int32         `json:"cpus"`
	NodeCount          int32         `json:"node_count"`
	Tasks              int32         `json:"tasks"`
	HetJobID           int64         `json:"het_job_id"`
	HetJobIDSet        string        `json:"het_job_id_set"`
	HetJobOffset       int32         `json:"het_job_offset"`
	Partition          string        `json:"partition"`
	Prefer             string        `json:"prefer"`
	MemoryPerNode      *int64        `json:"memory_per_node"`
	MemoryPerCPU       *int64        `json:"memory_per_cpu"`
	MinimumCPUsPerNode int32         `json:"minimum_cpus_per_node"`
	MinimumTmpDisk     int64         `json:"minimum_tmp_disk_per_node"`
	PreemptTime        int64         `json:"preempt_time"`
	PreSusTime         int64         `json:"pre_sus_time"`
	Priority           uint32        `json:"priority"`
	QOS                string        `json:"qos"`
	Reboot             bool          `json:"reboot"`
	RequiredNodes      string        `json:"required_nodes"`
	Requeue            bool          `json:"requeue"`
	RestartCnt         int32         `json:"restart_cnt"`
	ResvName           string        `json:"resv_name"`
	StartTime          int64         `json:"start_time"`
	StateDescription   string        `json:"state_description"`
	StateReason        string        `json:"state_reason"`
	StandardError      string        `json:"standard_error"`
	StandardInput      string        `json:"standard_input"`
	StandardOutput     string        `json:"standard_output"`
	SubmitTime         int64         `json:"submit_time"`
	SuspendTime        int64         `json:"suspend_time"`
	SystemComment      string        `json:"system_comment"`
	TimeLimit          *int64        `json:"time_limit"`
	TimeMinimum        int64         `json:"time_minimum"`
	TRESPerNode        string        `json:"tres_per_node"`
	TRESReqStr         string        `json:"tres_req_str"`
	TRESAllocStr       string        `json:"tres_alloc_str"`
	UserID             uint32        `json:"user_id"`
	UserName           string        `json:"user_name"`
	WCKey              string        `json:"wckey"`
	WorkDir            string        `json:"current_working_directory"`
}

// ResourceJSON is what a job holds.
type ResourceJSON struct {
	Nodes          string             `json:"nodes"`
	AllocatedCPUs  int32              `json:"allocated_cpus"`
	AllocatedHosts int                `json:"allocated_hosts"`
	AllocatedNodes []ResourceNodeJSON `json:"allocated_nodes"`
}

// ResourceNodeJSON is its part of a node.
type ResourceNodeJSON struct {
	Name            string `json:"nodename"`
	CPUsUsed        int32  `json:"cpus_used"`
	MemoryUsed      int64  `json:"memory_used"`
	MemoryAllocated int64  `json:"memory_allocated"`
}

// JobToJSON converts a job.
func JobToJSON(j *client.Job, cluster string) JobJSON {
	s, more := j.Spec, j.Spec.More()
	want, have := asked(s), held(&j.Job)
	out := JobJSON{
		Account: string(s.Project), AccrueTime: j.Eligible.Unix(), BatchFlag: s.Kind == core.Batch, Flags: []string{},
		Cluster: cluster,
		Comment: more.Comment, Contiguous: more.Contiguous, BillableTRES: float64(have.cpus), Deadline: more.Deadline.Unix(),
		EligibleTime: j.Eligible.Unix(), EndTime: expectedEnd(j).Unix(), ExcludedNodes: more.Exclude,
		ExitCode: j.Exit.Code<<8 | j.Exit.Signal, Features: more.Constraint.String(), Prefer: more.Prefer.String(),
		GresDetail: []string{}, GroupID: s.GID, JobID: int64(j.ID),
		JobState: StateName(j.State, j.Flags), Licenses: more.Licenses.String(), MaxNodes: s.Shape.NodesMax,
		Name:         s.Name,
		TasksPerNode: s.Shape.TasksPerNode, CPUs: have.cpus, NodeCount: have.nodes, Tasks: slurm.TasksOf(s),
		Partition:          partitionOf(&j.Job),
		MinimumCPUsPerNode: minCPUsNode(s), MinimumTmpDisk: slurm.InMiB(more.TmpDisk), PreSusTime: seconds(j.PausedFor),
		Priority: j.Priority,
		QOS:      string(s.QOS), RequiredNodes: more.NodeList, Requeue: s.Requeue, RestartCnt: slurm.Restarts(&j.Job),
		ResvName:  more.Reservation,
		StartTime: cmp.Or(j.Start, j.Expected).Unix(), StateDescription: j.Message, StateReason: reasonOf(j).Word().String(),
		StandardOutput: slurm.OutPath(&j.Job, s.IO.Stdout),
		StandardError:  slurm.OutPath(&j.Job, cmp.Or(s.IO.Stderr, s.IO.Stdout)),
		StandardInput:  slurm.OutPath(&j.Job, cmp.Or(s.IO.Stdin, "/dev/null")), SubmitTime: j.Submit.Unix(),
		SuspendTime: j.Paused.Unix(),
		TimeMinimum: int64(more.TimeMin / 60), TRESReqStr: want.tres(false), UserID: s.UID, UserName: string(s.User),
		WCKey:   more.WCKey,
		WorkDir: s.IO.WorkDir,
	}
	if ref := more.Het; ref != nil {
		out.HetJobID, out.HetJobIDSet, out.HetJobOffset = int64(ref.Lead), hetSet(ref), ref.Offset
	}
	if j.Pushed != nil {
		out.PreemptTime = j.Pushed.At.Unix()
	}
	if s.From.Command != "" {
		out.Command = command(s)
	}
	if d := dependencyText(j); d != "(null)" {
		out.Dependency = d
	}
	if s.Shape.Given&core.GivenCPUsPerTask != 0 {
		out.CPUsPerTask = &s.Shape.CPUsPerTask
	}
	if s.Nice != 0 {
		out.Nice = &s.Nice
	}
	if m := slurm.InMiB(s.Shape.MemPerCPU); m > 0 {
		out.MemoryPerCPU = &m
	} else if m := slurm.InMiB(s.Shape.MemPerNode); m > 0 {
		out.MemoryPerNode = &m
	}
	if m := minutes(s.TimeLimit); m >= 0 {
		out.TimeLimit = &m
	}
	if len(s.Shape.Gres) > 0 {
		out.TRESPerNode = "gres:" + gresText(s.Shape.Gres)
	}
	if a := j.Array; a != nil {
		out.ArrayJobID, out.ArrayMaxTasks = int64(a.Base), s.Throttle
		if a.Tasks.Len() > 0 {
			out.ArrayTaskString = taskList(client.ArrayTasks(a, s.Throttle), 0)
		} else {
			out.ArrayTaskID = &a.Task
		}
	}
	if j.Alloc != nil && len(j.Alloc.Nodes) > 0 {
		out.Nodes = client.AllocList(j.Alloc)
		out.TRESAllocStr = have.tres(false)
		if out.BatchFlag {
			out.BatchHost = string(j.Alloc.Nodes[0].Node)
		}
		out.JobResources = resourcesJSON(j.Alloc)
	}
	return out
}

func resourcesJSON(a *core.Alloc) *ResourceJSON {
	r := &ResourceJSON{Nodes: client.AllocList(a), AllocatedHosts: len(a.Nodes)}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		r.AllocatedCPUs += n.CPUs
		r.AllocatedNodes = append(r.AllocatedNodes,
			ResourceNodeJSON{Name: string(n.Node), MemoryAllocated: slurm.InMiB(n.Mem)})
	}
	return r
}

// reasonOf is why a job waits, or how it ended.
func reasonOf(j *client.Job) core.Reason {
	if j.State == core.Pending && j.Waiting != "" {
		return j.Waiting
	}
	return j.Reason
}
