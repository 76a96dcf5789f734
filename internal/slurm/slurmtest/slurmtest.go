// Package slurmtest is a cluster made of fixed records, for tests of the commands: no engine, no nodes, only the API's
// answers.
package slurmtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// Cluster is what the fake server knows. Change it between calls only.
type Cluster struct {
	Info  client.Cluster
	Who   client.Whoami
	Jobs  []client.Job
	Steps []core.Step
	Nodes []client.Node
	Now   time.Time
	// Reservations are listed; one that is made without a name is called physics_2.
	Reservations []client.Reservation
	Licenses     []client.License
	// Refuse answers POST /jobs and changes with this error, if it is set.
	Refuse *core.Error
	// Missing users are unknown.
	Missing []string
	// Handle, if set, gets every request first; it answers and says so, or lets it pass.
	Handle func(w http.ResponseWriter, r *http.Request) bool
	Script string

	mu      sync.Mutex
	Submits []client.Submit
	Cancels []client.Cancel
	Updates []client.Update
	NodeUps []client.UpdateNode
	Resvs   []string // what was written of reservations: method, path and body

	srv *httptest.Server
}

// Start serves the cluster until the test ends.
func (c *Cluster) Start(t testing.TB) *Cluster {
	c.srv = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.srv.Close)
	return c
}

// Result is what a command left.
type Result struct {
	Out, Err string
	Hint     string // the lines of Err that help where Slurm's do not; Err is without them
	Code     int
}

// World is a world whose client calls the cluster; a nil cluster answers nothing.
func (c *Cluster) World(t testing.TB, name string, out, errs *bytes.Buffer) *cmd.World {
	w := &cmd.World{
		Name: name, In: strings.NewReader(""), Out: out, Err: errs, Dir: t.TempDir(), Host: "vm",
		Environ: []string{"PATH=/usr/bin:/bin", "HOME=/root"}, Now: time.Now,
	}
	url := "http+insecure://127.0.0.1:1"
	if c != nil {
		url = strings.Replace(c.srv.URL, "http://", "http+insecure://", 1)
		if !c.Now.IsZero() {
			w.Now = func() time.Time { return c.Now }
		}
	}
	w.Client = func() (*client.Client, error) {
		return client.New(client.Settings{Servers: []string{url}}, client.WithTimeout(0))
	}
	return w
}

// Run runs a command line of one command; change may alter its world.
func (c *Cluster) Run(t testing.TB, name string, f cmd.Func, args []string, change ...func(*cmd.World)) Result {
	t.Helper()
	var out, errs bytes.Buffer
	w := c.World(t, name, &out, &errs)
	for _, ch := range change {
		ch(w)
	}
	code := f(context.Background(), w, args)
	res := Result{Out: out.String(), Code: code}
	for line := range strings.Lines(errs.String()) {
		if strings.HasPrefix(line, name+": hint: ") {
			res.Hint += line
		} else {
			res.Err += line
		}
	}
	return res
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, e *core.Error) {
	status := map[core.Code]int{
		core.Invalid: 400, core.Unknown: 401, core.Denied: 403, core.NotFound: 404, core.Conflict: 409,
		core.Exhausted: 429, core.Unavailable: 503,
	}[e.Code]
	w.WriteHeader(max(status, 400))
	json.NewEncoder(w).Encode(client.ErrorBody{Error: *e})
}

