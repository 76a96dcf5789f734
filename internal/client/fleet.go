package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// FleetSpec is the body of PUT /api/v1/fleets/{name}: a fleet as its user wants it.
type FleetSpec struct {
	Project   core.ProjectName  `json:"project,omitempty"`   // empty: as it was, at first none
	Placement string            `json:"placement,omitempty"` // any, cluster
	Network   string            `json:"network,omitempty"`   // private; hosts reach each other by their addresses in it
	Env       []string          `json:"env,omitempty"`       // of the agents, NAME=VALUE
	Hosts     []FleetHostSpec   `json:"hosts"`
	Keys      map[string]string `json:"keys"` // private keys, by what hosts call them
	Force     bool              `json:"force,omitempty"`
	DryRun    bool              `json:"dry_run,omitempty"`
}

// String keeps keys and variables out of whatever prints a FleetSpec.
func (f FleetSpec) String() string {
	return fmt.Sprintf("fleet of %d hosts, %d keys and %d variables", len(f.Hosts), len(f.Keys), len(f.Env))
}

// GoString is String for %#v.
func (f FleetSpec) GoString() string { return f.String() }

// FleetHostSpec is a host of a FleetSpec.
type FleetHostSpec struct {
	SSHLogin
	Jump       *SSHLogin `json:"proxy_jump,omitempty"`
	InternalIP string    `json:"internal_ip,omitempty"`
	Blocks     int32     `json:"blocks,omitempty"` // -1: auto
}

// SSHLogin says where and as whom to log in.
type SSHLogin struct {
	Hostname string `json:"hostname"`
	Port     int32  `json:"port,omitempty"`
	User     string `json:"user"`
	Key      string `json:"key"` // one of FleetSpec.Keys
}

// Fleet is a fleet as the API shows it.
type Fleet struct {
	Name      string           `json:"name"`
	Status    string           `json:"status"` // active, terminating
	Placement string           `json:"placement"`
	Network   string           `json:"network,omitempty"`
	Env       []string         `json:"env,omitempty"`     // names of the agents' variables
	Project   core.ProjectName `json:"project,omitempty"` // whose members see it; empty: everybody does
	By        core.UserName    `json:"by,omitempty"`      // who made it
	Created   core.Time        `json:"created"`
	Instances []FleetInstance  `json:"instances"`
}

// FleetInstance is a host of a fleet and the node it is.
type FleetInstance struct {
	Num     int32         `json:"num"`
	Node    core.NodeName `json:"node"`
	Host    string        `json:"host"` // USER@HOST:PORT
	Jump    string        `json:"proxy_jump,omitempty"`
	HostKey string        `json:"host_key,omitempty"`
	Status  string        `json:"status"`          // pending, provisioning, idle, busy, unreachable, terminating
	Phase   string        `json:"phase,omitempty"` // what is being done about it just now
	Cause   string        `json:"cause,omitempty"` // why it cannot be used
	Since   core.Time     `json:"since,omitempty"` // of Cause
	// what else is to be known of it: who drained it and why, whose jobs it takes
	Note      string        `json:"note,omitempty"`
	State     string        `json:"state"` // the node's
	Hardware  core.Hardware `json:"hardware"`
	AllocCPUs int32         `json:"alloc_cpus"`
	Blocks    int32         `json:"blocks"` // it is split into
	Busy      int32         `json:"busy_blocks"`
	Version   string        `json:"version,omitempty"` // of its agent
}

// FleetList answers GET /api/v1/fleets.
type FleetList struct {
	Fleets []Fleet   `json:"fleets"`
	Now    core.Time `json:"now"`
	Page
}

// Fleets lists fleets.
func (c *FleetClient) Fleets(ctx context.Context) (*FleetList, error) {
	read := func(q url.Values) (*FleetList, error) { return get[FleetList](ctx, c, api+"/fleets", q) }
	return everyPage(read, func(to, from *FleetList) { to.Fleets = append(to.Fleets, from.Fleets...) })
}

// Fleet returns one.
func (c *FleetClient) Fleet(ctx context.Context, name string) (*Fleet, error) {
	return get[Fleet](ctx, c, api+"/fleets/"+url.PathEscape(name), nil)
}

// PutFleet makes a fleet or changes it in place.
func (c *FleetClient) PutFleet(ctx context.Context, name string, s *FleetSpec) (*core.FleetPlan, error) {
	out := new(core.FleetPlan)
	if err := c.do(ctx, call{method: "PUT", path: api + "/fleets/" + url.PathEscape(name), body: s, again: always},
		out); err != nil {
		return nil, err
	}
	return out, nil
}

// DropFleet deletes a fleet, or some of its instances.
func (c *FleetClient) DropFleet(ctx context.Context, name string, nums []int32, force bool) error {
	q := instances(nums)
	if force {
		q.Set("force", "1")
	}
	return c.do(ctx, call{method: "DELETE", path: api + "/fleets/" + url.PathEscape(name), query: q}, nil)
}

// TrustFleet forgets host keys of a fleet.
func (c *FleetClient) TrustFleet(ctx context.Context, name string, nums []int32) error {
	return c.do(ctx, call{
		method: "POST", path: api + "/fleets/" + url.PathEscape(name) + "/trust",
		query: instances(nums),
	}, nil)
}

func instances(nums []int32) url.Values {
	q := url.Values{}
	for _, n := range nums {
		q.Add("instance", strconv.Itoa(int(n)))
	}
	return q
}
