package client

import (
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nodenotes"
)

// Paths of the native API.
const (
	PathSubmit = "/api/v1/jobs"
)

// Submit is the body of POST /api/v1/jobs. Script and Env are plain text in JSON; the server hashes and stores them,
// and Files.
type Submit struct {
	Spec   core.Spec `json:"spec"`
	Script string    `json:"script,omitempty"`
	Env    []string  `json:"env,omitempty"`   // KEY=VALUE
	Files  []byte    `json:"files,omitempty"` // a parcel (internal/wire/parcel), for a job in containers
	Key    string    `json:"key,omitempty"`   // client-made; sending again under the same key gives the same job
	Strict bool      `json:"strict,omitempty"`
	// Unsaid are words of the spec that the submitter left to the site: UnsaidRequeue, UnsaidAppend. They go beside the
	// body, so that servers from before they were thought of take the job as it is.
	Unsaid []string `json:"-"`
	// Components are those of a het job after the first, which is Spec and has the script.
	Components []core.Spec `json:"components,omitempty"`
	// it was sent before and the answer was lost: look further back for the key
	Retry bool `json:"retry,omitempty"`
	// Run makes the job a run of a YAML configuration.
	Run    string `json:"run,omitempty"`
	Config string `json:"config,omitempty"`
	// Service makes the job the first replica of a service.
	Service *core.Service `json:"service,omitempty"`
	// RunSpec: Config is the run's description in JSON, as dstack's clients send it; false: it is a YAML file.
	RunSpec bool `json:"run_spec,omitempty"`
}

// The words of Submit.Unsaid.
const (
	UnsaidRequeue = "requeue" // whether it may go back to the queue
	UnsaidAppend  = "append"  // whether its output is appended to what is there
)

// Submitted answers Submit.
type Submitted struct {
	ID        core.JobID `json:"id"`
	Duplicate bool       `json:"duplicate,omitempty"`
	Run       string     `json:"run,omitempty"`
	Warning   string     `json:"warning,omitempty"` // it was accepted but cannot start as things are
}

// Job is a job as the API shows it: GET /api/v1/jobs/{id}. Array records and tasks come as one list.
type Job struct {
	core.Job
	Waiting  core.Reason `json:"waiting,omitempty"`        // why it is pending, in Slurm's words
	Why      string      `json:"why,omitempty"`            // the same in a sentence
	Expected core.Time   `json:"expected_start,omitempty"` // from the plan
	Estimate bool        `json:"estimate,omitempty"`       // Expected is a forecast, not a reservation
	Planned  string      `json:"planned_nodes,omitempty"`  // hostlist of the nodes reserved for it
	// LeastNodes is how many nodes a pending job needs at least, where its CPUs do not fit on as many as it asks for.
	LeastNodes int32 `json:"least_nodes,omitempty"`
	// Ports are where those of its containers are found.
	Ports []core.Published `json:"ports,omitempty"`
	// Weights are what the resources of its partition cost, as they were written; empty: a CPU costs 1.
	Weights string `json:"billing_weights,omitempty"`
}

// Brief is a job in a queue listing: GET /api/v1/jobs?view=brief. It is flat and short because squeue reads 50,000 of
// them.
type Brief struct {
	ID        core.JobID         `json:"id"`
	Base      core.JobID         `json:"base,omitempty"`       // array: its base id
	Task      int32              `json:"task,omitempty"`       // array: this task's index
	Tasks     string             `json:"tasks,omitempty"`      // array: the indices the record stands for, with %limit
	Het       core.JobID         `json:"het,omitempty"`        // het job: its first component
	HetOffset int32              `json:"het_offset,omitempty"` // and this one's place
	Name      string             `json:"name"`
	User      core.UserName      `json:"user"`
	UID       uint32             `json:"uid,omitempty"`
	Project   core.ProjectName   `json:"project,omitempty"`
	Partition core.PartitionName `json:"part"`
	QOS       core.QOSName       `json:"qos,omitempty"`
	State     core.JobState      `json:"state"`
	Flags     core.JobFlag       `json:"flags,omitempty"`
	Reason    core.Reason        `json:"reason,omitempty"`
	Priority  uint32             `json:"prio,omitempty"`
	Submit    core.Time          `json:"submit"`
	Start     core.Time          `json:"start,omitempty"`    // of a pending job: when it is expected to
	Estimate  bool               `json:"estimate,omitempty"` // Start is a forecast
	End       core.Time          `json:"end,omitempty"`
	Elapsed   core.Seconds       `json:"elapsed,omitempty"`
	Limit     core.Seconds       `json:"limit,omitempty"`
	Nodes     int32              `json:"nodes"`
	CPUs      int32              `json:"cpus"`
	NodeList  string             `json:"nodelist,omitempty"`
	Planned   string             `json:"planned,omitempty"` // hostlist of the nodes reserved for it
	Run       string             `json:"run,omitempty"`
}