func (c *Cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Handle != nil && c.Handle(w, r) {
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	key := r.Method + " " + parts[0]
	if len(parts) > 1 {
		key += "/*"
	}
	if len(parts) > 2 {
		key += "/" + parts[2]
	}
	switch key {
	case "GET ping":
		answer(w, map[string]any{})
	case "GET cluster":
		answer(w, c.Info)
	case "GET whoami":
		answer(w, c.Who)
	case "GET users/*":
		if slices.Contains(c.Missing, parts[1]) {
			refuse(w, core.Errorf(core.NotFound, "no user %s", parts[1]))
			return
		}
		answer(w, core.User{Name: core.UserName(parts[1])})
	case "GET nodes":
		answer(w, client.NodeList{Nodes: c.Nodes, Now: core.At(c.Now)})
	case "GET outages":
		answer(w, client.OutageList{Now: core.At(c.Now), Outages: []client.Outage{}})
	case "GET licenses":
		answer(w, client.LicenseList{Licenses: c.Licenses})
	case "GET reservations":
		answer(w, client.ReservationList{Reservations: c.Reservations, Now: core.At(c.Now)})
	case "GET reservations/*":
		for _, v := range c.Reservations {
			if v.Name == parts[1] {
				answer(w, v)
				return
			}
		}
		refuse(w, core.Errorf(core.NotFound, "no reservation").Because("invalid_reservation"))
	case "GET jobs":
		c.list(w, r)
	case "GET jobs/*":
		c.one(w, parts[1])
	case "GET jobs/*/steps":
		var steps []core.Step
		for _, s := range c.Steps {
			if strconv.FormatInt(int64(s.Job), 10) == parts[1] {
				steps = append(steps, s)
			}
		}
		answer(w, client.StepList{Steps: steps, Now: core.At(c.Now)})
	case "GET jobs/*/script":
		fmt.Fprint(w, c.Script)
	default:
		c.change(w, r, key, parts)
	}
}

// change takes what is written and remembers it.
func (c *Cluster) change(w http.ResponseWriter, r *http.Request, key string, parts []string) {
	if c.Refuse != nil {
		refuse(w, c.Refuse)
		return
	}
	dec := json.NewDecoder(r.Body)
	switch key {
	case "POST jobs":
		var s client.Submit
		if err := dec.Decode(&s); err != nil {
			refuse(w, core.Errorf(core.Invalid, "%v", err))
			return
		}
		c.Submits = append(c.Submits, s)
		answer(w, client.Submitted{ID: core.JobID(len(c.Submits))})
	case "POST jobs/*":
		var b client.Cancel
		dec.Decode(&b)
		c.Cancels = append(c.Cancels, b)
		var out client.Cancelled
		for _, id := range b.IDs {
			res := client.CancelResult{ID: id}
			if c.find(id) == nil {
				res.Error = core.Errorf(core.NotFound, "no job %s", id).Because("invalid_job_id")
			}
			out.Results = append(out.Results, res)
		}
		answer(w, out)
	case "PATCH jobs/*":
		if c.find(parts[1]) == nil {
			refuse(w, core.Errorf(core.NotFound, "no job").Because("invalid_job_id"))
			return
		}
		var u client.Update
		dec.Decode(&u)
		c.Updates = append(c.Updates, u)
		answer(w, map[string]any{})
	case "POST reservations", "PATCH reservations/*", "DELETE reservations/*":
		body, _ := io.ReadAll(r.Body)
		c.Resvs = append(c.Resvs,
			strings.TrimSpace(r.Method+" "+strings.Join(parts, "/")+" "+strings.TrimSpace(string(body))))
		if len(parts) > 1 && !slices.ContainsFunc(c.Reservations, func(v client.Reservation) bool {
			return v.Name == parts[1]
		}) {
			refuse(w, core.Errorf(core.NotFound, "no reservation").Because("invalid_reservation"))
			return
		}
		made := client.Reservation{}
		_ = json.Unmarshal(body, &made)
		made.Name = cmp.Or(made.Name, "physics_2")
		answer(w, made)
	case "PATCH nodes/*":
		if !slices.ContainsFunc(c.Nodes, func(n client.Node) bool { return string(n.Name) == parts[1] }) {
			refuse(w, core.Errorf(core.NotFound, "no node").Because("invalid_node"))
			return
		}
		var u client.UpdateNode
		dec.Decode(&u)
		c.NodeUps = append(c.NodeUps, u)
		answer(w, map[string]any{})
	default:
		refuse(w, core.Errorf(core.NotFound, "the test's cluster has no %s", key))
	}
}

func (c *Cluster) find(id string) *client.Job {
	for i := range c.Jobs {
		if matchID(&c.Jobs[i], id) {
			return &c.Jobs[i]
		}
	}
	return nil
}

func matchID(j *client.Job, id string) bool {
	base, task, isTask := strings.Cut(id, "_")
	n, _ := strconv.ParseInt(base, 10, 64)
	if isTask {
		return j.Array != nil && int64(j.Array.Base) == n &&
			(strings.HasPrefix(task, "[") || strconv.Itoa(int(j.Array.Task)) == task)
	}
	return int64(j.ID) == n || j.Array != nil && int64(j.Array.Base) == n
}

func (c *Cluster) one(w http.ResponseWriter, id string) {
	list := client.JobList{Now: core.At(c.Now)}
	for i := range c.Jobs {
		if matchID(&c.Jobs[i], id) {
			list.Jobs = append(list.Jobs, c.Jobs[i])
		}
	}
	if list.Jobs == nil {
		refuse(w, core.Errorf(core.NotFound, "there is no job %s", id).Because("invalid_job_id"))
		return
	}
	for _, s := range c.Steps {
		if slices.ContainsFunc(list.Jobs, func(j client.Job) bool { return j.ID == s.Job }) {
			list.Steps = append(list.Steps, s)
		}
	}
	answer(w, list)
}

func (c *Cluster) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	in := func(key, value string) bool { return len(q[key]) == 0 || slices.Contains(q[key], value) }
	full := client.JobList{Now: core.At(c.Now), Jobs: []client.Job{}}
	brief := client.BriefList{Now: full.Now, Jobs: []client.Brief{}}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		if !j.Live() && q.Get("history") == "" || len(q["id"]) > 0 &&
			!slices.ContainsFunc(q["id"], func(id string) bool { return matchID(j, id) }) ||
			!in("user", string(j.Spec.User)) || !in("partition", j.Spec.Partition.String()) ||
			!in("name", j.Spec.Name) || !in("project", string(j.Spec.Project)) {
			continue
		}
		full.Jobs = append(full.Jobs, *j)
		brief.Jobs = append(brief.Jobs, client.BriefOf(j, full.Now))
	}
	if q.Get("view") == "brief" {
		answer(w, brief)
		return
	}
	if q.Get("history") != "" {
		full.Steps = c.Steps
	}
	answer(w, full)
}
