//go:build e2e

package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// mark is in everything of the victim's that has a name: what of it reaches the attacker was not kept private.
const mark = "QZX"

// visitor calls the API as a user, with requests that no command makes.
type visitor struct {
	t      *testing.T
	c      *cluster.Cluster
	http   *http.Client
	secret string
}

// visit returns a user's own token and a way to use it.
func visit(t *testing.T, c *cluster.Cluster, name string) *visitor {
	t.Helper()
	var secret string
	for line := range strings.Lines(c.As(name).Run("bireme", "token", "create")) {
		if s := strings.TrimSpace(line); strings.HasPrefix(s, "bm_") {
			secret = s
		}
	}
	if secret == "" {
		t.Fatal("bireme token create printed no token")
	}
	socket := filepath.Join(c.Dir, "bireme.sock")
	if _, err := os.Stat(socket); err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	tr := &http.Transport{DialContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &visitor{t: t, c: c, http: &http.Client{Transport: tr}, secret: secret}
}

func (v *visitor) request(ctx context.Context, method, path, body string) *http.Response {
	v.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://bireme"+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+v.secret)
	resp, err := v.http.Do(req)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp
}

func (v *visitor) call(method, path, body string) (int, string) {
	v.t.Helper()
	ctx, stop := context.WithTimeout(v.t.Context(), 30*time.Second)
	defer stop()
	resp := v.request(ctx, method, path, body)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(data)
}

// routes lists the routes of the API with a method, as its document has them.
func (v *visitor) routes(method string) (list []string) {
	v.t.Helper()
	_, body := v.call("GET", "/api/v1/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		v.t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		if methods[strings.ToLower(method)] != nil {
			list = append(list, path)
		}
	}
	if len(list) < 10 {
		v.t.Fatalf("the document has %d routes for %s", len(list), method)
	}
	slices.Sort(list)
	return list
}

// life is what the victim has on a cluster.
type life struct {
	running, held, ended string
}

