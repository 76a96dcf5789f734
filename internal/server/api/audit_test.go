package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// A route that changes something and has no name in the audit log is one that nobody is told of.
func TestEveryRouteThatChangesSomethingIsAudited(t *testing.T) {
	t.Parallel()
	a := &API{}
	seen, names := map[string]bool{}, map[string]string{}
	for _, rt := range a.table() {
		key := rt.key()
		seen[key] = true
		if rt.method != http.MethodGet && rt.audit.action == "" {
			t.Errorf("%s has no action: add it to audit.go", key)
		}
		if rt.right.scope == core.ScopeAdmin && (rt.audit.when != always || rt.audit.action == "") {
			t.Errorf("%s is for administrators and not always told", key)
		}
		if other := names[rt.audit.action]; rt.audit.action != "" && other != "" {
			t.Errorf("%s and %s have one name, %s", key, other, rt.audit.action)
		}
		names[rt.audit.action] = key
		for part := range strings.SplitSeq(rt.audit.object, "{") {
			if name, _, ok := strings.Cut(part, "}"); ok && !strings.Contains(rt.path, "{"+name+"}") && !strings.Contains(rt.path, "{"+name+"...}") {
				t.Errorf("%s: there is no {%s} in its path", key, name)
			}
		}
	}
	for key := range audited {
		if !seen[key] {
			t.Errorf("there is no route %s", key)
		}
	}
}

// What callers choose stands in the log as text, and nothing of it can pass for another entry.
func TestAuditEntriesAreText(t *testing.T) {
	t.Parallel()
	rt := &route{method: "PATCH", path: "/api/v1/nodes/{name}", native: true, audit: audited["PATCH /nodes/{name}"]}
	r := httptest.NewRequest("PATCH", "/api/v1/nodes/x", nil)
	r.SetPathValue("name", "n1{name}\n{\"seq\":1}\x1b[2J\u202e")
	r.RemoteAddr = "[fe80::1%eth0]:77"
	who := &caller{Identity: core.Identity{User: "a\r\nb", UID: 5}, user: &core.User{}, token: &core.Token{ID: "t", Name: "x\x00y"}}
	e := (&Base{}).auditEntry(rt, r, who, core.Errorf(core.Denied, "no\nway").Because("access_denied"))
	e.Clean()
	want := core.AuditEntry{
		User: `a\r\nb`, UID: 5, Addr: "fe80::1%eth0", Token: "t", TokenName: `x\x00y`, Action: "node.update", Count: 1,
		Object: `node n1(name}\n("seq":1}\x1b[2J\u202e`, Answer: "denied", Reason: "access_denied", Message: `no\nway`,
	}
	if *e != want {
		t.Errorf("got  %+v\nwant %+v", *e, want)
	}
	for remote, want := range map[string]string{"": "local", "@": "local", "127.0.0.1:5": "127.0.0.1", "[::1]:5": "::1"} {
		if got := addrOf(remote); got != want {
			t.Errorf("address %q is %q, want %q", remote, got, want)
		}
	}
	if long := core.Plain(strings.Repeat("é\n", 500), 256); len(long) > 256 || strings.Contains(long, "\n") || !strings.HasSuffix(long, "…") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
