package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/metrics"
	"bireme.dev/bireme/internal/server/api/steps"
)

// logText is a log that is read while the server may write it.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// broken serves one handler and keeps the server's log.
func broken(t *testing.T, h call.Handler) (url string, log *logText) {
	t.Helper()
	log = &logText{}
	a := &API{Base: &call.Base{
		Log:    slog.New(slog.NewTextHandler(log, nil)),
		Engine: engine.New(nil, engine.Config{}, slog.New(slog.DiscardHandler)),
	}}
	a.Live.Store(&config.Config{})
	a.metrics = metrics.New(a.Base, nil, nil)
	rt := &call.Route{Method: "GET", Path: "/", Handle: h, Open: true}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request,
	) {
		a.serve(rt, a.metrics.Route(rt), w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, log
}

func TestPanicIsAnAnswerWithItsID(t *testing.T) {
	t.Parallel()
	url, log := broken(t, func(http.ResponseWriter, *http.Request, *call.Caller) (any, error) {
		var list []int
		return list[len(list)+3], nil
	})
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body client.ErrorBody
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	id := resp.Header.Get(RequestIDHeader)
	if resp.StatusCode != 500 || id == "" || body.RequestID != id || !strings.Contains(body.Error.Message, id) {
		t.Errorf("%d, id %q, body %+v", resp.StatusCode, id, body)
	}
	for _, want := range []string{id, "index out of range", "fail_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log)
		}
	}
	if strings.Contains(body.Error.Message, "index out of range") {
		t.Errorf("the caller is told what only the log should say: %s", body.Error.Message)
	}
}

// After the first byte nothing else can be said: the stream is cut, never completed as if it were whole.
func TestPanicAfterTheAnswerBeganCutsIt(t *testing.T) {
	t.Parallel()
	url, log := broken(t, func(w http.ResponseWriter, _ *http.Request, _ *call.Caller) (any, error) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		panic("half way")
	})
	resp, err := http.Get(url)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("the answer came to its end")
	}
	if !strings.Contains(log.String(), "half way") {
		t.Errorf("the log: %s", log)
	}
}

func TestPanicOnAHijackedStreamClosesIt(t *testing.T) {
	t.Parallel()
	url, log := broken(t, func(w http.ResponseWriter, r *http.Request, _ *call.Caller) (any, error) {
		if _, err := steps.Upgrade(w, r, "bireme-stream"); err != nil {
			return nil, err
		}
		panic("in the stream")
	})
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c,
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: bireme-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(c)
	if err != nil || !bytes.HasPrefix(data, []byte("HTTP/1.1 101")) {
		t.Errorf("%q, %v", data, err)
	}
	if !strings.Contains(log.String(), "in the stream") {
		t.Errorf("the log: %s", log)
	}
}

// A body that is announced and never sent costs what has arrived of it.
func TestBodyGetsMemoryAsItArrives(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/", io.LimitReader(strings.NewReader(strings.Repeat("x", 1000)), 1000))
	r.ContentLength = call.MaxBody
	b, err := call.ReadBody(r, call.MaxBody)
	if err != nil {
		t.Fatal(err)
	}
	if b.Cap() > 1<<20 {
		t.Errorf("%d bytes of memory for 1000 that came", b.Cap())
	}
}

// Numbers and the description of the API are open only where nobody but this host's users can ask for them.
func TestOnLoopback(t *testing.T) {
	t.Parallel()
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 6818} }
	for _, c := range []struct {
		listen string
		came   net.Addr
		open   bool
	}{
		{"127.0.0.1:6818", tcp("127.0.0.1"), true},
		{"localhost:6818", tcp("::1"), true},
		{"", &net.UnixAddr{Name: "/run/x", Net: "unix"}, true},
		{"0.0.0.0:6818", tcp("127.0.0.1"), false}, // others can reach it
		{":6818", tcp("127.0.0.1"), false},
		{"192.0.2.1:6818", tcp("192.0.2.1"), false},
		{"127.0.0.1:6818", tcp("192.0.2.1"), false}, // the agents' listener
	} {
		a := &API{Base: &call.Base{Config: &config.Config{Server: config.Server{Listen: c.listen}}}}
		r := httptest.NewRequest("GET", "/metrics", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.came))
		if got := a.onLoopback(r); got != c.open {
			t.Errorf("listening on %q, asked at %v: open %v", c.listen, c.came, got)
		}
	}
}
