package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

func submitBody() *client.Submit {
	return &client.Submit{Spec: core.Spec{Name: "x", Hold: true}, Script: "#!/bin/sh\ntrue\n"}
}

// people makes a user with an account of this host, one without, a manager and an administrator.
func people(s *servertest.Server) (ann, bob, mia, root string) {
	uid := uint32(1)
	ann = s.Token(core.User{Name: "ann", UnixName: "daemon", UID: &uid})
	bob = s.Token(core.User{Name: "bob"})
	mia = s.Token(core.User{Name: "mia"})
	root = s.Token(core.User{Name: "boss", Role: core.RoleAdmin})
	return
}

func TestTokensAndRoles(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	ann, bob, mia, boss := people(s)
	s.Must("PUT", "/api/v1/projects/default/members/mia", map[string]string{"role": "manager"}, nil)

	var made client.Submitted
	if status, err := s.Call("POST", "/api/v1/jobs", ann, submitBody(), &made); err != nil {
		t.Fatal(status, err)
	}
	j := s.Job(made.ID)
	if j.Spec.User != "ann" || j.Spec.UID != 1 || j.Spec.GID != 1 {
		t.Errorf("the job is not its caller's: %+v", j.Spec)
	}
	path := "/api/v1/jobs/" + idText(made.ID)
	name, nice := "y", int32(100)
	calls := []struct {
		who, token   string
		method, path string
		body         any
		want         int
	}{
		{"nobody", "none", "GET", "/api/v1/jobs", nil, 401},
		{"a bad token", "bm_nonsense", "GET", "/api/v1/jobs", nil, 401},
		{"no token at all", "hello", "GET", "/api/v1/jobs", nil, 401},
		{"ping needs none", "none", "GET", "/api/v1/ping", nil, 200},
		{"bob sees", bob, "GET", path, nil, 200},
		{"bob reads the script", bob, "GET", path + "/script", nil, 403},
		{"bob reads the log", bob, "GET", path + "/logs", nil, 403},
		{"bob changes", bob, "PATCH", path, client.Update{Name: &name}, 403},
		{"the manager writes", mia, "PATCH", path, client.Update{Name: &name}, 403},
		{"the manager puts it last", mia, "PATCH", path, client.Update{Nice: &nice}, 200},
		{"the owner writes", ann, "PATCH", path, client.Update{Name: &name}, 200},
		{"the manager reads the script", mia, "GET", path + "/script", nil, 403},
		{"the owner reads the script", ann, "GET", path + "/script", nil, 200},
		{"the administrator reads it", boss, "GET", path + "/script", nil, 200},
		{"bob has no account", bob, "POST", "/api/v1/jobs", submitBody(), 400},
		{"ann makes a join token", ann, "POST", "/api/v1/tokens", client.NewToken{Kind: "join"}, 403},
		{"ann makes one for bob", ann, "POST", "/api/v1/tokens", client.NewToken{Kind: "user", User: "bob"}, 403},
		{"ann adds a user", ann, "POST", "/api/v1/users", core.User{Name: "eve"}, 403},
		{"the administrator does", boss, "POST", "/api/v1/users", core.User{Name: "eve"}, 200},
		{"twice", boss, "POST", "/api/v1/users", core.User{Name: "eve"}, 409},
		{"a role that is none", boss, "POST", "/api/v1/users", core.User{Name: "x", Role: "king"}, 400},
		{"ann drains a node", ann, "PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "drain", Reason: "x"}, 404},
		{
			"the manager adds a member", mia, "PUT", "/api/v1/projects/default/members/eve",
			map[string]string{"role": "user"},
			200,
		},
		{
			"and raises somebody above herself", mia, "PUT", "/api/v1/projects/default/members/eve",
			map[string]string{"role": "admin"},
			403,
		},
		{"ann submits for bob", ann, "POST", "/api/v1/jobs", withUser("bob"), 403},
		{"the administrator submits for bin", boss, "POST", "/api/v1/jobs", withUser("bin"), 200},
		{"or for a number", boss, "POST", "/api/v1/jobs", withUser("2"), 200},
		{"or for nobody there is", boss, "POST", "/api/v1/jobs", withUser("no-such-account"), 400},
		{"the administrator disables ann", boss, "PATCH", "/api/v1/users/ann", map[string]bool{"disabled": true}, 200},
		{"who may not come any more", ann, "GET", "/api/v1/whoami", nil, 403},
	}
	for _, c := range calls {
		if status, err := s.Call(c.method, c.path, c.token, c.body, nil); status != c.want {
			t.Errorf("%s: %s %s gave %d (%v), want %d", c.who, c.method, c.path, status, err, c.want)
		}
	}
	var list client.TokenList
	if _, err := s.Call("GET", "/api/v1/tokens", bob, nil, &list); err != nil || len(list.Tokens) != 1 ||
		list.Tokens[0].User != "bob" {
		t.Errorf("bob's tokens: %+v %v", list, err)
	}
	s.Must("DELETE", "/api/v1/tokens/"+list.Tokens[0].ID, nil, nil)
	if status, err := s.Call("GET", "/api/v1/whoami", bob, nil, nil); status != 401 || err.Reason != "bad_token" {
		t.Errorf("a revoked token: %d %v", status, err)
	}
	var me client.Whoami
	s.Must("GET", "/api/v1/whoami", nil, &me)
	if !me.Admin || me.UID != uint32(os.Geteuid()) {
		t.Errorf("whoever runs the server is its administrator: %+v", me)
	}
	data, err := json.Marshal(list)
	if err != nil || strings.Contains(string(data), "hash") {
		t.Errorf("a listing tells hashes: %s", data)
	}
}

func withUser(u core.UserName) *client.Submit {
	b := submitBody()
	b.Spec.User = u
	return b
}

func TestEnforcedAccountsRefuseStrangers(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "accounting.enforce=yes")
	var me client.Whoami
	s.Must("GET", "/api/v1/whoami", nil, &me) // the host's administrator is let in
	n := s.Join("n1", core.Compute|core.Login, false)
	// A stranger looks, as on Slurm, and changes nothing; looking leaves no user behind.
	if status, body := nodeGet(t, s, n, "1:1:daemon"); status != 200 || !strings.Contains(string(body), `"daemon"`) {
		t.Errorf("a stranger who looks: %d %s", status, body)
	}
	if status, body := nodeDo(t, s, n, "1:1:daemon", "POST", "/api/v1/jobs", submitBody()); status != 401 ||
		!strings.Contains(string(body), "invalid_account") {
		t.Errorf("a stranger who submits: %d %s", status, body)
	}
	other := uint32(54321)
	s.Must("POST", "/api/v1/users", core.User{Name: "bin", UnixName: "bin2", UID: &other}, nil)
	if status, err := nodeCall(t, s, n, "2:2:bin"); status != 401 || err.Code != core.Unknown {
		t.Errorf("a stranger with the name of somebody else: %d %v", status, err)
	}
	uid := uint32(1)
	s.Must("POST", "/api/v1/users", core.User{Name: "daemon", UnixName: "daemon", UID: &uid}, nil)
	if status, err := nodeCall(t, s, n, "1:1:daemon"); status != 200 {
		t.Errorf("a member: %d %v", status, err)
	}
}

