package wire

import "bireme.dev/bireme/internal/core"

// Container is how a step runs in a container. The keeper runs a stand-in (bireme-container) in the step's place: it gets
// the step's standard streams and, on descriptor 3, the launch itself; it has the container made and hands the streams on to
// the first process inside, so that everything the keeper does to processes happens to the container too.
type Container struct {
	core.Container
	Join bool  `json:"join,omitempty"` // into the container of the job's batch step, which runs on this node
	CPUs int32 `json:"cpus,omitempty"` // what the job has of the node
	Host bool  `json:"host,omitempty"` // the node's network instead of one of its own

	// What follows is the agent's to fill in.
	Args    []string `json:"args,omitempty"` // of the script; with Join the program
	Limits  Limits   `json:"limits"`
	Engine  string   `json:"engine,omitempty"` // the engine's socket
	Dir     string   `json:"dir,omitempty"`    // of everything the stand-ins of the node leave
	Init    string   `json:"init,omitempty"`   // bireme-init, as the node has it
	Node    string   `json:"node,omitempty"`   // labels what is ours
	Devices []string `json:"devices,omitempty"`
	GPUs    []string `json:"gpus,omitempty"` // as NVIDIA's runtime calls them
}

// Frames between a stand-in and the first process of its container, bireme-init, which dials it. Also between the stand-in
// of a step that joins and that of the batch step.
const (
	TypeRun        Type = 160 + iota // Run, with the three standard streams; payload: script, then environment as in a Launch
	TypeRunSignal                    // RunSignal
	TypeRunStarted                   // RunStarted
	TypeRunEnded                     // RunEnded; of the first Run it is the last frame
	TypeRunStat                      // no header, answered with RunUsed
	TypeRunUsed                      // Usage
)

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
	ImageEnv bool     `json:"image_env,omitempty"`
	// ScriptLen is how much of the payload is the script.
	ScriptLen int `json:"script_len,omitempty"`
}

// RunSignal asks for a signal to every process inside, or to those of one Run that joined.
type RunSignal struct {
	ID     int `json:"id"`
	Number int `json:"number"`
}

// RunStarted tells that a program runs.
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
}
