package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

// A route that changes something and has no name in the audit log is one that nobody is told of.
func TestEveryRouteThatChangesSomethingIsAudited(t *testing.T) {
	t.Parallel()
	a := &API{}
	seen, names := map[string]bool{}, map[string]string{}
	for _, rt := range a.table() {
		key := rt.Key()
		seen[key] = true
		if rt.Method != http.MethodGet && rt.Audit.Action == "" {
			t.Errorf("%s has no action: add it to actions.go", key)
		}
		if rt.Right.Scope == core.ScopeAdmin && (rt.Audit.When != call.Always || rt.Audit.Action == "") {
			t.Errorf("%s is for administrators and not always told", key)
		}
		if other := names[rt.Audit.Action]; rt.Audit.Action != "" && other != "" {
			t.Errorf("%s and %s have one name, %s", key, other, rt.Audit.Action)
		}
		names[rt.Audit.Action] = key
		for part := range strings.SplitSeq(rt.Audit.Object, "{") {
			if name, _, ok := strings.Cut(part, "}"); ok && !strings.Contains(rt.Path, "{"+name+"}") &&
				!strings.Contains(rt.Path, "{"+name+"...}") {
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
	rt := &call.Route{Method: "PATCH", Path: "/api/v1/nodes/{name}", Native: true, Audit: audited["PATCH /nodes/{name}"]}
	r := httptest.NewRequest("PATCH", "/api/v1/nodes/x", nil)
	r.SetPathValue("name", "n1{name}\n{\"seq\":1}\x1b[2J\u202e")
	r.RemoteAddr = "[fe80::1%eth0]:77"
	who := &call.Caller{
		Identity: core.Identity{User: "a\r\nb", UID: 5}, UserRecord: &core.User{},
		TokenRecord: &core.Token{ID: "t", Name: "x\x00y"},
	}
	e := (&call.Base{}).AuditEntry(rt, r, who, core.Errorf(core.Denied, "no\nway").Because("access_denied"))
	e.Clean()
	want := core.AuditEntry{
		User: `a\r\nb`, UID: 5, Addr: "fe80::1%eth0", Token: "t", TokenName: `x\x00y`, Action: "node.update", Count: 1,
		Object: `node n1(name}\n("seq":1}\x1b[2J\u202e`, Answer: "denied", Reason: "access_denied", Message: `no\nway`,
	}
	if *e != want {
		t.Errorf("got  %+v\nwant %+v", *e, want)
	}
	for remote, want := range map[string]string{"": "local", "@": "local", "127.0.0.1:5": "127.0.0.1", "[::1]:5": "::1"} {
		if got := call.AddrOf(remote); got != want {
			t.Errorf("address %q is %q, want %q", remote, got, want)
		}
	}
	if long := core.Plain(strings.Repeat("é\n", 500), 256); len(long) > 256 || strings.Contains(long, "\n") ||
		!strings.HasSuffix(long, "…") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
