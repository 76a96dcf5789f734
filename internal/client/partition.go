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

	PartitionAccess
	PartitionBounds
}

// PartitionAccess is the part of a change that says who may use a partition; an empty list lets all in.
type PartitionAccess struct {
	AllocNodes    *string   `json:"alloc_nodes,omitempty"`
	AllowAccounts *[]string `json:"allow_accounts,omitempty"`
	DenyAccounts  *[]string `json:"deny_accounts,omitempty"`
	AllowQOS      *[]string `json:"allow_qos,omitempty"`
	DenyQOS       *[]string `json:"deny_qos,omitempty"`
	AllowGroups   *[]string `json:"allow_groups,omitempty"`
	Alternate     *string   `json:"alternate,omitempty"`
	QOS           *string   `json:"qos,omitempty"`
	Hidden        *bool     `json:"hidden,omitempty"`
	NoRoot        *bool     `json:"no_root,omitempty"`
	RootOnly      *bool     `json:"root_only,omitempty"`
	ReqResv       *bool     `json:"req_resv,omitempty"`
}

// PartitionBounds is the part of a change that says what jobs get. Memory of 0: no limit, or no default.
type PartitionBounds struct {
	CPUBind        *string       `json:"cpu_bind,omitempty"`
	DefMemPerCPU   *core.Bytes   `json:"def_mem_per_cpu,omitempty"`
	DefMemPerNode  *core.Bytes   `json:"def_mem_per_node,omitempty"`
	MaxMemPerCPU   *core.Bytes   `json:"max_mem_per_cpu,omitempty"`
	MaxMemPerNode  *core.Bytes   `json:"max_mem_per_node,omitempty"`
	DefCPUsPerGPU  *int32        `json:"def_cpus_per_gpu,omitempty"`
	DefMemPerGPU   *core.Bytes   `json:"def_mem_per_gpu,omitempty"`
	MaxCPUsPerNode *int32        `json:"max_cpus_per_node,omitempty"`
	ExclusiveUser  *bool         `json:"exclusive_user,omitempty"`
	LLN            *bool         `json:"lln,omitempty"`
	OverSubscribe  *string       `json:"oversubscribe,omitempty"`
	OverTime       *core.Seconds `json:"over_time,omitempty"`
	PreemptMode    *string       `json:"preempt_mode,omitempty"`
	Grace          *core.Seconds `json:"grace,omitempty"`
	BillingWeights *string       `json:"billing_weights,omitempty"`
}

// ChangePartition makes or changes a partition.
func (c *NodeClient) ChangePartition(ctx context.Context, name core.PartitionName, u *PartitionChange) error {
	return c.do(ctx, call{method: "PATCH", path: api + "/partitions/" + url.PathEscape(string(name)), body: u}, nil)
}

// DropPartition removes a partition.
func (c *NodeClient) DropPartition(ctx context.Context, name core.PartitionName) error {
	return c.do(ctx, call{method: "DELETE", path: api + "/partitions/" + url.PathEscape(string(name))}, nil)
}
