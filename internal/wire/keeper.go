package wire

import (
	"strconv"
	"time"

	"bireme.dev/bireme/internal/core"
)

// KeeperVersion is the version of the agent ↔ keeper contract. A keeper outlives its agent's upgrades, so an agent must
// speak with a keeper one version older; new fields are added, never renamed.
const KeeperVersion = 1

// Frames from the agent to the keeper.
const (
	TypeHello      Type = 1 + iota // AgentHello; the keeper answers with KeeperHello
	TypeLaunch                     // Launch; payload: script, then environment as NUL-terminated KEY=VALUE
	TypeSignal                     // Signal, answered with Reply
	TypeKill                       // Kill, answered with Reply
	TypeSetLimit                   // SetLimit, answered with Reply
	TypeSuspend                    // Suspend, answered with Reply
	TypeFinish                     // Finish, answered with JobDone when the job is gone from the node
	TypeAckExit                    // AckExit
	TypeList                       // List, answered with KeeperHello
	TypeStat                       // Stat, answered with Usage
	TypeReadLog                    // ReadLog, answered with Log
	TypeStreamDrop                 // StreamDrop: nobody wants a step's streams any more
	TypeResize                     // Resize of a step's terminal
	TypeShutdown                   // no header; the keeper kills everything, cleans and exits
	TypeUpgrade                    // Upgrade: the keeper replaces its own program, children stay
)

// Frames from the keeper to the agent.
const (
	TypeKeeperHello Type = 32 + iota // KeeperHello
	TypeStarted                      // Started
	TypeTaskExited                   // TaskExited
	TypeExited                       // Exited; payload: the end of the output, when it is short
	TypeJobDone                      // JobDone
	TypeReply                        // Reply
	TypeUsage                        // Usage
	TypeLog                          // Log; payload: the bytes
)

// Frames in both directions.
const (
	TypeData    Type = 48 + iota // Data; payload: bytes of a stream
	TypeDataAck                  // DataAck
	TypeMeet                     // Meet; payload: from the keeper what its tasks put, to it what all did, as a JSON object
)

// Key names a launch: the same key is never run twice.
type Key struct {
	Job     core.JobID    `json:"job"`
	Attempt int32         `json:"attempt"`
	Step    string        `json:"step"` // "batch", "0", "1", …
	Node    core.NodeName `json:"node,omitempty"`
}

// BatchStep is the step that runs a job's script.
const BatchStep = "batch"

// ExternStep has the job's container on a node where its script does not run.
const ExternStep = "extern"

// String is the form used in logs and file names: "12.0.batch".
func (k Key) String() string {
	b := make([]byte, 0, 40)
	b = strconv.AppendInt(b, int64(k.Job), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(k.Attempt), 10)
	b = append(b, '.')
	return string(append(b, k.Step...))
}

// Containment says how surely the keeper holds a job's processes together.
type Containment string

// Levels of containment, the surest first.
const (
	CgroupV2 Containment = "cgroup-v2"
	CgroupV1 Containment = "cgroup-v1"
	PIDNS    Containment = "pidns"
	Weak     Containment = "weak" // child subreaper and a mark in the environment: a hostile job can escape
)

// Cause says why a step ended otherwise than by its own exit.
type Cause string

// Causes of an end.
const (
	CauseNone         Cause = ""
	CauseOOM          Cause = "oom"
	CauseTimeout      Cause = "timeout"
	CauseCancelled    Cause = "cancelled"     // Kill; its Reason is in Message
	CauseLaunchFailed Cause = "launch_failed" // not run at all: output file, cgroup, user… Signal is 53, as Slurm's 0:53
	CauseExecFailed   Cause = "exec_failed"   // the program could not be executed: ExitCode is the errno
	CausePortTaken    Cause = "port_taken"    // not run either: somebody has the port of its container's Gang
	CauseEnvFailed    Cause = "env_failed"    // the login environment could not be had
	CausePrologFailed Cause = "prolog_failed"
	CauseUnkillable   Cause = "unkillable"  // processes remain: the node must be drained
	CauseKeeperLost   Cause = "keeper_lost" // the keeper died; what was left has been killed by its successor
)

// LaunchFailedSignal is the signal that stands for "could not be launched", as Slurm's exit code 0:53.
const LaunchFailedSignal = 53

// AgentHello opens a connection.
type AgentHello struct {
	Version int `json:"version"`
}

