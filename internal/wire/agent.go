package wire

import (
	"time"

	"bireme.dev/bireme/internal/core"
)

// The agent's control stream: one TLS connection, upgraded from HTTP/1.1 (`Upgrade: bireme-agent`), then frames both
// ways. Launch, Kill, Signal, Suspend, SetLimit, Finish, AckExit, Stat, Started, Exited, JobDone, Usage and Reply are
// the keeper's own messages (see keeper.go): the agent adds what only the node knows and passes them on. AckExit from
// the server means that these ends are durable.

// AgentProtocol is the newest version of the stream that this program speaks, OldestAgentProtocol the oldest. Both ends
// speak the newest that both know, so servers and agents of neighboring releases work together, whichever is newer.
const (
	AgentProtocol       = 1
	OldestAgentProtocol = 1
)

// Agree returns the version of the stream to speak with an end that knows those from oldest to newest; oldest is 0 for
// one that says only which it speaks.
func Agree(oldest, newest int) (int, error) {
	return agree(oldest, newest, OldestAgentProtocol, AgentProtocol)
}

func agree(oldest, newest, ourOldest, ourNewest int) (int, error) {
	if oldest == 0 {
		oldest = newest
	}
	v := min(newest, ourNewest)
	if v < max(oldest, ourOldest) {
		return 0, core.Errorf(core.Invalid, "the other end speaks versions %d to %d of the agents' protocol, this one "+
			"%d to %d: update the older of the two", oldest, newest, ourOldest, ourNewest)
	}
	return v, nil
}

// Paths of the streams on the server.
const (
	PathAgent  = "/agent/v1/connect"
	PathStream = "/agent/v1/streams/" // + key: a step's end of an srun stream, on a connection of its own
	// PathService + token: a connection to the port of a service's replica. With ?error= there is none, and why.
	PathService = "/agent/v1/services/"
)

// Frame types of the control stream that are not the keeper's. The keeper's are below 64.
const (
	TypeNodeHello   Type = 64 + iota // agent → server, first
	TypeWelcome                      // server → agent, answer to Hello
	TypeHeartbeat                    // agent → server, every Welcome.Heartbeat; the server answers with TypePong
	TypePong                         // server → agent: it is alive (silence is counted from the last one)
	TypeLogChunk                     // agent → server: payload is the bytes
	TypeLogAck                       // server → agent: have up to Offset
	TypeOpenStream                   // server → agent: dial PathStream+Key and join it to a step's stdio
	TypeProblem                      // agent → server: something an operator should know; may drain
	TypeBye                          // server → agent: going away, reconnect; agent → server: stopping
	TypeDoing                        // agent → server: what is done about a launch that does not run yet
	TypeOpenService                  // server → agent: dial PathService+Token and join it to a replica's port
)

// NodeHello says who the agent is and what runs. Ended steps are those whose exit the server has not acknowledged.
type NodeHello struct {
	Protocol int           `json:"protocol"`         // the newest version of the stream it speaks
	Oldest   int           `json:"oldest,omitempty"` // and the oldest; 0: no other
	Version  string        `json:"version"`
	Node     core.NodeName `json:"node"`
	Hardware core.Hardware `json:"hardware"`
	Host     core.Host     `json:"host"`
	Features []string      `json:"features,omitempty"`
	Fleet    string        `json:"fleet,omitempty"`
	Running  []Key         `json:"running"`
	Ended    []Exited      `json:"ended"`
	Now      core.Time     `json:"now"`             // the node's clock, to measure skew; nothing else uses it
	Trust    string        `json:"trust,omitempty"` // SHA-256 of the file of authorities it has
}

// Welcome gives the agent its settings.
type Welcome struct {
	Protocol  int           `json:"protocol"` // the version that is spoken from here on
	Version   string        `json:"version"`
	Cluster   string        `json:"cluster"`
	Heartbeat time.Duration `json:"heartbeat"`
	Fence     time.Duration `json:"fence,omitempty"` // kill what runs after this much silence; 0: never
	Fences    []JobFence    `json:"fences,omitempty"`
	Servers   []string      `json:"servers"` // all replicas
	Kill      []Key         `json:"kill,omitempty"`
	// Logs tells how far the log store has each streamed log, so that the agent continues from there.
	Logs     []LogAck     `json:"logs,omitempty"`
	Settings NodeSettings `json:"settings"`
	Certs    CertRules    `json:"certs,omitzero"`
}

