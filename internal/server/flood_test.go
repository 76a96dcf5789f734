package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// openStream begins a GET with a token and gives the answer, whose body may be a stream.
func openStream(t *testing.T, s *servertest.Server, path, token string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Timeout)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.Info.API+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.Far().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// One user's requests beyond the rate are refused by the name of the limit; another's continue, and so do the
// administrator's.
func TestRequestsOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "limits.requests_per_second=1", "limits.requests_burst=5")
	alice, bob := s.Token(core.User{Name: "alice"}), s.Token(core.User{Name: "bob"})
	refused := false
	for range 20 {
		resp := openStream(t, s, "/api/v1/whoami", alice)
		if resp.StatusCode == http.StatusOK {
			continue
		}
		refused = true
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" ||
			!strings.Contains(string(body), "limits.requests_per_second") || !strings.Contains(string(body), `"exhausted"`) {
			t.Errorf("%s %v %s", resp.Status, resp.Header, body)
		}
	}
	if !refused {
		t.Error("nothing was refused")
	}
	if status, err := s.Call("GET", "/api/v1/whoami", bob, nil, nil); err != nil {
		t.Errorf("another user: %d %v", status, err)
	}
	for range 20 {
		s.Must("GET", "/api/v1/whoami", nil, nil)
	}
}

// Whoever shows no identity, or a false one, is limited by address; callers with one are not harmed.
func TestUnknownCallersAreLimited(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "limits.unknown_requests=1")
	alice := s.Token(core.User{Name: "alice"})
	for _, c := range []struct{ method, path, token string }{
		{"GET", "/api/v1/ping", "none"}, {"GET", "/api/v1/whoami", "bm_wrong"}, {"POST", "/api/v1/join", "none"},
	} {
		refused := false
		for range 20 {
			status, err := s.Call(c.method, c.path, c.token, nil, nil)
			if refused = status == http.StatusTooManyRequests; refused {
				if !strings.Contains(err.Message, "limits.unknown_requests") {
					t.Error(err)
				}
				break
			}
		}
		if !refused {
			t.Errorf("%s %s was never refused", c.method, c.path)
		}
	}
	if status, err := s.Call("GET", "/api/v1/whoami", alice, nil, nil); err != nil {
		t.Errorf("a user from the same address: %d %v", status, err)
	}
}

// The streams of a user are counted, and closed ones are not.
func TestStreamsOfAUserAreCounted(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "limits.streams=3", "limits.followers=1")
	alice, bob := s.Token(core.User{Name: "alice"}), s.Token(core.User{Name: "bob"})
	var streams []*http.Response
	for range 3 {
		resp := openStream(t, s, "/api/v1/watch", alice)
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		streams = append(streams, resp)
	}
	more := openStream(t, s, "/api/v1/watch", alice)
	body, err := io.ReadAll(more.Body)
	if err != nil || more.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), "limits.streams") {
		t.Errorf("a fourth stream: %s %s", more.Status, body)
	}
	if resp := openStream(t, s, "/api/v1/watch", bob); resp.StatusCode != http.StatusOK {
		t.Errorf("another user: %s", resp.Status)
	}
	if status, err := s.Call("GET", "/api/v1/whoami", alice, nil, nil); err != nil {
		t.Errorf("a request beside the streams: %d %v", status, err)
	}
	streams[0].Body.Close()
	s.Await("room for a stream", func() bool {
		resp := openStream(t, s, "/api/v1/watch", alice)
		resp.Body.Close()
		s.Submit(nil) // the next event, to look again at
		return resp.StatusCode == http.StatusOK
	})
}

// A stream ends when the token it was opened with is revoked or expires, or when its user is disabled or made an
// administrator.
func TestStreamsEndWithTheirRights(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	token := func(user core.UserName, role core.Role) (made client.NewTokenMade) {
		s.Token(core.User{Name: user, Role: role})
		s.Must("POST", "/api/v1/tokens", client.NewToken{Kind: "user", User: user}, &made)
		return made
	}
	one, two, three, keep := token("ann", core.RoleAdmin), token("ben", ""), token("cat", ""), token("dan", "")
	follow := s.Submit(func(in *client.Submit) { in.Spec.Hold = true })
	streams := map[string]*http.Response{
		"revoked: watch": openStream(t, s, "/api/v1/watch", one.Secret),
		"disabled":       openStream(t, s, "/api/v1/watch", two.Secret),
		"role":           openStream(t, s, "/api/v1/watch", three.Secret),
	}
	s.Token(core.User{Name: "eve"})
	var jwt client.JWT
	s.Must("POST", "/api/v1/tokens/jwt", client.NewJWT{User: "eve", Lifespan: core.Forever}, &jwt)
	streams["revoked JWT"] = openStream(t, s, "/api/v1/watch", jwt.Token)
	other := openStream(t, s, "/api/v1/watch", keep.Secret)
	following := make(chan error, 1)
	go func() { // it waits for the job's start
		req, _ := http.NewRequestWithContext(t.Context(), "GET",
			fmt.Sprintf("%s/api/v1/jobs/%d/logs?follow=1", s.Info.API, follow), nil)
		req.Header.Set("Authorization", "Bearer "+one.Secret)
		resp, err := s.Far().Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		following <- err
	}()
	for open := ""; !strings.Contains(open, "bireme_streams_open 6\n"); runtime.Gosched() {
		var text []byte
		s.Must("GET", "/metrics", nil, &text)
		open = string(text)
	}
	s.Must("DELETE", "/api/v1/tokens/"+one.Token.ID, nil, nil)
	s.Must("POST", "/api/v1/tokens/jwt/revoke", client.RevokeJWTs{User: "eve"}, nil)
	s.Must("PATCH", "/api/v1/users/ben", map[string]any{"disabled": true}, nil)
	s.Must("PATCH", "/api/v1/users/cat", map[string]any{"role": "admin"}, nil)
	var soon client.NewTokenMade
	s.Must("POST", "/api/v1/tokens", client.NewToken{Kind: "user", User: "dan", TTL: 3}, &soon)
	streams["expired"] = openStream(t, s, "/api/v1/watch", soon.Secret)
	for what, resp := range streams {
		data, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(data), "event: bye") {
			t.Errorf("%s: %v, %q", what, err, data)
		}
	}
	<-following // with an error or a short answer: it came to its end
	s.Must("PATCH", "/api/v1/nodes/idle", client.UpdateNode{State: "drain", Reason: "test"}, nil)
	if line, err := bufio.NewReader(other.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "id: ") {
		t.Errorf("another's stream: %q, %v", line, err)
	}
}

// BenchmarkIdleWatch measures what an idle watch costs the server; the client's side is a bare connection.
func BenchmarkIdleWatch(b *testing.B) {
	s := servertest.Start(b, "limits.streams=0", "limits.requests_per_second=0")
	token := s.Token(core.User{Name: "alice"})
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	const n = 2000
	for b.Loop() {
		var conns []net.Conn
		before := memory()
		for range n {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.Info.API, "http://"))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.WriteString(c, "GET /api/v1/watch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+
				"\r\n\r\n"); err != nil {
				b.Fatal(err)
			}
			var head [512]byte
			if _, err := c.Read(head[:]); err != nil {
				b.Fatal(err)
			}
			conns = append(conns, c)
		}
		b.ReportMetric(float64(memory()-before)/n, "B/stream")
		for _, c := range conns {
			c.Close()
		}
	}
}