// nodeCall makes a call with a node's certificate, as its agent does for a local caller.
func nodeCall(t *testing.T, s *servertest.Server, n *servertest.Agent, peer string) (int, *core.Error) {
	t.Helper()
	status, body := nodeGet(t, s, n, peer)
	var e client.ErrorBody
	if status >= 300 {
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatal(err, string(body))
		}
	}
	return status, &e.Error
}

func nodeGet(t *testing.T, s *servertest.Server, n *servertest.Agent, peer string) (int, []byte) {
	t.Helper()
	return nodeDo(t, s, n, peer, "GET", "/api/v1/whoami", nil)
}

func nodeDo(t *testing.T, s *servertest.Server, n *servertest.Agent, peer, method, path string, in any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.Info.Agents+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if peer != "" {
		req.Header.Set("Bireme-Peer", peer)
	}
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: n.TLS(), DisableKeepAlives: true}}
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestNodesSpeakForTheirUsers(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	plain, trusted := s.Join("n1", core.Compute, false), s.Join("n2", core.Login, true)
	cases := []struct {
		n     *servertest.Agent
		peer  string
		want  string
		admin bool
	}{
		{plain, "1:1:daemon", "daemon", false},
		{plain, "54321:54321:", "uid54321", false}, // unknown to us: a user at first use
		{plain, "0:0:root", "nobody", false},       // root of a node is nobody in particular
		{trusted, "0:0:root", "root", true},
	}
	for _, c := range cases {
		status, body := nodeGet(t, s, c.n, c.peer)
		var me client.Whoami
		if err := json.Unmarshal(body, &me); err != nil || status != 200 || string(me.User) != c.want || me.Admin != c.admin {
			t.Errorf("%s via %s: %d %s", c.peer, c.n.Name, status, body)
		}
	}
	for _, bad := range []string{"", "root", "x:y:z", "-1:0:a"} {
		if status, _ := nodeCall(t, s, plain, bad); status < 400 {
			t.Errorf("peer %q was let in", bad)
		}
	}
	// The header is worth nothing without a node's certificate.
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.Info.API+"/api/v1/whoami", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Bireme-Peer", "0:0:root")
	resp, err := s.Far().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("a header alone: %d", resp.StatusCode)
	}
}