// KeeperHello tells who the keeper is and everything it knows, so that the agent can reconcile.
type KeeperHello struct {
	Ref         uint64      `json:"ref,omitempty"` // of the List it answers
	Version     int         `json:"version"`
	Program     string      `json:"program,omitempty"` // version of the keeper's binary
	PID         int         `json:"pid"`
	BootID      string      `json:"boot_id"`
	Instance    string      `json:"instance"` // new with each keeper process, the same after Upgrade
	Containment Containment `json:"containment"`
	// Enforces lists what cgroups of this node can hold: "memory", "cpuset", "pids", "devices", "freeze".
	Enforces []string  `json:"enforces,omitempty"`
	Running  []Running `json:"running,omitempty"`
	Ended    []Exited  `json:"ended,omitempty"` // not yet acknowledged
	Jobs     []JobRef  `json:"jobs,omitempty"`  // jobs that still hold a tmpdir or cgroup here; Finish ends them
	Flows    []Flow    `json:"flows,omitempty"` // steps that an srun waits for; what it may not have of them follows
}

// Flow is a step that an srun waits for: it learns of its tasks, and has their streams unless those are files.
type Flow struct {
	Key     Key          `json:"key"`
	Ranks   []int32      `json:"ranks,omitempty"`
	Readers int          `json:"readers"`        // tasks that have an input: all, or the one that has the terminal
	Have    []int64      `json:"have,omitempty"` // how much input each of them was sent
	Seq     int64        `json:"seq,omitempty"`  // srun's last frame in that
	Exits   []TaskExited `json:"exits,omitempty"`
}

// JobRef names an attempt of a job.
type JobRef struct {
	Job     core.JobID `json:"job"`
	Attempt int32      `json:"attempt"`
}

// Running is a step under way.
type Running struct {
	Key       Key           `json:"key"`
	PID       int           `json:"pid,omitempty"` // zero while it is being launched
	Elapsed   time.Duration `json:"elapsed,omitempty"`
	Suspended bool          `json:"suspended,omitempty"`
}

// Signal sends a signal to the processes of a job.
type Signal struct {
	Ref     uint64     `json:"ref,omitempty"`
	Job     core.JobID `json:"job"`
	Attempt int32      `json:"attempt"`
	Step    string     `json:"step,omitempty"` // empty: every step
	Number  int        `json:"number"`
	// As scancel: by default every step gets it but the batch step; Batch: the batch script's shell alone;
	// Full: the batch step too, children included.
	Batch bool `json:"batch,omitempty"`
	Full  bool `json:"full,omitempty"`
}

// Kill ends a job or a step: SIGCONT and SIGTERM, after Grace SIGKILL.
type Kill struct {
	Ref     uint64        `json:"ref,omitempty"`
	Job     core.JobID    `json:"job"`
	Attempt int32         `json:"attempt"`
	Step    string        `json:"step,omitempty"`  // empty: every step
	Grace   time.Duration `json:"grace,omitempty"` // zero: the step's own; negative: at once
	Cause   Cause         `json:"cause,omitempty"` // empty: canceled
	Reason  string        `json:"reason,omitempty"`
	// Notice is what is written after "CANCELLED AT <time>" into the step's error output: "", "DUE TO PREEMPTION"…
	Notice string `json:"notice,omitempty"`
	// Warn has steps get their WarnSignal first, if they have not had it: TERM follows when little of the grace is left.
	Warn bool `json:"warn,omitempty"`
}

// ReasonForsaken is the reason of a Kill for a step whose srun is gone. One whose tasks then end well has ended well:
// srun was ended because the step was over.
const ReasonForsaken = "its srun is gone"

// SetLimit changes the time limit of all steps of a job, counted from each step's start.
type SetLimit struct {
	Ref     uint64        `json:"ref,omitempty"`
	Job     core.JobID    `json:"job"`
	Attempt int32         `json:"attempt"`
	Limit   time.Duration `json:"limit"` // zero: none
	// Steps are the limits of steps that have one of their own, by their names.
	Steps map[string]time.Duration `json:"steps,omitempty"`
}

// Suspend stops or continues all processes of a job. Suspended time does not count against its limit.
type Suspend struct {
	Ref     uint64     `json:"ref,omitempty"`
	Job     core.JobID `json:"job"`
	Attempt int32      `json:"attempt"`
	Resume  bool       `json:"resume,omitempty"`
}

