//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestBadInput: each a clear message and the right exit code, and nothing half done.
func TestBadInput(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, CPUs: 2, Memory: "1G", Args: []string{"--listen", fmt.Sprintf("127.0.0.1:%d", port)},
		Set: []string{"jobs.max_script=64KiB"},
	})
	url := fmt.Sprintf("https://127.0.0.1:%d", port)
	t.Run("commands", func(t *testing.T) { badCommands(t, c.For(t)) })
	t.Run("people", func(t *testing.T) { badPeople(t, c.For(t), url) })
	t.Run("api", func(t *testing.T) { badRequests(t, c.For(t), url) })
	t.Run("impossible", func(t *testing.T) { impossible(t, c.For(t)) })
	t.Run("twice", func(t *testing.T) { twice(t, c.For(t)) })
	list, err := c.Client(time.Second).Jobs(t.Context(), client.JobsQuery{History: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Jobs {
		if name := list.Jobs[i].Spec.Name; !strings.HasPrefix(name, "good") {
			t.Errorf("a refused request left job %d %q", list.Jobs[i].ID, name)
		}
	}
}

func badCommands(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	no := write(t, filepath.Join(c.Work, "noshebang.sh"), "echo hi\n")
	empty := write(t, filepath.Join(c.Work, "empty.sh"), "")
	dos := write(t, filepath.Join(c.Work, "dos.sh"), "#!/bin/bash\r\ntrue\r\n")
	large := write(t, filepath.Join(c.Work, "large.sh"), "#!/bin/sh\n"+strings.Repeat("# filler\n", 10000))
	refused(t, p.Try("sbatch", "missing.sh"), 1, "sbatch: error: Unable to open file missing.sh")
	refused(t, p.Try("sbatch", no), 1, "sbatch: error: This does not look like a batch script.  The first\n"+
		"sbatch: error: line must start with #! followed by the path to an interpreter.\n"+
		"sbatch: error: For instance: #!/bin/sh\n")
	refused(t, p.Try("sbatch", empty), 1, "sbatch: error: Batch script is empty!")
	refused(t, p.Try("sbatch", dos), 1, "sbatch: error: Batch script contains DOS line breaks (\\r\\n)")
	refused(t, p.Try("sbatch", large), 1, "sbatch: error: Batch job submission failed: ")
	refused(t, p.Try("sbatch", "--nonsense", "--wrap", "true"), 255,
		"sbatch: unrecognized option '--nonsense'\nTry \"sbatch --help\" for more information\n")
	refused(t, p.Try("srun", "--nonsense", "true"), 255, "srun: unrecognized option '--nonsense'\n")
	refused(t, p.Try("sbatch", "-p", "nope", "--wrap", "true"), 1, "sbatch: error: invalid partition specified: nope\n",
		"sbatch: error: Batch job submission failed: Invalid partition name specified\n")
	refused(t, p.Try("sbatch", "-N", "abc", "--wrap", "true"), 255, `sbatch: error: "abc" is not a valid node count`)
	refused(t, p.Try("squeue", "-j", "999999"), 1, "slurm_load_jobs error: Invalid job id specified")
	refused(t, p.Try("scontrol", "show", "job", "999999"), 1, "slurm_load_jobs error: Invalid job id specified")
	refused(t, p.Try("bireme", "ps", "--nonsense"), 2, "--nonsense")
	refused(t, p.Try("bireme", "why", "999999"), 3, "999999")
	refused(t, p.Try("bireme", "logs", "999999"), 3, "999999")
	refused(t, p.Try("bireme", "stop", "nosuchrun"), 3, "nosuchrun")
	refused(t, p.Try("bireme", "frobnicate"), 2, "frobnicate")
	bad := write(t, filepath.Join(c.Work, "bad.dstack.yml"),
		"type: task\ncommands:\n  - true\nresources:\n  cpu: many\nfrobnicate: 1\n")
	refused(t, p.Try("bireme", "apply", "-y", "-f", bad), 2, "bad.dstack.yml", "frobnicate", "cpu")
	refused(t, p.Try("biremed", "--nonsense"), 2, "nonsense")
	r := p.Try("biremed", "standalone", "--nonsense")
	if r.Out != "false\n" || r.Code == 0 || !strings.Contains(r.Err, "nonsense") {
		t.Errorf("standalone with a wrong option: %v", r)
	}
}

func badPeople(t *testing.T, c *cluster.Cluster, url string) {
	p, root := c.As(alice), c.Root()
	token := strings.TrimSpace(p.Run("bireme", "token", "create", "--note", "e2e"))
	far := p.With("BIREME_SERVER="+url, "BIREME_TOKEN="+token)
	wants(t, "whoami with a token", far.Run("bireme", "whoami"), alice)
	refused(t, far.With("BIREME_TOKEN=wrong").Try("bireme", "ps"), 4, "bireme login")
	refused(t, far.With("BIREME_TOKEN=").Try("bireme", "ps"), 4, "bireme login")
	refused(t, far.With("BIREME_TOKEN=wrong").Try("sbatch", "-J", "bad", "--wrap", "true"), 1, "sbatch: error: ")
	refused(t, far.Try("bireme", "drain", "n1", "-r", "because"), 4, "needs admin")
	refused(t, far.Try("bireme", "token", "join"), 4, "admin")
	refused(t, p.Try("scontrol", "update", "NodeName=n1", "State=drain", "Reason=x"), 1)
	job := root.Sbatch("-H", "-J", "good", "-o", "/dev/null", "--wrap", "true")
	refused(t, p.Try("scontrol", "update", "jobid="+job, "TimeLimit=5"), 1, "Invalid user id for job "+job)
	refused(t, p.Try("bireme", "stop", "-y", job), 4)
	root.Run("scancel", job)
	refused(t, p.Try("squeue", "-u", "nosuchuser"), 0, "squeue: error: Invalid user: nosuchuser")
	refused(t, root.Try("bireme", "token", "create", "-u", "nosuchuser"), 3, "nosuchuser")
}

func badRequests(t *testing.T, c *cluster.Cluster, url string) {
	token := strings.TrimSpace(c.As(alice).Run("bireme", "token", "create"))
	post := func(path, body string) (int, core.Error) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.HTTP().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var e client.ErrorBody
		if resp.StatusCode >= 400 {
			if err := json.Unmarshal(data, &e); err != nil || e.Error.Message == "" {
				t.Errorf("POST %s answered %d with %q, which is no error of ours", path, resp.StatusCode, data)
			}
		}
		return resp.StatusCode, e.Error
	}
	for name, tc := range map[string]struct {
		path, body string
		status     int
		code       core.Code
	}{
		"malformed":  {"/api/v1/jobs", `{"spec": {"name": "bad", `, 400, core.Invalid},
		"wrong type": {"/api/v1/jobs", `{"spec": {"name": 7}}`, 400, core.Invalid},
		"no body":    {"/api/v1/jobs", ``, 400, core.Invalid},
		"no script":  {"/api/v1/jobs", `{"spec": {"name": "bad", "shape": {}}}`, 400, core.Invalid},
		"oversized": {"/api/v1/jobs", `{"spec": {"name": "bad", "shape": {}}, "script": "#!/bin/sh\n` +
			strings.Repeat("x", 70<<10) + `"}`, 413, core.TooLarge},
		"no such place": {"/api/v1/frobnicate", `{}`, 404, core.NotFound},
	} {
		status, e := post(tc.path, tc.body)
		if status != tc.status || e.Code != tc.code {
			t.Errorf("%s: answered %d %q %q, want %d %q", name, status, e.Code, e.Message, tc.status, tc.code)
		}
	}
	resp, err := c.HTTP().Get(url + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var spec struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&spec); err != nil || !strings.HasPrefix(spec.OpenAPI, "3.") ||
		spec.Paths["/api/v1/jobs"] == nil {
		t.Errorf("the served OpenAPI is %q with %d paths: %v", spec.OpenAPI, len(spec.Paths), err)
	}
}

