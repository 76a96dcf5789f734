package client

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

const api = "/api/v1"

// JobList answers job listings and GET /api/v1/jobs/{id}.
type JobList struct {
	Jobs  []Job       `json:"jobs"`
	Steps []core.Step `json:"steps,omitempty"` // with history or for a single job
	Seq   int64       `json:"seq,omitempty"`
	Now   core.Time   `json:"now,omitempty"`  // the server's clock; elapsed times are counted against it
	More  bool        `json:"more,omitempty"` // jobs follow: ask again after Next, or after the last one
	Next  core.JobID  `json:"next,omitempty"`

	// What the site has srun do around its steps; with a single job.
	SrunProlog string `json:"srun_prolog,omitempty"`
	SrunEpilog string `json:"srun_epilog,omitempty"`
	// KillWait is how long processes of a job may take to end after TERM; with a single job.
	KillWait core.Seconds `json:"kill_wait,omitempty"`
	// What steps do whose srun does not say; with a single job.
	KillOnBadExit bool         `json:"kill_on_bad_exit,omitempty"`
	WaitTime      core.Seconds `json:"wait_time,omitempty"`
	// MinAge is how long a job that has ended is shown as if it were live; 0: forever. With a single job.
	MinAge core.Seconds `json:"min_age,omitempty"`
}

// NodeList answers GET /api/v1/nodes.
type NodeList struct {
	Nodes []Node    `json:"nodes"`
	Now   core.Time `json:"now,omitempty"`
	Page
}

// StepList answers GET /api/v1/jobs/{id}/steps.
type StepList struct {
	Steps []core.Step `json:"steps"`
	Now   core.Time   `json:"now,omitempty"`
}

// Release is the body of POST /api/v1/jobs/{id}/release.
type Release struct {
	Exit core.Exit `json:"exit"`
}

// Why answers GET /api/v1/jobs/{id}/why.
type Why struct {
	ID       core.JobID    `json:"id"`
	State    core.JobState `json:"state"`
	Reason   core.Reason   `json:"reason,omitempty"`
	Why      string        `json:"why"`
	Expected core.Time     `json:"expected_start,omitempty"`
	Estimate bool          `json:"estimate,omitempty"`
	Priority *Priority     `json:"priority,omitempty"` // of a job that waits
	// Ports are where those of its containers are found, if it runs.
	Ports []core.Published `json:"ports,omitempty"`
}

// Priority is what a job's priority is made of.
type Priority struct {
	Now     uint32   `json:"now"`             // the job's
	Fixed   bool     `json:"fixed,omitempty"` // somebody set it: the rest does not count
	Base    int64    `json:"base,omitempty"`  // of all jobs, where there are no weights
	Factors []Factor `json:"factors,omitempty"`
	Run     int64    `json:"run,omitempty"` // points for the priority of a YAML run
	Site    int64    `json:"site,omitempty"`
	Nice    int64    `json:"nice,omitempty"` // is taken away
}

// Factor is one part of a priority: it adds Value × Weight points.
type Factor struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Weight float64 `json:"weight"`
	Points float64 `json:"points"`
}

// Ping asks whether the server is there. It does not try again.
func (c *ClusterClient) Ping(ctx context.Context) error {
	return c.once().do(ctx, call{method: "GET", path: api + "/ping"}, nil)
}

// Cluster returns what the cluster is.
func (c *ClusterClient) Cluster(ctx context.Context) (*Cluster, error) {
	return get[Cluster](ctx, c, api+"/cluster", nil)
}

// Whoami tells who the server takes the caller for.
func (c *ClusterClient) Whoami(ctx context.Context) (*Whoami, error) {
	return get[Whoami](ctx, c, api+"/whoami", nil)
}