// Finish ends a job on this node: kill all steps, epilog, remove tmpdir and cgroup. Finishing a job that is not there
// is answered at once.
type Finish struct {
	Ref     uint64     `json:"ref,omitempty"`
	Job     core.JobID `json:"job"`
	Attempt int32      `json:"attempt"`
	// Left says that the job goes on without the node, and that other jobs may have what it had here: they begin when
	// nothing of it is left.
	Left bool `json:"left,omitempty"`
}

// AckExit reports that these ends are recorded elsewhere; the keeper forgets them.
type AckExit struct {
	Keys []Key `json:"keys"`
}

// List asks for a KeeperHello.
type List struct {
	Ref uint64 `json:"ref,omitempty"`
}

// Stat asks for the present usage of a job, or of one of its steps.
type Stat struct {
	Ref     uint64     `json:"ref,omitempty"`
	Job     core.JobID `json:"job"`
	Attempt int32      `json:"attempt"`
	Step    string     `json:"step,omitempty"`
	Tasks   bool       `json:"tasks,omitempty"` // what each task uses, too: it costs a look at each process
}

// ReadLog asks for output of a step from an offset. Max zero means 256 KiB. With Wait the answer is held back until
// there is something, the step ended, or the wait is over.
type ReadLog struct {
	Ref    uint64        `json:"ref,omitempty"`
	Key    Key           `json:"key"`
	Offset int64         `json:"offset"`
	Max    int           `json:"max,omitempty"`
	Wait   time.Duration `json:"wait,omitempty"`
	Stderr bool          `json:"stderr,omitempty"` // the error file, where it is not the same
	// Free is the offset below which nobody needs the output any more. An answer may begin later than it was asked for.
	Free int64 `json:"free,omitempty"`
}

// LogFull is an offset beyond all output: nobody wants more of a log.
const LogFull = int64(1) << 62

// StreamDrop lets a step with stdio over the connection run on, or end, without a reader.
type StreamDrop struct {
	Key Key `json:"key"`
}

