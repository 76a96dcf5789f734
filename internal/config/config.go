package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Config is every setting. Default gives the usable zero point; the file and overrides are laid over it.
type Config struct {
	Cluster      string       `yaml:"cluster"`
	Dir          string       `yaml:"dir"` // everything the server keeps lies under it unless a setting says otherwise
	SlurmVersion string       `yaml:"slurm_version"`
	Admins       []string     `yaml:"admins"`       // unix names that are administrators of the cluster
	PrivateData  []string     `yaml:"private_data"` // what users see only their own of: Slurm's words for PrivateData
	Server       Server       `yaml:"server"`
	SSH          SSH          `yaml:"ssh"`
	Certificates Certificates `yaml:"certificates"`
	Partitions   []Partition  `yaml:"partitions"`
	Nodes        []Node       `yaml:"nodes"`
	// name[:count] of what belongs to no node, one of each where no count is said
	Licenses   []string   `yaml:"licenses"`
	Offers     []Offer    `yaml:"offers"`  // nodes that could be had
	Volumes    []Volume   `yaml:"volumes"` // classes of network volumes
	Topology   Topology   `yaml:"topology"`
	Jobs       Jobs       `yaml:"jobs"`
	Limits     Limits     `yaml:"limits"`
	Scheduling Scheduling `yaml:"scheduling"`
	Priority   Priority   `yaml:"priority"`
	Preemption Preemption `yaml:"preemption"`
	Timers     Timers     `yaml:"timers"`
	Step       Step       `yaml:"step"`
	GPU        GPU        `yaml:"gpu"`
	Health     Health     `yaml:"health"`
	Reboot     Reboot     `yaml:"reboot"`
	Power      Power      `yaml:"power"`
	Accounting Accounting `yaml:"accounting"`
	Retention  Retention  `yaml:"retention"`
	Tokens     Tokens     `yaml:"tokens"`
	Audit      Audit      `yaml:"audit"`
	Mail       Mail       `yaml:"mail"`
	Fleets     Fleets     `yaml:"fleets"`
	Dstack     Dstack     `yaml:"dstack"`

	Slurm SlurmConf `yaml:"-"` // what a slurm.conf says

	origins map[string]string // path -> where its value came from; what is not in it is a default
}

// Server says where the server is reached and what it stands on. Paths that are empty lie under Dir.
type Server struct {
	Store  string `yaml:"store"`  // "sqlite:PATH" or "postgres://…"; empty: sqlite under Dir
	Listen string `yaml:"listen"` // HTTP API with TLS; empty: unix socket only
	// listen on loopback without TLS, for a proxy that has its own; any user of the host can take the port while the
	// server is away
	PlainHTTP   bool     `yaml:"plain_http"`
	AgentListen string   `yaml:"agent_listen"` // agents, TLS with client certificates
	Socket      string   `yaml:"socket"`       // unix socket for local callers; empty: DIR/bireme.sock
	Names       []string `yaml:"names"`        // host names and addresses in the server's certificate, beside its own
	Advertise   []string `yaml:"advertise"`    // HOST:PORT told to agents; empty: AgentListen
	Inbox       int      `yaml:"inbox"`        // commands that may wait for the engine
	Nice        int      `yaml:"nice"`         // of the server's process where it may set that (root); 0: left as it is
	// users who are no administrators may have programs of theirs run on the server's host (strigger), as themselves
	UserTriggers bool   `yaml:"user_triggers"`
	SealKey      string `yaml:"seal_key"` // file of the key that seals the CA in the store; empty: DIR/seal.key
	ID           string `yaml:"id"`       // of this replica, for leadership; empty: host name and process
}