func impossible(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	// As Slurm: more nodes than there are wait, more memory than any has is refused.
	id := p.Sbatch("-N", "9", "-J", "good", "-o", "/dev/null", "--wrap", "true")
	c.Eventually("the job says why it waits", func() (bool, string) {
		j := c.Job(id)
		return j.State == core.Pending && j.Waiting != "", fmt.Sprint(j.State, j.Waiting)
	})
	wants(t, "squeue", p.Run("squeue", "-j", id), "PD", "(PartitionNodeLimit)")
	wants(t, "why", p.Run("bireme", "why", id), "pending", "9 nodes")
	p.Run("scancel", id)
	refused(t, p.Try("sbatch", "--mem=999999999", "-J", "bad", "--wrap", "true"), 1,
		"sbatch: error: Memory specification can not be satisfied\n",
		"sbatch: error: Batch job submission failed: Requested node configuration is not available\n")
	huge := write(t, filepath.Join(c.Work, "huge.dstack.yml"),
		"type: task\nname: bad\ncommands: [echo never]\nresources:\n  cpu: 500..\n")
	refused(t, p.Try("bireme", "apply", "-y", "-f", huge), 6, "500")
}

// twice: the same submission under the same key is one job.
func twice(t *testing.T, c *cluster.Cluster) {
	cl := c.Client(time.Second)
	s := &client.Submit{
		Script: "#!/bin/sh\n", Key: client.NewKey(),
		Spec: core.Spec{Name: "good", Hold: true, IO: core.IO{WorkDir: "/"}, Shape: core.Shape{NodesMin: 1, NodesMax: 1}},
	}
	first, err := cl.Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			again := *s
			second, err := cl.Submit(t.Context(), &again)
			if err != nil || second.ID != first.ID || !second.Duplicate {
				t.Errorf("the same key again: %+v %v, want job %d", second, err, first.ID)
			}
		})
	}
	wg.Wait()
	if _, err := cl.Cancel(t.Context(), &client.Cancel{IDs: []string{fmt.Sprint(first.ID)}}); err != nil {
		t.Error(err)
	}
}

