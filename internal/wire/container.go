package wire

import (
	"bytes"
	"log/slog"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// InitInside is bireme-init as every container has it. A step without a container that names it gets its node's own.
const InitInside = "/.bireme/init"

// Container is how a step runs in a container. The keeper runs a stand-in (bireme-container) in the step's place: it
// gets the step's standard streams and, on descriptor 3, the launch itself; it has the container made and hands the
// streams on to the first process inside, so that everything the keeper does to processes happens to the container
// too.
type Container struct {
	core.Container
	Join bool   `json:"join,omitempty"` // into a container of the job that is on this node already, or is being made
	Home string `json:"home,omitempty"` // with Join: the step that has the container
	// Step makes it the step's own: all tasks of the step on this node join it, and the stand-in of the first has it
	// made.
	Step bool  `json:"step,omitempty"`
	Hold bool  `json:"hold,omitempty"` // nothing of its own runs in it: it is there for what joins, and for its Gang
	Gang *Gang `json:"gang,omitempty"` // nil: the job has one container
	CPUs int32 `json:"cpus,omitempty"` // what the job has of the node
	Host bool  `json:"host,omitempty"` // the node's network instead of one of its own

	// What follows is the agent's to fill in.
	Args   []string      `json:"args,omitempty"` // of the script; with Join the program
	Limits Limits        `json:"limits"`
	Engine string        `json:"engine,omitempty"`  // the engine's socket
	Dir    string        `json:"dir,omitempty"`     // of everything the stand-ins of the node leave
	Init   string        `json:"init,omitempty"`    // bireme-init, as the node has it
	Node   core.NodeName `json:"node,omitempty"`    // labels what is ours
	Caps   []string      `json:"caps,omitempty"`    // if it is Bounded: the capabilities that root inside has
	NetRaw bool          `json:"net_raw,omitempty"` // if it is Bounded: it may open raw sockets all the same
	Within []string      `json:"within,omitempty"`  // if it is Bounded: the paths that its mounts must be below
	// Volumes are what the keeper has mounted for the job; the keeper's to fill in.
	Volumes []core.Mount `json:"volumes,omitempty"`
	Publish string       `json:"publish,omitempty"` // address of the node that its ports are found at; empty: all of them
	Devices []string     `json:"devices,omitempty"`
	GPUs    []string     `json:"gpus,omitempty"` // as NVIDIA's runtime calls them

	// Maker is the kind of program that makes the container in the place of an engine, as the job's user; empty: an
	// engine does.
	Maker   string `json:"maker,omitempty"`
	Program string `json:"program,omitempty"` // its path; empty: the node has none
	Run     string `json:"run,omitempty"`     // a directory of the user's, in memory, for this launch
	Images  string `json:"images,omitempty"`  // a directory of the user's for images
}

// The makers.
const (
	MakerApptainer = "apptainer" // or singularity
	MakerEnroot    = "enroot"
	MakerOCI       = "oci" // of bundles
)

// StandsIn reports whether a stand-in runs in the step's place that has rights which no user has: its engine's.
func (l *Launch) StandsIn() bool { return l.Container != nil && l.Container.Maker == "" }

// Interpreter is what a script's first line names, as the kernel reads it.
func Interpreter(script []byte) []string {
	line, _, _ := bytes.Cut(script, []byte{'\n'})
	text := strings.TrimSpace(strings.TrimPrefix(string(line), "#!"))
	prog, arg, _ := strings.Cut(text, " ")
	if arg = strings.TrimSpace(arg); arg != "" {
		return []string{prog, arg}
	}
	return []string{prog}
}

// Gang is what a container knows of the others of its job: one a node, in the order of the job's nodes.
type Gang struct {
	Rank   int    `json:"rank"`
	Peers  []Peer `json:"peers"`            // itself too
	Seed   []byte `json:"seed"`             // of the keys by which they trust each other: a secret
	Each   bool   `json:"each,omitempty"`   // the job's program runs in all of them, not in the first alone
	Bridge bool   `json:"bridge,omitempty"` // they have networks of their own; the stand-in's to fill in
	// Of Each: whose programs begin first, and whether all end with the first one's.
	Order      core.StartupOrder `json:"order,omitempty"`
	MasterDone bool              `json:"master_done,omitempty"`
	// Patience is how long the first waits for the others, whose images may have to be fetched; zero: an hour.
	Patience time.Duration `json:"patience,omitempty"`
}

// Peer is one container of a Gang, as the others reach it.
type Peer struct {
	Node  core.NodeName `json:"node"`
	Addr  string        `json:"addr"`
	Port  int           `json:"port"`            // of its SSH server
	Slots int           `json:"slots,omitempty"` // for MPI; 0: not said
}

// LogValue keeps the secret out of logs.
func (g *Gang) LogValue() slog.Value { return slog.IntValue(g.Rank) }

// Frames between a stand-in and the first process of its container, bireme-init, which dials it. Also between the
// stand-in of a step that joins and that of the batch step.
const (
	// Run, with the three standard streams; payload: script, files, environment as in a Launch
	TypeRun        Type = 160 + iota
	TypeRunSignal       // RunSignal
	TypeRunStarted      // RunStarted
	TypeRunEnded        // RunEnded; of the first Run it is the last frame
	TypeRunStat         // no header, answered with RunUsed
	TypeRunUsed         // Usage
	TypeRunDoing        // RunDoing
)

// RunDoing says what is done before the first program begins.
type RunDoing struct {
	ID   int    `json:"id"` // 0
	Text string `json:"text"`
}

// Run is a program to run inside. The container ends with its first one.
type Run struct {
	ID       int      `json:"id"`
	Argv     []string `json:"argv,omitempty"` // with a script its arguments
	WorkDir  string   `json:"work_dir,omitempty"`
	User     string   `json:"user,omitempty"` // as core.Container says it
	UID      *uint32  `json:"uid,omitempty"`  // instead of User
	GID      uint32   `json:"gid,omitempty"`
	Groups   []uint32 `json:"groups,omitempty"`
	Umask    *uint32  `json:"umask,omitempty"`
	TTY      bool     `json:"tty,omitempty"`
	Terminal bool     `json:"terminal,omitempty"` // of the first: on a terminal made for it, its script by SHELL -i -c
	ImageEnv bool     `json:"image_env,omitempty"`
	// Extra open files follow the three standard streams, to be the program's from descriptor 3 on; not with a script.
	Extra   int               `json:"extra,omitempty"`
	RLimits map[string]RLimit `json:"rlimits,omitempty"`
	Hold    bool              `json:"hold,omitempty"` // of the first: it does not run yet, but what joins does
	Gang    *Gang             `json:"gang,omitempty"` // of the first
	// ScriptLen is how much of the payload is the script.
	ScriptLen int `json:"script_len,omitempty"`
	FilesLen  int `json:"files_len,omitempty"` // of the first: and how much after it the files
}

// Cut finds script, files and environment in the payload of a Run.
func (r *Run) Cut(payload []byte) (script, files, env []byte, err error) {
	return cutPayload(payload, r.ScriptLen, r.FilesLen)
}

// RunSignal asks for a signal to every process inside, or to those of one Run that joined.
type RunSignal struct {
	ID     int `json:"id"`
	Number int `json:"number"`
}

// RunStarted reports that a program runs.
type RunStarted struct {
	ID int `json:"id"`
}

// RunEnded tells how a program ended.
type RunEnded struct {
	ID       int    `json:"id"`
	ExitCode int    `json:"exit_code"`
	Signal   int    `json:"signal,omitempty"`
	Cause    Cause  `json:"cause,omitempty"`
	Message  string `json:"message,omitempty"`
	OOMKills int64  `json:"oom_kills,omitempty"`
	Used     Used   `json:"used"`
	// Ranks are the programs of a job in several containers that ended by themselves, the first's among them.
	Ranks []core.RankExit `json:"ranks,omitempty"`
}
