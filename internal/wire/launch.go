package wire

import (
	"bytes"
	"fmt"
	"time"
	"unsafe"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/filename"
)

// Launch is everything a keeper needs to run a step. In a frame it is the header; Script, Files and Env follow as
// payload.
type Launch struct {
	Key      Key      `json:"key"`
	Identity Identity `json:"identity"`
	Program  Program  `json:"program"`
	Stdio    Stdio    `json:"stdio"`
	Time     Timing   `json:"time"`
	Limits   Limits   `json:"limits"`
	Hooks    Hooks    `json:"hooks"`
	// TmpBase is where the job's private temporary directory is made; empty: none.
	TmpBase string `json:"tmp_base,omitempty"`
	// EndsJob makes the end of this step the end of the job on this node: the keeper cleans up by itself and says so in
	// Exited.JobDone, which spares a round trip for every plain batch job.
	EndsJob bool `json:"ends_job,omitempty"`
	// Fence is after how much silence of the server the agent kills the job; zero: the cluster's setting. Keepers
	// ignore it.
	Fence time.Duration `json:"fence,omitempty"`
	// Gres is what the job has of generic resources on the node; the agent makes device rules of it. Keepers ignore it.
	Gres []core.GresAlloc `json:"gres,omitempty"`
	// Container is nil for processes of the node itself.
	Container *Container `json:"container,omitempty"`
	// Volumes are mounted before the job's prolog and unmounted after its epilog. Each launch of a job carries the same.
	Volumes []Volume `json:"volumes,omitempty"`
	// ScriptLen is how much of the payload is the script.
	ScriptLen int `json:"script_len,omitempty"`
	FilesLen  int `json:"files_len,omitempty"` // and how much after it the files

	Script []byte `json:"-"`
	Files  []byte `json:"-"` // a parcel that is unpacked before a container's program begins
	Env    []byte `json:"-"` // KEY=VALUE, each ended by NUL
}

// String keeps script, files, environment and arguments out of whatever prints a Launch.
func (l *Launch) String() string { return fmt.Sprintf("launch of %v", l.Key) }

// GoString is String for %#v.
func (l *Launch) GoString() string { return l.String() }

// Identity is whom the step runs as.
type Identity struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"` // supplementary; empty: looked up on the node by user name
	Name   string   `json:"name,omitempty"`
	Home   string   `json:"home,omitempty"`
	Shell  string   `json:"shell,omitempty"`
}

// Program is what is run.
type Program struct {
	// Argv is run as it is; with a script it is the script's arguments. A name without a slash is searched in the
	// PATH of the step's environment.
	Argv    []string `json:"argv,omitempty"`
	WorkDir string   `json:"work_dir,omitempty"`
	Umask   *uint32  `json:"umask,omitempty"` // nil: 022
	// LoginEnv loads the user's login environment first; Env is laid over it.
	LoginEnv        bool          `json:"login_env,omitempty"`
	LoginEnvTimeout time.Duration `json:"login_env_timeout,omitempty"` // zero: 2 minutes
	// Tasks lists what each process of the step gets on top of Env; empty: one process.
	Tasks []Task `json:"tasks,omitempty"`
	Nice  int    `json:"nice,omitempty"`
	// KillOnBadExit ends the step when one task fails.
	KillOnBadExit bool  `json:"kill_on_bad_exit,omitempty"`
	PMI           *PMI  `json:"pmi,omitempty"` // nil: none is served
	PMIx          *PMIx `json:"pmix,omitempty"`
	// Programs run as the user before and after each task. What the first write may set the task's variables.
	TaskProlog []string `json:"task_prolog,omitempty"`
	TaskEpilog []string `json:"task_epilog,omitempty"`
}

// PMI is what the tasks of an MPI program are told of their step.
type PMI struct {
	Job    string  `json:"job"`
	Size   int     `json:"size"`             // tasks on all nodes
	Counts []int32 `json:"counts,omitempty"` // on each node, if each has consecutive ranks
}

// Task is one process of a step.
type Task struct {
	Rank int      `json:"rank"`
	Env  []string `json:"env,omitempty"`
	Argv []string `json:"argv,omitempty"` // instead of Program.Argv (multi-prog)
	CPUs string   `json:"cpus,omitempty"` // affinity of this task, as a list "0-3,8"
	// Note is written to its error output before it begins; %d in it is its process id.
	Note string `json:"note,omitempty"`
}

// StdioMode says where a step's standard streams go.
type StdioMode string

// Modes of standard streams.
const (
	StdioFiles  StdioMode = "files"  // the user's files, opened as the user
	StdioLog    StdioMode = "log"    // one log in the keeper's directory, read with ReadLog
	StdioStream StdioMode = "stream" // over the agent's connection, in Data frames
)

// Stdio describes a step's standard streams. Paths are patterns with % symbols; what is relative is so to the working
// directory. An empty Stdin is /dev/null, an empty Stderr the same file as Stdout, an empty Stdout /dev/null.
type Stdio struct {
	Mode   StdioMode      `json:"mode,omitempty"` // empty: files
	Stdin  string         `json:"stdin,omitempty"`
	Stdout string         `json:"stdout,omitempty"`
	Stderr string         `json:"stderr,omitempty"`
	Append bool           `json:"append,omitempty"`
	PTY    bool           `json:"pty,omitempty"`
	Rows   uint16         `json:"rows,omitempty"`
	Cols   uint16         `json:"cols,omitempty"`
	Names  filename.Names `json:"names"`
	// KeepTail is how much of the end of the output is handed over at the exit; zero: 1 MiB, negative: all.
	KeepTail int64     `json:"keep_tail,omitempty"`
	Bounds   LogBounds `json:"bounds,omitzero"` // of output that the keeper itself keeps
	// NoticePrefix begins the lines the keeper itself writes to the error output ; empty: none.
	NoticePrefix string `json:"notice_prefix,omitempty"`
}

