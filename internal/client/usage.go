package client

import (
	"context"
	"net/url"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// Usage answers GET /api/v1/usage: what was used of the cluster in [Start, End). Amounts of resources are multiplied by
// seconds.
type Usage struct {
	Now   core.Time  `json:"now"`
	Start core.Time  `json:"start"`
	End   core.Time  `json:"end"`
	Rows  []UsageRow `json:"rows"`
	// Cluster and Reservations are left out where nodes are private.
	Cluster      ClusterUsage       `json:"cluster"`
	Reservations []ReservationUsage `json:"reservations"`
}

// UsageRow is what the jobs of a user in a project used that had one WCKey and number of CPUs. One without jobs is the
// part of what a reservation left idle that is charged to its user.
type UsageRow struct {
	Project core.ProjectName `json:"project"`
	User    core.UserName    `json:"user"`
	WCKey   string           `json:"wckey,omitempty"`
	CPUs    int32            `json:"cpus"`
	Jobs    int64            `json:"jobs"`
	TRES    core.TRES        `json:"tres"`
}

// ClusterUsage is what became of the time of all nodes.
type ClusterUsage struct {
	Capacity    core.TRES `json:"capacity"` // of the nodes there are, not multiplied by anything
	Reported    core.TRES `json:"reported"` // all there was
	Allocated   core.TRES `json:"allocated"`
	Down        core.TRES `json:"down"`
	PlannedDown core.TRES `json:"planned_down"` // maintenance and power saving
	Planned     core.TRES `json:"planned"`      // jobs could have started and waited; CPUs only
}

// ReservationUsage is what was used of one occurrence of an advance reservation.
type ReservationUsage struct {
	core.AdvanceReservation
	Size  core.TRES `json:"size"`  // what is reserved, not multiplied by anything
	Total core.TRES `json:"total"` // in the window
	Used  core.TRES `json:"used"`
}

// Outage is a time in which a node was not in service.
type Outage struct {
	Node   core.NodeName `json:"node"`
	Start  core.Time     `json:"start"`
	End    core.Time     `json:"end,omitempty"` // 0: it goes on
	State  string        `json:"state"`
	Reason string        `json:"reason,omitempty"`
	By     core.UserName `json:"by,omitempty"`
}

// OutageList answers GET /api/v1/outages.
type OutageList struct {
	Now     core.Time `json:"now"`
	Outages []Outage  `json:"outages"`
}

// UsageQuery says of which jobs usage is asked for; empty parts do not restrict.
type UsageQuery struct {
	Start, End core.Time
	IDs        []string
	Groups     []uint32
	Nodes      []string
	Partitions []string
}

// Usage returns what was used in a time.
func (c *StandingClient) Usage(ctx context.Context, q UsageQuery) (*Usage, error) {
	v := window(q.Start, q.End)
	v["id"], v["node"], v["partition"] = q.IDs, q.Nodes, q.Partitions
	for _, g := range q.Groups {
		v.Add("gid", strconv.FormatUint(uint64(g), 10))
	}
	return get[Usage](ctx, c, api+"/usage", v)
}

// Outages lists when nodes were not in service.
func (c *StandingClient) Outages(ctx context.Context, start, end core.Time) (*OutageList, error) {
	return get[OutageList](ctx, c, api+"/outages", window(start, end))
}

func window(start, end core.Time) url.Values {
	v := url.Values{}
	if start != 0 {
		v.Set("start", strconv.FormatInt(int64(start), 10))
	}
	if end != 0 {
		v.Set("end", strconv.FormatInt(int64(end), 10))
	}
	return v
}