// JobsQuery selects jobs for listings. Zero fields do not restrict. History asks the store as well as memory.
type JobsQuery struct {
	IDs        []string // "12", "12_3"
	Users      []string
	Projects   []string
	Partitions []string
	States     []string
	Names      []string
	Nodes      []string
	Runs       []string
	History    bool
	Since      time.Time
	Until      time.Time
	Limit      int
	Newest     bool // newest first
	// Recent is instead of Since: those that ended no longer ago than the site keeps them in sight. Servers that do not
	// know it go by Since.
	Recent bool
	// LeaveDeleted leaves out the jobs of runs that somebody deleted.
	LeaveDeleted bool
}

// Node is a node as the API shows it.
type Node struct {
	core.Node
	// one word in Slurm's spelling, with flags joined by '+': IDLE, MIXED, ALLOCATED, DOWN, IDLE+DRAIN
	State      string               `json:"state"`
	Connected  bool                 `json:"connected"`
	LastHeard  core.Time            `json:"last_heard,omitempty"`
	Load       float64              `json:"load"`
	FreeMem    core.Bytes           `json:"free_mem,omitempty"`
	AllocCPUs  int32                `json:"alloc_cpus"`
	AllocMem   core.Bytes           `json:"alloc_mem"`
	AllocGres  []core.Gres          `json:"alloc_gres,omitempty"`
	AllocUnits []core.GresAlloc     `json:"alloc_units,omitempty"` // which they are
	Jobs       []core.JobID         `json:"jobs,omitempty"`
	Partitions []core.PartitionName `json:"partitions,omitempty"`
	// Reservation is the advance reservation that has the node now.
	Reservation string       `json:"reservation,omitempty"`
	Skew        core.Seconds `json:"skew,omitempty"`
	Warning     string       `json:"warning,omitempty"` // weak containment, clock skew, GPUs that ail
	// GPUs is how they do, as the node last told.
	GPUs []core.UnitState `json:"gpus,omitempty"`
}

// Cluster answers GET /api/v1/cluster.
type Cluster struct {
	Name         string           `json:"name"`
	Version      string           `json:"version"`
	SlurmVersion string           `json:"slurm_version"` // the Slurm version imitated
	Server       string           `json:"server"`        // host name
	Started      core.Time        `json:"started"`
	Now          core.Time        `json:"now"`
	Seq          int64            `json:"seq"`
	Epoch        int64            `json:"epoch"`
	Store        string           `json:"store"`               // "sqlite", "postgres"
	Dstack       string           `json:"dstack,omitempty"`    // URL for dstack's clients
	ReadOnly     string           `json:"read_only,omitempty"` // why nothing can be written now
	Partitions   []core.Partition `json:"partitions"`
	Topology     *core.Topology   `json:"topology,omitempty"`
	// what scontrol show config prints, and defaults that commands need
	Settings map[string]string `json:"settings"`
	Jobs     map[string]int    `json:"jobs"` // live jobs by state, of those that the caller sees
	// kinds of records that the caller is not shown: nodes, partitions
	Hidden []string `json:"hidden,omitempty"`
}

// Withheld refuses in the server's stead, where it left out all records of a kind instead of refusing the call.
func (c *Cluster) Withheld(kind string) error {
	if !slices.Contains(c.Hidden, kind) {
		return nil
	}
	return core.Errorf(core.Denied, "%s are private here (private_data): administrators see them", kind).
		Because("access_denied")
}

// Whoami answers GET /api/v1/whoami.
type Whoami struct {
	User    core.UserName    `json:"user"`
	UID     uint32           `json:"uid"`
	Admin   bool             `json:"admin"`
	Project core.ProjectName `json:"project"`
	// Of the token the caller came with, if any.
	Token  string       `json:"token,omitempty"` // its name, or its id
	Scopes []core.Scope `json:"scopes,omitempty"`
}

