package slurmapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// FuzzSubmit sends anything as the body of a submission: no body brings the server down, is a fault of the server, or
// makes a job that is somebody else's, has begun, or has what only the server gives.
func FuzzSubmit(f *testing.F) {
	s, c := start(f)
	c.token = s.Token(core.User{Name: "bob", UnixName: "daemon"})
	api := s.Client()
	for _, seed := range []string{
		minimal,
		`{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/","tasks":-1}}`,
		`{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/","tasks":1e300}}`,
		`{"script":"#!/bin/sh\n","job":{"environment":{"A":1},"current_working_directory":"/","time_limit":"1-0:0"}}`,
		`{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/","user_id":"0",` +
			`"group_id":"0"}}`,
		`{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/","array":"0-9%2",` +
			`"required_nodes":["/etc/passwd"],"excluded_nodes":["n[1-"],"flags":["EXTERNAL_JOB"]}}`,
		`{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/","id":7,"state":"RUNNING",` +
			`"uid":0,"User":"root","Spec":{"uid":0},"alloc":{"nodes":[]},"priority":{"set":true,"number":4294967295}}}`,
		`{"script":"#!/bin/sh\n","jobs":[{"environment":["A=b"],"current_working_directory":"/"},{"tasks":2},{}]}`,
		`{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/","name":"\u0000"}}`,
		`{"job":{"script":"#!/bin/sh\n","environment":["SLURM_JOB_UID=0"],"current_working_directory":"--uid=root",` +
			`"comment":"--uid=0","rlimits":{"core":{"set":true,"number":-5}},"crontab":{"line":{"start":1}}}}`,
		`{"script":{},"job":[],"jobs":{"a":{}}}`, `[[[[]]]]`, `null`, `"x"`, `{"job":{"job":{"job":{}}}}`,
		`{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/","begin_time":` +
			`{"set":true,"infinite":true,"number":99999999999999},"deadline":-1,"nice":"x","tres_per_node":"gres/:::,="}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c := *c
		c.t = t
		for _, path := range []string{"/slurm/v0.0.40/job/submit", "/slurm/v0.0.43/job/allocate"} {
			status, text := c.raw("POST", path, "application/json", body)
			if status >= 500 {
				t.Fatalf("%s: %d %s", path, status, text)
			}
			var e envelope
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatalf("%s: %d %v: %s", path, status, err, text)
			}
			if status != 200 {
				if len(e.Errors) == 0 {
					t.Fatalf("%s: %d without an error", path, status)
				}
				continue
			}
			list, err := api.Job(t.Context(), itoa(e.job()))
			if err != nil || len(list.Jobs) == 0 {
				t.Fatalf("job %d: %v", e.job(), err)
			}
			j := &list.Jobs[0]
			if j.Spec.User != "bob" || j.Spec.UID == 0 || j.Spec.GID == 0 || j.Alloc != nil || j.State != core.Pending ||
				j.Spec.Run != "" {
				t.Fatalf("the job is %+v, of %+v", j.Job, j.Spec)
			}
			c.raw("DELETE", "/slurm/v0.0.43/job/"+itoa(int64(j.ID)), "", "")
		}
	})
}

// TestLimitsOfTokens: a token with less than all rights keeps its limits here, and so does a JWT that is made with it.
func TestLimitsOfTokens(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	api := s.Client()
	made, err := api.NewToken(t.Context(), &client.NewToken{Scopes: []core.Scope{core.ScopeRead}, Name: "look"})
	if err != nil {
		t.Fatal(err)
	}
	look := *root
	look.token = made.Secret
	var jwt client.JWT
	if status, e := s.Call("POST", "/api/v1/tokens/jwt", made.Secret, client.NewJWT{}, &jwt); status != 200 {
		t.Fatalf("a JWT by a token that only reads: %d %v", status, e)
	}
	again := *root
	again.token = jwt.Token
	for name, c := range map[string]*caller{"token": &look, "JWT": &again} {
		if status, e := c.do("GET", "/slurm/v0.0.43/jobs", "", nil); status != 200 {
			t.Errorf("%s: reads: %d %+v", name, status, e)
		}
		if status, e := c.do("POST", "/slurm/v0.0.43/job/submit", minimal, nil); status != 403 {
			t.Errorf("%s: submits: %d %+v", name, status, e)
		}
		if status, e := c.do("GET", "/slurm/v0.0.43/reconfigure", "", nil); status != 403 {
			t.Errorf("%s: reconfigures: %d %+v", name, status, e)
		}
		if status, e := c.do("POST", "/slurmdb/v0.0.43/qos", `{"qos":[{"name":"x"}]}`, nil); status != 403 {
			t.Errorf("%s: makes a QOS: %d %+v", name, status, e)
		}
	}
	if err := api.RevokeToken(t.Context(), made.Token.ID); err != nil {
		t.Fatal(err)
	}
	if status, e := again.do("GET", "/slurm/v0.0.43/jobs", "", nil); status != 401 {
		t.Errorf("a JWT whose token was revoked: %d %+v", status, e)
	}
	// What was refused is in the audit log, by the native route's name.
	list, err := api.Audit(t.Context(), map[string][]string{"answer": {"denied"}, "action": {"job.submit"}})
	if err != nil || len(list.Entries) == 0 || len(list.Entries) > 2 { // such as are alike are told once
		t.Errorf("the audit log has %+v, %v", list, err)
	}
}

// TestPrivateData: what is private is private here, too.
func TestPrivateData(t *testing.T) {
	t.Parallel()
	s, root := start(t, "private_data=jobs,nodes,partitions,users,accounts")
	if status, e := root.do("POST", "/slurm/v0.0.43/job/submit", minimal, nil); status != 200 {
		t.Fatalf("submit: %d %+v", status, e)
	}
	c := *root
	c.token = s.Token(core.User{Name: "bob", UnixName: "daemon"})
	if _, text := c.raw("GET", "/slurm/v0.0.43/jobs", "", ""); !strings.Contains(text, `"jobs":[]`) {
		t.Errorf("bob sees %s", text)
	}
	if status, e := c.do("GET", "/slurm/v0.0.43/job/1", "", nil); status != 404 || e.Errors[0].Number != 2017 {
		t.Errorf("bob sees job 1: %d %+v", status, e)
	}
	if status, text := c.raw("GET", "/slurm/v0.0.43/nodes", "", ""); strings.Contains(text, `"name":"idle"`) {
		t.Errorf("bob sees nodes: %d %s", status, text)
	}
	if status, text := c.raw("GET", "/slurm/v0.0.43/partitions", "", ""); strings.Contains(text, `"name":"main"`) {
		t.Errorf("bob sees partitions: %d %s", status, text)
	}
	if status, text := c.raw("GET", "/slurmdb/v0.0.43/users", "", ""); strings.Contains(text, `"name":"root"`) {
		t.Errorf("bob sees users: %d %s", status, text)
	}
}

// TestBoundedBody: a body that is larger than any job's is refused, not read.
func TestBoundedBody(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	c := *root
	c.token = s.Token(core.User{Name: "bob", UnixName: "daemon"})
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.url+"/slurm/v0.0.43/job/submit",
		strings.NewReader(`{"script":"`+strings.Repeat("x", 64<<20)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-SLURM-USER-TOKEN", c.token)
	req.Header.Set("Expect", "100-continue") // the answer comes before the body would
	c.http.Transport.(*http.Transport).ExpectContinueTimeout = servertest.Timeout
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%s", resp.Status)
	}
	if status, text := c.raw("POST", "/slurm/v0.0.43/job/submit", "application/json",
		`{"job":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`); status < 400 || status >= 500 {
		t.Errorf("%d %.200s", status, text)
	}
}

// TestHeavyCalls: one user's listings wait for each other, none waits for itself, and a change of very many records is
// refused before much is done for it.
func TestHeavyCalls(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	c := *root
	c.token = s.Token(core.User{Name: "bob", UnixName: "daemon"})
	var calls sync.WaitGroup
	for range 3 {
		for _, path := range []string{"/slurm/v0.0.43/shares", "/slurm/v0.0.43/diag", "/slurmdb/v0.0.43/jobs"} {
			calls.Go(func() {
				if status, text := c.raw("GET", path, "", ""); status != 200 {
					t.Errorf("%s: %d %.200s", path, status, text)
				}
			})
		}
	}
	calls.Wait()
	names := strings.Repeat(`"bob",`, 3000) + `"bob"`
	accounts := strings.ReplaceAll(names, "bob", "root")
	status, text := c.raw("POST", "/slurmdb/v0.0.43/users_association/", "application/json",
		`{"association_condition":{"users":[`+names+`],"accounts":[`+accounts+`]},"user":{}}`)
	if status != http.StatusRequestEntityTooLarge {
		t.Errorf("nine million associations: %d %.200s", status, text)
	}
}
