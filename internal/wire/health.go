package wire

import (
	"time"

	"bireme.dev/bireme/internal/core"
)

// Frames about a node's own health; see also TypeSample.
const (
	TypeHealth Type = 113 + iota // agent → server: Health, at an interval and when it has changed
	TypeCheck                    // server → agent: run the health program now
	TypeReboot                   // server → agent: Reboot; an agent that does so already continues with that
)

// Reboot asks for a restart of the machine. By is when it must be over, which tells one request from another; 0:
// nobody says.
type Reboot struct {
	By core.Time `json:"by,omitempty"`
}

// Health is all that is wrong with a node now.
type Health struct {
	Faults []core.NodeFault `json:"faults"`
}

// HealthSettings say what a node looks at. A check is "", off, warn or drain.
type HealthSettings struct {
	Program       string        `json:"program,omitempty"`
	Every         time.Duration `json:"every,omitempty"`
	Disk          string        `json:"disk,omitempty"`
	DiskPercent   int64         `json:"disk_percent,omitempty"`
	Memory        string        `json:"memory,omitempty"`
	MemoryPercent int64         `json:"memory_percent,omitempty"`
	Mount         string        `json:"mount,omitempty"`
	Mounts        []string      `json:"mounts,omitempty"`
	GPUProcesses  string        `json:"gpu_processes,omitempty"`
	Engine        string        `json:"engine,omitempty"`
}
