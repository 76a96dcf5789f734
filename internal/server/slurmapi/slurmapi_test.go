package slurmapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// caller makes calls of Slurm's API as its clients do.
type caller struct {
	t     testing.TB
	http  *http.Client
	url   string
	token string
	name  string // X-SLURM-USER-NAME
}

type envelope struct {
	Meta struct {
		Slurm  struct{ Release, Cluster string }
		Plugin struct {
			DataParser string `json:"data_parser"`
		}
	}
	Errors []struct {
		Number      int `json:"error_number"`
		Error       string
		Description string
		Source      string
	}
	Warnings []struct{ Description, Source string }
	ID       json.RawMessage `json:"job_id"`
}

// job is the number of the job that an answer is about.
func (e *envelope) job() int64 {
	n, _ := strconv.ParseInt(strings.Trim(string(e.ID), `"`), 10, 64)
	return n
}

func (c *caller) do(method, path, body string, out any) (int, envelope) {
	c.t.Helper()
	status, text := c.raw(method, path, "application/json", body)
	var e envelope
	if status != http.StatusNotModified {
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			c.t.Fatalf("%s %s: %d %v: %s", method, path, status, err, text)
		}
		if !strings.Contains(text, `"meta":{`) || !strings.Contains(text, `"errors":[`) ||
			!strings.Contains(text, `"warnings":[`) {
			c.t.Fatalf("%s %s: no envelope: %s", method, path, text)
		}
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			c.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return status, e
}

