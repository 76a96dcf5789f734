package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/proxy"
)

// lab is a proxy behind a real server.
type lab struct {
	t     *testing.T
	proxy *proxy.Proxy
	url   string
	woken atomic.Int64
}

func newLab(t *testing.T, limits proxy.Limits) *lab {
	l := &lab{t: t}
	l.proxy = proxy.New(proxy.Config{
		Limits: limits,
		Admit: func(r *http.Request, s *proxy.Service) (string, error) {
			if r.Header.Get("Authorization") != "Bearer good" || s.Project != "main" {
				return "", core.Errorf(core.Denied, "Access denied")
			}
			return "alice", nil
		},
		See:   func(*http.Request, core.ProjectName) error { return nil },
		Woken: func(string) { l.woken.Add(1) },
	})
	front := httptest.NewServer(http.HandlerFunc(l.proxy.ServePath))
	t.Cleanup(func() { front.Close(); l.proxy.Close() })
	l.url = front.URL
	return l
}

// replica starts a replica and says how it is reached.
func (l *lab) replica(id string, h http.HandlerFunc) proxy.Replica {
	s := httptest.NewServer(h)
	l.t.Cleanup(s.Close)
	addr := s.Listener.Addr().String()
	return proxy.Replica{ID: id, Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}}
}

// dead is a replica that nobody can connect to.
func dead(id string) proxy.Replica {
	return proxy.Replica{ID: id, Dial: func(context.Context) (net.Conn, error) {
		return nil, errors.New("nothing listens on port 80")
	}}
}

// cut is a replica that takes requests and ends its connections in the middle of the answer.
func (l *lab) cut(id string, hits *atomic.Int64) proxy.Replica {
	return l.replica(id, func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			_ = c.Close()
		}
	})
}

func (l *lab) table(change func(*proxy.Service), list ...proxy.Replica) {
	s := proxy.Service{ID: "id", Project: "main", Name: "web", Open: true, Replicas: list}
	if change != nil {
		change(&s)
	}
	l.proxy.SetTable([]proxy.Service{s})
}

func (l *lab) do(method, path, body string, headers ...string) (int, string) {
	l.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, l.url+path, in)
	if err != nil {
		l.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestRequest: what a replica sees of a request.
func TestRequest(t *testing.T) {
	t.Parallel()
	l := newLab(t, proxy.Limits{})
	show := l.replica("a", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s|%s|%s", r.RequestURI, r.Host, r.Header.Get("X-Forwarded-For"),
			r.Header.Get("X-Forwarded-Prefix"), r.Header.Get("Authorization"))
	})
	l.table(nil, show)
	host := strings.TrimPrefix(l.url, "http://")
	for path, want := range map[string]string{
		"/proxy/services/main/web/":                     "/",
		"/proxy/services/main/web":                      "/",
		"/proxy/services/main/web/a%2Fb//c?x=1;y&z=%zz": "/a%2Fb//c?x=1;y&z=%zz",
		"/proxy/services/main/web/../../other/web/x":    "/../../other/web/x", // the replica's own affair
	} {
		code, text := l.do("GET", path, "", "X-Forwarded-For", "10.9.9.9", "X-Forwarded-Prefix", "/evil")
		if code != 200 || text != want+"|"+host+"|127.0.0.1|/proxy/services/main/web|" {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	for _, path := range []string{
		"/proxy/services/main%2Fweb/", "/proxy/services/other/web/", "/proxy/services/", "/proxy/services/main/../main/web/",
	} {
		if code, text := l.do("GET", path, ""); code != 404 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	l.table(func(s *proxy.Service) { s.Open, s.KeepPrefix = false, true }, show)
	if code, _ := l.do("GET", "/proxy/services/main/web/", ""); code != 403 {
		t.Errorf("without a token: %d", code)
	}
	code, text := l.do("GET", "/proxy/services/main/web/x", "", "Authorization", "Bearer good")
	if code != 200 || !strings.HasPrefix(text, "/proxy/services/main/web/x|") || strings.Contains(text, "good") {
		t.Errorf("%d %s", code, text)
	}
}

// TestDeadReplicas: what may be repeated is, and nobody sees it; what may not gets one 502, and reaches one replica.
func TestDeadReplicas(t *testing.T) {
	t.Parallel()
	l := newLab(t, proxy.Limits{})
	var cuts, posts atomic.Int64
	ok := l.replica("ok", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			posts.Add(1)
		}
		_, _ = io.Copy(w, r.Body)
		fmt.Fprint(w, "fine")
	})
	cut := l.cut("cut", &cuts)
	for range 20 {
		l.table(nil, dead("gone"), cut, ok)
		if code, text := l.do("GET", "/proxy/services/main/web/", ""); code != 200 || text != "fine" {
			t.Fatalf("%d %s", code, text)
		}
	}
	// Nothing of it was sent to a replica that cannot be reached.
	l.table(nil, dead("gone2"), ok)
	for range 5 {
		if code, text := l.do("POST", "/proxy/services/main/web/", "body-"); code != 200 || text != "body-fine" {
			t.Fatalf("%d %s", code, text)
		}
	}
	cuts.Store(0)
	posts.Store(0)
	broken := l.replica("broken", func(w http.ResponseWriter, r *http.Request) {
		cuts.Add(1)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	})
	l.table(nil, broken)
	if code, text := l.do("POST", "/proxy/services/main/web/", "x"); code != 502 || !strings.Contains(text, "detail") ||
		cuts.Load() != 1 {
		t.Fatalf("%d %s, sent %d times", code, text, cuts.Load())
	}
	l.table(nil)
	if code, text := l.do("GET", "/proxy/services/main/web/", ""); code != 503 {
		t.Fatalf("without a replica: %d %s", code, text)
	}
}