// LogBounds say how much of output a keeper takes into files of its own. Zero: no bound.
type LogBounds struct {
	Most    int64 `json:"most,omitempty"`     // bytes of one step
	MinFree int64 `json:"min_free,omitempty"` // bytes of the disk that are left to others
	Rate    int64 `json:"rate,omitempty"`     // bytes a second of all steps together
	Alone   int64 `json:"alone,omitempty"`    // of one, while no other prints much; not above Rate: it has that
}

// Timing holds a step's limits in time. All run on the keeper's monotonic clock.
type Timing struct {
	Limit time.Duration `json:"limit,omitempty"` // zero: none
	// WarnSignal is sent when at most WarnBefore is left: to all steps but the batch shell, with WarnBatch to that
	// alone, with WarnAll to every process.
	WarnSignal int           `json:"warn_signal,omitempty"`
	WarnBefore time.Duration `json:"warn_before,omitempty"`
	WarnBatch  bool          `json:"warn_batch,omitempty"`
	WarnAll    bool          `json:"warn_all,omitempty"`
	KillGrace  time.Duration `json:"kill_grace,omitempty"` // between TERM and KILL; zero: 30 s, negative: none
	Unkillable time.Duration `json:"unkillable,omitempty"` // after KILL, until it counts as unkillable; zero: 60 s
	// WithJob says that the step is killed without grace when its job has ended.
	WithJob bool `json:"with_job,omitempty"`
}

// Limits holds what a step may use. Those of cgroups are the job's: each step of a job carries the same.
type Limits struct {
	CPUs   string `json:"cpus,omitempty"`   // cpuset list; empty: none
	Memory int64  `json:"memory,omitempty"` // bytes; zero: none
	Swap   int64  `json:"swap,omitempty"`   // bytes beyond Memory; negative: no limit
	// StepMemory is what this step may use of the job's Memory, in bytes; zero: all of it.
	StepMemory int64 `json:"step_memory,omitempty"`
	PIDs       int64 `json:"pids,omitempty"` // zero: none
	// "c 195:0 rwm"; nil: no restriction, empty: none. The usual pseudo-devices are added
	Devices []string `json:"devices"`
	// DenyDevices are device files whose devices the job may not use, by any name; everything else stays usable.
	DenyDevices []string `json:"deny_devices,omitempty"`
	// RLimits are soft:hard pairs by name ("nofile"); -1 is infinity. What equals the keeper's own costs nothing.
	RLimits     map[string]RLimit `json:"rlimits,omitempty"`
	OOMScoreAdj int               `json:"oom_score_adj,omitempty"`
}

// RLimit is one resource limit.
type RLimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// Hooks are the site's commands around a job on a node, run as root (as the keeper's user without root).
type Hooks struct {
	Prolog  [][]string    `json:"prolog,omitempty"`
	Epilog  [][]string    `json:"epilog,omitempty"`
	Env     []string      `json:"env,omitempty"`     // SLURM_* of the job
	Timeout time.Duration `json:"timeout,omitempty"` // of each command; zero: 5 minutes
}

// SendLaunch puts l on the stream.
func (w *Writer) SendLaunch(l *Launch) error {
	return w.Send(TypeLaunch, l, l.Payload()...)
}

// Payload is what follows the header, which is told how long the parts are.
func (l *Launch) Payload() [][]byte {
	l.ScriptLen, l.FilesLen = len(l.Script), len(l.Files)
	return [][]byte{l.Script, l.Files, l.Env}
}

// DecodeLaunch reads a Launch from its frame, whatever its type number; Script, Files and Env alias the payload.
func DecodeLaunch(f Frame) (*Launch, error) {
	l := new(Launch)
	if err := f.Decode(l); err != nil {
		return nil, err
	}
	var err error
	l.Script, l.Files, l.Env, err = cutPayload(f.Payload, l.ScriptLen, l.FilesLen)
	return l, err
}

// cutPayload finds script, files and environment in a payload.
func cutPayload(b []byte, script, files int) (s, f, env []byte, err error) {
	if script < 0 || files < 0 || script > len(b) || files > len(b)-script {
		return nil, nil, nil, fmt.Errorf("script of %d bytes and files of %d in a payload of %d: %w", script, files, len(b),
			ErrFrame)
	}
	end := script + files
	return b[:script:script], b[script:end:end], b[end:], nil
}

// Environ splits Env into strings that share its memory: nobody may write to Env afterwards.
func (l *Launch) Environ() []string {
	list := make([]string, 0, bytes.Count(l.Env, []byte{0})+8)
	for rest := l.Env; len(rest) > 0; {
		var one []byte
		one, rest, _ = bytes.Cut(rest, []byte{0})
		if len(one) > 0 {
			list = append(list, unsafe.String(&one[0], len(one)))
		}
	}
	return list
}

// JoinEnv is the inverse of Environ.
func JoinEnv(env []string) []byte {
	size := 0
	for _, e := range env {
		size += len(e) + 1
	}
	b := make([]byte, 0, size)
	for _, e := range env {
		b = append(append(b, e...), 0)
	}
	return b
}

// Flow returns what a waiting srun has to do with a launch.
func (l *Launch) Flow() Flow {
	f := Flow{Key: l.Key}
	for _, t := range l.Program.Tasks {
		f.Ranks = append(f.Ranks, int32(t.Rank))
	}
	switch {
	case l.Stdio.Mode != StdioStream:
	case l.Stdio.PTY:
		f.Readers = 1
	default:
		f.Readers = max(1, len(f.Ranks))
	}
	return f
}