func (c *caller) raw(method, path, kind, body string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), servertest.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if c.token != "" {
		req.Header.Set("X-SLURM-USER-TOKEN", c.token)
	}
	if c.name != "" {
		req.Header.Set("X-SLURM-USER-NAME", c.name)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// start runs a server and calls as root, by a JWT over TCP.
func start(t testing.TB, set ...string) (*servertest.Server, *caller) {
	t.Helper()
	s := servertest.Start(t, set...)
	made, err := s.Client().NewJWT(t.Context(), &client.NewJWT{})
	if err != nil {
		t.Fatal(err)
	}
	return s, &caller{t: t, http: s.Far(), url: s.Info.API, token: made.Token}
}

// TestLongListing: a listing of more than fits in a piece is written piece by piece, and is whole.
func TestLongListing(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	const jobs = 60
	for range jobs {
		s.Submit(func(in *client.Submit) {
			in.Spec.Hold, in.Spec.Extra = true, &core.Extra{Comment: strings.Repeat("c", 2000)}
		})
	}
	var list struct {
		Jobs []struct {
			ID      int64 `json:"job_id"`
			Comment string
		}
	}
	if status, _ := c.do("GET", "/slurm/v0.0.43/jobs", "", &list); status != 200 || len(list.Jobs) != jobs {
		t.Fatalf("%d: %d jobs", status, len(list.Jobs))
	}
	for _, j := range list.Jobs {
		if j.ID == 0 || len(j.Comment) != 2000 {
			t.Errorf("%+v", j)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", c.url+"/slurm/v0.0.43/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-SLURM-USER-TOKEN", c.token)
	req.Header.Set("Accept", "application/yaml")
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.ContentLength >= 0 || resp.Header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%v: %d bytes announced, %s", err, resp.ContentLength, resp.Header.Get("Content-Type"))
	}
	var doc struct {
		Jobs []struct{ Comment string }
	}
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Jobs) != jobs || len(doc.Jobs[jobs-1].Comment) != 2000 {
		t.Errorf("YAML: %v, %d jobs", err, len(doc.Jobs))
	}
}

var versions = []string{"v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43"}

const minimal = `{"script":"#!/bin/sh\ntrue\n","job":{"environment":["PATH=/bin"],"name":"t",` +
	`"current_working_directory":"/tmp"}}`

// TestLifeOfAJob submits, looks, changes, signals and ends a job in every version.
func TestLifeOfAJob(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for _, v := range versions {
		base := "/slurm/" + v
		status, e := c.do("POST", base+"/job/submit", `{"script":"#!/bin/sh\nsleep 60\n","job":{"environment":["A=b"],`+
			`"name":"one","current_working_directory":"/tmp","time_limit":{"set":true,"number":7},"tasks":2,`+
			`"memory_per_node":{"set":true,"infinite":false,"number":100},"comment":"note","hold":true}}`, nil)
		if status != 200 || e.job() == 0 || len(e.Errors) > 0 {
			t.Fatalf("%s: submit: %d %+v", v, status, e)
		}
		id := itoa(e.job())
		var got struct {
			Jobs []struct {
				JobID     int64    `json:"job_id"`
				Name      string   `json:"name"`
				State     []string `json:"job_state"`
				Hold      bool     `json:"hold"`
				Comment   string   `json:"comment"`
				TimeLimit struct {
					Set, Infinite bool
					Number        int
				} `json:"time_limit"`
				Memory struct {
					Set    bool
					Number int
				} `json:"memory_per_node"`
			}
			LastUpdate struct{ Number int64 } `json:"last_update"`
		}
		if status, _ = c.do("GET", base+"/job/"+id, "", &got); status != 200 || len(got.Jobs) != 1 ||
			got.Jobs[0].Name != "one" || got.Jobs[0].State[0] != "PENDING" || got.Jobs[0].TimeLimit.Number != 7 ||
			!got.Jobs[0].Hold || got.Jobs[0].Memory.Number != 100 || got.Jobs[0].Comment != "note" {
			t.Errorf("%s: show: %d %+v", v, status, got)
		}
		if status, e = c.do("POST", base+"/job/"+id, `{"time_limit":{"infinite":false,"set":true,"number":9},`+
			`"name":"two","hold":false,"made_up":1}`, nil); status != 200 || len(e.Warnings) != 1 {
			t.Errorf("%s: update: %d %+v", v, status, e)
		}
		if status, _ = c.do("GET", base+"/jobs/", "", &got); status != 200 || len(got.Jobs) == 0 {
			t.Errorf("%s: list: %d", v, status)
		}
		found := false
		for _, j := range got.Jobs {
			found = found || j.Name == "two" && j.TimeLimit.Number == 9 && !j.Hold
		}
		if !found {
			t.Errorf("%s: the change is not in %+v", v, got)
		}
		if status, e = c.do("DELETE", base+"/job/"+id+"?signal=KILL", "", nil); status != 200 || len(e.Errors) > 0 {
			t.Errorf("%s: cancel: %d %+v", v, status, e)
		}
		if status, _ = c.do("GET", base+"/job/"+id, "", &got); status != 200 || got.Jobs[0].State[0] != "CANCELLED" {
			t.Errorf("%s: after cancel: %d %+v", v, status, got.Jobs)
		}
		if status, e = c.do("GET", base+"/job/999999", "", nil); status != 404 || len(e.Errors) != 1 ||
			e.Errors[0].Number != 2017 {
			t.Errorf("%s: no such job: %d %+v", v, status, e)
		}
	}
}

func itoa(n int64) string {
	return strconv.FormatInt(n, 10)
}

// TestErrors has what each fault is answered with.
func TestErrors(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	job := func(fields string) string {
		return `{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/tmp",` + fields + `}}`
	}
	const submit = "/slurm/v0.0.40/job/submit"
	for _, tc := range []struct {
		method, path, body string
		status, number     int
		text               string
	}{
		{"GET", "/slurm/v0.0.39/jobs/", "", 404, 9200, "v0.0.40"},
		{"GET", "/slurm/v0.0.99/ping/", "", 404, 9200, "v0.0.43"},
		{"GET", "/slurm/v0.0.40/nonsense", "", 404, 9200, "nonsense"},
		{"PUT", "/slurm/v0.0.40/jobs/", "", 405, 9200, "PUT"},
		{"POST", "/slurm/v0.0.40/job/allocate", "{}", 404, 9200, ""}, // later versions have it
		{"POST", "/slurm/v0.0.40/job/submit", "{", 400, 9001, "not JSON"},
		{"POST", "/slurm/v0.0.40/job/submit", "", 400, 9001, "no body"},
		{"POST", "/slurm/v0.0.40/job/submit", "{}", 400, 9002, ""},
		{"POST", "/slurm/v0.0.40/job/submit", `{"job":[1]}`, 400, 9001, "dictionary"},
		{"POST", submit, `{"script":"#!/bin/sh","job":{"current_working_directory":"/"}}`, 400, 2127, ""},
		{"POST", submit, `{"job":{"environment":["A=b"],"current_working_directory":"/"}}`, 400, 2009, ""},
		{"POST", "/slurm/v0.0.40/job/submit", job(`"partition":"nope"`), 400, 2000, ""},
		{"POST", "/slurm/v0.0.40/job/submit", job(`"tasks":[]`), 400, 9001, "expected a number"},
		{"POST", "/slurm/v0.0.40/job/submit", job(`"array":"x-y"`), 400, -1, ""},
		{"DELETE", "/slurm/v0.0.40/job/77", "", 404, 2017, ""},
		{"DELETE", "/slurm/v0.0.40/job/77?signal=NOPE", "", 400, 9001, "NOPE"},
		{"POST", "/slurm/v0.0.40/job/77", `{"name":"x"}`, 404, 2017, ""},
		{"GET", "/slurm/v0.0.40/node/nope", "", 404, 2018, ""},
		{"POST", "/slurm/v0.0.40/node/idle", `{"state":["DRAIN"]}`, 400, -1, "reason"},
		{"POST", "/slurm/v0.0.40/node/idle", `{"state":["WARM"]}`, 400, 2028, "WARM"},
		{"GET", "/slurm/v0.0.40/partition/nope", "", 404, 2000, ""},
		{"GET", "/slurm/v0.0.40/jobs/?update_time=soon", "", 400, 9001, "update_time"},
	} {
		status, e := c.do(tc.method, tc.path, tc.body, nil)
		if status != tc.status || len(e.Errors) == 0 || e.Errors[0].Number != tc.number ||
			!strings.Contains(e.Errors[0].Description, tc.text) || e.Errors[0].Source == "" {
			t.Errorf("%s %s %s: %d %+v; want %d, %d, %q", tc.method, tc.path, tc.body, status, e.Errors, tc.status,
				tc.number, tc.text)
		}
	}
	if status, text := c.raw("POST", "/slurm/v0.0.40/job/submit", "text/plain", minimal); status != 415 ||
		!strings.Contains(text, "9204") {
		t.Errorf("another content type: %d %s", status, text)
	}
	if status, text := c.raw("POST", "/slurm/v0.0.43/job/submit", "application/yaml", "script: \"#!/bin/sh\\n\"\njob:\n"+
		"  environment: [A=b]\n  current_working_directory: /tmp\n  tasks: 2\n"); status != 200 {
		t.Errorf("YAML: %d %s", status, text)
	}
}

// TestListings has the other things that are looked at.
func TestListings(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	for _, v := range versions {
		var nodes struct {
			Nodes []struct {
				Name  string
				State []string
				CPUs  int
			}
		}
		if status, e := c.do("GET", "/slurm/"+v+"/nodes", "", &nodes); status != 200 || len(nodes.Nodes) != 1 ||
			nodes.Nodes[0].CPUs != 4 || e.Meta.Plugin.DataParser != "data_parser/"+v || e.Meta.Slurm.Cluster != "bireme" {
			t.Errorf("%s: nodes: %d %+v %+v", v, status, nodes, e)
		}
		var parts struct {
			Partitions []struct {
				Name      string
				Partition struct{ State []string }
				CPUs      struct{ Total int }
			}
		}
		if status, _ := c.do("GET", "/slurm/"+v+"/partitions/", "", &parts); status != 200 ||
			parts.Partitions[0].Name != "main" || parts.Partitions[0].Partition.State[0] != "UP" ||
			parts.Partitions[0].CPUs.Total != 4 {
			t.Errorf("%s: partitions: %d %+v", v, status, parts)
		}
		var pings struct {
			Pings []struct{ Hostname, Pinged, Mode string }
		}
		if status, _ := c.do("GET", "/slurm/"+v+"/ping/", "", &pings); status != 200 || pings.Pings[0].Pinged != "UP" {
			t.Errorf("%s: ping: %d %+v", v, status, pings)
		}
	}
	if status, e := c.do("POST", "/slurm/v0.0.42/node/idle", `{"state":["DRAIN"],"reason":"test"}`, nil); status != 200 {
		t.Errorf("drain: %d %+v", status, e)
	}
	if n, err := s.Client().Node(t.Context(), "idle"); err != nil || !strings.Contains(n.State, "DRAIN") ||
		n.Reason != "test" {
		t.Errorf("the node is %+v, %v", n, err)
	}
	later := "99999999999"
	if status, _ := c.do("GET", "/slurm/v0.0.43/nodes/?update_time="+later, "", nil); status != 304 {
		t.Errorf("nothing has changed since: %d", status)
	}
	if status, text := c.raw("GET", "/slurm/v0.0.43/ping/", "", ""); status != 200 ||
		!strings.HasPrefix(text, `{"pings":[`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestWhoCalls has who is let in, and as whom.
func TestWhoCalls(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	s.Token(core.User{Name: "ann", UnixName: "nobody"})
	mine := func(c *caller) (int, envelope) { return c.do("GET", "/slurm/v0.0.43/ping", "", nil) }
	for name, token := range map[string]string{
		"none": "", "nonsense": "x.y.z", "unsigned": "eyJhbGciOiJub25lIn0.eyJzdW4iOiJyb290IiwiZXhwIjo5OTk5OTk5OTk5fQ.",
		"changed": root.token + "A",
	} {
		c := *root
		c.token = token
		if status, e := mine(&c); status != 401 || len(e.Errors) != 1 || e.Errors[0].Number != 1007 {
			t.Errorf("%s: %d %+v", name, status, e)
		}
	}
	c := *root
	c.token = s.Token(core.User{Name: "bob", UnixName: "daemon"}) // one of our own
	if status, e := mine(&c); status != 200 {
		t.Errorf("our own token: %d %+v", status, e)
	}
	c.name = "root"
	if status, e := mine(&c); status != 401 {
		t.Errorf("a user who says to be another: %d %+v", status, e)
	}
	as := *root
	as.name = "ann"
	status, e := as.do("POST", "/slurm/v0.0.43/job/submit", minimal, nil)
	if status != 200 {
		t.Fatalf("root as ann: %d %+v", status, e)
	}
	if j := s.Job(core.JobID(e.job())); j.Spec.User != "ann" {
		t.Errorf("the job is %s's", j.Spec.User)
	}
	if status, e := as.do("POST", "/slurm/v0.0.43/node/idle", `{"state":["DOWN"],"reason":"x"}`, nil); status != 403 ||
		e.Errors[0].Number != 2002 {
		t.Errorf("ann takes a node down: %d %+v", status, e)
	}
	noted := strings.Replace(minimal, `"job":{`, `"job":{"admin_comment":"x",`, 1)
	if status, e := as.do("POST", "/slurm/v0.0.43/job/submit", noted, nil); status != 403 {
		t.Errorf("ann writes as an administrator: %d %+v", status, e)
	}
	if status, e := root.do("POST", "/slurm/v0.0.43/job/submit", noted, nil); status != 200 {
		t.Errorf("an administrator's comment: %d %+v", status, e)
	}
}
