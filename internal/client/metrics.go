package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// Metrics answers GET /api/v1/jobs/{id}/metrics: what an attempt of a job used, moment by moment, oldest first.
type Metrics struct {
	ID      core.JobID    `json:"id"`
	Attempt int32         `json:"attempt"`
	CPUs    int32         `json:"cpus"` // it has
	Memory  core.Bytes    `json:"memory,omitempty"`
	GPUs    []MetricGPU   `json:"gpus"`
	Samples []core.Sample `json:"samples"`
}

// MetricGPU is a GPU of a job.
type MetricGPU struct {
	Node   core.NodeName `json:"node"`
	Index  int32         `json:"index"`
	Type   string        `json:"type,omitempty"`
	Memory core.Bytes    `json:"memory,omitempty"`
}

// Metrics returns what a job used.
func (c *JobClient) Metrics(ctx context.Context, id string) (*Metrics, error) {
	return get[Metrics](ctx, c, jobPath(id, "/metrics"), nil)
}
