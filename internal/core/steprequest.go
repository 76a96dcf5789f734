package core

// StepRequest is what a step asks for of what its job has. Its lists of nodes are expanded.
type StepRequest struct {
	Nodes        int32 `json:"nodes,omitempty"` // 0: as many as Tasks need
	Tasks        int32 `json:"tasks,omitempty"` // 0: TasksPerNode on each node
	TasksPerNode int32 `json:"tasks_per_node,omitempty"`
	CPUsPerTask  int32 `json:"cpus_per_task,omitempty"`
	// MaxTasksPerNode is the most tasks that a node takes, CPUs or not.
	MaxTasksPerNode int64 `json:"max_tasks_per_node,omitempty"`

	On        []NodeName `json:"on,omitempty"`         // sorted, each once: it has tasks on no others; empty: on any
	Not       []NodeName `json:"not,omitempty"`        // sorted
	TaskNodes []NodeName `json:"task_nodes,omitempty"` // the node of each task, by rank
	Relative  int32      `json:"relative,omitempty"`   // the first node of the job that it may use
	Pack      bool       `json:"pack,omitempty"`       // nodes are filled one after the other

	// A step has all of its nodes to itself, as far as they are the job's; an exact one only what its tasks need, and
	// one that overlaps shares all with others.
	Exact       bool   `json:"exact,omitempty"`
	Overlap     bool   `json:"overlap,omitempty"`
	Overcommit  bool   `json:"overcommit,omitempty"` // tasks need no CPUs of their own
	MemPerNode  Bytes  `json:"mem_per_node,omitempty"`
	MemPerCPU   Bytes  `json:"mem_per_cpu,omitempty"`
	Gres        []Gres `json:"gres,omitempty"` // on each node
	GPUs        []Gres `json:"gpus,omitempty"` // over all nodes
	GPUsPerTask []Gres `json:"gpus_per_task,omitempty"`
	// NoGres says that the step wants no units; one that asks for none has those that its job asked for.
	NoGres bool `json:"no_gres,omitempty"`

	// Programs are the ranks that have a program of their own; empty: all run the same.
	Programs []RankSpan `json:"programs,omitempty"`
}

// OwnGres reports whether the step says itself which units of its job it wants.
func (r *StepRequest) OwnGres() bool {
	return r.NoGres || len(r.Gres)+len(r.GPUs)+len(r.GPUsPerTask) > 0
}

// RankSpan is the ranks from First to Last.
type RankSpan struct {
	First int32 `json:"first"`
	Last  int32 `json:"last"`
}