// Cancel is the body of POST /api/v1/jobs/cancel: all that match. Signal sends a signal instead of ending them.
type Cancel struct {
	IDs        []string `json:"ids,omitempty"` // "12", "12_3", "12_[1-5]", or run names with Runs
	Runs       []string `json:"runs,omitempty"`
	Users      []string `json:"users,omitempty"`
	Names      []string `json:"names,omitempty"`
	Partitions []string `json:"partitions,omitempty"`
	States     []string `json:"states,omitempty"`
	Projects   []string `json:"projects,omitempty"`
	QOS        []string `json:"qos,omitempty"`
	Nodes      []string `json:"nodes,omitempty"`
	// Reservations and WCKeys are what jobs asked for.
	Reservations []string `json:"reservations,omitempty"`
	WCKeys       []string `json:"wckeys,omitempty"`
	// Cron confirms that jobs which come again by the clock are meant too: to end one takes it off its table.
	Cron   bool   `json:"cron,omitempty"`
	Abort  bool   `json:"abort,omitempty"`  // end them at once, without grace
	Signal int32  `json:"signal,omitempty"` // 0: end them
	Batch  bool   `json:"batch,omitempty"`  // signal the batch shell only
	Full   bool   `json:"full,omitempty"`   // batch shell and all its children, and the steps
	Step   string `json:"step,omitempty"`
}

// Cancelled answers Cancel, one entry a job it concerned.
type Cancelled struct {
	Results []CancelResult `json:"results"`
}

// CancelResult is what became of one job. Error is nil when it was done.
type CancelResult struct {
	ID    string      `json:"id"`
	Error *core.Error `json:"error,omitempty"`
}

// Update is the body of PATCH /api/v1/jobs/{id}. Nil fields stay.
type Update struct {
	Hold      *bool               `json:"hold,omitempty"`
	UserHold  bool                `json:"user_hold,omitempty"` // an administrator's hold that the owner may end
	TimeLimit *core.Seconds       `json:"time_limit,omitempty"`
	Priority  *uint32             `json:"priority,omitempty"`
	Nice      *int32              `json:"nice,omitempty"`
	Name      *string             `json:"name,omitempty"`
	Partition *core.PartitionList `json:"partition,omitempty"`
	QOS       *core.QOSName       `json:"qos,omitempty"`
	Site      *int32              `json:"site_factor,omitempty"`  // administrators only
	Run       *int32              `json:"run_priority,omitempty"` // of a YAML run, 0 to 100
	Comment   *string             `json:"comment,omitempty"`
	core.WishChange
	core.SpecChange
	// Dependency is what a pending job waits for from now on; empty: nothing. With Strict a job it names must be known.
	Dependency *core.Dependency `json:"dependency,omitempty"`
	Strict     bool             `json:"strict,omitempty"`
	Requeue    bool             `json:"requeue,omitempty"`
	Special    bool             `json:"special_exit,omitempty"` // with Requeue: held, in the state SPECIAL_EXIT
	Incomplete bool             `json:"incomplete,omitempty"`   // with Requeue: leave what has completed
	ResetAge   bool             `json:"reset_age,omitempty"`    // its priority counts its waiting from now
	Suspend    *bool            `json:"suspend,omitempty"`      // true: suspend, false: resume
	// Checkpoint is when the job last saved its work, which is not lost then if it is preempted; 0: now.
	Checkpoint *core.Time `json:"checkpoint,omitempty"`
}

// Plan answers GET /api/v1/plan.
type Plan struct {
	Now       core.Time   `json:"now"` // when it was made
	Provision []Provision `json:"provision"`
}

// Provision is a wish of the plan for nodes that are not there, or that sleep.
type Provision struct {
	Offer string        `json:"offer,omitempty"`
	Count int32         `json:"count"`
	Node  core.NodeName `json:"node,omitempty"` // in place of an offer: one that is powered down
	For   core.JobID    `json:"for"`            // the first job that would use them
	Ready core.Time     `json:"ready"`
	Price core.Price    `json:"price,omitempty"` // of all of them, an hour, in millionths
}

// EventList answers GET /api/v1/nodes/{name}/events.
type EventList struct {
	Events []core.Event `json:"events"` // oldest first
}

// UserPut is a user that was added or changed.
type UserPut struct {
	core.User
	Warning string `json:"warning,omitempty"` // what is likely wrong with it
}

// RemovedNode answers DELETE /api/v1/nodes/{name}: the node is gone, or goes when its jobs have ended.
type RemovedNode struct {
	Gone bool `json:"gone"`
}

// UpdateNode is the body of PATCH /api/v1/nodes/{name}.
type UpdateNode struct {
	State  core.NodeVerb `json:"state,omitempty"` // one of core.NodeVerbs
	Next   core.NodeVerb `json:"next,omitempty"`  // with a reboot: resume or down, when the node is back
	Reason string        `json:"reason,omitempty"`
	// ResumeAfter is how long a node that is down or drained stays so; negative: until somebody says otherwise.
	ResumeAfter core.Seconds `json:"resume_after,omitempty"`
	// Strict refuses a state that makes no sense for the node as it is, as Slurm does.
	Strict bool              `json:"strict,omitempty"`
	Change *nodenotes.Change `json:"change,omitempty"`
}

