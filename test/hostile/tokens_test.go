//go:build e2e

package hostile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// with is the same visitor with another token.
func (v *visitor) with(secret string) *visitor {
	w := *v
	w.secret = secret
	return &w
}

// mint asks for a token and gives it.
func (v *visitor) mint(body string) client.NewTokenMade {
	v.t.Helper()
	status, text := v.call("POST", "/api/v1/tokens", body)
	var made client.NewTokenMade
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != 200 {
		v.t.Fatalf("POST /tokens %s: %d %s (%v)", body, status, text, err)
	}
	return made
}

// refused makes a call that must be refused with a status and a word of explanation.
func (v *visitor) refused(method, path, body string, want int, word string) {
	v.t.Helper()
	if status, text := v.call(method, path, body); status != want || !strings.Contains(text, word) {
		v.t.Errorf("%s %s %.200s: %d %.300s; want %d and %q", method, path, body, status, text, want, word)
	}
}

// Tokens without number, notes of megabytes, names that are no names: none stays, and the victim's are as before.
func TestTokensHaveBounds(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Set: []string{"limits.tokens=20", "limits.requests_per_second=0"}})
	victimToken := c.As(victim).Run("bireme", "token", "create", "--name", "mine")
	v := visit(t, c, mallory)
	v.refused("POST", "/api/v1/tokens", `{"kind":"user","note":"`+strings.Repeat("x", 4<<20)+`"}`, 400, "note")
	v.refused("POST", "/api/v1/tokens", `{"kind":"user","name":"`+strings.Repeat("x", 1<<10)+`"}`, 400, "name")
	v.refused("POST", "/api/v1/tokens", `{"kind":"user","name":"a\nb"}`, 400, "name")
	v.refused("POST", "/api/v1/tokens", `{"kind":"user","ttl":-5}`, 400, "ttl")
	made, over := 0, 0
	for range 100 {
		switch status, text := v.call("POST", "/api/v1/tokens", `{"kind":"user"}`); {
		case status == 200:
			made++
		case status == 429 && strings.Contains(text, "limits.tokens") && strings.Contains(text, `"exhausted"`):
			over++
		default:
			t.Fatalf("%d %s", status, text)
		}
	}
	if made != 19 || over != 81 { // one is the visitor's own
		t.Errorf("%d tokens were made and %d refused", made, over)
	}
	r := c.As(mallory).Try("bireme", "token", "create")
	if r.Code == 0 || !strings.Contains(r.Err, "limits.tokens") {
		t.Errorf("%v", r)
	}
	// Making and revoking in turn leaves no more behind than the limit, either.
	var list client.TokenList
	listed := func() {
		_, text := v.call("GET", "/api/v1/tokens", "")
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
	}
	listed()
	for _, k := range list.Tokens {
		if k.LastUsed == 0 {
			v.call("DELETE", "/api/v1/tokens/"+k.ID, "")
		}
	}
	for range 60 {
		v.call("DELETE", "/api/v1/tokens/"+v.mint(`{"kind":"user"}`).Token.ID, "")
	}
	if listed(); len(list.Tokens) > 41 {
		t.Errorf("%d tokens are kept of a user who may have 20", len(list.Tokens))
	}
	victims := v.with(strings.TrimSpace(victimToken))
	if status, text := victims.call("GET", "/api/v1/whoami", ""); status != 200 || !strings.Contains(text, victim) {
		t.Errorf("the victim's token: %d %s", status, text)
	}
	victims.call("DELETE", "/api/v1/tokens/mine", "")
	victims.refused("GET", "/api/v1/whoami", "", 401, "revoked")
}

