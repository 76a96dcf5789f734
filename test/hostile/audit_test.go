//go:build e2e

package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// auditOf asks root's command for entries.
func auditOf(t *testing.T, c *cluster.Cluster, args ...string) []core.AuditEntry {
	t.Helper()
	var list client.AuditList
	out := c.Root().Run("bireme", append([]string{"audit", "--limit", "5000", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return list.Entries
}

// Nobody but administrators reads the log, nobody changes it, and what is tried is in it.
func TestTheAuditLogIsTheAdministrators(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	v := visit(t, c, mallory)
	job := c.As(victim).Sbatch("--hold", "--wrap", "echo private", "-o", "/dev/null")
	if r := c.As(mallory).Try("bireme", "audit"); r.Code != 4 ||
		!strings.Contains(r.Err, "only an administrator may read the audit log") {
		t.Errorf("%v", r)
	}
	v.refused("GET", "/api/v1/audit", "", 403, "needs admin")
	for _, method := range []string{"DELETE", "PUT", "PATCH", "POST"} {
		if status, text := v.call(method, "/api/v1/audit", `{}`); status < 400 {
			t.Errorf("%s /audit: %d %s", method, status, text)
		}
	}
	v.refused("GET", "/api/v1/jobs/"+job+"/script", "", 403, "belongs to")
	c.As(mallory).Try("scancel", job)
	c.As(mallory).Try("bireme", "users", "set", mallory, "--role", "admin")
	c.Root().Run("scontrol", "release", job) // an administrator's act on another's job
	c.WaitEnd(job)
	c.Root().Run("bireme", "logs", job)

	find := func(user, action, answer string) core.AuditEntry {
		t.Helper()
		list := auditOf(t, c, "--user", user, "--action", action, "--answer", answer)
		if len(list) == 0 {
			t.Errorf("the log has no %s of %s that was answered %s: %+v", action, user, answer, auditOf(t, c))
			return core.AuditEntry{}
		}
		return list[0]
	}
	find(mallory, "audit.read", "denied")
	if e := find(mallory, "job.script", "denied"); e.Object != "job "+job || e.Token == "" || e.UID <= 0 ||
		e.Addr != "local" {
		t.Errorf("%+v", e)
	}
	find(mallory, "job.cancel", "denied")
	if e := find(mallory, "user.update", "denied"); e.Object != "user "+mallory || !strings.Contains(e.Detail, "admin") {
		t.Errorf("%+v", e)
	}
	if e := find("root", "job.update", "ok"); e.Owner != victim || e.Object != "job "+job {
		t.Errorf("%+v", e)
	}
	if e := find("root", "job.logs", "ok"); e.Owner != victim || e.Object != "job "+job {
		t.Errorf("%+v", e)
	}
	find(victim, "sign-in", "ok")
	find("root", "audit.read", "ok")
	if list := auditOf(t, c, "--user", victim, "--action", "job"); len(list) != 0 {
		t.Errorf("a user's own work is in the log: %+v", list)
	}
}

// Thousands of refusals, each other than the last, from a caller with and one without a name, are a few rows; the
// victim works.
func TestAFloodOfRefusalsFillsNothing(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Set: []string{"limits.requests_per_second=0", "limits.unknown_requests=0"}})
	v := visit(t, c, mallory)
	const calls = 1500
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := range calls / 4 {
				ctx := context.WithoutCancel(t.Context())
				path := fmt.Sprintf("/api/v1/users/none%d-%d", part, i)
				if resp := v.request(ctx, "PATCH", path, `{"role":"admin"}`); resp != nil {
					resp.Body.Close()
				}
				if resp := v.with("bm_guess"+path).request(ctx, "GET", "/api/v1/jobs/"+fmt.Sprint(i), ""); resp != nil {
					resp.Body.Close()
				}
			}
		})
	}
	wg.Wait()
	id := c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")
	c.WaitEnd(id)
	if n := len(auditOf(t, c)); n > 100 {
		t.Errorf("%d refusals made %d rows", 2*calls, n)
	}
	if list := auditOf(t, c, "--user", mallory, "--answer", "denied"); len(list) == 0 {
		t.Error("the flood is not in the log at all")
	}
	if list := auditOf(t, c, "--action", "sign-in", "--answer", "unknown_user"); len(list) == 0 {
		t.Error("guessed tokens are not in the log")
	}
}