// Partition is a named view of nodes.
type Partition struct {
	Name           string    `yaml:"name"`
	Nodes          string    `yaml:"nodes"` // hostlist, or ALL
	Default        bool      `yaml:"default"`
	State          string    `yaml:"state"`
	MaxTime        TimeLimit `yaml:"max_time"`
	DefaultTime    TimeLimit `yaml:"default_time"`
	MaxNodes       int32     `yaml:"max_nodes"`
	MinNodes       int32     `yaml:"min_nodes"`
	DefMemPerCPU   Size      `yaml:"default_mem_per_cpu"`
	MaxMemPerNode  Size      `yaml:"max_mem_per_node"`  // a job may have on a node; more is refused
	MaxMemPerCPU   Size      `yaml:"max_mem_per_cpu"`   // a job that asks for more gets more CPUs
	MaxCPUsPerNode int32     `yaml:"max_cpus_per_node"` // that its jobs may use of a node, all together
	// NO, YES[:n] (those that ask share CPUs), FORCE[:n] (all do), EXCLUSIVE (whole nodes)
	OverSubscribe  string `yaml:"oversubscribe"`
	PriorityTier   int32  `yaml:"priority_tier"`
	PriorityFactor int32  `yaml:"priority_factor"` // weighed by priority.weights.partition
	// what its resources cost, "cpu=1,mem=0.25G,gres/gpu=8"; empty: a CPU costs 1
	BillingWeights string `yaml:"billing_weights"`
	ExclusiveUser  bool   `yaml:"exclusive_user"` // a node has the jobs of one user at a time
	// the nodes with the largest part of their CPUs free are used first
	LLN           bool     `yaml:"least_loaded"`
	QOS           string   `yaml:"qos"`            // whose limits all its jobs are under
	AllowQOS      []string `yaml:"allow_qos"`      // empty: all
	DenyQOS       []string `yaml:"deny_qos"`       //
	AllowProjects []string `yaml:"allow_projects"` // with those below them; empty: all
	DenyProjects  []string `yaml:"deny_projects"`  //
	AllowGroups   []string `yaml:"allow_groups"`   // unix groups; empty: all
	AdminOnly     bool     `yaml:"admin_only"`     // only administrators submit to it
	// what becomes of its jobs that are preempted; empty: as preemption.mode says
	PreemptMode string   `yaml:"preempt_mode"`
	Grace       Duration `yaml:"grace"`                // for them; 0: as preemption.grace says
	ReqResv     bool     `yaml:"requires_reservation"` // its jobs need an advance reservation
	AllocNodes  string   `yaml:"submit_hosts"`         // hostlist from which jobs may be submitted; empty: all
	Alternate   string   `yaml:"alternate"`            // takes its jobs while it is in state DRAIN or INACTIVE
	// none, socket, ldom, core, thread: binding of tasks, shown as Slurm's CpuBind
	CPUBind       string    `yaml:"cpu_bind"`
	DefMemPerNode Size      `yaml:"default_mem_per_node"` // in place of default_mem_per_cpu
	DefCPUsPerGPU int32     `yaml:"default_cpus_per_gpu"` // for jobs that ask for GPUs and for no CPUs
	DefMemPerGPU  Size      `yaml:"default_mem_per_gpu"`  // for jobs that ask for GPUs and for no memory
	NoRoot        bool      `yaml:"no_root"`              // root submits no jobs to it
	Hidden        bool      `yaml:"hidden"`               // sinfo and scontrol list it to administrators, and with --all
	OverTime      TimeLimit `yaml:"over_time"`            // that its jobs may exceed their time limit by
}

// Node describes nodes known before they join. What the agent finds wins over what is written here, except weight and
// features.
type Node struct {
	Names   string `yaml:"names"` // hostlist
	CPUs    int32  `yaml:"cpus"`
	Sockets int32  `yaml:"sockets"`
	Cores   int32  `yaml:"cores"`   // a socket
	Threads int32  `yaml:"threads"` // a core
	Memory  Size   `yaml:"memory"`
	TmpDisk Size   `yaml:"tmp_disk"`
	// name[:type]:count[@socket[/links]]: the socket they are at, and which of them are joined
	Gres     []string `yaml:"gres"`
	Features []string `yaml:"features"`
	Weight   int32    `yaml:"weight"`
	Addr     string   `yaml:"addr"`
	// in which it begins: cloud (it sleeps until somebody needs it), future, down, drain, fail
	State  string `yaml:"state"`
	Reason string `yaml:"reason"` // of the last three
}

