package client

import (
	"strconv"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// BriefList answers GET /api/v1/jobs?view=brief.
type BriefList struct {
	Jobs []Brief    `json:"jobs"`
	Seq  int64      `json:"seq,omitempty"`
	Now  core.Time  `json:"now,omitempty"`
	More bool       `json:"more,omitempty"` // as in JobList
	Next core.JobID `json:"next,omitempty"`
}

// BriefOf shortens a job as it stands at now. Its spec must be there.
func BriefOf(j *Job, now core.Time) Brief {
	s := j.Spec
	b := Brief{
		ID: j.ID, Name: s.Name, User: s.User, UID: s.UID, Project: s.Project,
		Partition: core.PartitionName(s.Partition.String()), QOS: s.QOS, State: j.State, Flags: j.Flags,
		Reason: j.Reason, Priority: j.Priority, Submit: j.Submit, Start: j.Start, End: j.End,
		Elapsed: core.Seconds(j.Elapsed(now) / time.Second), Limit: s.TimeLimit, Run: s.Run,
	}
	if j.State == core.Pending {
		if j.Waiting != "" {
			b.Reason = j.Waiting
		}
		b.Start, b.Estimate, b.Planned = j.Expected, j.Estimate, j.Planned
	}
	if x := s.Extra; x != nil && x.Het != nil {
		b.Het, b.HetOffset = x.Het.Lead, x.Het.Offset
	}
	if a := j.Array; a != nil {
		b.Base, b.Task = a.Base, a.Task
		if a.Tasks.Len() > 0 {
			b.Tasks = ArrayTasks(a, s.Throttle)
		}
	}
	if j.Alloc == nil {
		b.Nodes, b.CPUs = Wants(s.Shape)
		b.Nodes = max(b.Nodes, j.LeastNodes)
		return b
	}
	b.Partition = j.Alloc.Partition
	b.Nodes = int32(len(j.Alloc.Nodes))
	for i := range j.Alloc.Nodes {
		b.CPUs += j.Alloc.Nodes[i].CPUs
	}
	b.NodeList = AllocList(j.Alloc)
	return b
}

// ArrayTasks writes the indices an array's record stands for, with its throttle: "5-20%4".
func ArrayTasks(a *core.ArrayRef, throttle int32) string {
	text := a.Tasks.String()
	if throttle > 0 {
		text += "%" + strconv.Itoa(int(throttle))
	}
	return text
}

// AllocList folds the nodes of an allocation.
func AllocList(a *core.Alloc) string {
	switch {
	case a == nil || len(a.Nodes) == 0:
		return ""
	case len(a.Nodes) == 1:
		return string(a.Nodes[0].Node)
	}
	names := make([]string, len(a.Nodes))
	for i := range a.Nodes {
		names[i] = string(a.Nodes[i].Node)
	}
	return hostlist.FoldSorted(names)
}

// Wants returns how many nodes and CPUs a shape asks for at least: what listings show of a job that has none yet.
func Wants(s core.Shape) (nodes, cpus int32) {
	nodes = max(1, s.NodesMin)
	if s.NodesMin == 0 && s.TasksPerNode > 0 && s.Tasks > s.TasksPerNode {
		nodes = (s.Tasks + s.TasksPerNode - 1) / s.TasksPerNode
	}
	tasks := s.Tasks
	if tasks == 0 {
		tasks = nodes * max(1, s.TasksPerNode)
	}
	cpus = max(tasks*max(1, s.CPUsPerTask), nodes*max(1, s.MinCPUs))
	if s.More != nil && s.More.CPUsPerGPU > 0 {
		cpus = max(cpus, int32(core.CountGres(s.Total(), "gpu"))*s.More.CPUsPerGPU)
	}
	return nodes, cpus
}