// settle gives the victim jobs, a crontab and a reservation with the mark in everything, and a running job whose
// script and environment hold secrets.
func settle(t *testing.T, c *cluster.Cluster) (l life) {
	t.Helper()
	v := c.As(victim)
	dir := filepath.Join(c.Work, mark+"dir")
	v.Run("/bin/mkdir", "-m", "755", dir)
	v = v.In(dir).With(mark + "ENV=" + mark + "secretenv")
	args := []string{"-J", mark + "name", "--comment=" + mark + "comment", "--export=ALL," + mark + "EXPORT=" + mark +
		"secretexport", "-o", mark + "out", "-n1", "--mem=1M", "-t", "10"}
	script := filepath.Join(dir, "job.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n# "+mark+"secretscript\nsleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.running = v.Sbatch(append(args, script, mark+"secretargument")...)
	l.held = v.Sbatch(append(args, "-H", "--array=1-3", script, mark+"secretargument")...)
	l.ended = v.Sbatch(append(args, "--wrap", "true "+mark+"secretline")...)
	c.WaitState(l.running, core.Running)
	c.WaitState(l.ended, core.Completed)
	r := v.TryIn("0 0 1 1 * /bin/true "+mark+"secretcron\n", "scrontab", "-")
	if r.Code != 0 {
		t.Fatal(r)
	}
	c.Root().Run("scontrol", "create", "reservation", "ReservationName="+mark+"resv", "Users="+victim, "Nodes=ALL",
		"StartTime=now+1hour", "Duration=10")
	return l
}

// listings are the commands that list things, as anybody may type them.
func listings(id string) [][]string {
	return [][]string{
		{"squeue"},
		{"squeue", "-l"},
		{"squeue", "-a", "-o", "%all"},
		{"squeue", "--json"},
		{"squeue", "-u", victim},
		{"squeue", "-j", id},
		{"squeue", "-s"},
		{"squeue", "-O", "JobID,Name,UserName,Comment,WorkDir,Command,StdOut:200"},
		{"squeue", "--start"},
		{"sprio", "-l"},
		{"sshare", "-a", "-l"},
		{"sacct", "-a"},
		{"sacct", "-a", "-X", "-P", "-o", "ALL"},
		{"sacct", "-a", "--json"},
		{"sacct", "-j", id, "-o", "SubmitLine,WorkDir,Comment,JobName"},
		{"sacct", "-u", victim},
		{"sacct", "-j", id, "--batch-script"},
		{"sacct", "-j", id, "--env-vars"},
		{"sinfo"},
		{"sinfo", "-N", "-l"},
		{"sinfo", "-T"},
		{"sinfo", "--json"},
		{"scontrol", "show", "jobs"},
		{"scontrol", "-dd", "show", "job", id},
		{"scontrol", "--json", "show", "jobs"},
		{"scontrol", "-o", "show", "job", id},
		{"scontrol", "show", "step"},
		{"scontrol", "show", "reservation"},
		{"scontrol", "show", "node"},
		{"scontrol", "show", "partition"},
		{"scontrol", "show", "assoc_mgr"},
		{"scontrol", "show", "config"},
		{"scontrol", "show", "licenses"},
		{"scontrol", "listpids"},
		{"scontrol", "write", "batch_script", id, "-"},
		{"scontrol", "show", "reservation", mark + "resv"},
		{"sacctmgr", "list", "users"},
		{"sacctmgr", "-P", "show", "assoc"},
		{"sacctmgr", "show", "account", "withassoc"},
		{"sacctmgr", "show", "user", victim},
		{"scrontab", "-u", victim, "-l"},
		{"scrontab", "-l"},
		{"bireme", "ps", "-a"},
		{"bireme", "ps", "-a", "--json"},
		{"bireme", "why", id},
		{"bireme", "why", id, "--json"},
		{"bireme", "events"},
		{"bireme", "events", "--json", "--after", "0"},
		{"bireme", "nodes"},
		{"bireme", "nodes", "--json"},
		{"bireme", "metrics", id},
		{"bireme", "policy", "show"},
		{"bireme", "reservation", "list"},
		{"bireme", "fleet", "list"},
		{"bireme", "users", "list"},
		{"bireme", "projects", "list"},
		{"bireme", "licenses"},
		{"bireme", "logs", id},
		{"bireme", "token", "list"},
		{"bireme", "qos", "list"},
	}
}

// With everything private an ordinary user finds nothing of another's: not by any listing command, not by any GET of
// the API, not in the watch stream or the metrics, and a job that is hidden answers as one that never was. Crawls all
// routes: one that is added later and tells of others fails here.
func TestPrivateDataHidesOthers(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4, Set: []string{"private_data=all", "mail.program="}})
	l := settle(t, c)
	m := c.As(mallory)
	own := m.Sbatch("-H", "-J", "mine", "--wrap", "true")
	clean := func(what, text string) {
		t.Helper()
		if strings.Contains(text, mark) || strings.Contains(text, victim) {
			t.Errorf("%s tells of the victim's things:\n%s", what, text)
		}
	}

	for _, line := range listings(l.running) {
		r := m.Try(line[0], line[1:]...)
		text := r.Out + r.Err
		for _, word := range line { // a refusal may repeat what was typed
			if strings.Contains(word, victim) || strings.Contains(word, mark) {
				text = strings.ReplaceAll(text, word, "X")
			}
		}
		clean("$ "+strings.Join(line, " "), text)
	}
	if out := m.Run("squeue", "-h", "-o", "%i %j"); strings.TrimSpace(out) != own+" mine" {
		t.Errorf("squeue shows the attacker %q; only the attacker's own job is theirs to see", out)
	}
	if out := m.Run("scontrol", "show", "config"); !strings.Contains(
		out, "accounts,events,jobs,nodes,partitions,reservations,usage,users") {
		t.Errorf("scontrol show config does not show PrivateData:\n%s", out)
	}

	v := visit(t, c, mallory)
	for _, path := range v.routes("GET") {
		if strings.HasSuffix(path, "/watch") || strings.Contains(path, "/attach") ||
			strings.Contains(path, "/resume") || strings.Contains(path, "/streams/") {
			continue // streams; watched below
		}
		for _, id := range []string{l.running, l.held, l.ended} {
			fill := func(id, user, resv, node string) []string {
				path := strings.NewReplacer("{id}", id, "{step}", "0", "{project}", "default").Replace(path)
				if !strings.Contains(path, "{name}") {
					return []string{path}
				}
				return []string{
					strings.ReplaceAll(path, "{name}", user), strings.ReplaceAll(path, "{name}", resv),
					strings.ReplaceAll(path, "{name}", node),
				}
			}
			there, absent := fill(id, victim, mark+"resv", "n1"), fill("999999", "nosuchuser", "nosuchresv", "nosuchnode")
			for i := range there {
				for _, query := range []string{
					"", "?history=1", "?view=brief", "?history=1&view=brief&user=" + victim,
					"?user=" + victim, "?name=" + mark + "name",
				} {
					code, body := v.call("GET", there[i]+query, "")
					told := body
					if code == http.StatusNotFound { // a refusal repeats what was asked for
						told = strings.ReplaceAll(body, filepath.Base(there[i]), "X")
					}
					clean("GET "+there[i]+query, told)
					if code >= 500 {
						t.Errorf("GET %s: %d %s", there[i]+query, code, body)
					}
					if there[i] == absent[i] || query != "" {
						continue
					}
					none, text := v.call("GET", absent[i], "")
					plain := func(s string) string {
						return strings.NewReplacer(id, "ID", "999999", "ID", victim, "X", "nosuchuser", "X",
							mark+"resv", "X", "nosuchresv", "X", "n1", "X", "nosuchnode", "X").Replace(s)
					}
					if code != none || plain(body) != plain(text) {
						t.Errorf("GET %s answers %d %s\nwhat is not there: %d %s", there[i], code, body, none, text)
					}
				}
			}
		}
	}
	for _, path := range []string{"/metrics", "/metrics/dcgm"} {
		_, body := v.call("GET", path, "")
		clean("GET "+path, body)
	}
	watchFinds(t, v, m, func(what, line string) {
		if clean(what, line); strings.Contains(line, `"node.`) {
			t.Errorf("%s tells of a node: %s", what, line)
		}
	})
}

