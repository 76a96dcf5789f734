package server_test

import (
	"net/http"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// make asks for a token as somebody and gives its secret.
func makeToken(t *testing.T, s *servertest.Server, with string, in client.NewToken) client.NewTokenMade {
	t.Helper()
	var made client.NewTokenMade
	if status, err := s.Call("POST", "/api/v1/tokens", with, in, &made); err != nil {
		t.Fatal(status, err)
	}
	return made
}

func TestScopesBoundWhatATokenMayDo(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	uid := uint32(1)
	ann := s.Token(core.User{Name: "ann", UnixName: "daemon", UID: &uid})
	boss := s.Token(core.User{Name: "boss", Role: core.RoleAdmin})
	s.Must("POST", "/api/v1/projects", core.Project{Name: "ml"}, nil)
	s.Must("PUT", "/api/v1/projects/ml/members/ann", map[string]string{"role": "manager"}, nil)
	s.Must("POST", "/api/v1/projects", core.Project{Name: "web"}, nil)
	s.Must("PUT", "/api/v1/projects/web/members/ann", map[string]string{"role": "user"}, nil)
	in := func(project core.ProjectName) *client.Submit {
		b := submitBody()
		b.Spec.Project = project
		return b
	}
	var ml, web client.Submitted
	for p, id := range map[core.ProjectName]*client.Submitted{"ml": &ml, "web": &web} {
		if status, err := s.Call("POST", "/api/v1/jobs", ann, in(p), id); err != nil {
			t.Fatal(status, err)
		}
	}
	read := makeToken(t, s, ann, client.NewToken{Name: "r", Scopes: []core.Scope{core.ScopeRead}}).Secret
	submit := makeToken(t, s, ann, client.NewToken{Name: "s", Scopes: []core.Scope{core.ScopeSubmit}}).Secret
	of := makeToken(t, s, ann, client.NewToken{Name: "p", Project: "ml"}).Secret
	plain := makeToken(t, s, boss, client.NewToken{Scopes: []core.Scope{core.ScopeRead, core.ScopeSubmit}}).Secret
	admin := makeToken(t, s, boss, client.NewToken{Scopes: []core.Scope{core.ScopeAdmin}}).Secret
	mlJob, webJob := "/api/v1/jobs/"+idText(ml.ID), "/api/v1/jobs/"+idText(web.ID)
	name := "z"
	for _, c := range []struct {
		what, token, method, path string
		body                      any
		want                      int
	}{
		{"read lists", read, "GET", "/api/v1/jobs", nil, 200},
		{"read sees the script", read, "GET", mlJob + "/script", nil, 200},
		{"read submits", read, "POST", "/api/v1/jobs", in("ml"), 403},
		{"read changes", read, "PATCH", mlJob, client.Update{Name: &name}, 403},
		{"read makes a token", read, "POST", "/api/v1/tokens", client.NewToken{}, 403},
		{"read revokes another", read, "DELETE", "/api/v1/tokens/s", nil, 403},
		{"submit submits", submit, "POST", "/api/v1/jobs", in("ml"), 200},
		{"submit manages", submit, "PUT", "/api/v1/projects/ml/members/boss", map[string]string{"role": "user"}, 403},
		{
			"an empty list of scopes", admin, "POST", "/api/v1/tokens",
			map[string]any{"kind": "user", "scopes": []string{}},
			400,
		},
		{"submit makes admin", submit, "POST", "/api/v1/tokens", client.NewToken{Scopes: []core.Scope{core.ScopeAdmin}}, 403},
		{"submit makes one without end", submit, "POST", "/api/v1/tokens", client.NewToken{TTL: core.Forever}, 403},
		{"submit makes its like", submit, "POST", "/api/v1/tokens", client.NewToken{}, 200},
		{"project submits", of, "POST", "/api/v1/jobs", in(""), 200},
		{"project submits elsewhere", of, "POST", "/api/v1/jobs", in("web"), 403},
		{"project sees its job", of, "GET", mlJob, nil, 200},
		{"project sees another's", of, "GET", webJob, nil, 403},
		{"project changes its job", of, "PATCH", mlJob, client.Update{Name: &name}, 200},
		{"project changes another's", of, "PATCH", webJob, client.Update{Name: &name}, 403},
		{"project lists another", of, "GET", "/api/v1/jobs?project=web", nil, 403},
		{"project lists two", of, "GET", "/api/v1/jobs?project=ml,web", nil, 403},
		{"project lists users", of, "GET", "/api/v1/users", nil, 403},
		{"project watches", of, "GET", "/api/v1/watch", nil, 403},
		{"project makes a token", of, "POST", "/api/v1/tokens", client.NewToken{}, 403},
		{"an administrator without the scope", plain, "POST", "/api/v1/users", core.User{Name: "x1"}, 403},
		{"reads another's script", plain, "GET", mlJob + "/script", nil, 403},
		{"with it", admin, "POST", "/api/v1/users", core.User{Name: "x2"}, 200},
		{"for another user", admin, "POST", "/api/v1/tokens", client.NewToken{User: "ann"}, 200},
	} {
		if status, err := s.Call(c.method, c.path, c.token, c.body, nil); status != c.want {
			t.Errorf("%s: %s %s gave %d (%v), want %d", c.what, c.method, c.path, status, err, c.want)
		}
	}
	var list client.JobList
	if _, err := s.Call("GET", "/api/v1/jobs", of, nil, &list); err != nil || len(list.Jobs) != 3 {
		t.Errorf("a project's token lists %d jobs: %v", len(list.Jobs), err)
	}
	for _, j := range list.Jobs {
		if j.Spec.Project != "ml" {
			t.Errorf("job %d of project %s is listed", j.ID, j.Spec.Project)
		}
	}
	var done client.Cancelled
	status, err := s.Call("POST", "/api/v1/jobs/cancel", of, client.Cancel{IDs: []string{idText(web.ID)}}, &done)
	if j := s.Job(web.ID); j.State.Final() {
		t.Errorf("a token of project ml cancelled a job of web: %d %v %+v", status, err, done)
	}
}

func TestTokensAreRotatedAndCounted(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "limits.tokens=5", "tokens.max_lifetime=100d")
	ann := s.Token(core.User{Name: "ann"})
	first := makeToken(t, s, "", client.NewToken{User: "ann", Name: "laptop", Scopes: []core.Scope{core.ScopeRead}})
	if days := (first.Token.Expires - first.Token.Created) / (24 * 3600 * 1e6); days != 90 {
		t.Errorf("a token lasts %d days", days)
	}
	if k := makeToken(t, s, "", client.NewToken{User: "ann", Client: "dstack"}).Token; k.Expires == 0 {
		t.Errorf("tokens.max_lifetime does not hold for dstack: %+v", k)
	}
	if status, err := s.Call("POST", "/api/v1/tokens", ann, client.NewToken{TTL: core.Forever}, nil); status != 403 ||
		err.Reason != "token_scope" && err.Reason != "token_lifetime" {
		t.Errorf("a token without end: %d %v", status, err)
	}
	var made client.NewTokenMade
	s.Must("POST", "/api/v1/tokens/"+first.Token.ID+"/rotate", client.RotateToken{Overlap: 600}, &made)
	whoami := func(secret string) int { status, _ := s.Call("GET", "/api/v1/whoami", secret, nil, nil); return status }
	if a, b := whoami(first.Secret), whoami(made.Secret); a != 200 || b != 200 || made.Token.Name != "laptop" ||
		made.Token.ID != first.Token.ID {
		t.Errorf("during the overlap: %d %d %+v", a, b, made.Token)
	}
	if status, err := s.Call("POST", "/api/v1/tokens/laptop/rotate", first.Secret, client.RotateToken{},
		nil); status != 403 {
		t.Errorf("the old secret rotates: %d %v", status, err)
	}
	var again client.NewTokenMade
	if status, err := s.Call("POST", "/api/v1/tokens/laptop/rotate", made.Secret, client.RotateToken{},
		&again); status != 200 {
		t.Fatalf("a token rotates itself: %d %v", status, err)
	}
	if a, b, c := whoami(first.Secret), whoami(made.Secret), whoami(again.Secret); a != 401 || b != 401 || c != 200 {
		t.Errorf("after a rotation without overlap: %d %d %d", a, b, c)
	}
	var list client.TokenList
	s.Must("GET", "/api/v1/tokens", nil, &list)
	for _, k := range list.Tokens {
		if k.ID == first.Token.ID && (k.LastUsed == 0 || !k.Prior.IsZero()) {
			t.Errorf("the listing: %+v", k)
		}
	}
	for range 5 {
		status, err := s.Call("POST", "/api/v1/tokens", ann, client.NewToken{}, nil)
		if status == http.StatusTooManyRequests {
			if !strings.Contains(err.Message, "limits.tokens") || err.Code != core.Exhausted {
				t.Errorf("the refusal: %v", err)
			}
			return
		}
	}
	t.Error("ann makes tokens without number")
}