// Scheduling says how resources are given out.
type Scheduling struct {
	// what may start behind jobs that cannot: easy, conservative, fcfs, easy-sjbf, sjf-easy
	Rule string `yaml:"rule"`
	// first jobs of each partition that wait and are promised a start; 0: one, with conservative all
	Reservations int32  `yaml:"reservations"`
	Select       string `yaml:"select"` // what is given whole: core (with its threads), cpu or socket
	SelectAs     string `yaml:"-"`      // how a slurm.conf put it, for scontrol
}

// Jobs holds defaults and limits of submissions.
type Jobs struct {
	// for jobs that ask for none, where the partition says nothing; 0: none is counted or limited
	DefMemPerCPU Size      `yaml:"default_mem_per_cpu"`
	DefaultTime  TimeLimit `yaml:"default_time"` // where the partition says nothing
	MaxTime      TimeLimit `yaml:"max_time"`
	MaxScript    Size      `yaml:"max_script"`
	MaxEnv       Size      `yaml:"max_env"`
	MaxArray     int64     `yaml:"max_array_size"`     // one more than the highest index, as Slurm's MaxArraySize
	MaxJobs      int64     `yaml:"max_jobs"`           // live jobs
	MaxTasks     int64     `yaml:"max_tasks_per_node"` // of a step, as Slurm's MaxTasksPerNode
	StrictSubmit bool      `yaml:"strict_submit"`      // refuse what can never start, in every front end
	MaxRequeues  int32     `yaml:"max_requeues"`
	// RequeueExit are exit codes, as in 3,10-12, with which batch jobs go back to the queue, as Slurm's key of that name.
	RequeueExit string `yaml:"requeue_exit"`
	// RequeueExitHold are those with which they are held there, in the state SPECIAL_EXIT.
	RequeueExitHold string `yaml:"requeue_exit_hold"`
	// RequeueDelay is how long a job that went back to the queue waits at least; a preempted one does not.
	RequeueDelay   Duration `yaml:"requeue_delay"`
	MinAge         Duration `yaml:"min_age"`                 // squeue shows a job that has ended for so long; 0: forever
	MayRequeue     bool     `yaml:"may_requeue"`             // where no option says it: jobs may go back to the queue
	AppendOutput   bool     `yaml:"append_output"`           // likewise: their output is appended to what is there
	KillInvalidDep bool     `yaml:"kill_invalid_dependency"` // likewise: jobs whose dependency can never be met are ended
	KillOnBadExit  bool     `yaml:"kill_on_bad_exit"`        // likewise: a task of srun that fails ends its step
	// WaitTime is, where no option says it, how long after the first task of srun has ended the others are ended; 0: they
	// are waited for.
	WaitTime Duration `yaml:"wait_time"`
	// ResvOverrun is how long what runs in an advance reservation may continue after its end, as Slurm's ResvOverRun.
	ResvOverrun TimeLimit `yaml:"reservation_overrun"`
	// SubmitPlugins decide on submissions before they are admitted, in this order: lua (SubmitScript),
	// require_timelimit, all_partitions; as Slurm's JobSubmitPlugins.
	SubmitPlugins []string `yaml:"submit_plugins"`
	SubmitScript  string   `yaml:"submit_script"` // the script of the plug-in lua; empty: /etc/bireme/job_submit.lua
}

// Priority says in which order jobs wait.
type Priority struct {
	Type       string          `yaml:"type"` // basic: first come, first served; multifactor: by weights
	Weights    PriorityWeights `yaml:"weights"`
	MaxAge     Duration        `yaml:"max_age"` // waiting counts no further
	FavorSmall bool            `yaml:"favor_small"`
	Flags      []string        `yaml:"flags"`           // as Slurm's PriorityFlags
	HalfLife   Duration        `yaml:"decay_half_life"` // of usage; 0: it is kept forever
	// when usage starts again: none, now, daily, weekly, monthly, quarterly, yearly
	Reset      string   `yaml:"usage_reset"`
	CalcPeriod Duration `yaml:"calc_period"` // between two calculations of all that waits
	Dampening  int64    `yaml:"dampening"`   // of classic fair-share
}