// watchFinds reads the event stream from its beginning up to an event of the attacker's own.
func watchFinds(t *testing.T, v *visitor, m *cluster.Person, clean func(what, text string)) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	id := m.Sbatch("-H", "-J", "last", "--wrap", "true")
	resp := v.request(ctx, "GET", "/api/v1/watch?after=0", "")
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		line := in.Text()
		clean("the watch stream", line)
		if strings.HasPrefix(line, "data:") && strings.Contains(line, `"job":`+id) {
			return
		}
	}
	t.Fatalf("the event of the attacker's own job %s did not come: %v", id, in.Err())
}

// What an attacker does to another's hidden job is answered exactly as for a job that never was, and does nothing.
func TestHiddenJobsAreNotThere(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4, Set: []string{"private_data=jobs"}})
	l := settle(t, c)
	m := c.As(mallory)
	for _, line := range []string{
		"scancel ID", "scancel -s USR1 ID", "scancel -b -s USR1 ID", "scancel ID.0", "scancel ID_1", "scontrol hold ID",
		"scontrol release ID", "scontrol suspend ID", "scontrol resume ID", "scontrol requeue ID",
		"scontrol update jobid=ID name=x", "scontrol update jobid=ID timelimit=1", "scontrol show job ID",
		"scontrol show step ID.0",
		"scontrol write batch_script ID -", "scontrol top ID", "srun --jobid=ID true", "sattach ID.0", "squeue -j ID",
		"sacct -n -j ID",
		"sbatch --test-only --dependency=afterok:ID --wrap true",
		"bireme stop -y ID", "bireme logs ID", "bireme why ID", "bireme metrics ID", "bireme ssh ID", "bireme checkpoint ID",
	} {
		ask := func(id string) cluster.Result {
			f := strings.Fields(strings.ReplaceAll(line, "ID", id))
			r := m.Try(f[0], f[1:]...)
			r.Out, r.Err = strings.ReplaceAll(r.Out, id, "ID"), strings.ReplaceAll(r.Err, id, "ID")
			return r
		}
		absent := ask("999999")
		if strings.HasPrefix(line, "sbatch --test-only") { // when it would start is not the point
			absent.Err = ""
		}
		for _, id := range []string{l.running, l.held, l.ended} {
			r := ask(id)
			if strings.HasPrefix(line, "sbatch --test-only") {
				r.Err = ""
			}
			if r.Out != absent.Out || r.Err != absent.Err || r.Code != absent.Code {
				t.Errorf("%v\nwhat is not there: %v", r, absent)
			}
		}
	}
	v := visit(t, c, mallory)
	for _, x := range [][3]string{
		{"PATCH", "/api/v1/jobs/ID", `{"hold":true}`},
		{"PATCH", "/api/v1/jobs/ID", `{"dependency":"afterok:1"}`},
		{"POST", "/api/v1/jobs/cancel", `{"ids":["ID"]}`},
		{"POST", "/api/v1/jobs/cancel", `{"ids":["ID"],"signal":10}`},
		{"POST", "/api/v1/jobs/ID/release", `{}`},
		{"POST", "/api/v1/jobs/ID/steps", `{"name":"x","argv":["true"],"env":[],"workdir":"/"}`},
		{"GET", "/api/v1/jobs/ID/steps/0/attach", ""},
		{"GET", "/api/v1/jobs/ID/steps/0/resume?key=" + strings.Repeat("k", 40), ""},
	} {
		code, body := v.call(x[0], strings.ReplaceAll(x[1], "ID", l.running), strings.ReplaceAll(x[2], "ID", l.running))
		none, text := v.call(x[0], strings.ReplaceAll(x[1], "ID", "999999"), strings.ReplaceAll(x[2], "ID", "999999"))
		if code != none || strings.ReplaceAll(body, l.running, "ID") != strings.ReplaceAll(text, "999999", "ID") {
			t.Errorf("%s %s %s answers %d %s\nwhat is not there: %d %s", x[0], x[1], x[2], code, body, none, text)
		}
	}
	// A dependency on a hidden job is one on nothing: it neither waits for it nor tells of its end.
	for _, on := range []string{l.running, "999999"} {
		id := m.Sbatch("--dependency=afterany:"+on, "-t", "1", "-o", "/dev/null", "--wrap", "true")
		c.WaitState(id, core.Completed)
	}
	m.Run("scancel", "-u", victim)
	m.Run("scancel", "-n", mark+"name")
	if j := c.Job(l.running); j.State != core.Running || j.Spec.Name != mark+"name" {
		t.Errorf("the victim's job is %v and named %s", j.State, j.Spec.Name)
	}
	if out := c.As(victim).Run("squeue", "-h", "-u", victim, "-o", "%j"); !strings.Contains(out, mark+"name") {
		t.Errorf("the victim sees %q of their own jobs", out)
	}
}

