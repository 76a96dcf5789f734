package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// Diag answers GET /api/v1/diag: how the server fares. Durations are microseconds.
type Diag struct {
	Now     core.Time `json:"now"`
	Since   core.Time `json:"since"` // figures count from here
	Jobs    JobCounts `json:"jobs"`
	Pending int64     `json:"pending"`
	Running int64     `json:"running"`
	// Waiting are commands that wait for the engine, Streams the open streams of users.
	Waiting int         `json:"waiting"`
	Streams int         `json:"streams"`
	Passes  PassCounts  `json:"passes"`
	Calls   []CallCount `json:"calls"`           // by route, most first
	Users   []CallCount `json:"users,omitempty"` // by user, most first; for administrators
}

// JobCounts are jobs by what happened to them; array tasks count one by one.
type JobCounts struct {
	Submitted int64 `json:"submitted"`
	Started   int64 `json:"started"`
	Completed int64 `json:"completed"`
	Canceled  int64 `json:"canceled"`
	Failed    int64 `json:"failed"`
}

// PassCounts are passes of the planner.
type PassCounts struct {
	Count   int64     `json:"count"`
	Last    int64     `json:"last"`
	Longest int64     `json:"longest"` // since the server's start
	Total   int64     `json:"total"`
	LastAt  core.Time `json:"last_at,omitempty"`
	// Backfilled are jobs that started before others that wait for nodes: since the server's start, and since Since.
	Backfilled      int64 `json:"backfilled"`
	BackfilledSince int64 `json:"backfilled_since"`
}

// CallCount are calls of a route or of a user. Those that stream count without their time.
type CallCount struct {
	Name  string `json:"name"`
	UID   uint32 `json:"uid,omitempty"`
	Count int64  `json:"count"`
	Total int64  `json:"total"`
}

// Diag tells how the server fares.
func (c *StandingClient) Diag(ctx context.Context) (*Diag, error) {
	return get[Diag](ctx, c, api+"/diag", nil)
}

// ResetDiag has the figures count from now on.
func (c *StandingClient) ResetDiag(ctx context.Context) error {
	return c.do(ctx, call{method: "POST", path: api + "/diag/reset", again: always}, nil)
}
