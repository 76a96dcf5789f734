package core

// SpecChange changes what else of a job's spec can be changed after submission. Nil fields stay. All but Throttle and
// Requeue are for pending jobs, which are checked again as if they were submitted so.
type SpecChange struct {
	Throttle *int32 `json:"array_limit,omitempty"` // tasks of the array that may run at once; 0: all
	Requeue  *bool  `json:"may_requeue,omitempty"` // whether it may go back to the queue
	PaperChange
	AskChange
}

// PaperChange is the part of it that decides nothing: whom mail goes to, and of pending jobs what they count for and
// where their files are.
type PaperChange struct {
	MailUser  *string `json:"mail_user,omitempty"`
	MailTypes *string `json:"mail_types,omitempty"` // empty: none
	WCKey     *string `json:"wckey,omitempty"`
	Stdin     *string `json:"stdin,omitempty"`
	Stdout    *string `json:"stdout,omitempty"`
	Stderr    *string `json:"stderr,omitempty"`
	WorkDir   *string `json:"workdir,omitempty"`
	// What is only shown, for Slurm's front end: an administrator's comment, and whether and when nodes should boot first.
	AdminComment *string `json:"admin_comment,omitempty"`
	DelayBoot    *string `json:"delay_boot,omitempty"`
	Reboot       *string `json:"reboot,omitempty"`
}

// Any reports whether anything changes.
func (c *PaperChange) Any() bool { return *c != PaperChange{} }

// AskChange is the part of it that says where a job may run and what it asks for.
type AskChange struct {
	Project      *ProjectName `json:"project,omitempty"`
	Constraint   *Constraint  `json:"constraint,omitempty"` // empty: none
	Prefer       *Constraint  `json:"prefer,omitempty"`     // empty: none
	Switches     *SwitchLimit `json:"switches,omitempty"`   // empty: any
	NodeList     *string      `json:"nodelist,omitempty"`   // empty: any
	Exclude      *string      `json:"exclude,omitempty"`    // empty: none
	Nodes        *NodeCount   `json:"nodes,omitempty"`
	CPUs         *int32       `json:"cpus,omitempty"` // of the whole job: as many tasks as have them
	Tasks        *int32       `json:"tasks,omitempty"`
	TasksPerNode *int32       `json:"tasks_per_node,omitempty"` // 0: any
	CPUsPerTask  *int32       `json:"cpus_per_task,omitempty"`
	MinCPUs      *int32       `json:"min_cpus,omitempty"`     // on each node
	Gres         *[]Gres      `json:"gres,omitempty"`         // on each node; empty: none
	MemPerNode   *Bytes       `json:"mem_per_node,omitempty"` // in place of memory for each CPU
	MemPerCPU    *Bytes       `json:"mem_per_cpu,omitempty"`  // in place of memory on each node
	PlaceChange
}

// PlaceChange is what more a job asks of its nodes.
type PlaceChange struct {
	Contiguous    *bool   `json:"contiguous,omitempty"`
	OverSubscribe *bool   `json:"oversubscribe,omitempty"` // whether it shares its CPUs where its partition lets it
	TmpDisk       *Bytes  `json:"tmp_disk,omitempty"`      // on each node
	Sockets       *int32  `json:"sockets,omitempty"`       // of a node, 0: any
	Cores         *int32  `json:"cores,omitempty"`         // of a socket, 0: any
	Threads       *int32  `json:"threads,omitempty"`       // of a core, 0: any
	GPUs          *[]Gres `json:"gpus,omitempty"`          // over all nodes; empty: none
}

// NodeCount is how many nodes a job may have; a Max of 0 is Min.
type NodeCount struct {
	Min int32 `json:"min"`
	Max int32 `json:"max,omitempty"`
}

// Any reports whether anything changes.
func (c *SpecChange) Any() bool {
	return c.Throttle != nil || c.Requeue != nil || c.PaperChange.Any() || c.AskChange.Any()
}

// Any reports whether anything changes.
func (c *AskChange) Any() bool { return *c != AskChange{} }