// What an attacker chooses (paths, headers, names, bodies) is text in the log: no line of an export, no row and no
// control sequence comes of it.
func TestNobodyForgesTheAuditLog(t *testing.T) {
	c := cluster.New(t, cluster.Options{})
	export := c.Base + "/audit.log"
	c.Set("audit.export=file:" + export)
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	v := visit(t, c, mallory)
	forged := "x\n{\"seq\":1,\"user\":\"root\",\"action\":\"forged\",\"answer\":\"ok\"}\r\x1b[2J\x1b]0;owned\a\u202e"
	esc := url.PathEscape(forged)
	v.call("PATCH", "/api/v1/users/"+esc, `{"role":"admin"}`)
	v.call("GET", "/api/v1/jobs/"+esc, "")
	v.call("DELETE", "/api/v1/tokens/"+esc, "")
	body, err := json.Marshal(map[string]string{"kind": "user", "user": forged, "name": forged, "note": forged})
	if err != nil {
		t.Fatal(err)
	}
	v.call("POST", "/api/v1/tokens", string(body))
	v.call("PATCH", "/api/v1/nodes/n1", `{"state":"drain","reason":"`+"\u001b[2J"+`"}`)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://bireme/api/v1/jobs/"+esc, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Authorization"] = []string{"Bearer bm_\x1b[31m"}
	req.Header["Bireme-Peer"] = []string{"0:0:root\x1b[2J"}
	req.Header["X-Forwarded-For"] = []string{"10.9.9.9"}
	if resp, err := v.http.Do(req); err == nil {
		resp.Body.Close()
	}
	rows := auditOf(t, c)
	table := c.Root().Run("bireme", "audit", "--limit", "5000")
	if lines := strings.Count(table, "\n"); lines > len(rows)+4 {
		t.Errorf("%d rows are %d lines of the table: %s", len(rows), lines, table)
	}
	if i := strings.IndexFunc(table, func(r rune) bool {
		return r < ' ' && r != '\n' || r == 0x7f || r == '\u202e'
	}); i >= 0 {
		t.Errorf("the table has control characters: %q", table[i:])
	}
	for _, e := range rows {
		if e.Action == "forged" || e.Addr == "10.9.9.9" || e.User == "root" && e.Answer != "ok" {
			t.Errorf("forged: %+v", e)
		}
	}
	if n := len(auditOf(t, c, "--user", mallory, "--answer", "denied")); n < 2 {
		t.Errorf("of the attempts the log tells %d", n)
	}
	var data []byte
	c.Eventually("the export has what the log has", func() (bool, string) {
		data, err = os.ReadFile(export)
		return err == nil && strings.Count(string(data), "\n") >= len(rows) && strings.HasSuffix(string(data), "\n"),
			string(data)
	})
	seq := int64(0)
	for line := range strings.Lines(string(data)) {
		var e core.AuditEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq != seq+1 || e.Action == "forged" {
			t.Errorf("line %q: %v", line, err)
		}
		seq = e.Seq
	}
	if st, err := os.Stat(export); err != nil || st.Mode().Perm() != 0o600 || seq == 0 {
		t.Errorf("the export: %v %v, %d lines", st, err, seq)
	}
}

// What an administrator was told is done is in the log, however the server ends.
func TestAcknowledgedActsSurviveAKill(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	var mu sync.Mutex
	var done []string
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	cl := c.Client(0)
	for part := range 3 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("p%d-%d", part, i)
				made, err := cl.NewToken(ctx, &client.NewToken{Kind: "join", Node: core.NodeName(name)})
				if err != nil {
					return
				}
				mu.Lock()
				done = append(done, made.Token.ID)
				mu.Unlock()
			}
		})
	}
	c.Eventually("some acts are acknowledged", func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		return len(done) > 60, fmt.Sprint(len(done))
	})
	c.KillServer()
	stop()
	wg.Wait()
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, e := range auditOf(t, c, "--action", "token.create") {
		told[e.Object] = true
	}
	for _, id := range done {
		if !told["token "+id] {
			t.Errorf("token %s was acknowledged and is not in the log", id)
		}
	}
}