// Without PrivateData jobs are everybody's to see, as in Slurm; scripts, environments, arguments, submit lines and
// crontabs are not: their owner's and the administrators' alone. A crontab of another's is neither read nor removed.
func TestScriptsAndEnvironmentsAreTheOwners(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4})
	l := settle(t, c)
	m, v := c.As(mallory), visit(t, c, mallory)
	secret := mark + "secret"
	for _, id := range []string{l.running, l.ended} {
		for _, line := range listings(id) {
			if r := m.Try(line[0], line[1:]...); strings.Contains(r.Out+r.Err, secret) {
				t.Errorf("%v", r)
			}
		}
		for _, path := range v.routes("GET") {
			if strings.HasSuffix(path, "/watch") || strings.Contains(path, "/streams/") || strings.Contains(path, "{step}") {
				continue
			}
			path = strings.NewReplacer("{id}", id, "{name}", "n1", "{project}", "default").Replace(path)
			for _, query := range []string{"", "?history=1", "?id=" + id} {
				if code, body := v.call("GET", path+query, ""); strings.Contains(body, secret) {
					t.Errorf("GET %s: %d %s", path+query, code, body)
				}
			}
		}
		var list struct {
			Jobs []struct {
				Spec map[string]any `json:"spec"`
			} `json:"jobs"`
		}
		_, body := v.call("GET", "/api/v1/jobs/"+id, "")
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Jobs) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		for _, key := range []string{"script", "env", "args"} {
			if list.Jobs[0].Spec[key] != nil {
				t.Errorf("the attacker is shown spec.%s: %v", key, list.Jobs[0].Spec[key])
			}
		}
		if !strings.Contains(body, mark+"name") || !strings.Contains(body, mark+"comment") {
			t.Errorf("without PrivateData names and comments are public: %s", body)
		}
	}
	watchFinds(t, v, m, func(what, text string) {
		if strings.Contains(text, mark) {
			t.Errorf("%s: %s", what, text)
		}
	})
	for _, flag := range []string{"-l", "-r"} {
		r := m.Try("scrontab", "-u", victim, flag)
		call := map[string]string{"-l": "slurm_request_crontab", "-r": "slurm_remove_crontab"}[flag]
		if r.Code != 1 || r.Out != "" || r.Err != "scrontab: fatal: "+call+" failed: Access/permission denied\n" {
			t.Errorf("%v", r)
		}
	}
	if r := m.TryIn("@daily true\n", "scrontab", "-u", victim, "-"); r.Code == 0 {
		t.Errorf("%v", r)
	}
	own := c.As(victim)
	if out := own.Run("scrontab", "-l"); !strings.Contains(out, secret+"cron") {
		t.Errorf("the victim's own table is %q", out)
	}
	if out := own.Run("sacct", "-X", "-n", "-P", "-j", l.ended, "-o", "SubmitLine"); !strings.Contains(
		out, secret+"line") {
		t.Errorf("the victim's own submit line is %q", out)
	}
	root := c.Root()
	if out := root.Run("scrontab", "-u", victim, "-l"); !strings.Contains(out, secret+"cron") {
		t.Errorf("root reads %q for the victim's table", out)
	}
	root.Run("scrontab", "-u", victim, "-r")
	if out := own.Run("scrontab", "-l"); strings.Contains(out, secret) {
		t.Errorf("root removed the table, and it still holds %q", out)
	}
}