// Submit hands in a job. It makes s.Key when there is none; under it the job is made once, however often it is sent.
func (c *JobClient) Submit(ctx context.Context, s *Submit) (*Submitted, error) {
	if s.Key == "" {
		s.Key = NewKey()
	}
	out := new(Submitted)
	path := PathSubmit
	if len(s.Unsaid) > 0 {
		path += "?unsaid=" + strings.Join(s.Unsaid, "&unsaid=")
	}
	err := c.do(ctx, call{method: "POST", path: path, body: s, again: always, resend: func() { s.Retry = true }},
		out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Jobs lists jobs in full. History comes in pages, which it follows up to q.Limit.
func (c *JobClient) Jobs(ctx context.Context, q JobsQuery) (*JobList, error) {
	v := q.values()
	v.Set("view", "full")
	return c.jobPages(ctx, api+"/jobs", v, q.Limit)
}

// JobPages is Jobs page by page: there may be more jobs than fit in memory in full. The first page is asked for at
// once; next gives the one after a page, nil after the last.
func (c *JobClient) JobPages(ctx context.Context, q JobsQuery) (
	first *JobList, next func(*JobList) (*JobList, error), err error,
) {
	v := q.values()
	v.Set("view", "full")
	next = func(l *JobList) (*JobList, error) {
		if !l.More || l.Next == 0 {
			return nil, nil
		}
		turn(v, l.Next, 0)
		return get[JobList](ctx, c, api+"/jobs", v)
	}
	first, err = get[JobList](ctx, c, api+"/jobs", v)
	return first, next, err
}

// jobPages puts pages together. Seq and Now are those of the first, so that a watch after it misses nothing.
func (c *JobClient) jobPages(ctx context.Context, path string, v url.Values, limit int) (*JobList, error) {
	out, err := get[JobList](ctx, c, path, v)
	if err != nil {
		return nil, err
	}
	for out.More && (out.Next != 0 || len(out.Jobs) > 0) && (limit == 0 || len(out.Jobs) < limit) {
		if out.Next == 0 { // an older server
			out.Next = out.Jobs[len(out.Jobs)-1].ID
		}
		turn(v, out.Next, limit-len(out.Jobs))
		next, err := get[JobList](ctx, c, path, v)
		if err != nil {
			return nil, err
		}
		out.Jobs, out.Steps, out.More = append(out.Jobs, next.Jobs...), append(out.Steps, next.Steps...),
			next.More && len(next.Jobs)+int(next.Next) > 0
		out.Next = next.Next
	}
	return out, nil
}

// turn makes a query one for the next page.
func turn(v url.Values, last core.JobID, limit int) {
	v.Set("after", strconv.FormatInt(int64(last), 10))
	if limit > 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
}

// Briefs lists jobs in short. It is the call behind squeue and is made for tens of thousands of them. Pages are
// followed as by Jobs.
func (c *JobClient) Briefs(ctx context.Context, q JobsQuery) (*BriefList, error) {
	v := q.values()
	v.Set("view", "brief")
	out, err := c.briefs(ctx, v)
	if err != nil {
		return nil, err
	}
	for out.More && (out.Next != 0 || len(out.Jobs) > 0) && (q.Limit == 0 || len(out.Jobs) < q.Limit) {
		if out.Next == 0 { // an older server
			out.Next = out.Jobs[len(out.Jobs)-1].ID
		}
		turn(v, out.Next, q.Limit-len(out.Jobs))
		next, err := c.briefs(ctx, v)
		if err != nil {
			return nil, err
		}
		out.Jobs, out.More = append(out.Jobs, next.Jobs...), next.More && len(next.Jobs)+int(next.Next) > 0
		out.Next = next.Next
	}
	return out, nil
}

func (c *JobClient) briefs(ctx context.Context, v url.Values) (*BriefList, error) {
	var data []byte
	if err := c.do(ctx, call{method: "GET", path: api + "/jobs", query: v, again: always}, &data); err != nil {
		return nil, err
	}
	return DecodeBriefs(data)
}

// Job returns one job, or an array's record and its started tasks; id is "12" or "12_3".
func (c *JobClient) Job(ctx context.Context, id string) (*JobList, error) {
	return c.jobPages(ctx, jobPath(id, ""), url.Values{}, 0)
}

// UpdateJob changes a job.
func (c *JobClient) UpdateJob(ctx context.Context, id string, u *Update) error {
	return c.do(ctx, call{method: "PATCH", path: jobPath(id, ""), body: u, again: always}, nil)
}

// Cancel ends or signals jobs.
func (c *JobClient) Cancel(ctx context.Context, b *Cancel) (*Cancelled, error) {
	if len(b.IDs) <= cancelIDs {
		return c.cancel(ctx, b)
	}
	out := new(Cancelled)
	for ids := range slices.Chunk(b.IDs, cancelIDs) {
		some := *b
		some.IDs = ids
		part, err := c.cancel(ctx, &some)
		if err != nil {
			return nil, err
		}
		out.Results = append(out.Results, part.Results...)
	}
	return out, nil
}

// cancelIDs is how many jobs one request names; the server takes 5,000.
const cancelIDs = 4000

func (c *JobClient) cancel(ctx context.Context, b *Cancel) (*Cancelled, error) {
	out := new(Cancelled)
	tries := always
	if b.Signal != 0 {
		tries = never // a handler that counts signals would count twice
	}
	cancel := call{method: "POST", path: api + "/jobs/cancel", body: b, again: tries}
	if err := c.do(ctx, cancel, out); err != nil {
		return nil, err
	}
	// One job of many may meet a store that is away for a moment: those are asked for again, the others are done.
	for until := time.Now().Add(c.set.Timeout); tries == always && time.Now().Before(until); {
		left := Cancel{}
		for i := range out.Results {
			if e := out.Results[i].Error; e != nil && e.Code == core.Unavailable {
				left.IDs = append(left.IDs, out.Results[i].ID)
			}
		}
		if len(left.IDs) == 0 {
			break
		}
		if err := c.sleep(ctx, 200*time.Millisecond); err != nil {
			break
		}
		left.States, left.Step = b.States, b.Step
		cancel.body = &left
		more := new(Cancelled)
		if err := c.do(ctx, cancel, more); err != nil {
			break // what was answered stands
		}
		out.Results = slices.DeleteFunc(out.Results, func(r CancelResult) bool {
			return r.Error != nil &&
				r.Error.Code == core.Unavailable
		})
		out.Results = append(out.Results, more.Results...)
	}
	return out, nil //nolint:nilerr // what was answered stands, and says which jobs were not reached
}

// Script returns a job's script.
func (c *JobClient) Script(ctx context.Context, id string) ([]byte, error) {
	var data []byte
	err := c.do(ctx, call{method: "GET", path: jobPath(id, "/script"), again: always}, &data)
	return data, err
}

// Env returns a job's environment as it was submitted, NUL-separated.
func (c *JobClient) Env(ctx context.Context, id string) ([]byte, error) {
	var data []byte
	err := c.do(ctx, call{method: "GET", path: jobPath(id, "/env"), again: always}, &data)
	return data, err
}

// Why returns why a job is as it is.
func (c *JobClient) Why(ctx context.Context, id string) (*Why, error) {
	return get[Why](ctx, c, jobPath(id, "/why"), nil)
}

// NewStep makes a step in a job. It is sent again only when it surely was not received: a step must not run twice.
func (c *JobClient) NewStep(ctx context.Context, id string, s *NewStep) (*StepMade, error) {
	out := new(StepMade)
	if err := c.do(ctx, call{method: "POST", path: jobPath(id, "/steps"), body: s}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateStep changes a step that runs; the step "all" stands for each of the job's.
func (c *JobClient) UpdateStep(ctx context.Context, id, step string, u *UpdateStep) error {
	return c.do(ctx, call{
		method: "PATCH", path: jobPath(id, "/steps/"+url.PathEscape(step)), body: u, again: always,
	}, nil)
}

// Steps lists a job's steps.
func (c *JobClient) Steps(ctx context.Context, id string) (*StepList, error) {
	return get[StepList](ctx, c, jobPath(id, "/steps"), nil)
}

// Release ends an interactive allocation.
func (c *JobClient) Release(ctx context.Context, id string, exit core.Exit) error {
	return c.do(ctx, call{method: "POST", path: jobPath(id, "/release"), body: Release{Exit: exit}, again: always}, nil)
}

// Nodes lists the nodes.
func (c *NodeClient) Nodes(ctx context.Context) (*NodeList, error) {
	read := func(q url.Values) (*NodeList, error) { return get[NodeList](ctx, c, api+"/nodes", q) }
	return everyPage(read, func(to, from *NodeList) { to.Nodes = append(to.Nodes, from.Nodes...) })
}

// Node returns one node.
func (c *NodeClient) Node(ctx context.Context, name core.NodeName) (*Node, error) {
	return get[Node](ctx, c, api+"/nodes/"+url.PathEscape(string(name)), nil)
}

// NodeEvents are the last events of a node, oldest first.
func (c *NodeClient) NodeEvents(ctx context.Context, name core.NodeName, limit int) (*EventList, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	return get[EventList](ctx, c, api+"/nodes/"+url.PathEscape(string(name))+"/events", q)
}

// UpdateNode drains, resumes or downs a node.
func (c *NodeClient) UpdateNode(ctx context.Context, name core.NodeName, u *UpdateNode) error {
	return c.do(ctx, call{method: "PATCH", path: api + "/nodes/" + url.PathEscape(string(name)), body: u, again: always},
		nil)
}

// RemoveNode forgets a node. how says what of its jobs: empty (there must be none), drain, now or gone.
func (c *NodeClient) RemoveNode(ctx context.Context, name core.NodeName, how string) (*RemovedNode, error) {
	q := url.Values{}
	if how != "" {
		q.Set(how, "1")
	}
	out := new(RemovedNode)
	if err := c.do(ctx, call{method: "DELETE", path: api + "/nodes/" + url.PathEscape(string(name)), query: q},
		out); err != nil {
		return nil, err
	}
	return out, nil
}

// caller sends calls: a transport, and what embeds one.
type caller interface {
	do(ctx context.Context, q call, out any) error
}

func get[T any](ctx context.Context, c caller, path string, q url.Values) (*T, error) {
	out := new(T)
	if err := c.do(ctx, call{method: "GET", path: path, query: q, again: always}, out); err != nil {
		return nil, err
	}
	return out, nil
}

func jobPath(id, rest string) string { return api + "/jobs/" + url.PathEscape(id) + rest }

// values writes the query as the API reads it.
func (q JobsQuery) values() url.Values {
	v := url.Values{}
	add := func(key string, list []string) {
		if len(list) > 0 {
			v[key] = list
		}
	}
	add("id", q.IDs)
	add("user", q.Users)
	add("project", q.Projects)
	add("partition", q.Partitions)
	add("state", q.States)
	add("name", q.Names)
	add("node", q.Nodes)
	add("run", q.Runs)
	if q.History {
		v.Set("history", "1")
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if !q.Until.IsZero() {
		v.Set("until", q.Until.Format(time.RFC3339Nano))
	}
	if q.Newest {
		v.Set("newest", "1")
	}
	if q.Recent {
		v.Set("recent", "1")
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.LeaveDeleted {
		v.Set("leave_deleted", "1")
	}
	return v
}