// CertRules are what a node's certificate is to be like. An agent whose own is not asks for another one.
type CertRules struct {
	Trust string        `json:"trust,omitempty"` // SHA-256 of the file of authorities to trust
	Life  time.Duration `json:"life,omitempty"`
}

// JobFence is a job's own fence.
type JobFence struct {
	Job   core.JobID    `json:"job"`
	Fence time.Duration `json:"fence"`
}

// NodeSettings are the cluster's settings that nodes act on.
type NodeSettings struct {
	Prolog           []string      `json:"prolog,omitempty"` // programs run as root before a job's first step on the node
	Epilog           []string      `json:"epilog,omitempty"`
	TaskProlog       []string      `json:"task_prolog,omitempty"` // run as the user before each task
	TaskEpilog       []string      `json:"task_epilog,omitempty"`
	PrologTimeout    time.Duration `json:"prolog_timeout,omitempty"`
	KillWait         time.Duration `json:"kill_wait"` // TERM to KILL
	UnkillableAfter  time.Duration `json:"unkillable_after"`
	ConstrainCPUs    bool          `json:"constrain_cpus"`
	ConstrainMem     bool          `json:"constrain_mem"`
	ConstrainDevices bool          `json:"constrain_devices"`
	MaxPids          int64         `json:"max_pids,omitempty"`
	Sample           time.Duration `json:"sample,omitempty"`        // how often jobs are looked at; 0: never
	DCGMExporter     string        `json:"dcgm_exporter,omitempty"` // where dcgm-exporter is asked; empty: nowhere
	TmpDir           string        `json:"tmpdir,omitempty"`        // base of per-job temp dirs; empty: the agent's own
	// bytes of batch output kept in the log store; negative: all
	LogTail int64 `json:"log_tail"`
	// bytes of a streamed log that a node keeps; 0: no limit
	LogPerJob int64 `json:"log_per_job,omitempty"`
	// bytes of streamed logs a second, all together; 0: no limit
	LogRate      int64    `json:"log_rate,omitempty"`
	LogRateAlone int64    `json:"log_rate_alone,omitempty"` // of one while no other writes much
	MinFreeDisk  int64    `json:"min_free_disk,omitempty"`  // bytes of a node's disk that logs leave free
	Connections  int64    `json:"connections,omitempty"`    // of one user to the node's socket; 0: no limit
	ImageCache   int64    `json:"image_cache,omitempty"`    // bytes of images that jobs ran; 0: no limit
	Prefetch     []string `json:"prefetch,omitempty"`       // images to fetch before anybody asks
	Volumes      []string `json:"volumes,omitempty"`        // paths below which anybody's container may mount
	// of root in anybody's container; null: core.ContainerCaps
	ContainerCaps []string `json:"container_caps"`
	// where ports of containers are found: loopback (or empty), network, all
	Publish string `json:"publish,omitempty"`
	NetRaw  bool   `json:"net_raw,omitempty"` // anybody's container may open raw sockets

	Health        HealthSettings `json:"health"`
	RebootProgram string         `json:"reboot_program,omitempty"` // restarts the machine; empty: it cannot be
}

// Heartbeat carries what changes by the second.
type Heartbeat struct {
	Load    float64    `json:"load"`
	FreeMem core.Bytes `json:"free_mem"`
	Now     core.Time  `json:"now"`
}

// Pong answers a Heartbeat.
type Pong struct {
	Seq int64 `json:"seq"`
}

// LogChunk is a piece of a step's streamed log, or (Tail) the kept end of a batch output file.
type LogChunk struct {
	Key    Key   `json:"key"`
	Offset int64 `json:"offset"`
	Tail   bool  `json:"tail,omitempty"`
	End    bool  `json:"end,omitempty"` // nothing follows
	// Dropping is the limit because of which the node drops output of the step at the moment.
	Dropping string `json:"dropping,omitempty"`
}