// PriorityWeights say how much each factor counts. Run counts with every type of priority: what a YAML run's priority
// of 100 adds.
type PriorityWeights struct {
	Age       int64  `yaml:"age"`
	FairShare int64  `yaml:"fairshare"`
	JobSize   int64  `yaml:"job_size"`
	Partition int64  `yaml:"partition"`
	QOS       int64  `yaml:"qos"`
	Assoc     int64  `yaml:"assoc"`
	TRES      string `yaml:"tres"` // "cpu=1000,gres/gpu=5000"
	Run       int64  `yaml:"run"`
}

// Timers are all lengths of time the control plane waits for something.
type Timers struct {
	Heartbeat    Duration `yaml:"heartbeat"`
	SilentAfter  Duration `yaml:"silent_after"`   // a node not heard for so long is unreachable
	Fence        Duration `yaml:"fence"`          // agents kill what runs after so much silence; 0: never
	FenceMargin  Duration `yaml:"fence_margin"`   // and the server requeues so much later
	KillWait     Duration `yaml:"kill_wait"`      // TERM to KILL
	MaxKillGrace Duration `yaml:"max_kill_grace"` // the most a job may ask for in kill_wait's place
	// an allocation without a step for so long after its start ends; 0: never
	InteractiveIdle Duration `yaml:"interactive_idle"`
	UnkillableAfter Duration `yaml:"unkillable_after"`
	// a job's first container waits so long for those on its other nodes, image and all
	ContainerWait Duration `yaml:"container_wait"`
	Lease         Duration `yaml:"lease"` // leadership without renewal
	Grace         Duration `yaml:"grace"` // for what is under way when the server stops
}

// Step holds what nodes do around and to a job.
type Step struct {
	Prolog        []string `yaml:"prolog"`
	Epilog        []string `yaml:"epilog"`
	TaskProlog    []string `yaml:"task_prolog"` // run as the user around each task
	TaskEpilog    []string `yaml:"task_epilog"`
	SrunProlog    string   `yaml:"srun_prolog"` // run by srun, where it is, around its step
	SrunEpilog    string   `yaml:"srun_epilog"`
	PrologTimeout Duration `yaml:"prolog_timeout"`
	ConstrainCPUs bool     `yaml:"constrain_cpus"`
	ConstrainMem  bool     `yaml:"constrain_mem"`
	// ConstrainDevices hides a node's other GPUs from a job, where the node's cgroups can. Drivers then number the
	// job's own from zero, and so does CUDA_VISIBLE_DEVICES, which otherwise names them by their number on the node.
	ConstrainDevices bool  `yaml:"constrain_devices"`
	CountedGPUs      bool  `yaml:"counted_gpus"` // GPUs are numbers only, without devices: no job is told which are its
	MaxPids          int64 `yaml:"max_pids"`     // processes and threads of a job on a node; 0: no limit
	// KeepLimits are the resource limits of the submitting shell (CORE, CPU, NOFILE, ...) that jobs do not get unless they
	// ask with --propagate; ALL: none is passed on.
	KeepLimits []string `yaml:"keep_limits"`
	TmpDir     string   `yaml:"tmpdir"`
	MPI        string   `yaml:"mpi"`      // pmi2 or pmix: served to the tasks of steps that do not say; none
	LogTail    Size     `yaml:"log_tail"` // batch output kept in the log store; negative: all
	// ImageCache is how much of a node's disk images may take that jobs ran; those not used for longest go first. 0: no
	// limit.
	ImageCache Size `yaml:"image_cache"`
	// Volumes are paths of nodes below which the containers of everybody's YAML runs may mount, as root inside;
	// Privileged lets all of them have every right on their node. Otherwise both are the administrators'.
	Volumes    []string `yaml:"volumes"`
	Privileged bool     `yaml:"privileged"`
	// ContainerCaps are the capabilities that root has in everybody's containers, without CAP_; all others are dropped.
	ContainerCaps []string `yaml:"container_caps"`
	// Publish is where ports of containers are found on a node: loopback; network (the address other nodes reach it
	// by); all.
	Publish string `yaml:"publish"`
	// NetRaw lets everybody's containers open raw sockets, by which root inside reads and forges what others on the
	// network send.
	NetRaw   bool     `yaml:"net_raw"`
	Prefetch []string `yaml:"prefetch"` // images that every node with a container engine fetches before anybody asks
}