// Each token does what its scopes say, by commands and by requests, and no way leads from it to one that may do more.
func TestScopesHold(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Set: []string{"limits.requests_per_second=0"}})
	v := visit(t, c, mallory)
	for _, p := range []string{"ml", "web"} {
		c.Root().Run("bireme", "projects", "add", p)
		c.Root().Run("bireme", "projects", "member", p, mallory, "--role", "manager")
	}
	m := c.As(mallory)
	ml := m.Sbatch("-A", "ml", "--hold", "--wrap", "true", "-o", "/dev/null")
	web := m.Sbatch("-A", "web", "--hold", "--wrap", "true", "-o", "/dev/null")
	victimJob := c.As(victim).Sbatch("-A", "ml", "--hold", "--wrap", "true", "-o", "/dev/null")
	token := func(args ...string) string {
		return strings.TrimSpace(m.Run("bireme", append([]string{"token", "create"}, args...)...))
	}
	read := token("--scope", "read", "--name", "reader")
	submit := token("--scope", "submit", "--expires", "1h")
	project := token("--project", "ml", "--name", "ci")

	by := func(secret string) *cluster.Person { return m.With("BIREME_TOKEN=" + secret) }
	no := func(secret, word, name string, args ...string) {
		t.Helper()
		if r := by(secret).Try(name, args...); r.Code == 0 || !strings.Contains(r.Err+r.Out, word) {
			t.Errorf("%v; want a refusal that says %q", r, word)
		}
	}
	by(read).Run("squeue")
	no(read, "needs submit", "bireme", "token", "create")
	v.with(read).refused("POST", "/api/v1/jobs/cancel", `{"ids":["`+ml+`"]}`, 403, "needs submit")
	v.with(read).refused("PATCH", "/api/v1/jobs/"+ml, `{"name":"x"}`, 403, "token_scope")
	v.with(read).refused("DELETE", "/api/v1/tokens/ci", "", 403, "itself")
	if r := by(read).Try("sbatch", "--wrap", "true"); r.Code == 0 {
		t.Errorf("a read token submits: %v", r)
	}
	if r := by(read).Try("scancel", ml); c.Job(ml).State.Final() {
		t.Errorf("a read token cancels: %v", r)
	}

	by(submit).Sbatch("--wrap", "true", "-o", "/dev/null")
	v.with(submit).refused("PUT", "/api/v1/projects/ml/members/"+victim, `{"role":"user"}`, 403, "needs admin")
	v.with(submit).call("POST", "/api/v1/jobs/cancel", `{"ids":["`+victimJob+`"]}`)
	for what, body := range map[string]string{
		"scope admin":    `{"kind":"user","scopes":["admin"]}`,
		"without end":    `{"kind":"user","ttl":4611686018427387903}`,
		"longer":         `{"kind":"user","ttl":7200}`,
		"for another":    `{"kind":"user","user":"` + victim + `"}`,
		"for root":       `{"kind":"user","user":"root"}`,
		"to join a node": `{"kind":"join","trust_root":true}`,
	} {
		if status, text := v.with(submit).call("POST", "/api/v1/tokens", body); status != 403 {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	child := v.with(submit).mint(`{"kind":"user"}`)
	parent := func() core.Token {
		var list client.TokenList
		_, text := v.call("GET", "/api/v1/tokens", "")
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, k := range list.Tokens {
			if k.ID == child.Token.Parent {
				return k
			}
		}
		t.Fatal("the token that made another is not listed")
		return core.Token{}
	}()
	if child.Token.Outlives(&parent) || child.Token.Exceeds(&parent) != "" {
		t.Errorf("made by %+v: %+v", parent, child.Token)
	}
	m.Run("bireme", "token", "revoke", parent.ID)
	v.with(child.Secret).refused("GET", "/api/v1/whoami", "", 401, "revoked") // it ends with the one that made it

	if r := by(project).Try("scancel", web); c.Job(web).State.Final() {
		t.Errorf("a token of project ml cancelled a job of web: %v", r)
	}
	no(project, "limited to project ml", "sbatch", "-A", "web", "--wrap", "true")
	for _, call := range [][3]string{
		{"GET", "/api/v1/jobs/" + web, ""},
		{"PATCH", "/api/v1/jobs/" + web, `{"name":"x"}`},
		{"GET", "/api/v1/jobs?project=web", ""},
		{"GET", "/api/v1/jobs/" + web + "/script", ""},
		{"GET", "/api/v1/runs?project=web", ""},
		{"POST", "/api/v1/runs/x/stop?project=web", ""},
		{"GET", "/api/v1/users", ""},
		{"GET", "/api/v1/watch", ""},
		{"POST", "/api/v1/tokens", `{"kind":"user"}`},
	} {
		v.with(project).refused(call[0], call[1], call[2], 403, "token_scope")
	}
	if _, text := v.with(project).call("GET", "/api/v1/jobs", ""); strings.Contains(text, `"id":`+web+`,`) ||
		!strings.Contains(text, `"id":`+ml+`,`) {
		t.Errorf("a project's token lists %s", text)
	}
	if c.Job(victimJob).State.Final() {
		t.Error("the victim's job was cancelled by a manager's token without scope admin")
	}
	// All of it is in the audit log.
	for _, action := range []string{"token.create", "job.update", "job.cancel", "project.member", "read"} {
		out := c.Root().Run("bireme", "audit", "--user", mallory, "--action", action, "--answer", "denied", "--json")
		if !strings.Contains(out, "token_scope") && !strings.Contains(out, "access_denied") {
			t.Errorf("%s was refused, and the audit log says %s", action, out)
		}
	}
}

// A rotation ends the stolen secret at once, and the thief's other ways with it.
func TestRotationEndsAStolenSecret(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	m := c.As(victim)
	old := strings.TrimSpace(m.Run("bireme", "token", "create", "--name", "laptop"))
	v := visit(t, c, mallory).with(old) // mallory has found it
	child := v.mint(`{"kind":"user"}`)
	lasting := strings.TrimSpace(m.Run("bireme", "token", "rotate", "laptop"))
	v.refused("GET", "/api/v1/whoami", "", 401, "revoked")
	v.with(child.Secret).refused("GET", "/api/v1/whoami", "", 401, "revoked")
	if out := m.With("BIREME_TOKEN="+lasting).Run("bireme", "whoami"); !strings.Contains(out, victim) {
		t.Errorf("the new secret: %s", out)
	}
	next := strings.TrimSpace(m.Run("bireme", "token", "rotate", "laptop", "--overlap", "1h"))
	v.with(lasting).refused("POST", "/api/v1/tokens", `{"kind":"user"}`, 403, "old secret")
	v.with(lasting).refused("POST", "/api/v1/tokens/laptop/rotate", `{}`, 403, "old secret")
	for _, secret := range []string{lasting, next} {
		if status, text := v.with(secret).call("GET", "/api/v1/whoami", ""); status != 200 {
			t.Errorf("within the overlap: %d %s", status, text)
		}
	}
	list := m.Run("bireme", "token", "list")
	if !strings.Contains(list, "laptop") || !strings.Contains(list, "revoked") {
		t.Errorf("the list: %s", list)
	}
	if out := fmt.Sprint(m.Try("bireme", "login", "--server", "unix:"+c.Dir+"/bireme.sock", "--token",
		next)); !strings.Contains(out, "logged in as "+victim) {
		t.Errorf("login: %s", out)
	}
}
