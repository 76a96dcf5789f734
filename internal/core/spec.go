package core

// JobKind tells how a job is driven.
type JobKind uint8

// The kinds. Numbers are stored.
const (
	Batch       JobKind = iota // a script runs on the first node; the job ends with it
	Interactive                // an allocation that its creator fills with steps and gives back (srun, salloc)
)

// Spec is what was asked for. A front end makes it, admission completes it with defaults, and from then on it is
// immutable: an update makes a new one. The tasks of an array share theirs. Rarely used wishes live in Extra, so that a
// pending job stays small.
type Spec struct {
	Name      string        `json:"name"`
	User      UserName      `json:"user"`
	UID       uint32        `json:"uid"`
	GID       uint32        `json:"gid"`
	Project   ProjectName   `json:"project,omitempty"`
	Partition PartitionList `json:"partition,omitzero"` // the first that can start takes it
	QOS       QOSName       `json:"qos,omitempty"`
	Kind      JobKind       `json:"kind,omitempty"`
	// RuntimeProcess or RuntimeContainer; fixed at submit, never by the node it lands on
	Runtime string `json:"runtime,omitempty"`
	Run     string `json:"run,omitempty"` // the run it belongs to, for YAML configurations

	Script Hash     `json:"script,omitzero"` // blob: what to execute
	Env    Hash     `json:"env,omitzero"`    // blob: NUL-separated KEY=VALUE
	Args   []string `json:"args,omitempty"`

	Shape     Shape   `json:"shape"`
	TimeLimit Seconds `json:"time_limit,omitempty"` // 0: the partition's default, filled in by admission
	IO        IO      `json:"io"`
	From      Origin  `json:"from"`
	Array     string  `json:"array,omitempty"`       // index expression, "0-15:4"
	Throttle  int32   `json:"array_limit,omitempty"` // tasks of the array that may run at once; 0: all
	Begin     Time    `json:"begin,omitempty"`
	Nice      int32   `json:"nice,omitempty"`
	Hold      bool    `json:"hold,omitempty"`
	Requeue   bool    `json:"requeue,omitempty"`
	Extra     *Extra  `json:"extra,omitempty"`
}

// Shape is the resources of a job: how many nodes, and what on each.
type Shape struct {
	NodesMin     int32  `json:"nodes_min,omitempty"`
	NodesMax     int32  `json:"nodes_max,omitempty"`
	Tasks        int32  `json:"tasks,omitempty"`
	TasksPerNode int32  `json:"tasks_per_node,omitempty"`
	CPUsPerTask  int32  `json:"cpus_per_task,omitempty"`
	MinCPUs      int32  `json:"min_cpus,omitempty"` // --mincpus: CPUs on each node
	MemPerNode   Bytes  `json:"mem_per_node,omitempty"`
	MemPerCPU    Bytes  `json:"mem_per_cpu,omitempty"`
	Gres         []Gres `json:"gres,omitempty"` // on each node
	Exclusive    bool   `json:"exclusive,omitempty"`
	// whole blocks of nodes that are split, and of several nodes all of each
	Blocks bool       `json:"blocks,omitempty"`
	More   *ShapeMore `json:"more,omitempty"`  // what few jobs ask for
	Given  ShapeGiven `json:"given,omitempty"` // which of these the user wrote; environment variables depend on it
}

// ShapeMore is the part of a shape that few jobs have.
type ShapeMore struct {
	TasksPerSocket int32  `json:"tasks_per_socket,omitempty"`
	TasksPerCore   int32  `json:"tasks_per_core,omitempty"`
	TasksPerGPU    int32  `json:"tasks_per_gpu,omitempty"`
	CPUsPerGPU     int32  `json:"cpus_per_gpu,omitempty"`
	MemPerGPU      Bytes  `json:"mem_per_gpu,omitempty"`
	GPUs           []Gres `json:"gpus,omitempty"`            // of the whole job, --gpus
	GPUsPerTask    []Gres `json:"gpus_per_task,omitempty"`   //
	GPUsPerSocket  []Gres `json:"gpus_per_socket,omitempty"` //
	Sockets        int32  `json:"sockets,omitempty"`         // a node must have, --sockets-per-node
	Cores          int32  `json:"cores,omitempty"`           // a socket must have
	Threads        int32  `json:"threads,omitempty"`         // a core must have
	OneThread      bool   `json:"one_thread,omitempty"`      // --hint=nomultithread: one task or CPU a core
	CoreSpec       int32  `json:"core_spec,omitempty"`
	ThreadSpec     int32  `json:"thread_spec,omitempty"`
	OverSubscribe  bool   `json:"oversubscribe,omitempty"` // it may share its CPUs with others that say so too
	ExclusiveUser  bool   `json:"exclusive_user,omitempty"`
	SpreadJob      bool   `json:"spread_job,omitempty"`
	UseMinNodes    bool   `json:"use_min_nodes,omitempty"`
}

// Wide returns s.More, or an empty one; it is for reading only.
func (s *Shape) Wide() *ShapeMore {
	if s.More == nil {
		return &noShapeMore
	}
	return s.More
}

var noShapeMore ShapeMore

// ShapeGiven is the set of shape fields a user wrote, as against those filled in.
type ShapeGiven uint16

// The bits of ShapeGiven.
const (
	GivenTasks ShapeGiven = 1 << iota
	GivenNodes
	GivenTasksPerNode
	GivenCPUsPerTask
	GivenMemPerNode
	GivenMemPerCPU
	GivenGres
	GivenTimeLimit
	GivenExclusive
)

