package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// MaxHistory is how many jobs and steps one call takes over.
const MaxHistory = 5000

// TakeHistory is the body of POST /api/v1/history: what another system knows of jobs that have ended.
type TakeHistory struct {
	Jobs  []*core.Job  `json:"jobs,omitempty"` // with their specs; attempts that went back to the queue in earlier
	Steps []*core.Step `json:"steps,omitempty"`
	// Spent is what users have used, as of a time. It counts for those who have used nothing here yet.
	Spent   []core.Spent `json:"spent,omitempty"`
	NextJob core.JobID   `json:"next_job,omitempty"` // new jobs get this id or greater ones
	Known   []KnownJob   `json:"known,omitempty"`    // jobs to be looked up only
	DryRun  bool         `json:"dry_run,omitempty"`  // only tell what would be done
}

// KnownJob names a job of another system.
type KnownJob struct {
	ID     core.JobID    `json:"id"`
	User   core.UserName `json:"user"`
	Submit core.Time     `json:"submit"`
}

// HistoryTaken answers TakeHistory. Where there are conflicts, nothing of the call was taken over.
type HistoryTaken struct {
	Taken     int               `json:"taken"` // jobs that were not here
	Same      int               `json:"same"`  // jobs that are here already
	Spent     int               `json:"spent"` // users whose usage was taken over
	Conflicts []HistoryConflict `json:"conflicts,omitempty"`
	HalfLife  core.Seconds      `json:"half_life,omitempty"` // of usage here; 0: it stays
}

// HistoryConflict is a job whose id another job has here.
type HistoryConflict struct {
	ID  core.JobID `json:"id"`
	Why string     `json:"why"`
}

// TakeOverHistory takes over jobs, steps and usage of another system. It may be sent again.
func TakeOverHistory(ctx context.Context, c *Client, in *TakeHistory) (*HistoryTaken, error) {
	out := new(HistoryTaken)
	if err := c.do(ctx, call{method: "POST", path: api + "/history", body: in, again: always}, out); err != nil {
		return nil, err
	}
	return out, nil
}