func TestNodesDoNotGetBeyondTheirUsers(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "admins=daemon")
	plain, trusted := s.Join("n1", core.Compute, false), s.Join("n2", core.Login, true)
	for _, c := range []struct {
		n     *servertest.Agent
		peer  string
		want  string
		admin bool
	}{
		{plain, "2:2:root", "bin", false}, // names are this host's
		{plain, "54321:54321:root", "uid54321", false},
		{plain, "1:1:daemon", "daemon", false}, // an administrator's uid is there for any root to take
		{trusted, "1:1:daemon", "daemon", true},
	} {
		status, body := nodeGet(t, s, c.n, c.peer)
		var me client.Whoami
		if err := json.Unmarshal(body, &me); err != nil || status != 200 || string(me.User) != c.want || me.Admin != c.admin {
			t.Errorf("%s via %s: %d %s", c.peer, c.n.Name, status, body)
		}
	}
	for _, c := range []struct {
		peer     string
		want     int
		uid, gid uint32
	}{
		{"2:2:bin", 200, 2, 2},
		{"2:0:bin", 200, 2, 2}, // its own group, not root's
		{"0:0:root", 400, 0, 0},
		{"54321:54321:", 400, 0, 0},
	} {
		status, body := nodeDo(t, s, plain, c.peer, "POST", "/api/v1/jobs", submitBody())
		if status != c.want {
			t.Errorf("%s submits: %d %s", c.peer, status, body)
			continue
		}
		if status != 200 {
			continue
		}
		var made client.Submitted
		if err := json.Unmarshal(body, &made); err != nil {
			t.Fatal(err)
		}
		if j := s.Job(made.ID); j.Spec.UID != c.uid || j.Spec.GID != c.gid {
			t.Errorf("%s runs as %d:%d", c.peer, j.Spec.UID, j.Spec.GID)
		}
	}
	// What an agent passes on does not get in as the agent.
	for _, path := range []string{"/agent/v1/connect", "/agent/v1/streams/x"} {
		if status, body := nodeDo(t, s, plain, "1:1:daemon", "GET", path, nil); status != 401 {
			t.Errorf("%s for a user: %d %s", path, status, body)
		}
	}
}

func TestUpdateOfAUserTouchesNothingBeforeItIsAllowed(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	ann, bob, _, _ := people(s)
	if status, err := s.Call("PATCH", "/api/v1/users/ann", bob, map[string]any{"uid": 7, "role": "admin"},
		nil); status != 403 {
		t.Errorf("bob changes ann: %d %v", status, err)
	}
	var u core.User
	s.Must("GET", "/api/v1/users/ann", nil, &u)
	if u.UID == nil || *u.UID != 1 || u.Role != core.RoleUser {
		t.Errorf("ann is %+v now", u)
	}
	var me client.Whoami
	if _, err := s.Call("GET", "/api/v1/whoami", ann, nil, &me); err != nil || me.UID != 1 {
		t.Errorf("ann is %+v %v", me, err)
	}
}

func TestJoinTokenWorksOnce(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	var made client.NewTokenMade
	s.Must("POST", "/api/v1/tokens", client.NewToken{Kind: "join", Node: "n1"}, &made)
	if !strings.HasPrefix(made.Secret, "bm_") || !strings.Contains(made.CA, "BEGIN CERTIFICATE") {
		t.Errorf("token %+v", made)
	}
	_, csr := servertest.NewCSR(t)
	cases := []struct {
		what string
		in   client.Join
		want int
	}{
		{"a broken request does not spend it", client.Join{Token: made.Secret, Node: "n1", CSR: "x"}, 400},
		{"nor another node", client.Join{Token: made.Secret, Node: "n2", CSR: csr}, 403},
		{"a wrong token", client.Join{Token: "bm_x", Node: "n1", CSR: csr}, 401},
		{"a name that is none", client.Join{Token: made.Secret, Node: "../x", CSR: csr}, 400},
		{"the first", client.Join{Token: made.Secret, Node: "n1", CSR: csr}, 200},
		{"the second", client.Join{Token: made.Secret, Node: "n1", CSR: csr}, 409},
	}
	for _, c := range cases {
		if status, err := s.Call("POST", "/api/v1/join", "none", c.in, nil); status != c.want {
			t.Errorf("%s: %d %v, want %d", c.what, status, err, c.want)
		}
	}
	if status, err := s.Call("GET", "/api/v1/whoami", made.Secret, nil, nil); status != 401 {
		t.Errorf("a join token is no user's: %d %v", status, err)
	}
}

func TestRevokedNodeIsRefused(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	var list client.TokenList
	s.Must("GET", "/api/v1/tokens", nil, &list)
	s.Must("DELETE", "/api/v1/tokens/"+list.Tokens[0].ID, nil, nil)
	n.AwaitCut()
	if err := n.TryConnect(); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a revoked node came back: %v", err)
	}
	if status, _ := nodeCall(t, s, n, "1:1:daemon"); status != 403 {
		t.Errorf("and spoke for a user: %d", status)
	}
	n = s.Join("n1", core.Compute, false) // joining again heals it
	n.Connect()
	other := servertest.Start(t)
	stranger := other.Join("n1", core.Compute, false)
	stranger.Move(s)
	if err := stranger.TryConnect(); err == nil {
		t.Error("a node of another cluster was let in")
	}
}