// LogAck says that the log store has everything below Offset.
type LogAck struct {
	Key    Key   `json:"key"`
	Offset int64 `json:"offset"`
}

// OpenStream asks the agent to dial the server (PathStream+Token) and carry the step's stdio there.
type OpenStream struct {
	Key    Key     `json:"key"`
	Token  string  `json:"token"`
	Direct *Direct `json:"direct,omitempty"` // tried first
}

// OpenService asks the agent for a connection to a port of a replica, which is the launch of a key. Every connection is
// one of its own, apart from the control session; the agent dials.
type OpenService struct {
	Key   Key    `json:"key"`
	Port  int32  `json:"port"`
	Token string `json:"token"` // good once
}

// Doing tells what is done about a launch: an image is fetched, so much of it is there. Empty: nothing any more, it
// runs.
type Doing struct {
	Key  Key    `json:"key"`
	Text string `json:"text,omitempty"`
	Pull *Pull  `json:"pull,omitempty"` // of the image; nil: that is not what is done
	// Ports are told once they are known.
	Ports []core.Published `json:"ports,omitempty"`
}

// Pull is how far the image of a launch is, in bytes. Without a total nothing is known yet.
type Pull struct {
	Downloaded int64 `json:"downloaded"`
	Extracted  int64 `json:"extracted"`
	Total      int64 `json:"total"` // of the layers known so far
	Final      bool  `json:"final"` // all layers are known
}

// Problem is something an operator should know about a node.
type Problem struct {
	Drain  bool   `json:"drain,omitempty"`
	Reboot bool   `json:"reboot,omitempty"` // it could not be restarted
	Reason string `json:"reason"`
}

// Frames on an srun stream (both the step's and srun's end; the server only joins the two).
const (
	TypeIO Type = 128 + iota // payload is the bytes; an empty payload is end of file
	TypeTaskExit
	TypeStepExit // the last frame of a node
	TypeInput    // srun → step
	TypeStepSignal
	TypeWindow // srun → step: terminal size
	TypeTaskStart
	TypeStepMeet // both ways; payload as of TypeMeet
	TypeDirectHello
	TypeDirectNews // srun → server
	TypeWatched    // server → srun: whether others watch the step; srun then sends the server a copy of what it hears
	TypeLayout     // srun → those who watch
	TypeInputAt    // step → srun
)

// IOHeader says whose bytes they are.
type IOHeader struct {
	Rank int32 `json:"rank"` // global; -1 on input: all
	FD   int8  `json:"fd"`   // 1 or 2; 0 on input
	Seq  int64 `json:"seq,omitempty"`
}

// InputAt tells srun which of its input frames, that bear numbers from 1 on, a node's keeper has. A node whose stream
// was opened again says so, and gets what it does not have.
type InputAt struct {
	Node  core.NodeName `json:"node"`
	Seq   int64         `json:"seq"`
	Again bool          `json:"again,omitempty"`
}

// TaskExit is the end of one task.
type TaskExit struct {
	Rank    int32         `json:"rank"`
	Node    core.NodeName `json:"node"`
	Exit    core.Exit     `json:"exit"`
	Cause   string        `json:"cause,omitempty"`
	Message string        `json:"message,omitempty"`
}

// StepSignal asks for a signal to all tasks.
type StepSignal struct {
	Signal int32 `json:"signal"`
}

// Watched tells srun how many others watch its step.
type Watched struct {
	Watchers int `json:"watchers"`
}

// StepLayout tells who watches a step which tasks are on which node.
type StepLayout struct {
	Nodes []core.NodeName `json:"nodes"`
	Ranks [][]int32       `json:"ranks"` // of the tasks on each
}

// Window is a terminal's size.
type Window struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// StepMeet is a Meet between a node and srun, who knows them all.
type StepMeet struct {
	Node core.NodeName `json:"node,omitempty"` // whose; empty from srun: for all
	N    int           `json:"n"`
	Err  string        `json:"err,omitempty"`
	// As of Meet.
	Op    string `json:"op,omitempty"`
	Nodes int    `json:"nodes,omitempty"`
}