// TestHeld: a request of a service without replicas wakes it and is answered when one is there.
func TestHeld(t *testing.T) {
	t.Parallel()
	l := newLab(t, proxy.Limits{})
	wakes := func(s *proxy.Service) { s.Wakes = true }
	l.table(wakes)
	done := make(chan string, 1)
	go func() {
		code, text := l.do("GET", "/proxy/services/main/web/", "")
		done <- fmt.Sprint(code, text)
	}()
	for l.woken.Load() == 0 {
		select {
		case got := <-done:
			t.Fatal(got)
		default:
		}
	}
	if n := l.proxy.Stats("id").Waiting.Load(); n != 1 {
		t.Fatalf("%d wait", n)
	}
	l.table(wakes, l.replica("a", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "up") }))
	if got := <-done; got != "200up" {
		t.Fatal(got)
	}
}

// TestLimits: rate limits, sizes and what one client may have under way.
func TestLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t, proxy.Limits{Body: 10, PerUser: 1})
	enter, leave := make(chan struct{}), make(chan struct{})
	a := l.replica("a", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			enter <- struct{}{}
			<-leave
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	l.table(func(s *proxy.Service) {
		s.RateLimits = []core.RateLimit{
			{Prefix: "/", RPS: 1000, Burst: 1000}, {Prefix: "/slow", RPS: 1.0 / 60, Burst: 1, Header: "X-Key"},
		}
	}, a)
	at := "/proxy/services/main/web"
	for i, want := range []int{200, 200, 429} {
		if code, text := l.do("GET", at+"/%73low/x", "", "X-Key", "k"); code != want {
			t.Fatalf("request %d: %d %s", i, code, text)
		}
	}
	if code, _ := l.do("GET", at+"/slow", "", "X-Key", "other"); code != 200 {
		t.Fatalf("another client: %d", code)
	}
	if code, text := l.do("POST", at+"/", "more than ten bytes"); code != 413 {
		t.Fatalf("%d %s", code, text)
	}
	done := make(chan int, 1)
	go func() { code, _ := l.do("GET", at+"/wait", ""); done <- code }()
	<-enter
	if n := l.proxy.InFlight("a"); n != 1 {
		t.Fatalf("%d under way", n)
	}
	if code, _ := l.do("GET", at+"/", ""); code != 429 {
		t.Fatalf("two at once: %d", code)
	}
	l.table(nil) // it leaves the table, and its request goes on
	if n := l.proxy.InFlight("a"); n != 1 {
		t.Fatalf("%d under way", n)
	}
	close(leave)
	if code := <-done; code != 200 {
		t.Fatal(code)
	}
}

// TestStreams: events come as they are sent, and connections that change their protocol are joined.
func TestStreams(t *testing.T) {
	t.Parallel()
	l := newLab(t, proxy.Limits{})
	next := make(chan struct{})
	l.table(nil, l.replica("a", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := rw.ReadString('\n')
			_, _ = io.WriteString(c, "echo "+line)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-next
		fmt.Fprint(w, "data: 2\n\n")
	}))
	resp, err := http.Get(l.url + "/proxy/services/main/web/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	if line, err := events.ReadString('\n'); line != "data: 1\n" {
		t.Fatalf("%q %v", line, err)
	}
	close(next)
	if rest, err := io.ReadAll(events); string(rest) != "\ndata: 2\n\n" {
		t.Fatalf("%q %v", rest, err)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /proxy/services/main/web/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != 101 {
		t.Fatalf("%v %v", answer, err)
	}
	fmt.Fprint(c, "hello\n")
	if line, err := in.ReadString('\n'); line != "echo hello\n" {
		t.Fatalf("%q %v", line, err)
	}
}

// TestModels: a project's models are listed, and a chat request goes to the service of the model that it names.
func TestModels(t *testing.T) {
	t.Parallel()
	l := newLab(t, proxy.Limits{})
	l.table(func(s *proxy.Service) {
		s.Model = &core.ServiceModel{Name: "llama", Format: "openai", Prefix: "/api/v1"}
	},
		l.replica("a", func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s", r.URL.Path, text)
		}))
	code, text := l.do("GET", "/proxy/models/main/models", "")
	if code != 200 || !strings.Contains(text, `"id":"llama"`) {
		t.Fatalf("%d %s", code, text)
	}
	ask := `{"model":"llama","messages":[]}`
	if code, text := l.do("POST", "/proxy/models/main/chat/completions", ask); text != "/api/v1/chat/completions "+ask {
		t.Fatalf("%d %s", code, text)
	}
	for body, want := range map[string]int{`{"model":"other"}`: 404, `nonsense`: 400} {
		if code, text := l.do("POST", "/proxy/models/main/chat/completions", body); code != want {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	if code, text := l.do("GET", "/proxy/models/other/models", ""); text != `{"data":[],"object":"list"}` {
		t.Fatalf("%d %s", code, text)
	}
}