// A full inbox refuses for now, and says when to come back; who tries again is served.
func TestFullInbox(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Set: []string{"server.inbox=16"}})
	type answer struct {
		id  core.JobID
		err error
	}
	const callers, each, rounds = 64, 10, 50 // a server that is quick enough may take a round without a refusal
	made, full := map[core.JobID]bool{}, 0
	for round := 0; full == 0 && round < rounds; round++ {
		answers := make(chan answer, callers*each)
		var wg sync.WaitGroup
		for range callers {
			cl := c.Client(0)
			wg.Go(func() {
				for range each {
					done, err := cl.Submit(t.Context(), &client.Submit{
						Script: "#!/bin/sh\n" + string(bytes.Repeat([]byte("# filler\n"), 4000)), Key: client.NewKey(),
						Spec: core.Spec{
							Name: "flood", Hold: true, IO: core.IO{WorkDir: "/"}, Shape: core.Shape{NodesMin: 1, NodesMax: 1},
						},
					})
					if err != nil {
						answers <- answer{0, err}
					} else {
						answers <- answer{done.ID, nil}
					}
				}
			})
		}
		wg.Wait()
		close(answers)
		for a := range answers {
			var e *core.Error
			switch {
			case a.err == nil:
				made[a.id] = true
			case errors.As(a.err, &e) && e.Code == core.Exhausted:
				full++
			default:
				t.Errorf("a submission into a full inbox: %v", a.err)
			}
		}
	}
	if full == 0 {
		t.Errorf("%d callers at once never filled an inbox of 16", callers)
	}
	t.Logf("%d accepted, %d told to come back", len(made), full)
	list, err := c.Client(time.Second).Briefs(t.Context(), client.JobsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Jobs) != len(made) {
		t.Errorf("%d jobs are there, %d were acknowledged", len(list.Jobs), len(made))
	}
	c.Root().Run("sbatch", "-H", "-J", "patient", "--wrap", "true")
}

// Commands without a server end with a clear message and Slurm's exit codes.
func TestServerNotRunning(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	p := c.As(alice).With("BIREME_SERVER=unix:"+c.Work+"/none.sock", "BIREME_TIMEOUT=200ms")
	refused(t, p.Try("sbatch", "--wrap", "true"), 1,
		"sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n")
	refused(t, p.Try("squeue"), 1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
		"squeue: hint: ", "none.sock")
	refused(t, p.Try("sinfo"), 1, "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n")
	refused(t, p.Try("scontrol", "ping"), 1, "DOWN")
	refused(t, p.Try("srun", "true"), 1, "Unable to contact slurm controller")
	refused(t, p.Try("bireme", "ps"), 5, "cannot be reached", "biremed standalone")
	refused(t, p.Try("biremed", "stop", "--dir", c.Work+"/none"), 1, "no cluster")
}