// Gres is a count of a generic resource, e.g. {gpu a100 4}. An empty Type asks for any.
type Gres struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	Count int64  `json:"count"`
}

// IO is where a job's files are. Paths hold Slurm's % patterns until the step expands them on its node.
type IO struct {
	WorkDir string `json:"workdir,omitempty"`
	Stdin   string `json:"stdin,omitempty"`
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	Append  bool   `json:"append,omitempty"`
	// Stream sends output to the log store instead of files (YAML runs).
	Stream bool `json:"stream,omitempty"`
}

// Origin is where a job came from, for SLURM_SUBMIT_* and for scontrol's Command=.
type Origin struct {
	Host    string `json:"host,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Command string `json:"command,omitempty"` // path of the script
	Line    string `json:"line,omitempty"`    // the submit line
	Sid     int32  `json:"sid,omitempty"`     // session id of the submitter
}

// Extra holds what few jobs ask for.
type Extra struct {
	NodeList    string     `json:"nodelist,omitempty"` // hostlist of nodes that must be used
	Exclude     string     `json:"exclude,omitempty"`
	Constraint  Constraint `json:"constraint,omitzero"`
	Dependency  Dependency `json:"dependency,omitzero"`
	Licenses    Licenses   `json:"licenses,omitzero"`
	Reservation string     `json:"reservation,omitempty"`
	Comment     string     `json:"comment,omitempty"`
	Deadline    Time       `json:"deadline,omitempty"`
	TimeMin     Seconds    `json:"time_min,omitempty"`
	// LateAccepted: it is accepted though it cannot end before Deadline, and ends so as soon as it is seen.
	LateAccepted bool `json:"late_accepted,omitempty"`
	// it said no limit: in an advance reservation it may run as long as that lasts
	Fill         bool              `json:"fill,omitempty"`
	TimeAsked    Seconds           `json:"time_asked,omitempty"` // the limit of a job that was cut short when it started
	Signal       *WarnSignal       `json:"signal,omitempty"`
	Files        Hash              `json:"files,omitzero"` // blob: a parcel of files that its containers begin with
	MailTypes    string            `json:"mail_types,omitempty"`
	MailUser     string            `json:"mail_user,omitempty"`
	Priority     *uint32           `json:"priority,omitempty"`     // asked for by an administrator
	RunPriority  int32             `json:"run_priority,omitempty"` // of a YAML run, 0 to 100
	Site         int32             `json:"site_factor,omitempty"`  // added to the priority, by an administrator
	Distribution string            `json:"distribution,omitempty"`
	WCKey        string            `json:"wckey,omitempty"`
	Prefer       Constraint        `json:"prefer,omitzero"` // a constraint that is tried before Constraint
	Switches     SwitchLimit       `json:"switches,omitzero"`
	Segment      int32             `json:"segment,omitempty"` // nodes come in groups of so many, each within a block
	Het          *HetRef           `json:"het,omitempty"`
	HetApart     bool              `json:"het_apart,omitempty"` // of the last component: no two share a node
	MaxPrice     Price             `json:"max_price,omitempty"` // the most a node made for it may cost an hour; 0: any
	Contiguous   bool              `json:"contiguous,omitempty"`
	LoginEnv     bool              `json:"login_env,omitempty"` // load the user's login environment on the node
	Export       string            `json:"export,omitempty"`    // literal value of --export
	Umask        string            `json:"umask,omitempty"`
	Prio         int32             `json:"prio_process,omitempty"`
	Rlimits      map[string]uint64 `json:"rlimits,omitempty"`
	Fence        Seconds           `json:"fence,omitempty"` // overrides the cluster's setting for this job
	KillGrace    Seconds           `json:"kill_grace,omitempty"`
	TmpDisk      Bytes             `json:"tmp_disk,omitempty"`
	GPU          *GPUAsk           `json:"gpu,omitempty"` // which GPUs will do, where Shape asks for them without a type
	// an allocation that stays without steps until it is given back or its time is over
	Open      bool       `json:"open,omitempty"`
	Container *Container `json:"container,omitempty"`
	// Volumes are what of its project's network volumes it mounts.
	Volumes []VolumeMount `json:"volumes,omitempty"`
	Kept    *KeptOptions  `json:"options,omitempty"`
	Rules   *RunRules     `json:"run_rules,omitempty"` // how a YAML run lives; nil: as any job
	Repo    string        `json:"repo,omitempty"`      // id of the repository that a YAML run clones; empty: none
}

// HetRef ties the components of a heterogeneous job together: each is a job of its own, and all start at once or none.
type HetRef struct {
	Lead   JobID `json:"lead"`   // the first component
	Offset int32 `json:"offset"` // its place, from 0
	Count  int32 `json:"count"`
}

// Batches reports whether a script runs in the job: of a het job only the first component has one.
func (s *Spec) Batches() bool {
	return s.Kind == Batch && (s.Extra == nil || s.Extra.Het == nil || s.Extra.Het.Offset == 0)
}

// WarnSignal is a signal to send some time before the limit.
type WarnSignal struct {
	Signal int32   `json:"signal"`
	Before Seconds `json:"before"`
	Batch  bool    `json:"batch,omitempty"` // to the batch shell alone
	All    bool    `json:"all,omitempty"`   // to every process, those of the batch script included
	// Reserve: the job may reach into an advance reservation for as long as that allows to be delayed.
	Reserve bool `json:"reserve,omitempty"`
}

// More returns s.Extra, or an empty one; it is for reading only.
func (s *Spec) More() *Extra {
	if s.Extra == nil {
		return &noExtra
	}
	return s.Extra
}

var noExtra Extra
