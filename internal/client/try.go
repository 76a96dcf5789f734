package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// Trials answers POST /api/v1/jobs/try: when and where a job would start, or each component of a het job.
type Trials struct {
	Trials []Trial `json:"trials"`
}

// Trial is what would become of a job that was not submitted.
type Trial struct {
	ID        core.JobID         `json:"id"`                 // used up by it
	Start     core.Time          `json:"start,omitempty"`    // 0: nobody knows
	Estimate  bool               `json:"estimate,omitempty"` // jobs that come later may delay it
	Partition core.PartitionName `json:"partition"`
	CPUs      int64              `json:"cpus"`
	Nodes     string             `json:"nodes"` // hostlist
	Waiting   core.Reason        `json:"waiting,omitempty"`
	Why       string             `json:"why,omitempty"`
	Preempts  []core.JobID       `json:"preempts,omitempty"` // jobs that would make room for it
}

// Try asks when and where a job would start. It is refused like a submission; nothing is submitted.
func (c *JobClient) Try(ctx context.Context, s *Submit) (*Trials, error) {
	out := new(Trials)
	return out, c.do(ctx, call{method: "POST", path: api + "/jobs/try", body: s, again: always}, out)
}
