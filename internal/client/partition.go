package client

import (
	"context"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// PartitionChange is the body of PATCH /api/v1/partitions/NAME: what is nil stays. It holds until the settings are read
// again.
type PartitionChange struct {
	New            bool          `json:"new,omitempty"` // there must be none of that name yet
	State          *string       `json:"state,omitempty"`
	Nodes          *string       `json:"nodes,omitempty"`
	Default        *bool         `json:"default,omitempty"`
	MaxTime        *core.Seconds `json:"max_time,omitempty"`
	DefaultTime    *core.Seconds `json:"default_time,omitempty"`
	MaxNodes       *int32        `json:"max_nodes,omitempty"`
	MinNodes       *int32        `json:"min_nodes,omitempty"`
	PriorityTier   *int32        `json:"priority_tier,omitempty"`
	PriorityFactor *int32        `json:"priority_factor,omitempty"`
}

// ChangePartition makes or changes a partition.
func (c *NodeClient) ChangePartition(ctx context.Context, name core.PartitionName, u *PartitionChange) error {
	return c.do(ctx, call{method: "PATCH", path: api + "/partitions/" + url.PathEscape(string(name)), body: u}, nil)
}

// DropPartition removes a partition.
func (c *NodeClient) DropPartition(ctx context.Context, name core.PartitionName) error {
	return c.do(ctx, call{method: "DELETE", path: api + "/partitions/" + url.PathEscape(string(name))}, nil)
}
