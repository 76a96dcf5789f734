package client

import (
	"context"
	"net/url"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// PriorityList answers GET /api/v1/priorities: the jobs that wait and are not held, by id.
type PriorityList struct {
	Now core.Time `json:"now"`
	// Weights are those of the settings, factors without a weight too; nil where priorities have no factors.
	Weights []Factor      `json:"weights,omitempty"`
	Jobs    []JobPriority `json:"jobs"`
	More    bool          `json:"more,omitempty"`
	Next    core.JobID    `json:"next,omitempty"`
}

// JobPriority is what the priority of a job is made of in one of its partitions.
type JobPriority struct {
	ID        core.JobID         `json:"id"`
	User      core.UserName      `json:"user"`
	Project   core.ProjectName   `json:"project"`
	Partition core.PartitionName `json:"partition"`
	QOS       core.QOSName       `json:"qos,omitempty"`
	Priority
}

// PrioritiesQuery says which jobs are asked for; empty parts do not restrict.
type PrioritiesQuery struct {
	IDs        []string
	Users      []string
	Partitions []string
}

// Share is how a project, or a user in it, stands: what is theirs of what is above them, what they used, and the
// fair-share factor that follows.
type Share struct {
	Project core.ProjectName `json:"project"`
	User    core.UserName    `json:"user,omitempty"`
	Parent  core.ProjectName `json:"parent,omitempty"` // of a project; empty: the root
	Shares  int64            `json:"shares"`           // core.SharesParent: those of the parent
	Norm    float64          `json:"norm_shares"`
	// Effective is the part of the usage of its level, Level the ratio of both; -1: nothing was used.
	Effective float64 `json:"effective_usage"`
	NormUsage float64 `json:"norm_usage"` // of all usage
	Level     float64 `json:"level_fs"`
	Factor    float64 `json:"fair_share"`
	Usage     float64 `json:"usage"` // billing seconds, decayed
	// UsageTRES are unit-minutes used, RunTRES those that running jobs may still use.
	UsageTRES   core.TRES `json:"usage_tres_mins,omitempty"`
	RunTRES     core.TRES `json:"run_tres_mins,omitempty"`
	GrpTRESMins core.TRES `json:"grp_tres_mins,omitempty"`
}

// ShareList answers GET /api/v1/shares: projects by name, each followed by its users.
type ShareList struct {
	Shares []Share `json:"shares"`
	Page
}

// Key is where a listing of shares continues after this one. No name holds a blank, so that keys order as names do.
func (s *Share) Key() string { return string(s.Project) + " " + string(s.User) }

// Priorities lists what the priorities of waiting jobs are made of.
func (c *StandingClient) Priorities(ctx context.Context, q PrioritiesQuery) (*PriorityList, error) {
	values := JobsQuery{IDs: q.IDs, Users: q.Users, Partitions: q.Partitions}.values()
	out := &PriorityList{}
	for {
		page, err := get[PriorityList](ctx, c, api+"/priorities", values)
		if err != nil {
			return nil, err
		}
		jobs := append(out.Jobs, page.Jobs...)
		*out = *page
		if out.Jobs = jobs; !page.More || page.Next == 0 {
			return out, nil
		}
		values.Set("after", strconv.FormatInt(int64(page.Next), 10))
	}
}

// Shares lists how projects and users stand.
func (c *StandingClient) Shares(ctx context.Context) (*ShareList, error) {
	return everyPage(func(q url.Values) (*ShareList, error) { return get[ShareList](ctx, c, api+"/shares", q) },
		func(to, from *ShareList) { to.Shares = append(to.Shares, from.Shares...) })
}