// Resize sets the size of a step's terminal.
type Resize struct {
	Key  Key    `json:"key"`
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Upgrade replaces the keeper's program. Empty Path: the file it was started from.
type Upgrade struct {
	Ref  uint64 `json:"ref,omitempty"`
	Path string `json:"path,omitempty"`
}

// Started reports that all tasks of a step have been executed.
type Started struct {
	Key Key `json:"key"`
	PID int `json:"pid"` // of the first task
	// Took is the time from receiving the launch to this moment; the server stamps times, nodes tell durations.
	Took time.Duration `json:"took"`
	PIDs []int         `json:"pids,omitempty"` // of all tasks, where there are several
}

// TaskExited tells the end of one task of a step with several tasks or with streams.
type TaskExited struct {
	Key      Key `json:"key"`
	Task     int `json:"task"` // index in Launch.Tasks
	ExitCode int `json:"exit_code"`
	Signal   int `json:"signal,omitempty"`
}

// Exited tells the end of a step. It is repeated in KeeperHello until it is acknowledged.
type Exited struct {
	Key      Key    `json:"key"`
	ExitCode int    `json:"exit_code"`
	Signal   int    `json:"signal,omitempty"`
	CoreDump bool   `json:"core_dump,omitempty"`
	Cause    Cause  `json:"cause,omitempty"`
	Message  string `json:"message,omitempty"` // names path and cause: "/x/y.out: permission denied"
	Started  bool   `json:"started,omitempty"` // the program was executed
	// Elapsed counts from the start of the program (from the launch, if it was not started), Suspended within it.
	Elapsed   time.Duration `json:"elapsed"`
	Suspended time.Duration `json:"suspended,omitempty"`
	At        core.Time     `json:"at,omitempty"` // by the node's clock: it may be told long after
	Usage     Used          `json:"usage"`
	// LogSize is how many bytes the output has. When the part worth keeping is short it is this frame's payload,
	// otherwise it is to be had with ReadLog until the exit is acknowledged.
	LogSize int64 `json:"log_size,omitempty"`
	LogFrom int64 `json:"log_from,omitempty"` // where the part worth keeping begins
	// nothing of the job is left on this node: epilog run, tmpdir and cgroup gone
	JobDone bool `json:"job_done,omitempty"`
	// EpilogFailed drains the node, as Slurm does.
	EpilogFailed string `json:"epilog_failed,omitempty"`
	Image        string `json:"image,omitempty"` // digest of what its container was made of
	// Ranks are the ends of a run's programs on several nodes, as far as they ended by themselves.
	Ranks []core.RankExit `json:"ranks,omitempty"`
}

// Used is what a step consumed, children included.
type Used struct {
	UserCPU int64 `json:"user_us"` // microseconds
	SysCPU  int64 `json:"sys_us"`
	MaxRSS  int64 `json:"max_rss"` // bytes, most at one moment
}

// JobDone reports that nothing of a job is left on the node.
type JobDone struct {
	Ref          uint64     `json:"ref,omitempty"`
	Job          core.JobID `json:"job"`
	Attempt      int32      `json:"attempt"`
	EpilogFailed string     `json:"epilog_failed,omitempty"`
	Unkillable   string     `json:"unkillable,omitempty"`
	// Mounted: a volume of it cannot be unmounted yet. The job is not done, and another JobDone follows when it is.
	Mounted bool `json:"mounted,omitempty"`
}

// Reply answers a request that has no answer of its own.
type Reply struct {
	Ref   uint64 `json:"ref"`
	Code  string `json:"code,omitempty"` // a core.Code; empty: done
	Error string `json:"error,omitempty"`
}

// Usage answers Stat.
type Usage struct {
	Ref   uint64 `json:"ref,omitempty"`
	Found bool   `json:"found"`
	Used  Used   `json:"used"`
	RSS   int64  `json:"rss"` // bytes now
	PIDs  []int  `json:"pids,omitempty"`
	// Tasks is what was asked for with Stat.Tasks. A keeper of before that was there leaves it out.
	Tasks []TaskUse `json:"tasks,omitempty"`
}

// TaskUse is what the processes of a task that live use; its processes that have ended count for CPU only.
type TaskUse struct {
	Task   int   `json:"task"`   // its rank in the step
	CPU    int64 `json:"cpu_us"` // microseconds
	RSS    int64 `json:"rss"`    // bytes now
	MaxRSS int64 `json:"max_rss"`
	VM     int64 `json:"vm"` // bytes of address space now
	MaxVM  int64 `json:"max_vm"`
	Pages  int64 `json:"pages"` // page faults that needed the disk
	Read   int64 `json:"read"`  // bytes, from files, pipes and sockets
	Write  int64 `json:"write"`
}

// Log answers ReadLog. The bytes are the payload.
type Log struct {
	Ref    uint64 `json:"ref,omitempty"`
	Key    Key    `json:"key"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"` // of the whole output now
	Ended  bool   `json:"ended,omitempty"`
	Error  string `json:"error,omitempty"`
	// Dropping is the limit because of which the keeper drops output; empty: it keeps it.
	Dropping string `json:"dropping,omitempty"`
}

// Data carries bytes of a stream. Offset counts from the stream's beginning: after a reconnect the sender repeats
// what was not acknowledged and the receiver drops what it has.
type Data struct {
	Key    Key   `json:"key"`
	Task   int   `json:"task"` // for FD 0, -1 means every task
	FD     int   `json:"fd"`
	Offset int64 `json:"offset"`
	EOF    bool  `json:"eof,omitempty"`
	Seq    int64 `json:"seq,omitempty"` // for FD 0, the number of srun's frame it ends
}

// NoTask is the Task of a Data that only tells a Seq.
const NoTask = 1 << 30

// DataAck tells up to which offset a stream has been consumed, and so how much more may be sent: StreamWindow beyond
// it.
type DataAck struct {
	Key    Key   `json:"key"`
	Task   int   `json:"task"`
	FD     int   `json:"fd"`
	Offset int64 `json:"offset"`
}

// StreamWindow is how many unacknowledged bytes a stream may have.
const StreamWindow = 512 << 10

// Meet is the fence of a step's tasks: each node tells what its tasks put, and gets what those of all nodes did. It may
// come twice.
type Meet struct {
	Key Key    `json:"key"`
	N   int    `json:"n"`             // how many fences were before it
	Err string `json:"err,omitempty"` // to the keeper: there will be none
	// Of PMIx, whose payloads srun does not read: what the message is about, and how many nodes send one.
	Op    string `json:"op,omitempty"`
	Nodes int    `json:"nodes,omitempty"`
}