// GPU says how nodes watch their GPUs and jobs.
type GPU struct {
	Sample       Duration `yaml:"sample"`        // how often nodes look at what jobs and GPUs do while jobs run; 0: never
	Health       string   `yaml:"health"`        // act: a GPU that has failed is given to nobody; show: it is only shown
	Return       bool     `yaml:"return"`        // and comes back by itself when what was wrong is gone
	DCGMExporter string   `yaml:"dcgm_exporter"` // address of dcgm-exporter on each node; empty: it is not asked
}

// Accounting says who may use the cluster.
type Accounting struct {
	// Enforce is what is enforced, in Slurm's words (AccountingStorageEnforce): associations (unknown users and projects
	// are refused instead of made), limits, qos, safe, all; each brings what it needs. Without it limits that somebody has
	// defined hold for everybody. `true` adds associations to that; `none` enforces nothing.
	Enforce        []string `yaml:"enforce"`
	DefaultProject string   `yaml:"default_project"`
	// Store is what of a job the history shows besides the rest: job_script, job_env.
	Store []string `yaml:"store"`
	// CompletedFile gets a line for each job that ends, in the form of Slurm's jobcomp/filetxt; empty: none is written.
	CompletedFile string `yaml:"completed_file"`

	NormalQOS bool `yaml:"normal_qos"` // there is always a QOS normal, which jobs have that name none, as in Slurm
}

// Mail says how people are told what became of their jobs.
type Mail struct {
	Program string `yaml:"program"` // run as PROGRAM -s SUBJECT ADDRESS; empty: nobody is told
	Domain  string `yaml:"domain"`  // added to addresses without one
	User    string `yaml:"user"`    // whom the program runs as where the server is root; never root
}

// Retention says how long things stay. Zero: forever.
type Retention struct {
	Events    Duration `yaml:"events"`
	MaxEvents int64    `yaml:"max_events"`
	Jobs      Duration `yaml:"jobs"`
	Keys      Duration `yaml:"keys"` // submit keys
	Logs      Duration `yaml:"logs"`
	Audit     Duration `yaml:"audit"`  // the audit log
	Tokens    Duration `yaml:"tokens"` // that have expired or were revoked
}

