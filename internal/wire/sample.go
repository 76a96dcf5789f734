package wire

import "bireme.dev/bireme/internal/core"

// TypeSample is an agent's news of what is used, at an interval; it never reaches the engine. Its payload is what the
// node's dcgm-exporter says of its GPUs, if there is one.
const TypeSample Type = 112

// Sample is how a node's units do and what its jobs use.
type Sample struct {
	Units []core.UnitState `json:"units,omitempty"` // nil: not looked at this time
	Jobs  []JobUse         `json:"jobs,omitempty"`
}

// JobUse is what the processes of a job use on the node.
type JobUse struct {
	Job     core.JobID `json:"job"`
	Attempt int32      `json:"attempt"`
	CPU     int64      `json:"cpu_us"` // microseconds so far
	Mem     int64      `json:"mem"`    // bytes now
}
