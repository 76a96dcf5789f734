package client

import (
	"context"
	"net/url"
	"time"

	"bireme.dev/bireme/internal/core"
)

// StepUsage answers GET /api/v1/jobs/{id}/steps/{step}/usage: what a running step uses now.
type StepUsage struct {
	Job    core.JobID      `json:"job"`
	Step   string          `json:"step"`
	Now    core.Time       `json:"now"`
	Nodes  []NodeUsage     `json:"nodes"`
	Silent []core.NodeName `json:"silent,omitempty"` // nodes that did not answer
}

// NodeUsage is what a step uses on a node.
type NodeUsage struct {
	Node   core.NodeName `json:"node"`
	PIDs   []int         `json:"pids,omitempty"`
	CPU    time.Duration `json:"cpu"` // so far
	RSS    core.Bytes    `json:"rss"` // now, with the page cache that is charged to it
	MaxRSS core.Bytes    `json:"max_rss"`
	// Tasks is empty where the node's step keeper is too old to tell.
	Tasks []TaskUsage `json:"tasks"`
}

// TaskUsage is what a task uses.
type TaskUsage struct {
	Task   int           `json:"task"` // its rank in the step
	CPU    time.Duration `json:"cpu"`
	RSS    core.Bytes    `json:"rss"`
	MaxRSS core.Bytes    `json:"max_rss"`
	VM     core.Bytes    `json:"vm"` // address space
	MaxVM  core.Bytes    `json:"max_vm"`
	Pages  int64         `json:"pages"` // page faults that needed the disk
	Read   core.Bytes    `json:"read"`
	Write  core.Bytes    `json:"write"`
}

// StepUsage returns what a running step uses; step is a number, batch or extern.
func (c *JobClient) StepUsage(ctx context.Context, id, step string) (*StepUsage, error) {
	return get[StepUsage](ctx, c, jobPath(id, "/steps/"+url.PathEscape(step)+"/usage"), nil)
}