// Default returns the settings of a site that wrote none.
func Default() *Config {
	return &Config{
		Cluster:      "bireme",
		Dir:          "/var/lib/bireme",
		SlurmVersion: "22.05.8",
		Server:       Server{Listen: "127.0.0.1:7440", AgentListen: ":7441", Inbox: 16384, Nice: -10},
		SSH:          SSH{Connections: 4096, ConnectionsPerUser: 100},
		Certificates: defaultCertificates(),
		Partitions:   []Partition{{Name: "main", Nodes: "ALL", Default: true}},
		Topology:     Topology{MaxSwitchWait: defaultSwitchWait},
		Jobs: Jobs{
			MaxScript: Size(4 * core.MiB), MaxEnv: Size(8 * core.MiB),
			MaxArray: 4_000_001, MaxJobs: 5_000_000, MaxTasks: 512, MaxRequeues: 5,
			MinAge: Duration(5 * time.Minute), MayRequeue: true,
		},
		Limits:     defaultLimits(),
		Scheduling: Scheduling{Rule: "easy", Select: "core"},
		Priority: Priority{
			Type: "basic", MaxAge: Duration(7 * 24 * time.Hour), HalfLife: Duration(7 * 24 * time.Hour),
			CalcPeriod: Duration(5 * time.Minute), Dampening: 1, Reset: "none", Weights: PriorityWeights{Run: 100},
		},
		Preemption: Preemption{Type: "none", Mode: "off", Order: "least_lost"},
		Timers: Timers{
			// two heartbeats are missed, the third is not due
			Heartbeat: Duration(10 * time.Second), SilentAfter: Duration(25 * time.Second),

			FenceMargin: Duration(30 * time.Second), KillWait: Duration(30 * time.Second),
			MaxKillGrace: Duration(10 * time.Minute), InteractiveIdle: Duration(time.Minute),
			UnkillableAfter: Duration(60 * time.Second), ContainerWait: Duration(20 * time.Minute),
			Lease: Duration(2 * time.Second), Grace: Duration(5 * time.Second),
		},
		Step: Step{
			Publish:       "loopback",
			PrologTimeout: Duration(5 * time.Minute), ConstrainCPUs: true, ConstrainMem: true, ConstrainDevices: true,
			MPI:     "pmi2",
			LogTail: Size(core.MiB), MaxPids: defaultMaxPids, ContainerCaps: slices.Clone(core.ContainerCaps),
		},
		Health: defaultHealth(),
		Reboot: Reboot{Timeout: Duration(10 * time.Minute)},
		Power:  defaultPower(),
		Mail:   Mail{Program: "/bin/mail", User: "nobody"},
		Fleets: defaultFleets(),
		Dstack: defaultDstack(),
		GPU: GPU{
			Sample: Duration(10 * time.Second), Health: "act", Return: true,
			DCGMExporter: "http://127.0.0.1:9400/metrics",
		},
		Accounting: Accounting{DefaultProject: "default", Store: []string{"job_script", "job_env"}},
		Retention: Retention{
			Events: Duration(14 * 24 * time.Hour), MaxEvents: 10_000_000, Jobs: Duration(365 * 24 * time.Hour),
			Keys: Duration(7 * 24 * time.Hour), Logs: Duration(30 * 24 * time.Hour),
			Audit: Duration(365 * 24 * time.Hour), Tokens: Duration(30 * 24 * time.Hour),
		},
		Tokens: Tokens{Lifetime: Duration(90 * 24 * time.Hour)},
	}
}

// defaultMaxPids lets a job have threads for many cores and a build its processes, and leaves most of the kernel's
// 32,768 or more to others: a fork bomb ends in its own job.
const defaultMaxPids = 8192

// Derived places.

// Socket is the local socket's path.
func (c *Config) Socket() string { return c.under(c.Server.Socket, "bireme.sock") }

// SealKey is the path of the sealing key.
func (c *Config) SealKey() string { return c.under(c.Server.SealKey, "seal.key") }

// Store is the store's URL.
func (c *Config) Store() string {
	if c.Server.Store == "" {
		return "sqlite:" + filepath.Join(c.Dir, "db", "bireme.db")
	}
	return c.Server.Store
}

// StoreDir is the directory of an embedded store; empty: the store is a server of its own.
func (c *Config) StoreDir() string {
	path, ok := strings.CutPrefix(c.Store(), "sqlite:")
	if !ok {
		return ""
	}
	return filepath.Dir(strings.TrimPrefix(path, "//"))
}

// Logs is the directory of the log store.
func (c *Config) Logs() string { return filepath.Join(c.Dir, "logs") }

// Samples is the directory of what jobs used, moment by moment.
func (c *Config) Samples() string { return filepath.Join(c.Dir, "samples") }

// Uploads is the directory of files that clients send ahead of the runs that use them.
func (c *Config) Uploads() string { return filepath.Join(c.Dir, "uploads") }

// CAFile is where the CA's certificate is written for clients.
func (c *Config) CAFile() string { return filepath.Join(c.Dir, "ca.pem") }

func (c *Config) under(path, name string) string {
	if path == "" {
		return filepath.Join(c.Dir, name)
	}
	return path
}