// NewStep is the body of POST /api/v1/jobs/{id}/steps: srun inside an allocation.
type NewStep struct {
	Name         string   `json:"name"`
	Argv         []string `json:"argv"`
	Env          []string `json:"env"`
	WorkDir      string   `json:"workdir"`
	Nodes        int32    `json:"nodes,omitempty"` // 0: as many as fit Tasks
	NodeList     string   `json:"nodelist,omitempty"`
	Tasks        int32    `json:"tasks,omitempty"`
	TasksPerNode int32    `json:"tasks_per_node,omitempty"`
	CPUsPerTask  int32    `json:"cpus_per_task,omitempty"`
	// of tasks to nodes, as Slurm's -m; arbitrary: NodeList has the node of each
	Distribution string `json:"distribution,omitempty"`
	Stdin        string `json:"stdin,omitempty"` // "all", "none", "0".. rank
	// file pattern written on the node; empty: streamed to the caller
	Stdout    string       `json:"stdout,omitempty"`
	Stderr    string       `json:"stderr,omitempty"`
	TimeLimit core.Seconds `json:"time_limit,omitempty"`
	Umask     string       `json:"umask,omitempty"`
	Label     bool         `json:"label,omitempty"`
	Pty       bool         `json:"pty,omitempty"`
	Rows      uint16       `json:"rows,omitempty"` // of the terminal
	Cols      uint16       `json:"cols,omitempty"`
	// "pmi2": PMI-1 and PMI-2 are served to the tasks; "pmix": PMIx is; "none"; empty: as step.mpi says
	MPI string `json:"mpi,omitempty"`
	// where the nodes may reach the caller without the server between
	Direct   *Direct `json:"direct,omitempty"`
	Host     string  `json:"host,omitempty"` // the caller's, and its process: for those who look
	PID      int32   `json:"pid,omitempty"`
	OwnsJob  bool    `json:"owns_job,omitempty"` // the caller made the allocation: if it is lost, so is that
	Exclude  string  `json:"exclude,omitempty"`
	Relative int32   `json:"relative,omitempty"` // it begins with this node of the job
	// A step has all of its nodes to itself, as far as they are the job's; an exact one only what its tasks need, and
	// one that overlaps shares all with others.
	Exact       bool        `json:"exact,omitempty"`
	Overlap     bool        `json:"overlap,omitempty"`
	Overcommit  bool        `json:"overcommit,omitempty"`   // tasks need no CPUs of their own
	PreserveEnv bool        `json:"preserve_env,omitempty"` // counts in the environment stay the job's
	MemPerNode  core.Bytes  `json:"mem_per_node,omitempty"`
	MemPerCPU   core.Bytes  `json:"mem_per_cpu,omitempty"`
	Gres        []core.Gres `json:"gres,omitempty"` // on each node
	GPUs        []core.Gres `json:"gpus,omitempty"` // over all nodes
	GPUsPerTask []core.Gres `json:"gpus_per_task,omitempty"`
	NoGres      bool        `json:"no_gres,omitempty"` // none of the job's, though it names none above
	TasksPerGPU int32       `json:"tasks_per_gpu,omitempty"`
	GPUBind     string      `json:"gpu_bind,omitempty"` // as Slurm's --gpu-bind
	GPUFreq     string      `json:"gpu_freq,omitempty"` // as Slurm's --gpu-freq; frequencies are not set
	CPUBind     string      `json:"cpu_bind,omitempty"` // as Slurm's --cpu-bind
	// Container is the step's own, one a node; nil: it runs where its job does.
	Container *core.Container `json:"container,omitempty"`
	// Run as the user before and after each task, on its node.
	TaskProlog string `json:"task_prolog,omitempty"`
	TaskEpilog string `json:"task_epilog,omitempty"`
	// Programs are what each task runs, if they do not all run Argv: the first that names its rank.
	Programs []TaskProgram `json:"programs,omitempty"`
	// Component is in which component of a het job it runs, Het what runs beside it in others: one world of tasks,
	// whose ranks continue from one to the next. What is said of streams and of the caller is said here for all.
	Component int32     `json:"component,omitempty"`
	Het       []NewStep `json:"het,omitempty"`
}

// UpdateStep is the body of PATCH /api/v1/jobs/{id}/steps/{step}; the step "all" stands for each that runs.
type UpdateStep struct {
	TimeLimit core.Seconds `json:"time_limit"` // from its start
}

// TaskProgram is what some tasks of a step run.
type TaskProgram struct {
	Ranks []RankSpan `json:"ranks"`
	Argv  []string   `json:"argv"` // %t in it is the task's rank, %o its place among Ranks
}

// RankSpan is the ranks from First to Last.
type RankSpan = core.RankSpan

// Direct says how the nodes of a step reach its caller without the server between: by one of the addresses, under the
// certificate with this fingerprint, with this secret.
type Direct struct {
	Addrs  []string `json:"addrs"` // HOST:PORT, the likeliest first
	Print  string   `json:"print"` // SHA-256 of the certificate, hex
	Secret string   `json:"secret"`
}

// StepMade answers NewStep. The caller then opens the stream (see Client.Stream) under Key.
type StepMade struct {
	Step  core.Step `json:"step"`
	Key   string    `json:"key"`   // one-time key of the step's stream
	Ranks [][]int32 `json:"ranks"` // global task ranks on each node of Step.Nodes

	Het []StepMade `json:"het,omitempty"` // one for each of NewStep.Het
}

// LogChunk is a piece of a job's log.
type LogChunk struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}

// Run is a run as the API shows it.
type Run struct {
	core.Run
	State  string  `json:"state"` // submitted, provisioning, running, terminating, terminated, failed, done
	Reason string  `json:"reason,omitempty"`
	Views  []Brief `json:"job_views"`
	// Ports are where those of its containers are found.
	Ports []core.Published `json:"ports,omitempty"`
}

// NewToken is the body of POST /api/v1/tokens; NewTokenMade its answer, the only time the secret is shown.
type NewToken struct {
	Kind      string        `json:"kind"` // "user", "join"
	User      core.UserName `json:"user,omitempty"`
	Node      core.NodeName `json:"node,omitempty"`
	Roles     core.NodeRole `json:"roles,omitempty"`
	TrustRoot bool          `json:"trust_root,omitempty"`
	Note      string        `json:"note,omitempty"`
	TTL       core.Seconds  `json:"ttl,omitempty"` // 0: the server's default; core.Forever: without end

	Name string `json:"name,omitempty"`
	// none: every right of the user, within those of the token that asks
	Scopes  []core.Scope     `json:"scopes,omitempty"`
	Project core.ProjectName `json:"project,omitempty"` // the only one it is good for; implies scope project
	Client  string           `json:"client,omitempty"`  // "dstack": made for a dstack client
}

// RotateToken is the body of POST /api/v1/tokens/{id}/rotate; its answer is a NewTokenMade.
type RotateToken struct {
	Overlap core.Seconds `json:"overlap,omitempty"` // how long the old secret still works
	TTL     core.Seconds `json:"ttl,omitempty"`     // as in NewToken
}

// NewTokenMade answers NewToken.
type NewTokenMade struct {
	Token  core.Token `json:"token"`
	Secret string     `json:"secret"`
	CA     string     `json:"ca,omitempty"` // PEM of the cluster's CA, for join tokens
}

// String keeps the secret out of whatever prints a NewTokenMade.
func (m NewTokenMade) String() string { return "token " + m.Token.ID }

// GoString is String for %#v.
func (m NewTokenMade) GoString() string { return m.String() }

// Join is the body of POST /api/v1/join: a node trades a one-time token for a certificate.
type Join struct {
	Token string        `json:"token"`
	Node  core.NodeName `json:"node"`
	CSR   string        `json:"csr"` // PEM
}

// String keeps the token out of whatever prints a Join.
func (j Join) String() string { return "join of " + string(j.Node) }

// GoString is String for %#v.
func (j Join) GoString() string { return j.String() }

// Renew is the body of POST /api/v1/renew: a node that has joined asks for another certificate. A request signed with
// the key it is known by is enough; one with a new key must come with the certificate it has.
type Renew struct {
	Node  core.NodeName `json:"node"`
	CSR   string        `json:"csr"`             // PEM
	Trust string        `json:"trust,omitempty"` // SHA-256 of the file of authorities the node has
}

// Joined answers Join and Renew.
type Joined struct {
	Cert    string   `json:"cert"` // PEM
	CA      string   `json:"ca"`   // PEM
	Servers []string `json:"servers"`
}

// ErrorBody is the body of every answer that is not 2xx.
type ErrorBody struct {
	Error     core.Error `json:"error"`
	RequestID string     `json:"request_id,omitempty"` // under which the server's log has what went wrong there
}
